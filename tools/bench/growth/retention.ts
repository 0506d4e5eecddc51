// Measures what retention costs the callers of a hub: `bun tools/bench/growth/retention.ts [TASKS] [CALLERS]`, a million
// stored tasks and 256 callers if left out. In turns on copies of one store: a hub that keeps all tasks, and one whose
// finished tasks are all past their retention. The callers create, claim and complete tasks.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { Hub, TempDir } from "../../../test/e2e/program.ts";
import { whole } from "../markdown.ts";
import { median } from "../median.ts";
import { RESULT } from "../scenarios.ts";

const TASKS = Number(process.argv[2] ?? 1_000_000);
const CALLERS = Number(process.argv[3] ?? 256);
const NODES = 100;
const ROUNDS = 3;
const ROUND_MS = 15_000;
const WARM_UP_MS = 3_000;

type Round = {
  readonly p50: number;
  readonly p99: number;
  readonly requests: number;
  readonly deleted: number;
};

async function finished(hub: Hub): Promise<number> {
  const { body } = await hub.get("/status");
  return Number(Object(body["storage"]).finished_tasks);
}

async function measure(data: string, args: readonly string[]): Promise<Round> {
  await using hub = await Hub.start({ data, args });
  const times: number[] = [];
  const startAt = performance.now();
  const measureAt = startAt + WARM_UP_MS;
  const endAt = measureAt + ROUND_MS;
  let completed = 0;
  const timed = async (path: string, body: object): Promise<string> => {
    const begunAt = performance.now();
    const answer = await hub.post(path, body);
    if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}`);
    if (begunAt >= measureAt) times.push(performance.now() - begunAt);
    return String(answer.body["task_id"]);
  };
  const call = async (n: number): Promise<void> => {
    const node_id = `caller-${n}`;
    await hub.register(node_id);
    while (performance.now() < endAt) {
      const task_id = await timed("/task/create", {
        title: "t",
        description: "d",
        task_type: "none",
        retain_s: 3_600,
      });
      await timed("/task/claim", { task_id, node_id });
      await timed("/task/complete", { task_id, node_id, result: RESULT });
      completed++;
    }
  };
  const before = await finished(hub);
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => call(n)));
  const deleted = before + completed - (await finished(hub));
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), requests: times.length, deleted };
}

using dir = new TempDir();
const store = dir.join("store");
const fill = Bun.spawn([process.execPath, join(import.meta.dir, "fill.ts"), store, `${TASKS}`, `${NODES}`]);
if ((await fill.exited) !== 0) throw new Error("the store was not filled");
const keeps: Round[] = [];
const deletes: Round[] = [];
for (let round = 0; round < ROUNDS; round++)
  for (const [rounds, args] of [
    [keeps, []],
    [deletes, ["--retain-tasks", "1s"]],
  ] as const) {
    const data = dir.join(`round-${round}-${args.length}`);
    cpSync(store, data, { recursive: true });
    rounds.push(await measure(data, args));
  }
const row = (name: string, rounds: readonly Round[]): string => {
  const of = (pick: (round: Round) => number): number => median(rounds.map(pick));
  const perSecond = (count: number): string => whole(Math.round((count * 1_000) / ROUND_MS));
  const times = `${of(({ p50 }) => p50).toFixed(1)} / ${of(({ p99 }) => p99).toFixed(1)}`;
  return `| ${name} | ${times} | ${perSecond(of(({ requests }) => requests))} | ${perSecond(of(({ deleted }) => deleted))} |`;
};
console.log(`| ${whole(TASKS)} tasks, ${CALLERS} callers | p50 / p99 ms | requests/s | deleted/s |`);
console.log("| --- | ---: | ---: | ---: |");
console.log(row("all kept", keeps));
console.log(row("all past their retention", deletes));
const ratios = deletes.map(({ p99 }, i) => p99 / (keeps[i]?.p99 ?? Number.NaN));
console.log(`p99 with deletion: ${ratios.map((ratio) => ratio.toFixed(2)).join(", ")} times that without.`);
