/**
 * A pair of hubs whose first is killed under writers, repeatedly; the standby is promoted, and the old first becomes its
 * standby. One machine runs with --sync, the other without: so each kind of round comes in turn.
 */
import { randomFrom } from "./random.ts";
import { WRITERS, Work, checkWork } from "./standby-writers.ts";
import { Machines, addWhenFirst, add, caughtUp, copyOf, differing } from "../../test/e2e/pair.ts";
import { type Hub, run, until } from "../../test/e2e/program.ts";

const SYNCED = "synced";
const QUICK = "quick";
const ARGS: Readonly<Record<string, readonly string[]>> = { [SYNCED]: ["--sync"], [QUICK]: [] };
const KILL_AFTER_MS = { least: 50, most: 500 };
/** Of each writer, before the hub is killed. */
const LEAST_STEPS = 4;
/** Every so many rounds the first is not killed: it is there when its standby is promoted. */
const MOVE_EVERY = 3;

export type RoundsReport = {
  rounds: number;
  acknowledged: { synced: number; quick: number; moved: number };
  /** Acknowledged by a first without --sync, and not at its standby. */
  lost: number;
  readonly lagsS: number[];
  readonly promotionsMs: number[];
  readonly faults: string[];
};

export async function standbyRounds(
  rounds: number,
  seed: number,
  progress: (line: string) => void,
): Promise<RoundsReport> {
  const random = randomFrom(seed);
  using machines = new Machines();
  const report: RoundsReport = {
    ...{ rounds: 0, acknowledged: { synced: 0, quick: 0, moved: 0 }, lost: 0 },
    ...{ lagsS: [], promotionsMs: [], faults: [] },
  };
  const { faults } = report;
  let [name, other] = [QUICK, SYNCED];
  let first = await machines.start(name, ARGS[name]);
  await machines.join(first, name, other);
  let standby = await machines.start(other, ARGS[other]);
  try {
    for (let round = 1; round <= rounds && faults.length === 0; round++) {
      await until(async () => (await copyOf(first)).standbys[0]?.following === true);
      await caughtUp(first, standby);
      const isMove = round % MOVE_EVERY === 0;
      const work = new Work(first);
      await work.start(Array.from({ length: WRITERS }, (_, i) => `w${round}-${i}`));
      await until(() => work.acknowledged.length > WRITERS * LEAST_STEPS);
      const { least, most } = KILL_AFTER_MS;
      await Bun.sleep(Math.round(least + random() * (most - least))); // the moment is what this is about
      if (!isMove) {
        first.program.child.kill("SIGKILL");
        await work.end();
        await first.program.ended;
      }
      const promotedMs = performance.now();
      const { lag_s, missing } = JSON.parse(await machines.command(other, "promote", "--json")) as Promotion;
      await addWhenFirst(standby, `round ${round}`);
      report.promotionsMs.push(performance.now() - promotedMs);
      await work.end();
      const check = checkWork(work.acknowledged, machines.data(other));
      const earliest = promotedMs - lag_s * 1_000;
      faults.push(...work.faults, ...check.faults);
      if (isMove || name === SYNCED)
        faults.push(...check.missing.map((one) => `acknowledged and missing: ${JSON.stringify(one)}`));
      else
        for (const one of check.missing)
          if (one.ms < earliest)
            faults.push(`missing, ${(promotedMs - one.ms) / 1_000} s old, lag ${lag_s} s`);
      if (missing !== null && missing === 0 && check.missing.length > 0)
        faults.push(`"nothing is missing", and ${check.missing.length} are`);
      report.acknowledged[isMove ? "moved" : name === SYNCED ? "synced" : "quick"] +=
        work.acknowledged.length;
      if (name === QUICK) report.lost += check.missing.length;
      report.lagsS.push(lag_s);
      await checkByCommands(machines, other, faults);
      first = await rejoin({ machines, first, name, standby, isMove, work }, faults);
      await caughtUp(standby, first);
      await until(() => differing(machines, name, other).length === 0).catch(() =>
        faults.push(...differing(machines, name, other)),
      );
      report.rounds = round;
      progress(
        `round ${round}, ${isMove ? "moved" : name}: ${work.acknowledged.length} acknowledged, ` +
          `${check.missing.length} missing, lag ${lag_s} s, ${faults.length} faults`,
      );
      [first, standby] = [standby, first];
      [name, other] = [other, name];
    }
  } finally {
    await first[Symbol.asyncDispose]();
    await standby[Symbol.asyncDispose]();
  }
  return report;
}

type Promotion = { readonly lag_s: number; readonly missing: number | null };

/** As a person looks: the doctor, and the chain of the ledger. */
async function checkByCommands(machines: Machines, name: string, faults: string[]): Promise<void> {
  const doctor = await machines.command(name, "doctor").catch(String);
  if (doctor.includes("Error") || doctor.includes("note")) faults.push(`doctor: ${doctor}`);
  const ledger = machines.dir.join("ledger.ndjson");
  await Bun.write(ledger, await machines.command(name, "lux", "export"));
  const { code, stderr } = await run(["lux", "verify", ledger]);
  if (code !== 0) faults.push(`lux verify: ${stderr}`);
}

type Rejoining = {
  readonly machines: Machines;
  readonly first: Hub;
  readonly name: string;
  readonly standby: Hub;
  readonly isMove: boolean;
  readonly work: Work;
};

/** The old first comes back, refuses writes, and becomes the standby of the new one. */
async function rejoin(
  { machines, first, name, standby, isMove, work }: Rejoining,
  faults: string[],
): Promise<Hub> {
  const old = isMove ? first : await machines.start(name, ARGS[name], first.port);
  await until(async () => (await copyOf(old).catch(() => null))?.role === "superseded");
  const refused = await add(old, "to the old first");
  if (refused.status !== 503) faults.push(`the old first answers ${refused.status} to a write`);
  const { term } = await copyOf(standby);
  // Until it was told how to join.
  await until(
    async () => JSON.parse(await Bun.file(`${machines.data(name)}/superseded.json`).text()).line !== "",
  );
  old.program.child.kill("SIGKILL"); // what it alone has may be in its write-ahead log only
  await old.program.ended;
  await machines.command(name, "join");
  const { missing } = checkWork(work.acknowledged, machines.data(name), `luxhub.db.term-${term - 1}`);
  if (missing.length > 0) faults.push(`${missing.length} are not in what was kept of the old first`);
  return machines.start(name, ARGS[name], first.port);
}
