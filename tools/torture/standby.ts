/**
 * A first hub and its standby: the first is killed under writers and the standby promoted, again and again; what is
 * between them fails in every way; and a standby takes a large base while others work.
 */
import { measureBase } from "./standby-base.ts";
import { standbyRounds } from "./standby-rounds.ts";
import { SCENES, play } from "./standby-scenes.ts";
import { WRITERS } from "./standby-writers.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const ROUNDS = 100;
/** From the word of a person to the first write that the new first accepts. */
const PROMOTION_MAX_MS = 5_000;

export const standbySection: Section = {
  name: "standby",
  title: "Standby",
  limitMs: 45 * 60_000,
  run: async (scale, seed, progress) => [
    ...(await rounds(Math.max(3, Math.round(ROUNDS * scale)), seed, progress)),
    ...(await scenes(progress)),
    ...(await measureBase(scale, progress)),
  ],
};

async function rounds(
  count: number,
  seed: number,
  progress: (line: string) => void,
): Promise<readonly Figure[]> {
  const { rounds, acknowledged, lost, lagsS, promotionsMs, faults } = await standbyRounds(
    count,
    seed,
    progress,
  );
  for (const fault of faults.slice(0, 10)) progress(fault);
  const { synced, quick, moved } = acknowledged;
  const slowest = Math.max(...promotionsMs);
  return [
    {
      what: `Promotions under ${WRITERS} writers, after kill -9 of the first, or while it runs`,
      value: String(rounds),
      goal: String(count),
      held: rounds === count,
    },
    {
      what: "Writes acknowledged with --sync / without / by a first that is not killed",
      value: `${synced} / ${quick} / ${moved}`,
      goal: "",
      held: true,
    },
    {
      what: "Of those without, missing at the standby; largest lag that was shown, s",
      value: `${lost}; ${Math.max(...lagsS)}`,
      goal: "",
      held: true,
    },
    {
      what: "Missing though the lag or --sync said otherwise, done twice, unequal, refused by the doctor",
      value: String(faults.length),
      goal: "0",
      held: faults.length === 0,
    },
    {
      what: "From luxhub promote to the first accepted write, slowest, ms",
      value: slowest.toFixed(0),
      goal: `< ${PROMOTION_MAX_MS}`,
      held: slowest < PROMOTION_MAX_MS,
    },
  ];
}

async function scenes(progress: (line: string) => void): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  let held = 0;
  for (const name of Object.keys(SCENES)) {
    const { fault, notHere } = await play(name);
    progress(`${name}: ${fault ?? notHere ?? "as it must be"}`);
    if (notHere !== null) figures.push(notRun(name, notHere));
    else if (fault === null) held++;
    else figures.push({ what: name, value: fault, goal: "as it must be", held: false });
  }
  const what =
    "Faults of links, disks, clocks, processes and people, each with its outcome; the copy is equal after it";
  return [{ what, value: String(held), goal: "", held: true }, ...figures];
}
