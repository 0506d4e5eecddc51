/**
 * The HTTP edge when strangers push: bursts without the secret, of many sizes, on each variant, from source and as an
 * executable; bodies that stall; connections that stay open. The hub must live, and serve who has the secret.
 */
import { EXECUTABLE, FROM_SOURCE } from "../../test/support/executable.ts";
import { SECRET } from "../../test/e2e/program.ts";
import { type Burst, type BurstReport, measureBurst } from "./burst.ts";
import { FLOODS, type Flood, measureFlood } from "./connection-flood.ts";
import { withHub } from "./overload.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;
const CALLERS = [1_000, 3_000, 10_000, 20_000];
/** Whole bodies of 1 MiB of more callers would fill the sockets of this machine. */
const LARGE_BODIES_MAX = 2_000;
const ROUNDS = 10;
const HONEST_P99_MS_MAX = 1_000;
const FLOOD_CONNECTIONS = 20_000;
/** As `ulimit` takes them; one more than this machine allows is as many as it allows. */
const FLOOD_LIMITS = [1_024, 65_536];
const FLOOD_HELD_MS = 5_000;
/** The system drops a connection beyond the backlog of the socket, and its client tries again a second later. */
const HEALTH_P50_MS_MAX = 100;
/** Of one core. */
const FLOOD_CPU_MAX = 0.2;
/** What the hub may grow by beside bodies that it refuses, or that stall. */
export const BODIES_MIB_MAX = 150;

const PROGRAMS = [
  { program: "executable", command: [EXECUTABLE] },
  { program: "source", command: FROM_SOURCE },
];
const VARIANTS = [
  { variant: "A", args: ["--variant", "A"] },
  { variant: "B", args: ["--variant", "B"] },
  { variant: "A private", args: ["--variant", "A", "--private"] },
];

/** The bodies of one burst after the other: whole, and incomplete. */
function bodiesFor(callers: number): readonly Omit<Burst, "callers">[] {
  const whole = [0, KIB, 20 * KIB, ...(callers <= LARGE_BODIES_MAX ? [MIB] : [])];
  return [
    ...whole.map((bytes) => ({ announcedBytes: bytes, sentBytes: bytes })),
    ...[20 * KIB, MIB].map((bytes) => ({ announcedBytes: bytes, sentBytes: KIB })),
  ];
}

/** Of many bursts: how many, the slowest p99 of the honest client, the most memory, and what the callers got. */
type Summary = { bursts: number; p99Ms: number; grewMib: number; unanswered: number; callers: number };

function add(summary: Summary, burst: Burst, { outcomes, p99Ms, grewMib }: BurstReport): void {
  summary.bursts++;
  summary.callers += burst.callers;
  summary.unanswered += burst.callers - (outcomes["401"] ?? 0);
  summary.p99Ms = Math.max(summary.p99Ms, p99Ms);
  summary.grewMib = Math.max(summary.grewMib, grewMib);
}

async function bursts(
  { program, command }: (typeof PROGRAMS)[number],
  { variant, args }: (typeof VARIANTS)[number],
  rounds: number,
  progress: (line: string) => void,
): Promise<readonly Figure[]> {
  const what = (callers: number): string => `${callers} at once, ${program}, ${variant}`;
  const summaries = await withHub(
    async (hub) => {
      const found = new Map<number, Summary>();
      for (const callers of CALLERS) {
        const summary = { bursts: 0, p99Ms: 0, grewMib: 0, unanswered: 0, callers: 0 };
        for (let round = 0; round < rounds; round++) {
          for (const body of bodiesFor(callers)) {
            const burst = { callers, ...body };
            add(summary, burst, await measureBurst(hub, burst));
          }
        }
        progress(`${what(callers)}: ${summary.bursts} bursts, p99 ${summary.p99Ms.toFixed(0)} ms`);
        found.set(callers, summary);
      }
      return found;
    },
    args,
    command,
  );
  return [...summaries].map(([callers, { bursts: count, p99Ms, grewMib, unanswered, callers: all }]) => ({
    what: `${what(callers)}: bursts that the hub outlived; highest p99 of an honest client, ms; memory, MiB; not answered 401`,
    value: `${count}; ${p99Ms.toFixed(0)}; ${grewMib.toFixed(0)}; ${unanswered} of ${all}`,
    goal: `all; < ${HONEST_P99_MS_MAX}`,
    held: p99Ms < HONEST_P99_MS_MAX,
  }));
}

