/**
 * The base of a large store: a standby takes it while callers work at the first hub. Their p99 with and without it, in the
 * same run.
 */
import { join } from "node:path";
import { Machines, caughtUp, copyOf } from "../../test/e2e/pair.ts";
import { Hub, Program, until } from "../../test/e2e/program.ts";
import { PROGRAM } from "../../test/support/executable.ts";
import { median } from "../bench/median.ts";
import { fillStore } from "../bench/growth/growth.ts";
import { Phase, type PhaseJob } from "../bench/growth/job.ts";
import { startLoadClient } from "../bench/load-client.ts";
import type { Figure } from "./section.ts";

const TASKS = 1_000_000;
const NODES = 10_000;
const CALLERS = 256;
/** Of each measurement: one of each kind takes a few seconds. */
const REQUESTS = 10_000;
const ROUNDS_BEFORE = 3;
const OPERATIONS = ["heartbeat", "create", "claim", "complete"] as const;
const BASE_MAX_MS = 10 * 60_000;
const MOST_TIMES = 2;

export async function measureBase(
  scale: number,
  progress: (line: string) => void,
): Promise<readonly Figure[]> {
  using machines = new Machines();
  const tasks = Math.ceil(TASKS * scale);
  const nodes = Math.ceil(NODES * scale);
  await fillStore(machines.data("first"), { tasks, nodes });
  progress(`a store of ${tasks} tasks and messages is there`);
  await using first = await Hub.start({ data: machines.data("first"), ownSecrets: false });
  const growth = join(import.meta.dir, "../bench/growth/load.ts");
  const client = startLoadClient<PhaseJob, Phase>([process.execPath, growth], Phase);
  const p99 = async (): Promise<number> => {
    const times: number[] = [];
    for (const operation of OPERATIONS) {
      const count = Math.ceil(REQUESTS * Math.max(scale, 0.1));
      const { port, secret } = first;
      const job = { port, secret, adminKey: "", operation, connections: CALLERS, count, nodes };
      const phase = await client.run(job);
      if (phase.failures > 0) throw new Error(`${operation}: ${phase.failure}`);
      times.push(phase.p99Ms);
    }
    return Math.max(...times);
  };
  try {
    await p99(); // warms up
    const without: number[] = [];
    for (let round = 0; round < ROUNDS_BEFORE; round++) without.push(await p99());
    await machines.join(first, "first", "standby");
    const startedMs = performance.now();
    // As on another machine: it takes only the processor time that is left.
    const command = ["nice", "-n", "19", ...PROGRAM];
    await using taking = new Program(["serve", "--port", "0", "--data", machines.data("standby")], {
      command,
    });
    let isThere = false;
    const base = until(() => taking.stdout.includes("the base is here"), BASE_MAX_MS).then(() => {
      isThere = true;
      return (performance.now() - startedMs) / 1_000;
    });
    const during: number[] = [];
    while (!isThere) during.push(await p99());
    const baseS = await base;
    await taking[Symbol.asyncDispose]();
    await using standby = await machines.start("standby");
    await until(async () => (await copyOf(standby)).standbys[0]?.following === true);
    await caughtUp(first, standby);
    const followedS = (performance.now() - startedMs) / 1_000;
    const [before, meanwhile] = [median(without), median(during)];
    return [
      {
        what: `Base of ${tasks.toLocaleString("en")} tasks and messages under ${CALLERS} callers; then all entries there, s`,
        value: `${baseS.toFixed(1)}; ${followedS.toFixed(1)}`,
        goal: "",
        held: true,
      },
      {
        what: "p99 of these callers without / with it, median (highest) of the rounds, ms",
        value: [without, during]
          .map((times) => `${median(times).toFixed(0)} (${Math.max(...times).toFixed(0)})`)
          .join(" / "),
        goal: `at most ${MOST_TIMES} times`,
        held: meanwhile <= MOST_TIMES * before,
      },
    ];
  } finally {
    await client.stop();
  }
}
