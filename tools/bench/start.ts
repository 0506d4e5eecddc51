// The time of a first start, from the spawn of the process to its first response: the hub and a bare Bun.serve,
// from source and as executable. They start one at a time and alternately, so that both meet the same load; the ratio
// holds on other machines. The first round only fills the disk's cache and does not count.
import { makeDirectory, removeDirectory } from "./children.ts";
import { type Subject, prepareSubjects } from "./memory.ts";
import { median } from "./median.ts";
import { SECRET } from "./server-under-test.ts";
import { Connection, encodeRequest } from "./wire.ts";

const ROUNDS = 9;

export type Start = { form: string; hubMs: number; bareMs: number; ratio: number };

/** Starts hub and bare server in turns; the executable only where `dist/luxhub` is. */
export async function measureStarts(dataRoot: string): Promise<Start[]> {
  const programs = makeDirectory();
  try {
    const subjects = await prepareSubjects(programs, dataRoot);
    const tookMs = subjects.map(() => new Array<number>());
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [index, subject] of subjects.entries()) {
        const ms = await measureStart(subject);
        if (round > 0) tookMs[index]?.push(ms);
      }
    }
    return [...new Set(subjects.map(({ form }) => form))].map((form) => {
      const of = (isHub: boolean): number =>
        median(
          tookMs[subjects.findIndex((subject) => subject.form === form && subject.isHub === isHub)] ?? [],
        );
      return { form, hubMs: of(true), bareMs: of(false), ratio: of(true) / of(false) };
    });
  } finally {
    removeDirectory(programs);
  }
}

async function measureStart({ start }: Subject): Promise<number> {
  const startedMs = performance.now();
  const server = await start();
  const connection = await Connection.open(server.port);
  const { status } = await connection.exchange(encodeRequest("GET", "/api/v1/status", SECRET, null));
  if (status !== 200) throw new Error(`the first response has status ${status}`);
  const ms = performance.now() - startedMs;
  connection.close();
  await server.stop();
  return ms;
}
