/**
 * Pages of the list of nodes, filtered and in one of several orders, and the numbers of nodes.
 *
 * The order of ids is an index. The other orders change with every task, and an index of one would cost a write with each:
 * their pages are found by reading all nodes, in steps of bounded size between which others are served.
 */
import { fits } from "../domain/balancer.ts";
import type { EventKind } from "../domain/event.ts";
import { NODES_SEARCH_STEP, NODE_TASKS_SHOWN } from "../domain/limits.ts";
import type { Node, TaskSummary } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import type { NodeCounts } from "../store/sql/metrics.ts";
import {
  type NodeRange,
  type NodeRank,
  type NodeState,
  type RankedNode,
  nodeRangeAfter,
  nodesByIdAfter,
  nodesBySeq,
  rankedNodes,
} from "../store/sql/nodes.ts";
import { heldSummaries } from "../store/sql/tasks.ts";
import type { Store } from "../store/store.ts";
import { NodeCensus } from "./census.ts";
import type { PageRequest } from "./list-pages.ts";
import { type Part, Scans, partOf } from "./scan.ts";

export const NODE_ORDERS = ["id", "busy", "lux"] as const;
export type NodeOrder = (typeof NODE_ORDERS)[number];

/** `prefix`: of the node_id, the name or the host, in any case. */
export type NodeQuery = {
  readonly state: NodeState | null;
  readonly prefix: string;
  readonly taking: string | null;
  readonly order: NodeOrder;
};

/** After this node. */
export type NodePosition = Pick<RankedNode, "rank" | "nodeId">;

/** `page` and `total` are null if they were not counted, `next` at the end of the list. */
export type NodePage = {
  readonly nodes: readonly Node[];
  readonly page: number | null;
  readonly perPage: number;
  readonly total: number | null;
  readonly next: NodePosition | null;
};

/** `end`: null at the end of the list. `matching`: null if not counted. */
type Search = {
  readonly found: readonly RankedNode[];
  readonly end: NodePosition | null;
  readonly matching: number | null;
};

const START: NodePosition = { rank: 2n ** 63n - 1n, nodeId: "" };

const PROFILE_KINDS: ReadonlySet<EventKind> = new Set(["node.registered", "node.updated", "node.deleted"]);

export class NodeLists {
  readonly #store: Store;
  readonly #census: NodeCensus;
  readonly #scans = new Scans();
  /** Null: a node has changed meanwhile. */
  #capabilities: Promise<readonly string[]> | null = null;

  constructor(store: Store) {
    this.#store = store;
    this.#census = new NodeCensus(store, ["lux.paid", "lux.signin"]);
    store.onCommit((changes) => {
      for (const change of changes)
        if (change.kind === "event.logged" && PROFILE_KINDS.has(change.event.kind)) this.#capabilities = null;
    });
  }

  counts(): Promise<NodeCounts> {
    return this.#census.count();
  }

  /**
   * Those of the most nodes first; of the first LIST_SCANNED_MAX nodes by id.
   * @throws {PagesBusy}
   */
  capabilities(): Promise<readonly string[]> {
    const reading = (this.#capabilities ??= this.#readCapabilities());
    reading.catch(() => {
      if (this.#capabilities === reading) this.#capabilities = null;
    });
    return reading;
  }

  async #readCapabilities(): Promise<readonly string[]> {
    const nodes = new Map<string, number>();
    for await (const { rows } of this.#scans.steps("", (after) => this.#byId(after, NODES_SEARCH_STEP)))
      for (const { deleted, capabilities } of rows)
        if (!deleted) for (const word of capabilities) nodes.set(word, (nodes.get(word) ?? 0) + 1);
    const most = ([a, ofA]: [string, number], [b, ofB]: [string, number]): number =>
      ofB - ofA || (a < b ? -1 : 1);
    return [...nodes].toSorted(most).map(([capability]) => capability);
  }

  /** The first NODE_TASKS_SHOWN of each, oldest first. */
  tasksOf(nodes: readonly Node[]): Promise<readonly TaskSummary[]> {
    const nodeIds = nodes.filter(({ tasksAssigned }) => tasksAssigned > 0).map(({ nodeId }) => nodeId);
    return this.#store.read(heldSummaries(nodeIds, NODE_TASKS_SHOWN));
  }

  /** @throws {PagesBusy} */
  async page(query: NodeQuery, { page, perPage }: PageRequest): Promise<NodePage> {
    const upTo = page * perPage;
    const { found, end, matching } = await this.#search(query, START, upTo);
    const total = isScan(query) ? matching : await this.#count(query.state);
    const shown = found.slice(upTo - perPage, upTo);
    return { nodes: await this.#load(query, shown), page, perPage, total, next: nextOf(found, upTo, end) };
  }

  /** @throws {PagesBusy} */
  async after(query: NodeQuery, position: NodePosition, perPage: number): Promise<NodePage> {
    const { found, end } = await this.#search(query, position, perPage);
    const nodes = await this.#load(query, found.slice(0, perPage));
    return { nodes, page: null, perPage, total: null, next: nextOf(found, perPage, end) };
  }

  async #count(state: NodeState | null): Promise<number> {
    const { online, draining, offline } = await this.counts();
    return { online: online + draining, draining, offline, all: online + draining + offline }[state ?? "all"];
  }

  /** At least one more than `wanted` if there are so many. */
  #search(query: NodeQuery, from: NodePosition, wanted: number): Promise<Search> {
    const { order } = query;
    return order === "id"
      ? this.#searchById(query, from.nodeId, wanted)
      : this.#searchByRank(query, order, from, wanted);
  }

  async #searchById(query: NodeQuery, from: string, wanted: number): Promise<Search> {
    const found: RankedNode[] = [];
    let end: string | null = from;
    const isFirst = (after: string): boolean => after === from;
    const step = (after: string) =>
      // The first is enough for a list that is not filtered.
      this.#byId(after, isFirst(after) ? Math.min(wanted + 1, NODES_SEARCH_STEP) : NODES_SEARCH_STEP);
    for await (const { rows, next } of this.#scans.steps(from, step)) {
      found.push(...rows.filter((node) => matches(query, node)));
      end = next;
      if (found.length > wanted) break;
    }
    if (end === null) return { found, end, matching: found.length };
    return { found, end: { rank: 0n, nodeId: end }, matching: null };
  }

