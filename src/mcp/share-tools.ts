/**
 * The tools of what nodes share: notes, and advisory leases. Each has its actions in one argument, because every tool
 * costs.
 */
import { invalidRequest } from "../http/problem.ts";
import { must } from "../lib/assert.ts";
import { type Args, offsetOf } from "./arguments.ts";
import { listed } from "./pages.ts";
import type { ToolResult } from "./result.ts";
import { Refused, type Session, codeOf } from "./session.ts";
import { leaseRow, noteRow, noteText, recordOf, recordsOf } from "./shapes.ts";

async function notePut(session: Session, { key, text, if_version }: Args): Promise<ToolResult> {
  try {
    const request = { key, text, if_version, node_id: session.self };
    const { note: written } = await session.ask("POST", "note/put", request);
    const { version, bytes } = recordOf(written);
    return { say: "Written: every node can read it.", written: true, key, version, bytes };
  } catch (error) {
    const version = versionIn(error);
    return { say: `Not written: ${whyNot(version)}`, written: false, key, version };
  }
}

async function noteDelete(session: Session, { key, if_version }: Args): Promise<ToolResult> {
  try {
    await session.ask("POST", "note/delete", { key, if_version, node_id: session.self });
    return { say: "Deleted.", deleted: true, key };
  } catch (error) {
    if (codeOf(error) === "note_not_found")
      return { say: "There is no such note; perhaps it is deleted already.", deleted: false, key };
    const version = versionIn(error);
    return { say: `Not deleted: ${whyNot(version)}`, deleted: false, key, version };
  }
}

function versionIn(error: unknown): number {
  if (!(error instanceof Refused) || error.body["error"] !== "note_version_conflict") throw error;
  return Number(error.body["version"]);
}

function whyNot(version: number): string {
  return version === 0
    ? "there is no such note. Leave if_version out, or send 0."
    : `it has version ${version} by now. Read it with action get, and decide again.`;
}

async function noteGet(session: Session, args: Args): Promise<ToolResult> {
  const { note: found } = await session.ask("GET", "note/get", { key: args["key"] });
  return { say: "The note.", note: noteText(recordOf(found), offsetOf(args)) };
}

async function noteList(session: Session, { action, key, text, cursor, limit }: Args): Promise<ToolResult> {
  const isSearch = action === "search";
  if (isSearch && text === undefined)
    throw invalidRequest([{ path: "text", message: "is required: the words to search for" }]);
  return listed(session, {
    path: isSearch ? "note/search" : "note/list",
    query: { prefix: key, cursor, q: isSearch ? text : undefined },
    limit,
    name: "notes",
    row: noteRow,
    none: isSearch ? "No note has all these words." : "No such notes.",
    thing: "note",
    about: ": action get reads one.",
  });
}

async function leaseAcquire(session: Session, args: Args): Promise<ToolResult> {
  const { name, task_id, ttl_s, shared } = args;
  try {
    const request = { name, task_id, ttl_s, shared, node_id: session.self };
    const answer = await session.ask("POST", "lease/acquire", request);
    const { name: taken, fencing, until } = recordOf(answer["lease"]);
    const ends =
      task_id === undefined || ttl_s !== undefined
        ? "Yours until then. Acquire it again to stay longer; release"
        : "Yours until you end the task. Release";
    const isBare = !/[*.]/.test(String(taken)); // it may be a directory
    const only = isBare ? ` It is only this name: for all below it, ${String(taken)}/**.` : "";
    return { say: `${ends} it when you are done.${only}`, acquired: true, name: taken, fencing, until };
  } catch (error) {
    if (!(error instanceof Refused) || error.body["error"] !== "lease_conflict") throw error;
    const holders = recordsOf(error.body["holders"]).map(leaseRow);
    const say =
      "Not yours: others hold what overlaps with it. Do something else until they end, or ask them with mail_send.";
    return { say, acquired: false, name, holders };
  }
}

async function leaseRelease(session: Session, { name, task_id }: Args): Promise<ToolResult> {
  const request = { name, task_id, node_id: session.self };
  const { released } = await session.ask("POST", "lease/release", request);
  return { say: released === 0 ? "You hold no such lease." : "Released.", released };
}

function leaseList(session: Session, { task_id, cursor }: Args): Promise<ToolResult> {
  return listed(session, {
    path: "lease/list",
    query: { task_id, cursor },
    name: "leases",
    row: leaseRow,
    none: "Nobody holds such a lease.",
    thing: "lease",
    about: ", oldest first.",
  });
}

type Actions = Readonly<Record<string, (session: Session, args: Args) => Promise<ToolResult>>>;

const NOTES: Actions = { put: notePut, get: noteGet, list: noteList, search: noteList, delete: noteDelete };
const LEASES: Actions = { acquire: leaseAcquire, release: leaseRelease, list: leaseList };
export const NOTE_ACTIONS = Object.keys(NOTES);
export const LEASE_ACTIONS = Object.keys(LEASES);

/** The schema of the tool lets no other action pass. */
const acting = (actions: Actions) => (session: Session, args: Args) =>
  must(actions[String(args["action"])], "an action of the tool")(session, args);
export const note = acting(NOTES);
export const lease = acting(LEASES);
