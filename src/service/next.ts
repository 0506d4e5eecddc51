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
import { type Decision, Rejection, UNDECIDED, type Undecided, accept } from "../domain/decision.ts";
import type { Moment, Node, VariantName } from "../domain/model.ts";
import { beaten } from "../domain/node.ts";
import { giveAgain, next } from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { NOTHING } from "../store/sql/query.ts";
import { bestGift, bestReady, firstStarted, taskById } from "../store/sql/tasks.ts";
import type { Store, Transact } from "../store/store.ts";
import { VARIANTS } from "../variant/by-name.ts";
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

/** What a transaction decided. */
type Answered = NextAnswer & {
  readonly kind: "answered";
  readonly taken: Taken | null;
  readonly isFull: boolean;
};

/** Why a transaction must be decided again, if at all. `changed`: the node takes other types. */
type Again =
  | { readonly kind: "gone" }
  | { readonly kind: "offline" }
  | { readonly kind: "changed"; readonly node: Node };

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
    let cameBack = false;
    try {
      let node = await this.#store.read(nodeById(nodeId));
      while (!signal.aborted && !worker.hasLeft) {
        const types = node ? typesFor(node, asked.taskTypes) : [];
        worker.reads(types, node?.variant ?? null);
        const found = await this.#handOut(transact, asked, { node, types }, signal);
        if (found.kind === "gone") break;
        if (found.kind === "changed") {
          node = found.node;
          continue;
        }
        if (found.kind === "offline") {
          if (cameBack) break; // it has left again
          await this.#nodes.heartbeat(this.#store.transact, nodeId, leaseOf);
          isBeaten = true;
          cameBack = true;
          continue;
        }
        if (found.taken) {
          taken = found.taken;
          if (!repeatable) await socketsPolled(); // to notice a caller who hung up during the commit
          if (repeatable || !signal.aborted) return found;
          await this.#putBack(nodeId, taken);
          break;
        }
        if (!isBeaten) await this.#nodes.beatTogether([nodeId]);
        isBeaten = true;
        if (found.draining) return found;
        cameBack = false;
        const leftMs = deadline - this.#clock.steady();
        if ((await worker.sleep(found.isFull, leftMs, signal)) !== "woken") break;
      }
      if (signal.aborted) throw new WaitAborted();
      return { task: null, draining: false };
    } finally {
      worker.leave(taken);
    }
  }

  /** An answer is decided in the form in which it is answered and stored; all else is undecided. */
  async #handOut(
    transact: Transact,
    { nodeId, resume }: NextAsked,
    known: { readonly node: Node | null; readonly types: readonly string[] | null },
    signal: AbortSignal,
  ): Promise<Answered | Again> {
    const at: Moment = { now: this.#clock.now(), steady: this.#clock.steady() };
    const load = {
      node: nodeById(nodeId),
      started: resume ? firstStarted(nodeId) : NOTHING,
      gifts: bestGift(nodeId),
      open: bestReady(known.types),
    };
    let undecided: Again = { kind: "gone" };
    const answer = await transact(load, ({ node, ...found }): Decision<Answered> | Undecided => {
      if (signal.aborted) return UNDECIDED;
      if (node && !isSame(node, known.node)) {
        undecided = { kind: "changed", node };
        return UNDECIDED;
      }
      const decision = next(node, nodeId, found, at);
      if (decision.kind === "rejected") return decision;
      const { answer, changes } = decision;
      if (!node || answer.kind === "offline") {
        undecided = { kind: "offline" };
        return UNDECIDED;
      }
      const taken = answer.kind === "taken" ? answer : null;
      const beat = taken ? [beaten(nodeId, { ...at, leaseMs: leaseOf(node) })] : [];
      const { draining } = node;
      const isFull = answer.kind === "full";
      return accept({ kind: "answered", task: taken?.task ?? null, draining, taken, isFull }, [
        ...beat,
        ...changes,
      ]);
    });
    return answer ?? undecided;
  }

  /** The heartbeats of the nodes of a variant for which calls wait. */
  beatWaiting(variant: VariantName): Promise<void> {
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
  return VARIANTS[variant].offlineAfterMs;
}

/** Whether a node takes the same types as before. */
function isSame(node: Node, before: Node | null): boolean {
  return before !== null && node.capabilities.join() === before.capabilities.join();
}
