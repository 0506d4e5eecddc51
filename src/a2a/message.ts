/**
 * Converts a message of a client to a new task (docs/a2a.md). The description consists of the parts in their order,
 * with a blank line between them: text unchanged, data as JSON, a URL and a file by their names. The title is its first
 * line. Parts with bytes become files of the task.
 */
import { safeMediaType } from "../http/download.ts";
import { baseName } from "../http/multipart.ts";
import * as limit from "../domain/limits.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { FileDraft } from "../service/files.ts";
import type { Part, SendMessage } from "./requests.ts";
import { malformed } from "./fault.ts";

export function titleOf(description: string): string {
  const [line = ""] = description.trimStart().split("\n", 1);
  const title = line.trim();
  if (title.length <= limit.TITLE_MAX_CHARS) return title;
  return `${title.slice(0, limit.TITLE_MAX_CHARS - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

export function descriptionOf({ parts }: SendMessage["message"]): string {
  return parts.map(textOf).join("\n\n");
}

function textOf({ text, data, url, ...file }: Part): string {
  if (text !== undefined) return text;
  if (data !== undefined) return JSON.stringify(data);
  const named = file.filename ? `${fileName(file)} ` : "";
  return url === undefined ? `File: ${fileName(file)}` : `File: ${named}${url}`;
}

/**
 * The answer to a question, as JSON text: data as it is, anything else as text.
 * @throws {Fault} for one that has files, or is too large
 */
export function answerIn({ parts }: SendMessage["message"]): string {
  const withFile = parts.findIndex(({ raw }) => raw !== undefined);
  if (withFile !== -1) throw malformed(`message.parts.${withFile}.raw`, "an answer has no files: send a URL");
  const [only] = parts.length === 1 ? parts : [];
  const value = only?.data ?? parts.map(textOf).join("\n\n");
  const answer = JSON.stringify(value);
  if (Buffer.byteLength(answer) > limit.ANSWER_MAX_BYTES)
    throw malformed("message.parts", `must have at most ${limit.ANSWER_MAX_BYTES} bytes as an answer`);
  return answer;
}

const fileName = ({ filename }: Pick<Part, "filename">): string =>
  baseName(filename ?? "", limit.FILE_NAME_MAX_CHARS);

/** The key in the metadata of a file that came with the message of its task. */
const OF_MESSAGE = "a2a_message_id";

export type Content = FileDraft & { readonly bytes: Uint8Array };

/**
 * The files in a message; `nodeId`: the node of the caller's key, whose files they are. @throws {Fault} for one that is
 * larger than the hub takes
 */
export function contentsOf(
  { messageId, parts }: SendMessage["message"],
  maxBytes: number,
  nodeId: string | null,
): readonly Content[] {
  return parts.flatMap((part, i): readonly Content[] => {
    if (part.raw === undefined) return [];
    const bytes = Uint8Array.fromBase64(part.raw);
    if (bytes.byteLength > maxBytes)
      throw malformed(`message.parts.${i}.raw`, `must have at most ${maxBytes} bytes`);
    const name = fileName(part);
    const contentType = part.mediaType ? safeMediaType(part.mediaType) : Bun.file(name).type;
    const metadata = JSON.stringify({ [OF_MESSAGE]: messageId });
    return [{ bytes, name, contentType, metadata, nodeId, taskId: null }];
  });
}

/** Whether a file came with the message of its task, and so is not a result. */
export function isInputFile(metadata: string): boolean {
  return Object.hasOwn(parseExact(metadata) as object, OF_MESSAGE); // the hub stores JSON objects only
}
