// The memory and the processor time of an idle process: the hub and a bare Bun.serve, from source and as executable. Each process runs from
// its own copy of its program file, because Pss divides shared pages among all processes that map them, and would
// otherwise depend on how many other Bun processes run.
import { chmodSync, copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { keepChild, makeDirectory, removeDirectory } from "./children.ts";
import { type Memory, readCpuMs, readMemory } from "./machine.ts";
import { median } from "./median.ts";
import { ECHO_SOURCE, PROJECT, type RunningServer, startEcho, startHub } from "./server-under-test.ts";

/** Long enough for what a start leaves behind: a heap helper gives up after 10 s, and what ticks has been compiled. */
const IDLE_MS = 15_000;
/** Then its processor time is measured. */
const CPU_MS = 10_000;
const STARTS = 3;
const EXECUTABLE = join(PROJECT, "dist", "luxhub");

export type IdleMemory = { name: string; rssKib: number; pssKib: number; cpuShare: number };

export type Subject = { name: string; form: string; isHub: boolean; start(): Promise<RunningServer> };

const SOURCE = "from source";
const COMPILED = "executable";

/** Starts each subject three times and reads its memory once it has been idle; [] where /proc does not tell. */
export async function measureIdleMemory(dataRoot: string): Promise<IdleMemory[]> {
  if (process.platform !== "linux") return [];
  const programs = makeDirectory();
  try {
    const subjects = await prepareSubjects(programs, dataRoot);
    const readings = subjects.map(({ name }) => ({
      name,
      memory: new Array<Memory>(),
      cpuMs: new Array<number>(),
    }));
    for (let count = 0; count < STARTS; count++) {
      const servers = await Promise.all(subjects.map((subject) => subject.start()));
      await Bun.sleep(IDLE_MS);
      for (const [index, server] of servers.entries()) {
        const memory = readMemory(server.pid);
        if (memory === null) throw new Error(`${subjects[index]?.name}: gone while it was idle`);
        readings[index]?.memory.push(memory);
      }
      const before = servers.map(({ pid }) => readCpuMs(pid) ?? Number.NaN);
      await Bun.sleep(CPU_MS);
      for (const [index, { pid }] of servers.entries())
        readings[index]?.cpuMs.push((readCpuMs(pid) ?? Number.NaN) - (before[index] ?? Number.NaN));
      await Promise.all(servers.map((server) => server.stop()));
    }
    return readings.map(({ name, memory, cpuMs }) => ({
      name,
      rssKib: median(memory.map(({ rssKib }) => rssKib)),
      pssKib: median(memory.map(({ pssKib }) => pssKib)),
      cpuShare: median(cpuMs) / CPU_MS,
    }));
  } finally {
    removeDirectory(programs);
  }
}

/** Copies of the programs in `programs`; the executables only where `dist/luxhub` is. */
export async function prepareSubjects(programs: string, dataRoot: string): Promise<Subject[]> {
  const own = (name: string, source: string): string => {
    const directory = join(programs, name);
    mkdirSync(directory);
    const program = join(directory, name.startsWith("bun") ? "bun" : "luxhub");
    copyFileSync(source, program);
    chmodSync(program, 0o755);
    return program;
  };
  const bunForHub = own("bun-hub", process.execPath);
  const bunForEcho = own("bun-echo", process.execPath);
  const subjects: Subject[] = [
    {
      name: "luxhub, `bun src/main.ts`",
      form: SOURCE,
      isHub: true,
      start: () => startHub([bunForHub, "src/main.ts"], dataRoot),
    },
    {
      name: "bare `Bun.serve`, from source",
      form: SOURCE,
      isHub: false,
      start: () => startEcho([bunForEcho, ECHO_SOURCE]),
    },
  ];
  if (!existsSync(EXECUTABLE)) return subjects;
  const hub = own("executable", EXECUTABLE);
  const echo = await compileEcho(join(programs, "echo"));
  subjects.push(
    { name: "luxhub, executable", form: COMPILED, isHub: true, start: () => startHub([hub], dataRoot) },
    { name: "bare `Bun.serve`, executable", form: COMPILED, isHub: false, start: () => startEcho([echo]) },
  );
  return subjects;
}

/** Compiles it as `bun run build` does the hub, with the same flags but the profile, which is the hub's. */
async function compileEcho(outfile: string): Promise<string> {
  const build = packageJson.scripts.build.split(" && ").at(-1) ?? "";
  const [, ...all] = build.replace("src/main.ts", ECHO_SOURCE).replace("dist/luxhub", outfile).split(" ");
  const words = all.filter((word) => !word.startsWith("--bytecode-order="));
  const child = keepChild(
    Bun.spawn([process.execPath, ...words], { cwd: PROJECT, stdout: "ignore", stderr: "inherit" }),
  );
  if ((await child.exited) !== 0) throw new Error("the bare server did not compile");
  return outfile;
}
