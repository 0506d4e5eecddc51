/**
 * Workers with running tasks go through the death of their hub and the promotion of its copy: real processes of each kind
 * of worker, which know only the first hub's URL at their start. None ends or is started again, no task that the copy has
 * is lost, counted as tried or paid twice, and each worker takes its next tasks from the promoted hub.
 */
import { join } from "node:path";
import { type Step, lines } from "../../test/client/scenarios.ts";
import { WORKERS } from "../../test/client/scenario-workers.ts";
import {
  ADMIN_KEY,
  Hub,
  Program,
  SECRET,
  TempDir,
  listOf,
  objectOf,
  run,
  until,
} from "../../test/e2e/program.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import type { Figure, Section } from "./section.ts";

const SECRETS = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY };
const PRINTED = 200;
const PRINTED_BYTES = Buffer.byteLength(lines(PRINTED));
const LARGE = 40_000;

const usage = (cost_usd: number) => ({ model: "m", input_tokens: 1, output_tokens: 1, cost_usd });
/** A task does its first half at the first hub, and waits for an answer, which comes from the promoted one. */
const STEPS: readonly (readonly Step[])[] = [
  [
    ...[{ prints: PRINTED }, { note: "before" }, { checkpoint: 1 }, { usage: usage(1) }, { ask: "Go on?" }],
    ...[{ prints: 1 }, { note: "after" }, { checkpoint: 2 }, { usage: usage(2) }, { large: LARGE }],
  ],
];
/** One that may be dispatched, running or reported when the hub dies. */
const SHORT: readonly (readonly Step[])[] = [
  [{ prints: 5 }, { note: "short" }, { sleepMs: 20 }, { gives: "x" }],
];
/** Heartbeats find what the copy lacks. */
const HEALED_MS = 120_000;

export type FailoverReport = {
  readonly workers: number;
  /** From the command to the first accepted write, and to the end of the last task that was running. */
  readonly promotedMs: number;
  readonly doneMs: number;
  readonly faults: readonly string[];
};

type Job = { readonly node: string; readonly taskId: string; readonly program: Program };

export type FailoverOptions = {
  /** How many workers of each kind. */
  readonly ofEach: number;
  /** How many short tasks each worker does beside; the hub dies when a third of them are done. */
  readonly shortTasks: number;
  /** Stopped, it holds its connections open, as a machine does that has lost its power. */
  readonly death: "SIGKILL" | "SIGSTOP";
};

export async function failOver(
  { ofEach, shortTasks, death }: FailoverOptions,
  progress: (line: string) => void,
): Promise<FailoverReport> {
  using dir = new TempDir();
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await Hub.start({ data: dir.join("first"), host: OWN_HOST }));
  const invited = await run(["invite", "--standby", "copy", "--data", dir.join("first")], { env: SECRETS });
  const line = /luxhub join (\S+)/.exec(invited.stdout)?.[1] ?? "";
  const joined = await run(["join", line, "--data", dir.join("second")]);
  if (joined.code !== 0) throw new Error(`join: ${invited.stderr}${joined.stderr}`);
  const second = stack.use(await Hub.start({ data: dir.join("second"), host: OWN_HOST }));

  const env = {
    LUXHUB_URL: first.listeners[0]?.url ?? "",
    LUXHUB_SECRET: SECRET,
    PYTHONPATH: join(import.meta.dir, "../../src/client"),
    PYTHONDONTWRITEBYTECODE: "1",
    XDG_STATE_HOME: dir.join("state"),
  };
  const jobs: Job[] = [];
  for (const [k, start] of Object.values(WORKERS).entries())
    for (let i = 0; i < ofEach; i++) {
      const node = `worker-${k}-${i}`;
      const [program = "", ...args] = start(node, 2);
      const worker = stack.use(new Program(args, { command: [program], cwd: dir.path, env }));
      jobs.push({ node, taskId: await create(first, node, STEPS), program: worker });
    }
  progress(`${jobs.length} workers`);
  for (const { taskId } of jobs) await until(() => isHalfDone(second, taskId), 300_000, 100);
  progress("all tasks wait for an answer, and the copy has them");
  const short: Promise<string>[] = jobs.flatMap(({ node }) =>
    Array.from({ length: shortTasks }, () => create(first, node, SHORT)),
  );
  const shortIds = await Promise.all(short);
  await until(async () => (await countOf(second, "")) === jobs.length + shortIds.length);
  await until(async () => (await countOf(first, "&status=completed")) >= shortIds.length / 3);

  first.program.child.kill(death);
  if (death === "SIGKILL") await first.program.ended;
  const startedMs = performance.now();
  const promoted = await run(["promote", "--data", dir.join("second")], { env: SECRETS });
  if (promoted.code !== 0) throw new Error(`promote: ${promoted.stderr}`);
  await accepted(second, "/node/register", { node_id: "probe", name: "probe" });
  const promotedMs = performance.now() - startedMs;
  progress(`promoted: ${promoted.stdout.trim()} ${promoted.stderr.trim()}`);

  const faults: string[] = [];
  for (const { taskId } of jobs) {
    const { body } = await second.get(`/task/${taskId}/questions`);
    const [question] = listOf(body["questions"]);
    await accepted(second, "/task/answer", {
      task_id: taskId,
      question_id: question?.["question_id"],
      answer: 1,
    });
  }
  for (const job of jobs) faults.push(...(await faultsOf(second, job)));
  const doneMs = performance.now() - startedMs;
  const nextIds = await Promise.all(jobs.map(({ node }) => create(second, node, SHORT)));
  for (const taskId of [...shortIds, ...nextIds]) {
    await until(async () => (await taskOf(second, taskId))["status"] === "completed", HEALED_MS).catch(
      () => {},
    );
    const { status, attempts, restarts } = await taskOf(second, taskId);
    if (status !== "completed" || attempts !== 0 || restarts !== 0)
      faults.push(`${taskId} is ${String(status)} after ${String(attempts)} attempts`);
  }
  for (const { node, program } of jobs) {
    const { body } = await second.get(`/node/${node}`);
    const { lux_balance } = Object(body["node"]);
    if (lux_balance !== shortTasks + 2) faults.push(`${node} has ${lux_balance} LUX`);
    program.child.kill("SIGTERM");
    const code = await program.ended;
    if (code !== 0) faults.push(`${node} ended with ${code}`);
    // The end of what the copy lacks is that of another run.
    if (shortTasks === 0 && /\blost\b/.test(program.stdout + program.stderr))
      faults.push(`${node} lost its task`);
  }
  const doctor = await run(["doctor", "--data", dir.join("second")], { env: SECRETS });
  if (doctor.code !== 0) faults.push(`doctor: ${doctor.stdout}${doctor.stderr}`);
  return { workers: jobs.length, promotedMs, doneMs, faults };
}