/** 1,000 whole bodies of 1 MiB without the secret, and 1,500 of one key that stall. */
async function memory(scale: number): Promise<readonly Figure[]> {
  const kinds = [
    { what: "bodies of 1 MiB without the secret", header: "", sentBytes: MIB, of: 1_000 },
    {
      what: "bodies of 1 MiB of one key that stall",
      header: `X-Matrix-Secret: ${SECRET}`,
      sentBytes: MIB - 1,
      of: 1_500,
    },
  ];
  const figures: Figure[] = [];
  for (const { what, header, sentBytes, of } of kinds) {
    const callers = Math.ceil(of * scale);
    const burst = { callers, announcedBytes: MIB, sentBytes, header };
    const { grewMib, p99Ms } = await withHub((hub) => measureBurst(hub, burst));
    figures.push({
      what: `Memory taken by ${callers} ${what}, MiB; p99 of an honest client, ms`,
      value: `${grewMib.toFixed(0)}; ${p99Ms.toFixed(0)}`,
      goal: `<= ${BODIES_MIB_MAX}; < ${HONEST_P99_MS_MAX}`,
      held: grewMib <= BODIES_MIB_MAX && p99Ms < HONEST_P99_MS_MAX,
    });
  }
  return figures;
}

/** Connections that ask for nothing more, for hubs with few and with many file descriptors. */
async function connections(scale: number): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const count = Math.ceil(FLOOD_CONNECTIONS * scale);
  for (const limit of FLOOD_LIMITS) {
    const command = [
      "sh",
      "-c",
      `ulimit -n ${limit} 2>/dev/null || ulimit -n $(ulimit -Hn); exec "$@"`,
      "sh",
      EXECUTABLE,
    ];
    for (const kind of Object.keys(FLOODS) as Flood[]) {
      const flood = await withHub((hub) => measureFlood(hub, kind, count, FLOOD_HELD_MS), [], command);
      const { opened, honestP99Ms, healthP50Ms, healthLongestMs, cpuShare } = flood;
      figures.push({
        what: `${count} connections (${kind}) for ${limit} files: opened; p99 of an honest client, ms; p50 and longest of /healthz, ms; then % of a core`,
        value: `${opened}; ${honestP99Ms.toFixed(0)}; ${healthP50Ms.toFixed(0)}, ${healthLongestMs.toFixed(0)}; ${(cpuShare * 100).toFixed(0)}`,
        goal: `< ${HONEST_P99_MS_MAX}; < ${HEALTH_P50_MS_MAX}; < ${FLOOD_CPU_MAX * 100} %`,
        held: honestP99Ms < HONEST_P99_MS_MAX && healthP50Ms < HEALTH_P50_MS_MAX && cpuShare < FLOOD_CPU_MAX,
      });
    }
  }
  return figures;
}

export const EDGE: Section = {
  name: "edge",
  title: "Strangers who push",
  limitMs: 6 * 60 * 60_000,
  async run(scale, _seed, progress) {
    if (process.platform !== "linux") return [notRun("Bursts", "needs /proc")];
    const rounds = Math.max(Math.round(ROUNDS * scale), 1);
    const figures = [...(await memory(1)), ...(await connections(scale))];
    for (const program of PROGRAMS) {
      for (const variant of VARIANTS) figures.push(...(await bursts(program, variant, rounds, progress)));
    }
    return figures;
  },
};
