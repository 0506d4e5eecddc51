/** The endpoint of the graph around a task. */
import * as z from "zod/mini";
import type { TaskGraph } from "../service/task-graph.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, readEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { count, statusWord } from "./response-schemas.ts";
import { about, whole } from "./about.ts";

const graph = readEndpoint({
  path: "/api/v1/task/:task_id/graph",
  auth: "public",
  summary: "The dependencies of a task, in layers, and the tasks that wait for it",
  rejections: ["task_not_found"],
  input: () => z.object({ task_id: field.id() }),
  answer: (variant) =>
    z.strictObject({
      tasks: about(
        z.array(
          z.strictObject({
            task_id: z.string(),
            title: z.string(),
            status: statusWord(variant),
            assigned_node: z.nullable(z.string()),
            depends_on: about(z.array(z.string()), "The tasks in `depends_on` that the response has."),
            unmet_count: about(
              count(),
              "How many of the tasks in `depends_on` have not ended as this task needs.",
            ),
            layer: whole(
              "0: the task itself; -1: its dependencies; -2, -3: the dependencies of these; 1: tasks that wait for the task, or failed because of it.",
            ),
          }),
        ),
        "The task, the tasks that it depends on in up to 3 layers, and the tasks that wait for it in one layer. A layer has up to 50 tasks.",
      ),
      dependents: about(
        count(),
        "How many tasks wait for the task, or failed because of it; at most 10,000 are counted.",
      ),
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
