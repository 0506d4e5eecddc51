/** `luxhub node …`: lists, shows, drains and deletes nodes. */
import type { Environment } from "../config.ts";
import type { Node } from "../client/luxhub.ts";
import { EXIT } from "./exit-codes.ts";
import { type Run, recordOf, runGroup } from "./remote.ts";
import { ageOf, print, printJson, printRecord, printTable } from "./table.ts";

export function nodeCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("node", RUNS, argv, env);
}

export const NODE_HEAD = ["NODE", "STATUS", "TASKS", "DONE", "LUX", "LAST SEEN", "CAPABILITIES", "NAME"];

export function nodeRow(node: Node) {
  return [
    node.node_id,
    node.draining ? `${node.status}, draining` : node.status,
    node.tasks_assigned,
    node.tasks_completed,
    node.lux_balance,
    ageOf(node.last_heartbeat),
    String(node.capabilities),
    node.name,
  ] as const;
}

const RUNS: Readonly<Record<string, Run>> = {
  "node list": async ({ hub, json }) => {
    const { nodes } = await hub.nodes.list();
    if (json) printJson(nodes);
    else printTable(NODE_HEAD, nodes.map(nodeRow));
    return EXIT.OK;
  },
  "node show": async ({ hub, json, words: [nodeId = ""] }) => {
    const { node } = await hub.nodes.get({ node_id: nodeId });
    if (json) printJson(node);
    else printRecord(node);
    return EXIT.OK;
  },
  "node drain": async ({ hub, values, json, words: [nodeId = ""] }) => {
    const answer = recordOf(await hub.nodes.drain({ node_id: nodeId, drain: !values.has("off") }));
    if (json) printJson(answer);
    else if (!answer.drain) print(`${nodeId} gets tasks again`);
    else
      print(
        `${nodeId} gets nothing new; it has ${answer.tasks_assigned} unfinished ${answer.tasks_assigned === 1 ? "task" : "tasks"}`,
      );
    return EXIT.OK;
  },
  "node delete": async ({ hub, json, words: [nodeId = ""] }) => {
    const answer = recordOf(await hub.nodes.delete({ node_id: nodeId }));
    if (json) printJson(answer);
    else print(`${nodeId} is deleted`);
    return EXIT.OK;
  },
};
