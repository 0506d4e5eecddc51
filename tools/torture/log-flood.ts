/**
 * Floods of the log: strangers who ask for long paths or guess secrets, and much that happens at once. What is written
 * must stay small beside what was asked, and the number of lines must not grow with it.
 */
import { LOG_PATH_MAX_CHARS, LOG_WARNINGS_PER_SECOND } from "../../src/domain/limits.ts";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { Hub, TempDir, listOf, until } from "../../test/e2e/program.ts";
import { forEach } from "./crowd.ts";
import type { Figure, Section } from "./section.ts";

const REQUESTS = 20_000;
const PATH_CHARS = 12_000;
const NODES = 2_000;
const TASKS = 5_000;
/** Of a line, what is not the path. */
const LINE_REST_MAX_CHARS = 200;
/** Lines of what happens: 20 in each quarter of a second, at most. */
const LINES_A_SECOND_MAX = 80;

export type StrangersReport = {
  readonly requests: number;
  readonly loggedChars: number;
  readonly tookMs: number;
};

/** Half of the requests have a long path, half a wrong secret. What the hub has logged when they are answered. */
export async function measureStrangers(hub: Hub, requests: number): Promise<StrangersReport> {
  const { program, port } = hub;
  const before = program.stdout.length;
  const startedMs = performance.now();
  const path = `/${"p".repeat(PATH_CHARS)}`;
  await forEach(requests, async (i) => {
    const guess = { "X-Matrix-Secret": `guess-${i}` };
    const url = `http://127.0.0.1:${port}`;
    const answer = await (i % 2
      ? fetch(`${url}${path}`)
      : fetch(`${url}/api/v1/task/pull`, { headers: guess }));
    await answer.body?.cancel();
  });
  const tookMs = performance.now() - startedMs;
  await Bun.sleep(2 * SECOND_MS); // the last lines are written, and what was only counted is told
  return { requests, loggedChars: program.stdout.length - before, tookMs };
}

export type ActivityReport = { readonly events: number; readonly lines: number; readonly tookMs: number };

/** Nodes that register, a broadcast to all of them, and tasks that are created at once. */
export async function measureActivity(hub: Hub, nodes: number, tasks: number): Promise<ActivityReport> {
  const linesIn = (): number => hub.program.stdout.split("\n").length;
  const before = linesIn();
  const startedMs = performance.now();
  await forEach(nodes, (i) => hub.register(`n${i}`));
  const { body } = await hub.post("/message/broadcast", { from_node: "boss", content: "to all" });
  const receivers = Array.isArray(body["receivers"]) ? body["receivers"].length : 0;
  await forEach(
    tasks,
    async (i) => void (await hub.post("/task/create", { title: `t${i}`, description: "d" })),
  );
  const last = await hub.post("/task/create", { title: "the last one", description: "d" });
  const told = (): boolean => /"the last one"|tasks? created\n/.test(hub.program.stdout);
  await until(told);
  const tookMs = performance.now() - startedMs;
  await Bun.sleep(SECOND_MS);
  if (last.status !== 200 || listOf(body["receivers"]).length > nodes)
    throw new Error("the hub did not do as asked");
  return { events: nodes + receivers + tasks + 1, lines: linesIn() - before, tookMs };
}

/** What the log may grow by for strangers at each level. */
export function strangersMaxChars(level: "info" | "debug", { requests, tookMs }: StrangersReport): number {
  const line = LOG_PATH_MAX_CHARS + LINE_REST_MAX_CHARS;
  if (level === "debug") return (requests / 2) * (line + LINE_REST_MAX_CHARS);
  return (Math.ceil(tookMs / SECOND_MS) + 3) * (LOG_WARNINGS_PER_SECOND + 1) * LINE_REST_MAX_CHARS;
}

export function activityMaxLines({ tookMs }: ActivityReport): number {
  return Math.ceil(tookMs / SECOND_MS + 2) * LINES_A_SECOND_MAX;
}

async function withHub<T>(level: string, part: (hub: Hub) => Promise<T>): Promise<T> {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data"), args: ["--log-level", level] });
  const result = await part(hub);
  await hub.stop();
  return result;
}

async function run(scale: number): Promise<readonly Figure[]> {
  const count = (whole: number): number => Math.ceil(whole * scale);
  const figures: Figure[] = [];
  for (const level of ["info", "debug"] as const) {
    const report = await withHub(level, (hub) => measureStrangers(hub, count(REQUESTS)));
    const most = strangersMaxChars(level, report);
    figures.push({
      what: `Log of ${report.requests} requests of strangers, half with ${PATH_CHARS} characters of path, at ${level}, KiB`,
      value: `${(report.loggedChars / 1024).toFixed(1)} in ${(report.tookMs / SECOND_MS).toFixed(1)} s`,
      goal: `<= ${(most / 1024).toFixed(1)}`,
      held: report.loggedChars <= most,
    });
  }
  const activity = await withHub("info", (hub) => measureActivity(hub, count(NODES), count(TASKS)));
  figures.push({
    what: `Lines of the log for ${activity.events} events`,
    value: `${activity.lines} in ${(activity.tookMs / SECOND_MS).toFixed(1)} s`,
    goal: `<= ${activityMaxLines(activity)}`,
    held: activity.lines <= activityMaxLines(activity),
  });
  return figures;
}

export const LOG_FLOOD: Section = {
  name: "log",
  title: "Floods of the log",
  limitMs: 300_000,
  run,
};
