/** The resources: a task, a file, and the log of events since a cursor. */
import type { JsonObject } from "../http/json-body.ts";
import * as limit from "../domain/limits.ts";
import { Rejection } from "../domain/decision.ts";
import { downloadUrl, readFile, recordOfFile } from "./files.ts";
import { Refused, type Session } from "./session.ts";

const JSON_TYPE = "application/json";

export const RESOURCES = [
  {
    uri: "luxhub://events",
    name: "events",
    description: "The newest events of the hub; continue with luxhub://events?since=<cursor>",
    mimeType: JSON_TYPE,
  },
];

export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: "luxhub://task/{task_id}",
    name: "task",
    description: "A task, with its result",
    mimeType: JSON_TYPE,
  },
  {
    uriTemplate: "luxhub://file/{file_id}",
    name: "file",
    description: "A file of at most 64 KiB; of a larger one its record, with the URL",
  },
  {
    uriTemplate: "luxhub://events{?since}",
    name: "events since a cursor",
    description: "The events after the cursor of an earlier answer (0: from the first that is kept)",
    mimeType: JSON_TYPE,
  },
];

type Contents = { readonly uri: string; readonly mimeType: string } & (
  { readonly text: string } | { readonly blob: string }
);

const URI = /^luxhub:\/\/(?:(task|file)\/([^/?#]+)|events(?:\?since=(\d{1,16}))?)$/;

/** Null when there is no such resource. @throws {Refused} when it cannot be read now */
export async function readResource(session: Session, uri: string): Promise<Contents | null> {
  const match = URI.exec(uri);
  if (!match) return null;
  await session.beat();
  const [, kind, id = "", since] = match;
  try {
    if (kind === "file") return await fileContents(session, uri, decodeURIComponent(id));
    const answer =
      kind === "task"
        ? (await session.ask("GET", "task/:task_id", { task_id: decodeURIComponent(id) }))["task"]
        : await session.ask("GET", "events", eventsQuery(since));
    return { uri, mimeType: JSON_TYPE, text: JSON.stringify(answer) };
  } catch (error) {
    if (isUnknown(error)) return null;
    throw error;
  }
}

function eventsQuery(since: string | undefined): JsonObject {
  return { limit: String(limit.MCP_EVENTS_MAX), ...(since === undefined ? {} : { since }) };
}

async function fileContents(session: Session, uri: string, fileId: string): Promise<Contents> {
  const { file, bytes, text } = await readFile(session, fileId);
  const mimeType = file.contentType;
  if (text !== null) return { uri, mimeType, text };
  if (bytes !== null) return { uri, mimeType, blob: Buffer.from(bytes).toString("base64") };
  const record = { ...recordOfFile(file), url: downloadUrl(session, file) };
  return { uri, mimeType: JSON_TYPE, text: JSON.stringify(record) };
}

function isUnknown(error: unknown): boolean {
  if (error instanceof URIError) return true;
  const code =
    error instanceof Refused ? error.body["error"] : error instanceof Rejection ? error.code : null;
  return code === "task_not_found" || code === "file_not_found" || code === "invalid_request";
}
