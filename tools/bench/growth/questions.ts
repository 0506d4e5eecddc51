// Measures whether requests take longer while many questions are open: `bun tools/bench/growth/questions.ts [QUESTIONS]`,
// 10,000 if left out, one of each task. Measures the same requests on one hub before and after they are asked.
import { Hub, TempDir, memoryMib } from "../../../test/e2e/program.ts";
import { whole } from "../markdown.ts";
import { type Call, batch, row, timed } from "./timed.ts";

const QUESTIONS = Number(process.argv[2] ?? 10_000);
const PER_BATCH = 100;
const NODE = "asker";

async function tasks(hub: Hub, count: number): Promise<readonly string[]> {
  const created = { path: "task/create", body: { title: "t", description: "d", timeout_s: 86_400 } };
  return batch(hub, new Array<Call>(count).fill(created));
}

/** Tasks that the node holds, each with an open question, asked as the thinking worker does: with its task kept. */
async function ask(hub: Hub, count: number): Promise<void> {
  const ids = await tasks(hub, count);
  const of = (path: string, more: object): readonly Call[] =>
    ids.map((task_id) => ({ path, body: { task_id, node_id: NODE, ...more } }));
  await batch(hub, of("task/claim", {}));
  await batch(hub, of("task/ask", { question: "May it be published?", choices: ["yes", "no"] }));
}

async function measure(hub: Hub, questions: number): Promise<readonly string[]> {
  const [held = ""] = await tasks(hub, 1);
  await batch(hub, [{ path: "task/claim", body: { task_id: held, node_id: NODE } }]);
  await tasks(hub, 500);
  const asked = { task_id: held, node_id: NODE, question: "May it?" };
  const inbox = await timed(() => hub.get("/questions?state=open"));
  const next = await timed(() => hub.post("/task/next", { node_id: NODE }));
  const repeated = await timed(() => hub.post("/task/ask", asked));
  return [
    row("questions", questions, inbox),
    row("task/next", questions, next),
    row("task/ask, a repeat", questions, repeated),
  ];
}

using dir = new TempDir();
await using hub = await Hub.start({ data: dir.join("data") });
await hub.register(NODE);
const rows = [...(await measure(hub, 0))];
const before = Math.round(memoryMib(hub.pid, "VmRSS"));
for (let asked = 0; asked < QUESTIONS; asked += PER_BATCH) {
  await ask(hub, PER_BATCH);
  await hub.post("/node/heartbeat", { node_id: NODE });
}
rows.push(...(await measure(hub, QUESTIONS)));
console.log(["| Request | Open questions | p50 / p99 ms |", "| --- | ---: | ---: |", ...rows].join("\n"));
console.log(
  `${whole(QUESTIONS)} open questions; resident memory from ${before} to ${Math.round(memoryMib(hub.pid, "VmRSS"))} MiB.`,
);
