// Measures whether requests about output take longer when many tasks have some: `bun tools/bench/growth/output.ts
// [PIECES]`, a million pieces if left out. Measures the same requests on one hub before and after it has got them.
import { statSync } from "node:fs";
import { Hub, TempDir } from "../../../test/e2e/program.ts";
import { whole } from "../markdown.ts";
import { type Call, batch, row, timed } from "./timed.ts";

const PIECES = Number(process.argv[2] ?? 1_000_000);
const PIECES_PER_TASK = 10;
const PIECE = `${"0123456789".repeat(20)}\n`;
const TASKS_PER_BATCH = 50;
const NODE = "printer";

function pieceOf(taskId: string, n: number): Call {
  return {
    path: "task/output",
    body: { task_id: taskId, node_id: NODE, offset: n * PIECE.length, data: PIECE },
  };
}

/** Tasks that the node holds, each with so many pieces of output. */
async function addTasks(hub: Hub, pieces: number): Promise<readonly string[]> {
  const created = { path: "task/create", body: { title: "t", description: "d" } };
  const ids = await batch(hub, new Array<Call>(TASKS_PER_BATCH).fill(created));
  await batch(
    hub,
    ids.map((taskId) => ({ path: "task/claim", body: { task_id: taskId, node_id: NODE } })),
  );
  const sent = ids.flatMap((taskId) => Array.from({ length: pieces }, (_, n) => pieceOf(taskId, n)));
  if (sent.length > 0) await batch(hub, sent);
  return ids;
}

async function measure(hub: Hub, pieces: number): Promise<readonly string[]> {
  const ids = await addTasks(hub, 0);
  const idOf = (n: number): string => ids[n % ids.length] ?? "";
  // Each task gets its pieces in order: the callers that share one wait for one another.
  const last = new Map<string, Promise<unknown>>();
  const sent = await timed(async (n) => {
    const id = idOf(n);
    await last.get(id);
    const asked = hub.post("/task/output", pieceOf(id, Math.floor(n / ids.length)).body);
    last.set(id, asked);
    return asked;
  });
  const read = await timed((n) => hub.get(`/task/${idOf(n)}/output?from=${60 * PIECE.length}`));
  return [row("task/output", pieces, sent), row("task/&lt;id&gt;/output", pieces, read)];
}

using dir = new TempDir();
const data = dir.join("data");
await using hub = await Hub.start({ data });
await hub.register(NODE);
const rows = [...(await measure(hub, 0))];
const begunAt = performance.now();
for (let pieces = 0; pieces < PIECES; pieces += TASKS_PER_BATCH * PIECES_PER_TASK) {
  await addTasks(hub, PIECES_PER_TASK);
  if (pieces % 1_000 === 0) await hub.post("/node/heartbeat", { node_id: NODE });
}
const seconds = (performance.now() - begunAt) / 1_000;
rows.push(...(await measure(hub, PIECES)));
console.log(["| Request | Pieces stored | p50 / p99 ms |", "| --- | ---: | ---: |", ...rows].join("\n"));
const mib = Math.round(statSync(`${data}/luxhub.db`).size / 2 ** 20);
console.log(`${whole(PIECES)} pieces in ${Math.round(seconds)} s; the database has ${mib} MiB.`);
