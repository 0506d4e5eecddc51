/**
 * The long form of the fuzz: a million requests to every endpoint of both variants. Some go one by one to hubs in this
 * process, where each refusal is checked against the database; the others go concurrently to the real program, whose
 * memory is watched.
 */
import { median } from "../bench/median.ts";
import { SUCCESS, fuzzInProcess } from "../../test/fuzz/fuzz.ts";
import { fireVolleys } from "../../test/fuzz/volley.ts";
import type { Figure, Section } from "./section.ts";

const REQUESTS = 1_000_000;
const ONE_BY_ONE = 0.1;
/** What the program may hold more at the end than when it was warm: the database grows meanwhile, its cache does not. */
const GROWTH_MAX_MIB = 48;

export const FUZZ: Section = {
  name: "fuzz",
  title: "Fuzz",
  limitMs: 25 * 60_000,
  async run(scale, seed, progress) {
    const goal = Math.ceil(REQUESTS * scale);
    const first = await fuzzInProcess(Math.ceil(goal * ONE_BY_ONE), seed);
    progress(`${first.total} requests one by one`);
    const { tally, fired, memoryMib, tookMs } = await fireVolleys(goal - first.total, seed, progress);
    const total = first.total + tally.total;
    const served = first.of(SUCCESS) + tally.of(SUCCESS);
    return [
      {
        what: "Requests answered as declared; what was refused changed nothing, nor when it was fired once more",
        value: `${total.toLocaleString("en")}, of them ${Math.round((100 * served) / total)} % served, none 5xx`,
        goal: goal.toLocaleString("en"),
        held: total >= goal,
      },
      {
        what: "Endpoints of which no request one by one succeeded",
        value: first.neverServed().join(", ") || "none",
        goal: scale < 1 ? "" : "none",
        held: scale < 1 || first.neverServed().length === 0,
      },
      memoryFigure(memoryMib),
      {
        what: "Rate of the program meanwhile, requests a second",
        value: Math.round((1_000 * fired) / tookMs).toLocaleString("en"),
        goal: "",
        held: true,
      },
    ];
  },
};

/** The second fifth of the run, when it is warm, beside the last: medians, for one reading says little. */
function memoryFigure(readings: readonly number[]): Figure {
  const fifth = Math.max(1, Math.floor(readings.length / 5));
  const warm = median(readings.slice(fifth, 2 * fifth));
  const late = median(readings.slice(-fifth));
  return {
    what: "Resident memory of the program, second fifth of the run and last fifth, MiB",
    value: `${warm.toFixed(0)} and ${late.toFixed(0)}`,
    goal: `at most ${GROWTH_MAX_MIB} more`,
    held: late - warm <= GROWTH_MAX_MIB,
  };
}
