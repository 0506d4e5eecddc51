/** A client made of the generated types: a worker's day on A, and what is different on B. Compiled, not run. */
import createClient from "openapi-fetch";
import type { components, paths as PathsOfA } from "./generated/A.ts";
import type { paths as PathsOfB } from "./generated/B.ts";

const headers = { "X-Matrix-Secret": "secret" };
const a = createClient<PathsOfA>({ baseUrl: "http://127.0.0.1:19104", headers });
const b = createClient<PathsOfB>({ baseUrl: "http://127.0.0.1:19105", headers });

export async function work(): Promise<number> {
  await a.POST("/api/v1/node/register", { body: { node_id: "worker-1", name: "Worker 1" } });
  const made = await a.POST("/api/v1/task/create", {
    body: { title: "Summarise", description: "In three points", priority: "high", lux_reward: 2.5 },
    params: { header: { "Idempotency-Key": "order-1" } },
  });
  if (made.error) throw new Error(explain(made.error));
  const priority: 0 | 1 | 2 = made.data.task.priority;
  const claim = { task_id: made.data.task_id, node_id: "worker-1" };
  const claimed = await a.POST("/api/v1/task/claim", { body: claim });
  if (claimed.error?.error === "task_not_open") return priority;
  const result = { problem: "long", improvement: "short", lesson: "read first", points: 3 };
  const epoch = claimed.data?.lease.epoch ?? 0;
  const done = await a.POST("/api/v1/task/complete", { body: { ...claim, epoch, result } });
  return done.data?.lux_paid ?? 0;
}

export async function look(): Promise<readonly string[]> {
  const list = await b.GET("/api/v1/task/list", { params: { query: { status: "pending", per_page: 50 } } });
  const words: ("high" | "medium" | "low" | "p5")[] = (list.data?.tasks ?? []).map((task) => task.priority);
  const node = await b.GET("/api/v1/node/{node_id}", { params: { path: { node_id: "worker-1" } } });
  const capabilities: string[] = node.data?.node.capabilities ?? [];
  const balanced = await b.POST("/api/v1/task/batch-assign");
  return [...words, ...capabilities, ...(balanced.data?.assignments ?? []).map((one) => one.task_id)];
}

function explain({ error, detail }: Pick<components["schemas"]["Problem"], "error" | "detail">): string {
  return `${error}: ${detail}`;
}
