/**
 * Says of ready tasks that no registered node could ever take them, once each: the event task.stuck.
 *
 * It looks at lanes, not at tasks: at the nodes, part by part, until each lane has a node that could take it. Only what is
 * in the lanes that are left is read; and the tasks that are not for every node (the copies of a quorum, and reviews), for
 * each of which it looks at the nodes itself. The event itself is the mark: a task that has one gets no other.
 */
import { accept } from "../domain/decision.ts";
import { lackedBy, lackedPermanently } from "../domain/explain.ts";
import type { Lane, Position } from "../domain/lane.ts";
import { METRICS_PART, NODES_PART, SWEEP_BATCH } from "../domain/limits.ts";
import type { Node } from "../domain/model.ts";
import { taskEvent } from "../domain/task/log.ts";
import type { Clock } from "../lib/clock.ts";
import { pagesOf, partsOf } from "../lib/pages.ts";
import { BACKLOG_START, backlogAfter } from "../store/sql/balancer.ts";
import { readyLanes } from "../store/sql/lanes.ts";
import { readyOfLane } from "../store/sql/metrics.ts";
import { nodesByAbilities } from "../store/sql/stats.ts";
import { nodesAfter } from "../store/sql/nodes.ts";
import { type ChoosyTask, choosyAfter, unsaidAmong } from "../store/sql/tasks.ts";
import type { Store } from "../store/store.ts";
import { plainLanes } from "./census.ts";
import { UseCases } from "./use-cases.ts";

/** `missing`: of the node that comes closest; null: there is none. */
type Untaken<T> = T & { missing: readonly string[] | null };

export class StuckTasks extends UseCases {
  readonly #afterMs: number;

  /** `afterMs`: how long a task must have been ready. */
  constructor(store: Store, clock: Clock, afterMs: number) {
    super(store, clock);
    this.#afterMs = afterMs;
  }

  async report(signal: AbortSignal): Promise<void> {
    for (const lane of await this.#stuckLanes()) {
      const backlog = pagesOf<Position>(SWEEP_BATCH, (last) =>
        this.store.read(backlogAfter(last ?? BACKLOG_START, [lane.name], false, SWEEP_BATCH)),
      );
      for await (const places of backlog) {
        if (signal.aborted) return;
        await this.#say(
          places.map(({ seq }) => seq),
          () => lane.missing,
        );
      }
    }
    await this.#reportChoosy(signal);
  }

  /** That their lane has a taker does not say that they have one. */
  async #reportChoosy(signal: AbortSignal): Promise<void> {
    const choosy = pagesOf<ChoosyTask>(SWEEP_BATCH, (last) =>
      this.store.read(choosyAfter(last?.seq ?? 0, SWEEP_BATCH, this.clock.now() - this.#afterMs)),
    );
    for await (const tasks of choosy) {
      if (signal.aborted) return;
      const untaken = await this.#untaken(tasks);
      const missing = new Map(untaken.map((task) => [task.taskId, task.missing]));
      await this.#say(
        untaken.map(({ seq }) => seq),
        (taskId) => missing.get(taskId) ?? null,
      );
    }
  }

  async #untaken(tasks: readonly ChoosyTask[]): Promise<readonly Untaken<ChoosyTask>[]> {
    let untaken: readonly Untaken<ChoosyTask>[] = tasks.map((task) => ({ ...task, missing: null }));
    if (untaken.length === 0) return untaken;
    const pages = pagesOf<Node>(NODES_PART, (last) =>
      this.store.read(nodesAfter(last?.nodeId ?? "", NODES_PART)),
    );
    for await (const nodes of pages) {
      untaken = untaken.filter((task) => !nodes.some((node) => takes(task, lackedBy(node, task))));
      if (untaken.length === 0) break;
    }
    return untaken;
  }

  /** For each that was ready long enough and has none yet. */
  async #say(
    seqs: readonly number[],
    missingOf: (taskId: string) => readonly string[] | null,
  ): Promise<void> {
    if (seqs.length === 0) return;
    const unsaid = unsaidAmong("task.stuck", seqs, this.clock.now() - this.#afterMs);
    if ((await this.store.read(unsaid)).length === 0) return;
    await this.store.transact({ unsaid }, (rows) =>
      accept(
        null,
        rows.unsaid.map((task) => {
          const missing = missingOf(task.taskId)?.join(", ") ?? null;
          return taskEvent("task.stuck", task, null, this.clock.now(), { missing });
        }),
      ),
    );
  }

  /** Online or not. */
  async #stuckLanes(): Promise<readonly Untaken<Lane>[]> {
    let lanes: readonly Untaken<Lane>[] = (await this.#readyLanes()).map((lane) => ({
      ...lane,
      missing: null,
    }));
    if (lanes.length === 0) return lanes;
    for await (const { alike } of partsOf((after) =>
      this.store.read(nodesByAbilities(after, METRICS_PART)),
    )) {
      lanes = lanes.filter((lane) => !alike.some((node) => takes(lane, lackedPermanently(node, lane))));
      if (lanes.length === 0) break;
    }
    return lanes;
  }

  async #readyLanes(): Promise<readonly Lane[]> {
    const untyped = await this.store.read(readyOfLane("", 1));
    const plain = await plainLanes(this.store);
    return [
      ...plain.filter(({ taskType }) => taskType !== "" || untyped.count > 0),
      ...(await this.store.read(readyLanes())).values(),
    ];
  }
}

/** What the node lacks is remembered if no other lacks less. */
function takes(untaken: Untaken<object>, lacks: readonly string[]): boolean {
  if (untaken.missing === null || lacks.length < untaken.missing.length) untaken.missing = lacks;
  return lacks.length === 0;
}
