/**
 * Lanes: queues of ready tasks that are alike for the one who hands out: of one type, with the same requirements and
 * the same limit key; with fair dispatch, of one creator.
 *
 * The name of a plain lane (no requirements, no limit key of its own) is its type; that of a special lane is a space,
 * with which no type begins, and a hash of what its tasks have in common. The rules make no difference between the two.
 * The store does (store/sql/lanes.ts): only special lanes are counted and listed.
 *
 * Whether a lane is open to a node depends on the node (here: words and resources) and on the gate (gate.ts).
 */
import type { Node, Requirements, Resources, Task } from "./model.ts";
import { RESOURCES_OF_EVERY_NODE } from "./limits.ts";

export type LaneTask = Pick<Task, "taskType" | "limitKey" | "requires" | "creatorNode">;

/** `creatorNode`: of one of its tasks; of all of them only if the hub hands out fairly. */
export type Lane = LaneTask & { readonly name: string };

export type Position = { readonly priority: number; readonly seq: number };

/** It has ready tasks, or had some. `head`: none of its ready tasks is better. It moves in place. */
export type ReadyLane = Lane & { head: Position };

export const NO_HEAD: Position = { priority: Infinity, seq: Infinity };

/** `nodeId` null: any of several nodes that have the same. */
export type Able = Pick<Node, "capabilities" | "resources" | "used"> & { readonly nodeId: string | null };

const NODE_WORD = "node:";

/** What requires it waits for this node, in a lane of its own, whatever others register. */
export function wordOf(nodeId: string): string {
  return NODE_WORD + nodeId;
}

export function isForOther({ requires }: Pick<Task, "requires">, nodeId: string): boolean {
  const words = requires?.capabilities.filter((word) => word.startsWith(NODE_WORD)) ?? [];
  return words.some((word) => word !== wordOf(nodeId));
}

function hasWord({ nodeId, capabilities }: Able, word: string): boolean {
  if (!word.startsWith(NODE_WORD)) return capabilities.includes(word);
  return nodeId === null || word === wordOf(nodeId);
}

export function limitKeyOf({ limitKey, taskType }: Pick<Task, "limitKey" | "taskType">): string {
  return limitKey ?? taskType;
}

export function plainLane(taskType: string): Lane {
  return { name: taskType, taskType, limitKey: null, requires: null, creatorNode: null };
}

export function laneOf({ taskType, limitKey, requires, creatorNode }: LaneTask, isFair: boolean): string {
  const isOwnKey = limitKey !== null && limitKey !== taskType;
  if (!isOwnKey && requires === null && !isFair) return taskType;
  const words = requires?.capabilities.toSorted() ?? [];
  const resources = Object.entries(requires?.resources ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const alike = [
    taskType,
    isOwnKey ? limitKey : null,
    words,
    resources,
    ...(isFair ? [creatorNode ?? ""] : []),
  ];
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify(alike)).digest("base64url");
  return SPECIAL + hash.slice(0, NAME_CHARS);
}

const SPECIAL = " ";
/** 132 bits: no two lanes have one name. */
const NAME_CHARS = 22;

export function isSpecial(laneName: string): boolean {
  return laneName.startsWith(SPECIAL);
}

/** A task without a type fits every node; a node without capabilities takes every type. */
export function takesType({ capabilities }: Pick<Node, "capabilities">, taskType: string): boolean {
  return taskType === "" || capabilities.length === 0 || capabilities.includes(taskType);
}

/** "" is no type; null is every type. */
export function typesFor(
  { capabilities }: Pick<Node, "capabilities">,
  requested: readonly string[] | null,
): readonly string[] | null {
  if (capabilities.length === 0) return requested;
  return requested === null ? ["", ...capabilities] : requested.filter((type) => capabilities.includes(type));
}

const NOTHING = { words: [], resources: [] } as const;

/** However idle the node is. */
export function missingIn(
  node: Able,
  requires: Requirements | null,
): { readonly words: readonly string[]; readonly resources: readonly string[] } {
  if (requires === null) return NOTHING;
  return {
    words: requires.capabilities.filter((word) => !hasWord(node, word)),
    resources: Object.keys(requires.resources).filter(
      (name) => !has(node.resources, {}, requires.resources, name),
    ),
  };
}

/** However busy the node is. */
export function meets(node: Able, requires: Requirements | null): boolean {
  if (requires === null) return true;
  const { words, resources } = missingIn(node, requires);
  return words.length === 0 && resources.length === 0;
}

/** If it held no other task. */
export function couldTake(node: Able, task: Pick<Task, "taskType" | "requires">): boolean {
  return takesType(node, task.taskType) && meets(node, task.requires);
}

/** Whatever the tasks of the node use of it. */
export function isAsAble(a: Able, b: Able): boolean {
  return (
    a.capabilities.join() === b.capabilities.join() &&
    (a.resources === b.resources || Bun.deepEquals(a.resources, b.resources))
  );
}

export function hasFree({ resources, used }: Able, requires: Requirements | null): boolean {
  if (requires === null) return true;
  return Object.keys(requires.resources).every((name) => has(resources, used, requires.resources, name));
}

function has(total: Resources, used: Resources, needed: Resources, name: string): boolean {
  return (total[name] ?? 0) - (used[name] ?? 0) >= (needed[name] ?? 0);
}

export function needsRare({ requires }: Pick<Task, "requires">): boolean {
  return (
    requires !== null && Object.keys(requires.resources).some((name) => !RESOURCES_OF_EVERY_NODE.has(name))
  );
}

export function addResources(a: Resources, b: Resources): Resources {
  const sum: Record<string, number> = { ...a };
  for (const [name, amount] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + amount;
  return sum;
}