  async #byId(after: string, limit: number): Promise<Part<RankedNode, string>> {
    const nodes = await this.#store.read(nodesByIdAfter(after, limit));
    return partOf(nodes, limit, ({ nodeId }) => nodeId);
  }

  async #searchByRank(
    query: NodeQuery,
    order: NodeRank,
    from: NodePosition,
    wanted: number,
  ): Promise<Search> {
    // Names and capabilities are compared here: then all nodes of a step have to come.
    const most = isScan(query) ? NODES_SEARCH_STEP : wanted + 1;
    const rangeAfter = (after: number) => this.#store.read(nodeRangeAfter(after, NODES_SEARCH_STEP));
    const inRange = (range: NodeRange) =>
      this.#store.read(rankedNodes(order, query.state, range, from, most));
    let found: readonly RankedNode[] = [];
    let matching = 0;
    let range = await rangeAfter(0);
    while (range !== null) {
      const current: NodeRange = range;
      await this.#scans.turn();
      const [nodes, next] = await Promise.all([inRange(current), rangeAfter(current.last)]);
      const kept = nodes.filter((node) => matches(query, node));
      matching += kept.length;
      found = [...found, ...kept].toSorted(byRank).slice(0, wanted + 1);
      range = next;
    }
    return { found, end: null, matching };
  }

  /** Those that still match. */
  async #load(query: NodeQuery, shown: readonly RankedNode[]): Promise<readonly Node[]> {
    if (shown.length === 0) return [];
    const nodes = await this.#store.read(nodesBySeq(shown.map(({ seq }) => seq)));
    const byId = new Map(nodes.map((node) => [node.nodeId, node]));
    return shown
      .flatMap(({ nodeId }) => byId.get(nodeId) ?? [])
      .filter((node) => matches(query, { ...node, deleted: false }));
  }
}

function nextOf(found: readonly RankedNode[], upTo: number, end: NodePosition | null): NodePosition | null {
  return found.length > upTo ? must(found[upTo - 1], "a page has a last node") : end;
}

/** Only a look at each node shows whether it matches. */
function isScan({ prefix, taking }: NodeQuery): boolean {
  return prefix !== "" || taking !== null;
}

function matches(
  { state, prefix, taking }: NodeQuery,
  node: Pick<RankedNode, "nodeId" | "name" | "host" | "capabilities" | "online" | "draining" | "deleted">,
): boolean {
  if (node.deleted || (state !== null && !isIn(state, node))) return false;
  if (taking !== null && !fits(node, { taskType: taking })) return false;
  return (
    prefix === "" ||
    [node.nodeId, node.name, node.host].some((text) => text?.toLowerCase().startsWith(prefix))
  );
}

function isIn(state: NodeState, { online, draining }: Pick<RankedNode, "online" | "draining">): boolean {
  if (state === "draining") return online && draining;
  return online === (state === "online");
}

function byRank(a: RankedNode, b: RankedNode): number {
  if (a.rank !== b.rank) return a.rank > b.rank ? -1 : 1;
  return a.nodeId < b.nodeId ? -1 : 1;
}
