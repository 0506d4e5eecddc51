/**
 * kill -9 at random moments: writers keep a ledger of every 2xx, the hub is killed repeatedly meanwhile, sometimes while
 * it is starting, and after each start everything in the ledger is there, once. The disk of some of them fails for a
 * moment: strace lets writes or flushes of the log fail. The hub keeps its change log, and after each start a copy that has
 * run its entries has the same rows.
 *
 * The seed repeats the moments, though not the machine's timing.
 */
import { ADMIN_KEY, Hub, Program, TempDir, until } from "../../test/e2e/program.ts";
import { Findings, checkDatabase, checkDownloads, checkOverHttp } from "./crash-checks.ts";
import { type Crowd, Ledger, Writer } from "./crash-writer.ts";
import { Follower } from "./follower.ts";
import { Way } from "./fleet-callers.ts";
import { traceWrites, traced, whyNoTrace } from "./flush-trace.ts";
import { randomFrom } from "./random.ts";
import { PROGRAM } from "../../test/support/executable.ts";
import { type Figure, type Section, notRun } from "./section.ts";

/** The suite has fewer, which begin at other rounds each: one of everything is among them all the same. */
const WRITERS = 16;
/** What each of them does before the hub is killed, however slow the machine: one of everything is among them. */
const LEAST_ROUNDS = 2;
const KILL_AFTER_MS = { least: 100, most: 700 };
/** Every so many cycles the next hub is killed while it starts, before one is let live. */
const KILL_AT_START_EVERY = 4;
const KILL_AT_START_MOST_MS = 250;
/** Every so many cycles the disk fails, after so many calls, for so many. */
const DISK_FAILS_EVERY = 3;
const DISK_FAULTS = [
  { calls: "fsync,fdatasync", after: { least: 60, most: 150 }, most: 40 },
  { calls: "pwrite64", after: { least: 1_000, most: 3_000 }, most: 120 },
] as const;
const DISK_FAULTS_LEAST = 5;

export type CrashReport = {
  readonly ledger: Ledger;
  readonly findings: Findings;
  cycles: number;
  killedAtStart: number;
  /** Hubs whose disk failed, and requests that then had no known outcome. */
  failedDisks: number;
  unknown: number;
  readonly recoveriesMs: number[];
};

export async function crash(
  cycles: number,
  seed: number,
  progress: (line: string) => void,
  writerCount = WRITERS,
): Promise<CrashReport> {
  const random = randomFrom(seed);
  using dir = new TempDir();
  const data = dir.join("data");
  const report: CrashReport = {
    ledger: new Ledger(),
    findings: new Findings(),
    cycles: 0,
    killedAtStart: 0,
    failedDisks: 0,
    unknown: 0,
    recoveriesMs: [],
  };
  const { ledger, findings } = report;
  let hub = await Hub.start({ data });
  const follower = await Follower.of(hub, data, dir.join("copy.db"));
  try {
    const task = { title: "each second", description: "Survive" };
    const put = await hub.post("/schedule/put", { name: "seconds", every_s: 1, overlap: "queue", task });
    if (put.status !== 200) throw new Error(`schedule/put: ${JSON.stringify(put.body)}`);
    for (let cycle = 1; cycle <= cycles; cycle++) {
      const before = new Set(ledger.files.keys());
      const isFailing = failsDisk(cycle);
      const { writers, nodes, killMs, unknown } = await workAndKill(hub, cycle, {
        ledger,
        random,
        writerCount,
        isFailing,
      });
      report.cycles = cycle;
      report.unknown += unknown;
      if (isFailing) report.failedDisks++;
      if (cycle % KILL_AT_START_EVERY === 0) await killAtStart(data, report, random);
      hub = await Hub.start({ data, ...(failsDisk(cycle + 1) && { command: onFailingDisk(data, random) }) });
      if (!failsDisk(cycle + 1)) report.recoveriesMs.push(hub.readyMs);
      await checkDatabase(data, ledger, findings); // as it was left, and again with what is repeated
      await Promise.all(writers.map((writer) => writer.repeat(hub)));
      await checkDatabase(data, ledger, findings);
      for (const difference of follower.differences()) findings.add("unequal", `the copy: ${difference}`);
      await checkOverHttp(hub, nodes, ledger, findings);
      await checkDownloads(
        hub,
        [...ledger.files].filter(([fileId]) => !before.has(fileId)),
        findings,
      );
      progress(
        `cycle ${cycle}: killed after ${killMs} ms; ${ledger.acknowledged} writes acknowledged so far, ` +
          `${findings.missing} missing, ${findings.twice} twice, ${findings.unequal} unequal`,
      );
      if (findings.words.length > 0) break; // what follows from it would only hide it
    }
    await checkDownloads(hub, ledger.files, findings);
  } finally {
    follower.close();
    await hub[Symbol.asyncDispose]();
  }
  return report;
}

