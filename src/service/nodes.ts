/** The use cases of nodes, and the expiry of the leases of silent nodes. */
import {
  NODES_DEFAULT_MAX,
  NODES_PART,
  NODES_SEARCH_STEP,
  SWEEP_BATCH,
  WAITING_PART_MAX,
} from "../domain/limits.ts";
import { accept, UNDECIDED } from "../domain/decision.ts";
import type { Node, Pulse } from "../domain/model.ts";
import {
  type HeartbeatTime,
  type NodeProfile,
  drain,
  expire,
  goOnline,
  heartbeat,
  heartbeatChange,
  leave,
  register,
  remove,
  retire,
  tooManyNodes,
} from "../domain/node.ts";
import { releaseAll } from "../domain/task/chores.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { TickQueue } from "../lib/semaphore.ts";
import { readyLanes } from "../store/sql/lanes.ts";
import { waitingPart } from "../store/sql/messages.ts";
import {
  deletedNode,
  expiredNodes,
  hasNodes,
  idleNodesAfter,
  nextLeaseEnd,
  nodeById,
  nodesAfter,
  pulseOf,
  pulsesOf,
} from "../store/sql/nodes.ts";
import { tasksHeld } from "../store/sql/tasks.ts";
import { waitingFor } from "../store/sql/ready-tasks.ts";
import type { Committed, Store, Transact } from "../store/store.ts";
import { INTERVALS } from "../variant/by-name.ts";
import { getNode } from "./known-node.ts";
import { type NextPart, Rows } from "./list-pages.ts";
import { NodeLists } from "./node-lists.ts";
import { type TaskService, NODE_DELETED } from "./tasks.ts";
import { partOf } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

const SHORTEST_LEASE_MS = Math.min(...Object.values(INTERVALS).map(({ offlineAfterMs }) => offlineAfterMs));

/** `hubs`: where the node may go (service/copies.ts). */
export type HeartbeatResult = Pulse &
  Pick<Node, "lastHeartbeatAt"> & { readonly messagesWaiting: number; readonly hubs: readonly string[] };

const NODE_LEFT = "the node left";

type LeaseOf = (node: Pick<Node, "variant">) => number;

export type Left = { readonly nodeId: string; readonly tasksReleased: number };

export type Registration = {
  readonly node: Node;
  readonly created: boolean;
  readonly hubs: readonly string[];
};

export class NodeService extends UseCases {
  readonly lists: NodeLists;
  readonly #tasks: TaskService;
  readonly #maxNodes: number;
  /** In the order of registration. */
  #retiredUpTo = 0;
  /** Steady clock: no lease ends before this time, so expireSome() reads nothing until then. */
  #leasesHoldUntil = 0;
  /** Mailboxes are counted one step per tick. */
  readonly #counting = new TickQueue();

  constructor(store: Store, clock: Clock, tasks: TaskService, maxNodes: number = NODES_DEFAULT_MAX) {
    super(store, clock);
    this.#tasks = tasks;
    this.#maxNodes = maxNodes;
    this.lists = new NodeLists(store);
  }

