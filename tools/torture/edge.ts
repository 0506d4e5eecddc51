/**
 * The HTTP edge when strangers push: bursts without the secret, of many sizes, on each variant, from source and as an
 * executable; bodies that stall; connections that stay open. The hub must live, and serve who has the secret.
 */
import { EXECUTABLE, FROM_SOURCE } from "../../test/support/executable.ts";
import { type Hub, SECRET } from "../../test/e2e/program.ts";
import { reasonOf } from "../../src/lib/reason.ts";
import { type Burst, type BurstReport, measureBurst, p99Of } from "./burst.ts";
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

/** Each size of a burst with each body, whole and incomplete. */
const BURSTS: readonly Burst[] = CALLERS.flatMap((callers) => {
  const whole = [0, KIB, 20 * KIB, ...(callers <= LARGE_BODIES_MAX ? [MIB] : [])];
  return [
    ...whole.map((bytes) => ({ callers, announcedBytes: bytes, sentBytes: bytes })),
    ...[20 * KIB, MIB].map((bytes) => ({ callers, announcedBytes: bytes, sentBytes: KIB })),
  ];
});

function burstsOf(scale: number): readonly Burst[] {
  const all = Array.from({ length: ROUNDS }, () => BURSTS).flat();
  const step = 1 / scale;
  return Array.from({ length: Math.ceil(all.length * scale) }, (_, i) => all[Math.floor(i * step)]).filter(
    (burst) => burst !== undefined,
  );
}

function describe({ callers, announcedBytes, sentBytes }: Burst): string {
  const size = (bytes: number): string => (bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`);
  const part = sentBytes < announcedBytes ? `${size(sentBytes)} of ` : "";
  return `${callers} with ${part}${size(announcedBytes)}`;
}

type Found = {
  bursts: number;
  hubs: number;
  /** Hubs that ended, or did not serve the honest client: after which burst, and why. */
  readonly dead: string[];
  readonly beatsMs: number[];
  /** The burst with the slowest p99. */
  worst: { p99Ms: number; burst: string };
  grewMib: number;
  callers: number;
  unanswered: number;
};

function add(found: Found, burst: Burst, { outcomes, beatsMs, grewMib }: BurstReport): void {
  found.bursts++;
  found.callers += burst.callers;
  found.unanswered += burst.callers - (outcomes["401"] ?? 0);
  for (const ms of beatsMs) found.beatsMs.push(ms);
  const p99Ms = p99Of(beatsMs);
  if (p99Ms > found.worst.p99Ms) found.worst = { p99Ms, burst: describe(burst) };
  found.grewMib = Math.max(found.grewMib, grewMib);
}

/** Bursts on one variant and build, on a new hub for each round. */
async function bursts(
  { program, command }: (typeof PROGRAMS)[number],
  { variant, args }: (typeof VARIANTS)[number],
  all: readonly Burst[],
  progress: (line: string) => void,
): Promise<Figure> {
  const found: Found = {
    bursts: 0,
    hubs: 0,
    dead: [],
    beatsMs: [],
    worst: { p99Ms: 0, burst: "none" },
    grewMib: 0,
    callers: 0,
    unanswered: 0,
  };
  const cell = `${variant}, ${program}`;
  for (let from = 0; from < all.length; from += BURSTS.length) {
    const round = all.slice(from, from + BURSTS.length);
    found.hubs++;
    let last = "its start";
    try {
      const run = async (hub: Hub): Promise<void> => {
        for (const burst of round) {
          last = describe(burst);
          add(found, burst, await measureBurst(hub, burst));
        }
        last = "its end";
      };
      await withHub(run, args, command);
    } catch (error) {
      found.dead.push(`${last}: ${reasonOf(error)}`);
      progress(`${cell}: a hub is dead after ${found.dead.at(-1)}`);
    }
    progress(
      `${cell}: ${found.bursts} bursts, the slowest ${found.worst.p99Ms.toFixed(0)} ms (${found.worst.burst})`,
    );
  }
  const p99Ms = p99Of(found.beatsMs.toSorted((a, b) => a - b));
  const { worst, dead, grewMib, callers, unanswered } = found;
  return {
    what: `Bursts on ${cell}; hubs alive; p99 of an honest client, of the slowest burst, ms; memory, MiB; callers not answered 401`,
    value: `${found.bursts}; ${found.hubs - dead.length} of ${found.hubs}; ${p99Ms.toFixed(0)}, ${worst.p99Ms.toFixed(0)} (${worst.burst}); ${grewMib.toFixed(0)}; ${unanswered} of ${callers}${dead.length > 0 ? `; dead after ${dead.join(", ")}` : ""}`,
    goal: `all; < ${HONEST_P99_MS_MAX}`,
    held: dead.length === 0 && p99Ms < HONEST_P99_MS_MAX,
  };
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
    const { grewMib, beatsMs } = await withHub((hub) => measureBurst(hub, burst));
    const p99Ms = p99Of(beatsMs);
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
  limitMs: 60 * 60_000,
  async run(scale) {
    if (process.platform !== "linux") return [notRun("Bodies and connections", "needs /proc")];
    return [...(await memory(1)), ...(await connections(scale))];
  },
};

export const BURSTS_SECTION: Section = {
  name: "bursts",
  title: "Bursts without the secret",
  limitMs: 6 * 60 * 60_000,
  async run(scale, _seed, progress) {
    if (process.platform !== "linux") return [notRun("Bursts", "needs /proc")];
    const figures: Figure[] = [];
    for (const program of PROGRAMS)
      for (const variant of VARIANTS) figures.push(await bursts(program, variant, burstsOf(scale), progress));
    return figures;
  },
};
