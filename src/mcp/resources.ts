/** The resources: a task, a file, and the log of events since a cursor. */
import * as limit from "../domain/limits.ts";
import { Rejection } from "../domain/decision.ts";
import { readWhole, recordWithUrl } from "./files.ts";
import { countThatFits } from "./pages.ts";
import { shownResult } from "./result.ts";
import { type Session, codeOf } from "./session.ts";
import { recordOf, recordsOf } from "./shapes.ts";
import { shownTask } from "./task-tools.ts";

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
    description: "A task, with its result; what is long is cut",
    mimeType: JSON_TYPE,
  },
  {
    uriTemplate: "luxhub://file/{file_id}",
    name: "file",
    description: `A file of at most ${limit.MCP_RESULT_MAX_BYTES} bytes; of a larger one its record, with a URL for 10 minutes`,
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
    const text =
      kind === "task" ? await taskText(session, decodeURIComponent(id)) : await eventsText(session, since);
    return { uri, mimeType: JSON_TYPE, text };
  } catch (error) {
    if (isUnknown(error)) return null;
    throw error;
  }
}

/** As much of a task as task_get shows. */
async function taskText(session: Session, taskId: string): Promise<string> {
  const answer = await session.ask("GET", "task/:task_id", { task_id: taskId, context: "1" });
  const task = await shownTask(session, recordOf(answer["task"]), answer["context"]);
  const { say: _, ...shown } = shownResult({ say: "", ...task });
  return JSON.stringify(shown);
}

/** As many events as fit: those after the cursor, or the newest; the cursor goes on after the last of them. */
async function eventsText(session: Session, since: string | undefined): Promise<string> {
  const query = { limit: String(limit.MCP_EVENTS_MAX), since };
  const { events, cursor } = await session.ask("GET", "events", query);
  const rows = recordsOf(events);
  if (since === undefined)
    return JSON.stringify({ events: rows.slice(-countThatFits(rows.toReversed())), cursor });
  const shown = rows.slice(0, countThatFits(rows));
  const end = shown.length < rows.length ? shown.at(-1)?.["id"] : cursor;
  return JSON.stringify({ events: shown, cursor: end });
}

async function fileContents(session: Session, uri: string, fileId: string): Promise<Contents> {
  const { file, text, blob } = await readWhole(session, fileId);
  const mimeType = file.contentType;
  if (text !== null) return { uri, mimeType, text };
  if (blob !== null) return { uri, mimeType, blob };
  return { uri, mimeType: JSON_TYPE, text: JSON.stringify(await recordWithUrl(session, file)) };
}

function isUnknown(error: unknown): boolean {
  if (error instanceof URIError) return true;
  const code = error instanceof Rejection ? error.code : codeOf(error);
  return code === "task_not_found" || code === "file_not_found" || code === "invalid_request";
}
