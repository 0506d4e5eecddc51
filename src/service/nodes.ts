/** The use cases of nodes: registration, heartbeats, listing, and the lease that silence ends. */
import { NODES_PART, SWEEP_BATCH } from "../domain/limits.ts";
import { Rejection, accept, nodeNotFound } from "../domain/decision.ts";
import {
  type Beat,
  type Node,
  type NodeProfile,
  comeBack,
  expire,
  heartbeat,
  register,
} from "../domain/node.ts";
import type { Clock } from "../lib/clock.ts";
import { waitingCount } from "../store/mail-queries.ts";
import { expiredNodes, nextLeaseEnd, nodeById, nodesAfter, waitingFor } from "../store/queries.ts";
import type { Store, Transact } from "../store/store.ts";
import { VARIANTS } from "../variant/variants.ts";
import type { TaskService } from "./tasks.ts";

/** No lease that begins is shorter. */
const SHORTEST_LEASE_MS = Math.min(...Object.values(VARIANTS).map(({ offlineAfterMs }) => offlineAfterMs));

/** A node as it stands after a heartbeat, and how many messages wait for it. */
export type Pulse = { readonly node: Node; readonly messagesWaiting: number };
export type Registration = { readonly node: Node; readonly created: boolean };

/** `rest` is what comes after `nodes`; null when that is all. */
export type NodeList = {
  readonly nodes: readonly Node[];
  readonly rest: AsyncGenerator<NodeList> | null;
};

export class NodeService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #tasks: TaskService;
  /** Steady clock: no lease ends before, so until then nobody is looked for. */
  #leasesHoldUntil = 0;

  constructor(store: Store, clock: Clock, tasks: TaskService) {
    this.#store = store;
    this.#clock = clock;
    this.#tasks = tasks;
  }

  /** `leaseMs` is how long the variant lets a node be silent. */
  async register(transact: Transact, profile: NodeProfile, leaseMs: number): Promise<Registration> {
    const beat = this.#beat(leaseMs);
    const load = { node: nodeById(profile.nodeId), waiting: waitingFor(profile, SWEEP_BATCH) };
    const registered = await transact(load, ({ node, waiting }) => register(profile, node, waiting, beat));
    await this.#fillOn(registered.node);
    return registered;
  }

  /** `leaseOf` tells how long the variant in which the node registered lets it be silent. */
  async heartbeat(transact: Transact, nodeId: string, leaseOf: (node: Node) => number): Promise<Pulse> {
    const load = { node: nodeById(nodeId), messagesWaiting: waitingCount(nodeId) };
    const beat = this.#beat(0);
    const pulse = await transact(load, ({ node, messagesWaiting }) => {
      const decision = heartbeat(node, nodeId, node ? { ...beat, leaseMs: leaseOf(node) } : beat);
      if (decision.kind !== "accepted") return decision;
      return { ...decision, answer: { node: decision.answer, messagesWaiting } };
    });
    return pulse ?? this.#comeBack(transact, nodeId, leaseOf);
  }

  /** All nodes, or the first part of them and the way to the rest. */
  async list(): Promise<NodeList> {
    const nodes = await this.#store.read(nodesAfter("", NODES_PART));
    const last = lastOfPart(nodes);
    return { nodes, rest: last === null ? null : this.#listAfter(last) };
  }

  async *#listAfter(first: string): AsyncGenerator<NodeList> {
    for (let last: string | null = first; last !== null;) {
      const nodes = await this.#store.read(nodesAfter(last, NODES_PART));
      last = lastOfPart(nodes);
      yield { nodes, rest: null };
    }
  }

  /** @throws {Rejection} node_not_found */
  async get(nodeId: string): Promise<Node> {
    const node = await this.#store.read(nodeById(nodeId));
    if (!node) throw new Rejection(nodeNotFound(nodeId));
    return node;
  }

  /** Puts nodes offline whose lease has run out, at most one step's worth. The answer is how many. */
  async expireSome(): Promise<number> {
    const now = this.#clock.now();
    const steady = this.#clock.steady();
    if (steady < this.#leasesHoldUntil) return 0;
    const load = { nodes: expiredNodes(steady, SWEEP_BATCH), next: nextLeaseEnd(steady) };
    const { expired, next } = await this.#store.transact(load, (rows) =>
      accept({ expired: rows.nodes.length, next: rows.next }, expire(rows.nodes, now).changes),
    );
    if (expired < SWEEP_BATCH) {
      const newest = steady + SHORTEST_LEASE_MS;
      this.#leasesHoldUntil = next === null ? newest : Math.min(next, newest);
    }
    return expired;
  }

  async #comeBack(transact: Transact, nodeId: string, leaseOf: (node: Node) => number): Promise<Pulse> {
    const known = await this.get(nodeId);
    const beat = this.#beat(leaseOf(known));
    const load = {
      node: nodeById(nodeId),
      waiting: waitingFor(known, SWEEP_BATCH),
      messagesWaiting: waitingCount(nodeId),
    };
    const pulse = await transact(load, ({ node, waiting, messagesWaiting }) => {
      const decision = comeBack(node, nodeId, waiting, beat);
      if (decision.kind === "rejected") return decision;
      return { ...decision, answer: { node: decision.answer, messagesWaiting } };
    });
    await this.#fillOn(pulse.node);
    return pulse;
  }

  /** A first step's worth was given in the commit of the call itself; a longer queue takes more steps. */
  async #fillOn(node: Node): Promise<void> {
    if (node.tasksAssigned >= SWEEP_BATCH) await this.#tasks.fillIfPossible(node.nodeId);
  }

  #beat(leaseMs: number): Beat {
    return { now: this.#clock.now(), steady: this.#clock.steady(), leaseMs };
  }
}

/** After whom the next part begins; null when a part is the last. No more of it is kept while the caller takes it. */
function lastOfPart(nodes: readonly Node[]): string | null {
  return nodes.length < NODES_PART ? null : (nodes.at(-1)?.nodeId ?? null);
}