/** Every so many-th writer has a key that is bound to its node. */
const BOUND_EVERY = 4;

const GPUS = 4;

const failsDisk = (cycle: number): boolean => cycle % DISK_FAILS_EVERY === 0 && whyNoTrace() === null;

/** The program, with a disk that fails for a moment under the write-ahead log. */
function onFailingDisk(data: string, random: () => number): readonly string[] {
  const { calls, after, most } = DISK_FAULTS[random() < 0.5 ? 0 : 1];
  const first = Math.round(after.least + random() * (after.most - after.least));
  const last = first + Math.round(DISK_FAULTS_LEAST + random() * (most - DISK_FAULTS_LEAST));
  const inject = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=EIO:when=${first}..${last}`];
  return traced("/dev/null", PROGRAM, ["-P", `${data}/luxhub.db-wal`, ...inject]);
}

type Shift = {
  readonly ledger: Ledger;
  readonly random: () => number;
  readonly writerCount: number;
  /** The disk will fail: the writers repeat what has no known outcome, if that is safe. */
  readonly isFailing: boolean;
};

async function workAndKill(hub: Hub, cycle: number, { ledger, random, writerCount, isFailing }: Shift) {
  const nodes = Array.from({ length: writerCount }, (_, i) => `node-${cycle}-${i}`);
  await Promise.all(
    nodes.map(async (nodeId) => {
      const node = { node_id: nodeId, name: nodeId, resources: { gpu: GPUS } };
      const { status, body } = await hub.post("/node/register", node);
      if (status !== 200) throw new Error(`register ${nodeId}: ${JSON.stringify(body)}`);
      ledger.acknowledged++;
      ledger.nodes.add(nodeId);
    }),
  );
  const way = isFailing ? new Way(`http://${hub.host}:${hub.port}`) : null;
  const crowd: Crowd = { hub: way ?? hub, ledger, random, nodes, open: [], adminKey: way ? null : ADMIN_KEY };
  const writers = await Promise.all(
    nodes.map(async (nodeId, i) => {
      // Some have a key of their own, so that quotas count what they write.
      const secret = i % BOUND_EVERY === 0 ? await boundKey(hub, nodeId) : null;
      return new Writer(crowd, nodeId, Math.floor((i * WRITERS) / writerCount), secret);
    }),
  );
  let isWorking = true;
  const work = async (writer: Writer): Promise<void> => {
    do await writer.work();
    while (isWorking && way);
  };
  const working = Promise.all(writers.map(work));
  const { least, most } = KILL_AFTER_MS;
  const killMs = Math.round(least + random() * (most - least));
  await until(() => writers.every(({ rounds }) => rounds >= LEAST_ROUNDS) && way?.unknown !== 0);
  await Bun.sleep(killMs); // the moment is what this is about
  isWorking = false;
  const unknown = way?.unknown ?? 0;
  hub.program.child.kill("SIGKILL");
  way?.close();
  await working;
  await hub.program.ended;
  return { writers, nodes, killMs, unknown };
}

