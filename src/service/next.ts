/**
 * The use case of task/next: a worker asks for its next task, and waits for one (idle-workers.ts).
 *
 * One commit picks the task and hands it out. A caller who hangs up meanwhile loses none: what could not be answered goes
 * back, at once or, when the disk refuses that, by the periodic work. The call is a heartbeat of its node, all the time
 * that it waits; the heartbeats of all that wait are written together.
 *
 * Must not: answer with a task before its commit.
 */
import { typesFor } from "../domain/balancer.ts";
import { Rejection, UNDECIDED, accept, nodeNotFound } from "../domain/decision.ts";
import type { JoinedThrough, Moment, Node } from "../domain/model.ts";
import { beaten, comeBack } from "../domain/node.ts";
import { type Next, giveAgain, next } from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NOTHING } from "../store/sql/query.ts";
import { bestGift, bestReady, firstStarted, taskById } from "../store/sql/tasks.ts";
import type { Store, Transact } from "../store/store.ts";
import { INTERVALS } from "../variant/by-name.ts";
import type { IdleWorkers, Taken } from "./idle-workers.ts";
import { type Patience, socketsPolled } from "./messages.ts";
import type { NodeService } from "./nodes.ts";
import type { TaskService } from "./tasks.ts";
import { WaitAborted } from "./wait-queue.ts";

const CALLER_GONE = "the caller hung up";

export type NextAsked = {
  readonly nodeId: string;
  /** Limits the open tasks; null is every type that the node takes. */
  readonly taskTypes: readonly string[] | null;
  /** First what the node has started and not finished. */
  readonly resume: boolean;
};

/** `task` is null when there is none in time; `draining`: the node is to finish what it has. */
export type NextAnswer = { readonly task: Taken["task"] | null; readonly draining: boolean };

/** The node is not as it was when the types of its tasks were found. */
type Changed = { readonly kind: "changed"; readonly node: Node };

export class NextService {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #nodes: NodeService;
  readonly #tasks: TaskService;
  readonly #idle: IdleWorkers;
  /** Hand-outs that could not be put back yet. */
  readonly #failedPutBacks: { readonly nodeId: string; readonly taken: Taken }[] = [];

  constructor(store: Store, clock: Clock, nodes: NodeService, tasks: TaskService, idle: IdleWorkers) {
    this.#store = store;
    this.#clock = clock;
    this.#nodes = nodes;
    this.#tasks = tasks;
    this.#idle = idle;
  }

  /**
   * @throws {Rejection} node_not_found, also when the node is deleted meanwhile
   * @throws {WaitAborted} when the caller is gone before anything was taken for good
   */
  async next(transact: Transact, asked: NextAsked, patience: Patience): Promise<NextAnswer> {
    const { nodeId } = asked;
    const { signal, repeatable } = patience;
    const deadline = this.#clock.steady() + patience.waitMs;
    const worker = this.#idle.join(nodeId);
    let taken: Taken | null = null;
    let isBeaten = false;
    try {
      let node = await this.#store.read(nodeById(nodeId));
      while (!signal.aborted && !worker.hasLeft) {
        const types = node ? typesFor(node, asked.taskTypes) : [];
        worker.reads(types, node?.variant ?? null);
        const found = await this.#handOut(transact, asked, { node, types }, signal);
        if (!found) continue; // the caller is gone
        if (found.kind === "changed") {
          node = found.node;
          continue;
        }
        if (found.kind === "taken") {
          taken = found;
          if (!repeatable) await socketsPolled(); // to notice a caller who hung up during the commit
          if (repeatable || !signal.aborted) return found;
          await this.#putBack(nodeId, found);
          break;
        }
        if (found.kind === "offline") {
          await this.#nodes.heartbeat(this.#store.transact, nodeId, leaseOf);
          isBeaten = true;
          continue;
        }
        if (!isBeaten) await this.#nodes.beatTogether([nodeId]);
        isBeaten = true;
        if (found.kind === "draining") return { task: null, draining: true };
        const leftMs = deadline - this.#clock.steady();
        if ((await worker.sleep(found.kind === "full", leftMs, signal)) !== "woken") break;
      }
      if (signal.aborted) throw new WaitAborted();
      return { task: null, draining: false };
    } finally {
      worker.leave(taken);
    }
  }

