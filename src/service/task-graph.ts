/**
 * The graph around a task: what it depends on, in layers, and what waits for it. It reads a bounded number of tasks by
 * their ids, so it costs the same in a graph of a hundred thousand. Must not: decide anything.
 */
import { Rejection, taskNotFound } from "../domain/decision.ts";
import { GRAPH_DEPENDENTS_COUNTED_MAX, GRAPH_LAYERS, GRAPH_LAYER_TASKS } from "../domain/limits.ts";
import { type GraphTask, dependentCount, dependentsOf, graphTasks } from "../store/sql/task-graph.ts";
import type { Store } from "../store/store.ts";

/** `layer`: 0 the task itself, -1 what it depends on, -2 what that depends on; 1 what waits for it. */
export type Placed = GraphTask & { readonly layer: number };

export type TaskGraph = {
  readonly tasks: readonly Placed[];
  /** Shown or not. */
  readonly dependents: number;
};

export class TaskGraphs {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws {Rejection} task_not_found */
  around(taskId: string): Promise<TaskGraph> {
    return this.#store.readTogether(async (read): Promise<TaskGraph> => {
      const [task] = await read(graphTasks([taskId]));
      if (task === undefined) throw new Rejection(taskNotFound(taskId));
      const placed = new Map<string, Placed>([[taskId, { ...task, layer: 0 }]]);
      let layer: readonly GraphTask[] = [task];
      for (let depth = 1; depth <= GRAPH_LAYERS; depth++) {
        const ids = new Set(layer.flatMap(({ dependsOn }) => dependsOn));
        if (ids.size === 0) break;
        layer = await read(graphTasks([...ids].slice(0, GRAPH_LAYER_TASKS)));
        // One that is there already moves to this layer: so it comes before all that depend on it.
        for (const one of layer) placed.set(one.taskId, { ...one, layer: -depth });
      }
      const tasks = [...placed.values()];
      const waiting = await read(dependentsOf(task, GRAPH_LAYER_TASKS));
      for (const one of waiting) tasks.push({ ...one, layer: 1 });
      const dependents =
        waiting.length < GRAPH_LAYER_TASKS
          ? waiting.length
          : await read(dependentCount(task, GRAPH_DEPENDENTS_COUNTED_MAX));
      return { tasks, dependents };
    });
  }
}