async function boundKey(hub: Hub, nodeId: string): Promise<string> {
  const { status, body } = await hub.admin("/key/add", { name: nodeId, node_id: nodeId });
  if (status !== 200) throw new Error(`key/add ${nodeId}: ${JSON.stringify(body)}`);
  return String(body["secret"]);
}

/** Kills a hub at a random moment of its start: in the middle of what it makes up for. */
async function killAtStart(data: string, report: CrashReport, random: () => number): Promise<void> {
  await using starting = new Program(["serve", "--port", "0", "--host", "127.0.0.1", "--data", data], {
    env: { LUXHUB_SECRET: "s", LUXHUB_ADMIN_KEY: "a" },
  });
  await Bun.sleep(Math.round(random() * KILL_AT_START_MOST_MS));
  starting.child.kill("SIGKILL");
  await starting.ended;
  report.killedAtStart++;
}

const CYCLES = 200;
const TRACED = 1_000;

/** What strace says of the order of flush and answer. */
async function traceFigure(atOnce: number): Promise<Figure> {
  const what = "Answers that left before their flush, as strace saw it";
  const reason = whyNoTrace();
  if (reason !== null) return notRun(what, reason);
  const { asks, early } = await traceWrites(PROGRAM, atOnce);
  return { what, value: `${early.length} of ${asks}`, goal: "0", held: early.length === 0 };
}

export const crashSection: Section = {
  name: "crash",
  title: "Crash",
  limitMs: 30 * 60_000,
  run: async (scale, seed, progress) => {
    const cycles = Math.max(1, Math.round(CYCLES * scale));
    const report = await crash(cycles, seed, progress);
    const { ledger, findings, killedAtStart, failedDisks, unknown, recoveriesMs } = report;
    for (const words of [...findings.words, ...ledger.faults]) progress(words);
    const counted = (what: string, count: number) => ({
      what,
      value: String(count),
      goal: "0",
      held: count === 0,
    });
    const sorted = recoveriesMs.toSorted((a, b) => a - b);
    const seconds = (ms: number | undefined): string => ((ms ?? 0) / 1_000).toFixed(2);
    return [
      {
        what: `Cycles of ${WRITERS} writers ended by SIGKILL; more killed while starting`,
        value: `${report.cycles}; ${killedAtStart}`,
        goal: String(cycles),
        held: report.cycles === cycles,
      },
      {
        what: "Of these, with a disk that failed for a moment; requests with no known outcome",
        value: `${failedDisks}; ${unknown}`,
        goal: "",
        held: true,
      },
      { what: "Writes acknowledged", value: String(ledger.acknowledged), goal: "", held: true },
      {
        what: "Tasks handed out by task/next; calls of it hung up; batches",
        value: `${ledger.handedOut}; ${ledger.hungUp}; ${ledger.batches}`,
        goal: "more than 0 each",
        held: Math.min(ledger.handedOut, ledger.hungUp, ledger.batches) > 0,
      },
      {
        what: "Verdicts of reviews that were acknowledged; quorums",
        value: `${[...ledger.verdicts.values()].reduce((sum, { pass, reject }) => sum + pass + reject, 0)}; ${ledger.quorums}`,
        goal: "more than 0 each",
        held: Math.min(ledger.verdicts.size, ledger.quorums) > 0,
      },
      counted("Acknowledged and missing", findings.missing),
      counted("Done twice: two winners, paid twice, handed out twice", findings.twice),
      counted("Balances, totals, integrity_check or the copy not right", findings.unequal),
      counted("Answers that must not be", ledger.faults.length),
      await traceFigure(Math.ceil(TRACED * scale)),
      {
        what: "From start to first answer after a kill, median / slowest, s",
        value: `${seconds(sorted[sorted.length >> 1])} / ${seconds(sorted.at(-1))}`,
        goal: "",
        held: true,
      },
    ];
  },
};
