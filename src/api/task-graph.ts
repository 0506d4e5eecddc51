/** The endpoint of the graph around a task. */
import * as z from "zod/mini";
import type { TaskGraph } from "../service/task-graph.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { count, statusWord } from "./response-schemas.ts";

const graph = readEndpoint({
  path: "/api/v1/task/:task_id/graph",
  auth: "public",
  summary: "The dependencies of a task, in layers, and the tasks that wait for it",
  rejections: ["task_not_found"],
  input: () => z.object({ task_id: field.id() }),
  answer: (variant) =>
    z.strictObject({
      tasks: z.array(
        z.strictObject({
          task_id: z.string(),
          title: z.string(),
          status: statusWord(variant),
          assigned_node: z.nullable(z.string()),
          depends_on: z.array(z.string()),
          unmet_count: count(),
          layer: z.int(),
        }),
      ),
      dependents: count(),
    }),
  handle: ({ services }, { task_id }) => services.graphs.around(task_id),
  encode: ({ tasks, dependents }: TaskGraph, variant: Variant) => {
    const shown = new Set(tasks.map(({ taskId }) => taskId));
    return {
      tasks: tasks.map((task) => ({
        task_id: task.taskId,
        title: task.title,
        status: variant.statusWord(task.status),
        assigned_node: task.assignedNode,
        depends_on: task.dependsOn.filter((id) => shown.has(id)),
        unmet_count: task.unmet,
        layer: task.layer,
      })),
      dependents,
    };
  },
});

export const TASK_GRAPH_ENDPOINTS: readonly Endpoint[] = [graph];
