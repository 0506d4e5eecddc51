/**
 * `luxhub mcp-hook`: a hook of Claude Code, which gives its input on standard input. Exit code 2 stops what the agent was
 * about to do, and standard error says why: an edit where another node has a lease, or the end of a turn while mail
 * waits. A fault stops nothing, because leases are advisory. Must not: take mail out, or acquire a lease.
 */
import { realpathSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { LuxHub, LuxHubError } from "../client/luxhub.ts";
import { WITH_SESSIONS } from "../domain/key.ts";
import { conflicts } from "../domain/lease.ts";
import { PER_PAGE_MAX } from "../domain/limits.ts";
import { parseExact } from "../lib/exact-json.ts";
import { printableLine } from "../lib/printable.ts";
import { reasonOf } from "../lib/reason.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { EXIT } from "./exit-codes.ts";
import { RETRY_FOR_MS, type ClientRuns, type Remote } from "./remote.ts";
import { sessionNameOf } from "./session-names.ts";
import { writeLine } from "./standard-output.ts";

/** By Claude Code's convention; any other code but 0 is a fault of the hook. */
const STOPS = 2;

type Input = {
  readonly event: string;
  readonly cwd: string;
  /** That is about to be edited. */
  readonly file: string | null;
  readonly isRepeatedStop: boolean;
};

/** @throws {Error} when it is not what Claude Code gives a hook */
function inputIn(bytes: Uint8Array): Input {
  const given = fieldsIn(parseExact(decodeUtf8(bytes)));
  const { hook_event_name: event, cwd, tool_input: tool, stop_hook_active: isActive } = given;
  if (typeof event !== "string" || typeof cwd !== "string")
    throw new Error("no hook of Claude Code calls this");
  const { file_path: path, notebook_path: notebook = path } = fieldsIn(tool);
  return {
    event,
    cwd,
    file: typeof notebook === "string" ? notebook : null,
    isRepeatedStop: isActive === true,
  };
}

function fieldsIn(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

export const RUNS: ClientRuns = {
  "mcp-hook": async (remote) => {
    try {
      return await run(remote, inputIn(await Bun.stdin.bytes()));
    } catch (error) {
      console.error(`luxhub: ${printableLine(reasonOf(error))}`);
      return EXIT.FAILED;
    }
  },
};

async function run(remote: Remote, input: Input): Promise<number> {
  const { url, env } = remote;
  const given = remote.values.text("node") ?? remote.nodeId ?? remote.values.needed("node");
  const base = given.endsWith(WITH_SESSIONS) ? given.slice(0, -WITH_SESSIONS.length) : given;
  const node = base === given ? given : sessionNameOf(url, base, env);
  const hub = hubFor(remote, node);
  switch (input.event) {
    case "PreToolUse":
      return refuseLeased(hub, node, pathIn(input, env["CLAUDE_PROJECT_DIR"] ?? input.cwd));
    case "SessionStart": {
      const waiting = await mailOf(hub, node);
      if (waiting > 0) writeLine(`luxhub: ${mailText(waiting)}`); // the agent reads it
      return EXIT.OK;
    }
    case "Stop": {
      const waiting = input.isRepeatedStop ? 0 : await mailOf(hub, node);
      if (waiting > 0) console.error(`luxhub: ${mailText(waiting)}`);
      return waiting > 0 ? STOPS : EXIT.OK;
    }
    default:
      return EXIT.OK;
  }
}

function hubFor({ urls: url, secret, onHubs, fetch: send }: Remote, node: string): LuxHub {
  const named: typeof send = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("X-Node-Id", node);
    return send(input, { ...init, headers });
  };
  return new LuxHub({
    ...{ url, secret, onHubs, fetch: named },
    ...{ parseJson: parseExact, retry: { forMs: RETRY_FOR_MS } },
  });
}

/** A node that has made no call yet is not registered. */
async function mailOf(hub: LuxHub, node: string): Promise<number> {
  try {
    const { messages_waiting } = await hub.nodes.heartbeat({ node_id: node });
    return messages_waiting;
  } catch (error) {
    if (error instanceof LuxHubError && error.code === "node_not_found") return 0;
    throw error;
  }
}

function mailText(count: number): string {
  return `${count} ${count === 1 ? "message waits" : "messages wait"} for you: call mail_check, and mail_ack what you have dealt with.`;
}

/** As leases name it: from the root of the project. Null: it is not in the project. */
function pathIn({ file, cwd }: Input, project: string): string | null {
  if (file === null) return null;
  const path = relative(real(project), real(isAbsolute(file) ? file : join(cwd, file))).replaceAll("\\", "/");
  return path === "" || path.startsWith("../") || isAbsolute(path) ? null : path;
}

/** Of a file that is about to be made, its directory is. */
function real(path: string): string {
  for (let there = path; ; there = join(there, "..")) {
    try {
      return join(realpathSync(there), relative(there, path));
    } catch {
      if (join(there, "..") === there) return path;
    }
  }
}

async function refuseLeased(hub: LuxHub, node: string, path: string | null): Promise<number> {
  if (path === null) return EXIT.OK;
  const edit = { name: path, nodeId: node, taskId: null, shared: false };
  let cursor: string | undefined;
  do {
    const page = await hub.leases.list({ cursor, per_page: PER_PAGE_MAX });
    for (const { name, node_id, shared, until } of page.leases) {
      if (!conflicts(edit, { name, nodeId: node_id, taskId: null, shared })) continue;
      const text = `${path} is leased by ${node_id} (${name}) until ${until}. Work on something else until then, or ask ${node_id} with mail_send.`;
      console.error(`luxhub: ${printableLine(text)}`);
      return STOPS;
    }
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return EXIT.OK;
}