  /** `leaseMs`: how long a node of this variant may be silent. @throws {Rejection} nodes_limit */
  async register(
    transact: Transact<Registration>,
    profile: NodeProfile,
    leaseMs: number,
    hubs: readonly string[] = [],
  ): Promise<Committed<Registration>> {
    const load = {
      node: nodeById(profile.nodeId),
      former: deletedNode(profile.nodeId),
      waiting: waitingFor(profile, SWEEP_BATCH),
      lanes: readyLanes(),
      gate: this.gate(),
      isFull: hasNodes(this.#maxNodes),
    };
    const registered = await transact(load, ({ node, former, waiting, isFull, lanes, gate }) => {
      this.#tasks.knownLanes.learn(gate, lanes);
      if (!node && isFull) return tooManyNodes(this.#maxNodes);
      const beat = { ...this.#beat(leaseMs), gate };
      const decision = register(profile, node, lanes.size === 0 ? waiting : [], beat, former);
      return { ...decision, answer: { ...decision.answer, hubs } };
    });
    await this.#fillFurther(registered.node);
    return registered;
  }

  /** The most frequent request, so the usual case is one short transaction; #goOnline handles the others (UNDECIDED). */
  async heartbeat(
    transact: Transact<HeartbeatResult>,
    nodeId: string,
    leaseOf: LeaseOf,
    hubs: readonly string[] = [],
  ): Promise<Committed<HeartbeatResult>> {
    const load = { pulse: pulseOf(nodeId), mail: waitingPart(nodeId, 0) };
    const beaten = await transact(load, ({ pulse, mail }) => {
      if (mail.count === WAITING_PART_MAX) return UNDECIDED;
      const beat = this.#beat(pulse ? leaseOf(pulse) : 0);
      const decision = heartbeat(pulse, nodeId, beat);
      if (decision.kind !== "accepted") return decision;
      const answer = { ...decision.answer, lastHeartbeatAt: beat.now, messagesWaiting: mail.count, hubs };
      return { ...decision, answer };
    });
    return beaten ?? this.#goOnline(transact, nodeId, leaseOf, hubs);
  }

  /** In one commit for each SWEEP_BATCH of them. */
  async beatTogether(nodeIds: readonly string[]): Promise<void> {
    for (let at = 0; at < nodeIds.length; at += SWEEP_BATCH) {
      const load = { pulses: pulsesOf(nodeIds.slice(at, at + SWEEP_BATCH)) };
      await this.store.transact(load, ({ pulses }) => {
        const beat = this.#beat(0);
        const online = pulses.filter((pulse) => pulse.online);
        const changes = online.map(({ nodeId, variant }) =>
          heartbeatChange(nodeId, { ...beat, leaseMs: INTERVALS[variant].offlineAfterMs }),
        );
        return accept(null, changes);
      });
    }
  }

  /** All nodes, in parts. Between two parts only the last id is kept, so that the nodes can be freed. */
  async list(): Promise<Rows<Node>> {
    let last: string | null = "";
    const next: NextPart<Node> = async () => {
      if (last === null) return null;
      const nodes = await this.store.read(nodesAfter(last, NODES_PART));
      last = partOf(nodes, NODES_PART, ({ nodeId }) => nodeId).next;
      return nodes;
    };
    const first = must(await next(), "a list has a first part");
    return new Rows(first, last === null ? null : next);
  }

  /** @throws {Rejection} node_not_found */
  get(nodeId: string): Promise<Node> {
    return getNode(this.store, nodeId);
  }

  /**
   * The balancer gives the tasks that it held to others. Answers how many it held.
   * `atOnce`: in one transaction; undefined for a node that holds too many tasks for one.
   */
  async leave(
    transact: Transact<Left>,
    nodeId: string,
    atOnce: boolean,
  ): Promise<Committed<Left> | undefined> {
    const known = await this.store.read(nodeById(nodeId));
    const isFew = atOnce || !known || known.tasksAssigned < SWEEP_BATCH;
    const before = isFew ? 0 : await this.#tasks.releaseMost(nodeId, NODE_LEFT);
    const load = { node: nodeById(nodeId), held: tasksHeld(nodeId, SWEEP_BATCH) };
    const left = await transact(load, ({ node, held }) => {
      const at = this.#beat(0);
      const decision = leave(node, nodeId, at.now);
      if (decision.kind === "rejected") return decision;
      if (atOnce && held.length === SWEEP_BATCH) return UNDECIDED;
      const answer = { nodeId, tasksReleased: before + held.length };
      return accept(answer, [...releaseAll(held, NODE_LEFT, at).changes, ...decision.changes]);
    });
    if (left && left.tasksReleased > 0) await this.#tasks.releaseDeletedIfPossible();
    return left;
  }

  /** When a drain ends, the balancer may have tasks for the node. */
  async drain(
    transact: Transact<Node>,
    asked: { nodeId: string; draining: boolean },
  ): Promise<Committed<Node>> {
    const node = await transact({ node: nodeById(asked.nodeId) }, ({ node }) =>
      drain(node, asked, this.clock.now()),
    );
    if (!node.draining) await this.#tasks.fillIfPossible(asked.nodeId);
    return node;
  }

  /** Its tasks are open again; the balancer assigns them. */
  async remove(transact: Transact<Node>, nodeId: string): Promise<Committed<Node>> {
    const load = { node: nodeById(nodeId), held: tasksHeld(nodeId, SWEEP_BATCH) };
    const removed = await transact(load, ({ node, held }) => {
      const at = this.#beat(0);
      const decision = remove(node, nodeId, at.now);
      if (decision.kind === "rejected") return decision;
      return accept(decision.answer, [...releaseAll(held, NODE_DELETED, at).changes, ...decision.changes]);
    });
    if (removed.tasksAssigned > 0) await this.#tasks.releaseDeletedIfPossible();
    return removed;
  }

  /** At most SWEEP_BATCH. Returns how many. */
  async expireSome(): Promise<number> {
    const steady = this.clock.steady();
    if (steady < this.#leasesHoldUntil) return 0;
    const load = { nodes: expiredNodes(steady, SWEEP_BATCH), next: nextLeaseEnd(steady) };
    const { expired, next } = await this.store.transact(load, (rows) =>
      accept({ expired: rows.nodes.length, next: rows.next }, expire(rows.nodes, this.clock.now()).changes),
    );
    if (expired < SWEEP_BATCH) {
      const newest = steady + SHORTEST_LEASE_MS;
      this.#leasesHoldUntil = next === null ? newest : Math.min(next, newest);
    }
    return expired;
  }

  /**
   * Offline since `before` (wall clock) and without a task, among the next NODES_SEARCH_STEP in the order of
   * registration. Returns whether there are more to look at; the call after the last part starts again.
   */
  async retireSome(before: number): Promise<boolean> {
    const { nodeIds, next } = await this.store.read(
      idleNodesAfter(this.#retiredUpTo, NODES_SEARCH_STEP, before),
    );
    for (const nodeId of nodeIds) {
      const load = { node: nodeById(nodeId), mail: waitingPart(nodeId, 0) };
      const now = this.clock.now();
      await this.store.transact(load, ({ node, mail }) => retire(node, mail.count, { before, now }));
    }
    this.#retiredUpTo = next ?? 0;
    return next !== null;
  }

  /** Of a node that was offline (and may get tasks), or whose mailbox takes several steps to count. */
  async #goOnline(
    transact: Transact<HeartbeatResult>,
    nodeId: string,
    leaseOf: LeaseOf,
    hubs: readonly string[],
  ): Promise<Committed<HeartbeatResult>> {
    const counted = await this.#countWaiting(nodeId);
    const known = await this.get(nodeId);
    const load = {
      node: nodeById(nodeId),
      waiting: waitingFor(known, SWEEP_BATCH),
      lanes: readyLanes(),
      gate: this.gate(),
      mail: waitingPart(nodeId, 0),
    };
    const back = await transact(load, ({ node, waiting, mail, lanes, gate }) => {
      this.#tasks.knownLanes.learn(gate, lanes);
      const decision = goOnline(node, nodeId, lanes.size === 0 ? waiting : [], {
        ...this.#beat(leaseOf(known)),
        gate,
      });
      if (decision.kind === "rejected") return decision;
      const messagesWaiting = mail.count < WAITING_PART_MAX ? mail.count : Math.max(mail.count, counted);
      return { ...decision, answer: { ...decision.answer, messagesWaiting, hubs } };
    });
    await this.#fillFurther(back);
    return back;
  }

  /** In steps, one per tick. Messages sent or received meanwhile may be counted or not. */
  async #countWaiting(nodeId: string): Promise<number> {
    let waiting = 0;
    for (let after = 0; ;) {
      await this.#counting.next();
      const { count, last } = await this.store.read(waitingPart(nodeId, after));
      waiting += count;
      if (count < WAITING_PART_MAX) return waiting;
      after = last;
    }
  }

  /** The first commit assigns up to SWEEP_BATCH tasks, and none if there are special lanes. */
  async #fillFurther(node: Pick<Node, "nodeId" | "tasksAssigned">): Promise<void> {
    if (node.tasksAssigned >= SWEEP_BATCH || this.#tasks.knownLanes.lanes.size > 0)
      await this.#tasks.fillIfPossible(node.nodeId);
  }

  #beat(leaseMs: number): HeartbeatTime {
    return { now: this.clock.now(), steady: this.clock.steady(), leaseMs };
  }
}