  /**
   * In one transaction and without waiting, for a batch.
   * @throws {Rejection} node_not_found
   * @throws {WaitAborted} when the caller is gone: what was taken is put back
   */
  async nextAtOnce(
    transact: Transact,
    { nodeId, taskTypes, resume }: NextAsked,
    { signal, repeatable }: Omit<Patience, "waitMs">,
  ): Promise<NextAnswer> {
    const at: Moment = { now: this.#clock.now(), steady: this.#clock.steady() };
    let known = await this.#store.read(nodeById(nodeId));
    for (;;) {
      const load = {
        node: nodeById(nodeId),
        started: resume ? firstStarted(nodeId) : NOTHING,
        gifts: bestGift(nodeId),
        open: bestReady(known ? typesFor(known, taskTypes) : []),
      };
      let taken: Taken | null = null;
      const answer = await transact(load, ({ node, ...found }) => {
        taken = null;
        if (!node) return nodeNotFound(nodeId);
        if (!isSame(node, known)) {
          known = node;
          return UNDECIDED;
        }
        const back = comeBack(node, nodeId, [], { ...at, leaseMs: leaseOf(node) });
        if (back.kind === "rejected") return back;
        const decision = next(back.answer, nodeId, found, at);
        if (decision.kind === "rejected") return decision;
        if (decision.answer.kind === "taken") taken = decision.answer;
        const draining = decision.answer.kind === "taken" ? decision.answer.draining : node.draining;
        return accept<NextAnswer>({ task: taken?.task ?? null, draining }, [
          ...back.changes,
          ...decision.changes,
        ]);
      });
      if (!answer) continue;
      if (taken === null || repeatable) return answer;
      await socketsPolled(); // to notice a caller who hung up during the commit
      if (!signal.aborted) return answer;
      await this.#putBack(nodeId, taken);
      throw new WaitAborted();
    }
  }

  /** Undefined: the caller was gone before anything was decided. */
  #handOut(
    transact: Transact,
    { nodeId, resume }: NextAsked,
    known: { readonly node: Node | null; readonly types: readonly string[] | null },
    signal: AbortSignal,
  ): Promise<Next | Changed | undefined> {
    const at: Moment = { now: this.#clock.now(), steady: this.#clock.steady() };
    const load = {
      node: nodeById(nodeId),
      started: resume ? firstStarted(nodeId) : NOTHING,
      gifts: bestGift(nodeId),
      open: bestReady(known.types),
    };
    return transact(load, ({ node, ...found }) => {
      if (signal.aborted) return UNDECIDED;
      if (node && !isSame(node, known.node)) return accept<Next | Changed>({ kind: "changed", node });
      const decision = next(node, nodeId, found, at);
      if (decision.kind === "rejected" || !node || decision.answer.kind !== "taken") return decision;
      return accept<Next>(decision.answer, [
        beaten(nodeId, { ...at, leaseMs: leaseOf(node) }),
        ...decision.changes,
      ]);
    });
  }

  /** The heartbeats of the nodes for which calls wait, of those that registered through `variant`. */
  beatWaiting(variant: JoinedThrough): Promise<void> {
    return this.#nodes.beatTogether(this.#idle.nodesOf(variant));
  }

  /** Retries failed put-backs. Throws at the first failure, and keeps that one and the rest for the next call. */
  async retryPutBacks(): Promise<void> {
    for (let failed = this.#failedPutBacks[0]; failed; failed = this.#failedPutBacks[0]) {
      await this.#tryPutBack(failed.nodeId, failed.taken);
      this.#failedPutBacks.shift();
    }
  }

  async #putBack(nodeId: string, taken: Taken): Promise<void> {
    try {
      await this.#tryPutBack(nodeId, taken);
    } catch {
      this.#failedPutBacks.push({ nodeId, taken }); // the periodic work reports it if it fails there too
    }
  }

  /** To where it was: open, or a gift of the node. What the node had started before stays started. */
  async #tryPutBack(nodeId: string, { task: { taskId, epoch }, from }: Taken): Promise<void> {
    const asked = { taskId, nodeId, epoch };
    const { transact } = this.#store;
    if (from === "gifts") await transact({ task: taskById(taskId) }, ({ task }) => giveAgain(task, asked));
    if (from !== "open") return;
    try {
      await this.#tasks.release(transact, { ...asked, reason: CALLER_GONE });
    } catch (error) {
      if (!(error instanceof Rejection)) throw error; // else it was taken back meanwhile
    }
  }
}

/** How long a node may be silent. */
function leaseOf({ variant }: Pick<Node, "variant">): number {
  return INTERVALS[variant].offlineAfterMs;
}

/** Whether a node takes the same types as before. */
function isSame(node: Node, before: Node | null): boolean {
  return before !== null && node.capabilities.join() === before.capabilities.join();
}
