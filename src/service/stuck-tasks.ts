/**
 * Says of ready tasks that no registered node could ever take them, once each: the event task.stuck.
 *
 * It looks at lanes, not at tasks: at the nodes, part by part, until each lane has a node that could take it. Only what is
 * in the lanes that are left is read. The event itself is the mark: a task that has one gets no other.
 */
import { accept } from "../domain/decision.ts";
import { lackedPermanently } from "../domain/explain.ts";
import type { Able, LaneTask } from "../domain/lane.ts";
import { METRICS_PART, SWEEP_BATCH } from "../domain/limits.ts";
import { taskEvent } from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import { BACKLOG_START, type BacklogPlace, backlogAfter } from "../store/sql/balancer.ts";
import { readyLanes } from "../store/sql/gate.ts";
import { readyOfLane } from "../store/sql/metrics.ts";
import { type AbilitiesPart, abilitiesAfter } from "../store/sql/stats.ts";
import { unsaidAmong } from "../store/sql/tasks.ts";
import type { Store } from "../store/store.ts";
import { readyTypes } from "./type-metrics.ts";

type ReadyLane = Pick<LaneTask, "taskType" | "requires"> & { readonly name: string };
/** A lane that no node takes. `missing`: what the node that comes closest lacks; null: there is no node. */
type StuckLane = ReadyLane & { missing: readonly string[] | null };

export class StuckTasks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #afterMs: number;

  /** `afterMs`: how long a task must have been ready. */
  constructor(store: Store, clock: Clock, afterMs: number) {
    this.#store = store;
    this.#clock = clock;
    this.#afterMs = afterMs;
  }

  async report(signal: AbortSignal): Promise<void> {
    for (const lane of await this.#stuckLanes()) {
      for (let after: BacklogPlace | undefined = BACKLOG_START; after !== undefined && !signal.aborted;) {
        const places: readonly BacklogPlace[] = await this.#store.read(
          backlogAfter(after, [lane.name], false, SWEEP_BATCH),
        );
        await this.#reportSome(lane, places);
        after = places.length < SWEEP_BATCH ? undefined : places.at(-1);
        await nextTick();
      }
    }
  }

  async #reportSome(lane: StuckLane, places: readonly BacklogPlace[]): Promise<void> {
    const before = this.#clock.now() - this.#afterMs;
    const unsaid = unsaidAmong(
      "task.stuck",
      places.map(({ seq }) => seq),
      before,
    );
    if (places.length === 0 || (await this.#store.read(unsaid)).length === 0) return;
    const data = { missing: lane.missing === null ? null : lane.missing.join(", ") };
    await this.#store.transact({ unsaid }, (rows) =>
      accept(
        null,
        rows.unsaid.map((task) => taskEvent("task.stuck", task, null, this.#clock.now(), data)),
      ),
    );
  }

  /** The lanes with ready tasks that no registered node, online or not, could ever take. */
  async #stuckLanes(): Promise<readonly StuckLane[]> {
    let lanes: readonly StuckLane[] = (await this.#readyLanes()).map((lane) => ({ ...lane, missing: null }));
    for (let after: number | null = 0; after !== null && lanes.length > 0;) {
      const part: AbilitiesPart = await this.#store.read(abilitiesAfter(after, METRICS_PART));
      lanes = lanes.filter((lane) => !part.abilities.some((node) => couldTake(node, lane)));
      after = part.next;
      if (after !== null) await nextTick();
    }
    return lanes;
  }

  async #readyLanes(): Promise<readonly ReadyLane[]> {
    const lanes: ReadyLane[] = [];
    for (const taskType of await readyTypes(this.#store))
      if (taskType !== "" || (await this.#store.read(readyOfLane("", 1))).count > 0)
        lanes.push({ name: taskType, taskType, requires: null });
    return [...lanes, ...(await this.#store.read(readyLanes())).values()];
  }
}

/** Whether a node could ever take the tasks of a lane; what it lacks is remembered if no other lacks less. */
function couldTake(node: Able, lane: StuckLane): boolean {
  const lacks = lackedPermanently(node, lane);
  if (lane.missing === null || lacks.length < lane.missing.length) lane.missing = lacks;
  return lacks.length === 0;
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
