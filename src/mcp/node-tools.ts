/** The tools about nodes, and about the hub. */
import type { JsonObject } from "../http/json-body.ts";
import type { Args } from "./arguments.ts";
import { listed } from "./pages.ts";
import type { ToolResult } from "./result.ts";
import type { Session } from "./session.ts";
import { nodeRow, plural, recordOf, recordsOf, taskRow } from "./shapes.ts";

/** Tasks of a node that hub_status shows. */
const SHOWN_TASKS = 5;
/** Types of each reason for which tasks are held back. */
const SHOWN_CAUSES = 3;

export async function hubStatus(session: Session, _: Args, beat: JsonObject | null): Promise<ToolResult> {
  const { software, status, nodes_count } = await session.ask("GET", "status", {});
  const { by_status: tasks } = await session.ask("GET", "task/stats", {});
  const { held: reasons } = await session.ask("GET", "stats/types", {});
  const held_back = recordsOf(reasons).map(({ code, count, oldest_at, causes }) => {
    const types = recordsOf(causes)
      .slice(0, SHOWN_CAUSES)
      .map((cause) => `${String(cause["task_type"] ?? "any type")} ${String(cause["count"])}`);
    return { code, count, oldest_at, types: types.join(", ") };
  });
  const hub = { software, status, nodes_count, tasks, ...(held_back.length > 0 ? { held_back } : {}) };
  if (beat === null) {
    const say =
      "Your key is bound to no node and your client sends no X-Node-Id: you can look and create tasks, but not work. Tell your user to bind the key to a node.";
    return { say, you: null, ...hub };
  }
  const { node_id, tasks_assigned, messages_waiting, drain } = beat;
  const rowsOf = async (filter: JsonObject): Promise<readonly JsonObject[]> => {
    const page = await session.ask("GET", "task/list", { ...filter, per_page: String(SHOWN_TASKS) });
    return recordsOf(page["tasks"]).map(taskRow);
  };
  const say =
    `You are the node ${String(node_id)}: you hold ${plural(tasks_assigned, "task")}, and ` +
    `${plural(messages_waiting, "message")} ${messages_waiting === 1 ? "waits" : "wait"} for you (mail_check). ` +
    "For work call task_next.";
  return {
    say,
    you: { node_id, tasks_assigned, messages_waiting, drain },
    held: await rowsOf({ node_id, status: "assigned" }),
    created: await rowsOf({ creator_node: node_id }),
    ...hub,
  };
}

export function nodeList(session: Session, args: Args): Promise<ToolResult> {
  const { online, capability, cursor, limit } = args;
  return listed(session, {
    path: "node/list",
    query: { status: online === true ? "online" : undefined, capability, cursor },
    limit,
    name: "nodes",
    row: (node) => nodeRow(node, session.nodeId),
    none: "There are no such nodes.",
    thing: "node",
    about: ".",
  });
}

/** Registers the whole profile, and takes fields that the call leaves out from the current one. */
export async function nodeUpdate(session: Session, { drain, ...changes }: Args): Promise<ToolResult> {
  const { self } = session;
  const before = recordOf((await session.ask("GET", "node/:node_id", { node_id: self }))["node"]);
  const { name, host, port, capabilities, max_tasks, auto_assign } = before;
  const profile = { name, host, port, capabilities, max_tasks, auto_assign, ...changes, node_id: self };
  if (Object.keys(changes).length > 0) await session.ask("POST", "node/register", profile);
  if (drain !== undefined) await session.ask("POST", "node/drain", { node_id: self, drain });
  const node = recordOf((await session.ask("GET", "node/:node_id", { node_id: self }))["node"]);
  return {
    say: "This is your profile now.",
    node: { ...nodeRow(node, self), auto_assign: node["auto_assign"] },
  };
}