async function create(hub: Hub, node: string, steps: readonly (readonly Step[])[]): Promise<string> {
  const fields = { task_type: node, max_attempts: 1, lux_reward: 1, timeout_s: 600 };
  const description = JSON.stringify(steps);
  const { task_id } = await accepted(hub, "/task/create", { title: node, description, ...fields });
  return String(task_id);
}

/** A promoted hub opens its port anew. */
async function accepted(hub: Hub, path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  let answer: Readonly<Record<string, unknown>> = {};
  await until(async () => {
    const { status, body: given } = await hub.post(path, body).catch(() => ({ status: 0, body: {} }));
    answer = given;
    return status === 200;
  });
  return answer;
}

async function countOf(hub: Hub, filter: string): Promise<number> {
  return Number((await hub.get(`/task/list?per_page=1${filter}`)).body["total"]);
}

async function taskOf(hub: Hub, taskId: string): Promise<Readonly<Record<string, unknown>>> {
  const { body } = await hub.get(`/task/${taskId}`);
  return objectOf(JSON.stringify(body["task"] ?? {}));
}

async function isHalfDone(hub: Hub, taskId: string): Promise<boolean> {
  const { progress, usage: used } = await taskOf(hub, taskId);
  const { body: asked } = await hub.get(`/task/${taskId}/questions`);
  const { body: output } = await hub.get(`/task/${taskId}/output`);
  const isUsed = Object(used).cost_usd === 1;
  return progress === "before" && isUsed && asked["total"] === 1 && output["next_offset"] === PRINTED_BYTES;
}

async function faultsOf(hub: Hub, { node, taskId }: Job): Promise<readonly string[]> {
  await until(async () => {
    const { status } = await taskOf(hub, taskId);
    return status === "completed" || status === "failed";
  }, 120_000);
  const task = await taskOf(hub, taskId);
  const { body: listed } = await hub.get(`/file/list?task_id=${taskId}`);
  const seen = {
    status: task["status"],
    assigned_node: task["assigned_node"],
    attempts: task["attempts"],
    restarts: task["restarts"],
    progress: task["progress"],
    reports: Object(task["usage"]).reports,
    cost_usd: Object(task["usage"]).cost_usd,
    files: listOf(listed["files"]).map(({ size }) => size),
  };
  const due = {
    ...{ status: "completed", assigned_node: node, attempts: 0, restarts: 0, progress: "after" },
    ...{ reports: 2, cost_usd: 3, files: [2 * LARGE] },
  };
  return Bun.deepEquals(seen, due) ? [] : [`${node}: ${JSON.stringify(seen)}`];
}

export const failoverSection: Section = {
  name: "failover",
  title: "Workers through a promotion",
  limitMs: 10 * 60_000,
  run: async (scale, _seed, progress) => {
    const ofEach = Math.max(1, Math.round(10 * scale));
    const report = await failOver({ ofEach, shortTasks: 30, death: "SIGKILL" }, progress);
    const few = Math.max(1, Math.round(3 * scale));
    const stopped = await failOver({ ofEach: few, shortTasks: 0, death: "SIGSTOP" }, progress);
    const faults = [...report.faults, ...stopped.faults];
    for (const fault of faults) progress(fault);
    const told = (what: string, value: string): Figure => ({ what, value, goal: "", held: true });
    return [
      told("Workers with running tasks when the hub was killed", String(report.workers)),
      {
        what: "From the promotion to the first accepted write, s",
        value: (report.promotedMs / 1_000).toFixed(1),
        goal: "under 5",
        held: report.promotedMs < 5_000,
      },
      told("From the promotion to the last result, s", (report.doneMs / 1_000).toFixed(1)),
      {
        what: "The same where the hub is stopped, and holds its connections open, s",
        value: (stopped.doneMs / 1_000).toFixed(1),
        goal: "under 30",
        held: stopped.doneMs < 30_000,
      },
      {
        what: "Tasks that were lost, counted as tried or paid twice; workers that ended",
        value: String(faults.length),
        goal: "0",
        held: faults.length === 0,
      },
    ];
  },
};
