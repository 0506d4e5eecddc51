/** Why a task does not run (domain/explain.ts). It may look at every node, in parts. */
import { Rejection, taskNotFound } from "../domain/decision.ts";
import { type Explanation, NO_TAKERS, type Takers, explain, withNodes } from "../domain/explain.ts";
import { NODES_PART, POSITION_COUNTED_MAX, UNMET_SHOWN_MAX } from "../domain/limits.ts";
import type { Gate, Node, Task } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import { TickQueue } from "../lib/semaphore.ts";
import { gateOn } from "../store/sql/gate.ts";
import { nodesAfter } from "../store/sql/nodes.ts";
import { dependenciesById, taskById, unmetOf } from "../store/sql/tasks.ts";
import { aheadInLane } from "../store/sql/ready-tasks.ts";
import type { Store } from "../store/store.ts";

export class Explanations {
  readonly #store: Pick<Store, "read">;
  readonly #clock: Clock;
  /** One part of all callers in each tick. */
  readonly #parts = new TickQueue();

  constructor(store: Pick<Store, "read">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @throws {Rejection} task_not_found */
  async of(taskId: string): Promise<Explanation> {
    const task = await this.#store.read(taskById(taskId));
    if (!task) throw new Rejection(taskNotFound(taskId));
    const now = this.#clock.now();
    const gate = await this.#store.read(gateOn(now));
    const isOpen = task.status === "open";
    const takers = isOpen ? await this.#takersOf(task, gate) : NO_TAKERS;
    const waitsFor = task.unmet === 0 ? [] : await this.#store.read(unmetOf(taskId, UNMET_SHOWN_MAX));
    const others = waitsFor.length === 0 ? [] : await this.#store.read(dependenciesById(waitsFor));
    const inReview = others.filter((other) => other.inReview).map((other) => other.taskId);
    const ahead =
      isOpen && !task.scheduled ? await this.#store.read(aheadInLane(task, POSITION_COUNTED_MAX)) : 0;
    return explain(task, { gate, takers, waitsFor, inReview, ahead }, now);
  }

  async #takersOf(task: Task, gate: Gate): Promise<Takers> {
    let takers = NO_TAKERS;
    for (let after: string | undefined = ""; after !== undefined;) {
      await this.#parts.next();
      const nodes: readonly Node[] = await this.#store.read(nodesAfter(after, NODES_PART));
      takers = withNodes(takers, task, nodes, gate);
      if (takers.free > 0) return takers;
      after = nodes.length < NODES_PART ? undefined : nodes.at(-1)?.nodeId;
    }
    return takers;
  }
}
