/**
 * Whether answers wait for the disk: finds in the real program's system calls, traced by strace, any order that breaks the
 * promise that a 200 means on disk. A write counts from its beginning; a flush (fsync or fdatasync) counts only when it
 * has returned, and only for writes before its beginning.
 */
import { readFileSync } from "node:fs";
import { Hub, TempDir, until } from "../../test/e2e/program.ts";

const CALLS =
  "fsync,fdatasync,write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,recvfrom,recvmsg,read,readv";
/** More than a page of the database: what a page holds can be looked for in its write. */
const STRING_BYTES = 5_000;

/** strace with a program of its own after it, as the parent of nobody: who starts this has the program as its child. */
export function traced(
  output: string,
  program: readonly string[],
  more: readonly string[] = [],
): readonly string[] {
  const flags = ["-D", "-f", "--seccomp-bpf", "-y", "-s", String(STRING_BYTES), "-o", output];
  return ["strace", ...flags, "-e", `trace=${CALLS}`, ...more, ...program];
}

export function whyNoTrace(): string | null {
  if (Bun.which("strace") === null) return "there is no strace here";
  const [command = "", ...words] = traced("/dev/null", ["true"]).filter((word) => word !== "-D");
  const { exitCode, stderr } = Bun.spawnSync([command, ...words]);
  return exitCode === 0 ? null : `strace cannot trace here: ${String(stderr).trim().split("\n")[0]}`;
}

export async function readTrace(output: string, pid: number): Promise<string> {
  const ended = new RegExp(`^${pid} +\\+\\+\\+ (?:exited|killed)`, "m");
  await until(() => ended.test(readFileSync(output, "utf8")));
  return readFileSync(output, "utf8");
}

/** What a line of the trace says that matters here; `at` is its place in the order. */
type Step = { readonly at: number } & (
  | { readonly kind: "asked"; readonly id: string }
  | { readonly kind: "written"; readonly file: string; readonly text: string }
  | { readonly kind: "flushed"; readonly file: string; readonly sinceAt: number }
  | { readonly kind: "answered"; readonly id: string; readonly status: number }
);

const LINE = /^(\d+) +(\w+)\((\d+)<([^>]*)>(.*)$/;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)$/;
const ID = /X-Request-Id: ([\w.-]+)/i;
const STATUS = /HTTP\/1\.1 (\d{3}) /;

/** Reads a trace. Requests and answers are known by their X-Request-Id. */
export function parseTrace(trace: string): readonly Step[] {
  const steps: Step[] = [];
  /** By thread: the call that has not returned yet. */
  const unfinished = new Map<string, { readonly file: string; readonly at: number }>();
  const flushed = (file: string, sinceAt: number, at: number, rest: string): void => {
    if (/\) += 0$/.test(rest)) steps.push({ kind: "flushed", file, sinceAt, at });
  };
  for (const [at, line] of trace.split("\n").entries()) {
    const resumed = RESUMED.exec(line);
    if (resumed) {
      const [, thread = "", call = "", rest = ""] = resumed;
      const begun = unfinished.get(thread);
      if (begun && isFlush(call)) flushed(begun.file, begun.at, at, rest);
      if (isRead(call)) asked(rest, at, steps);
      continue;
    }
    const match = LINE.exec(line);
    if (!match) continue;
    const [, thread = "", call = "", , file = "", rest = ""] = match;
    if (rest.endsWith("<unfinished ...>")) unfinished.set(thread, { file, at });
    if (isFlush(call)) flushed(file, at, at, rest);
    else if (isRead(call)) asked(rest, at, steps);
    else if (file.startsWith("/")) steps.push({ kind: "written", file, text: rest, at });
    else answered(rest, at, steps);
  }
  return steps;
}

const isFlush = (call: string): boolean => call === "fsync" || call === "fdatasync";
const isRead = (call: string): boolean => /^(?:recv|read)/.test(call);

function asked(text: string, at: number, steps: Step[]): void {
  const id = ID.exec(text)?.[1];
  if (id !== undefined) steps.push({ kind: "asked", id, at });
}

function answered(text: string, at: number, steps: Step[]): void {
  const id = ID.exec(text)?.[1];
  const status = Number(STATUS.exec(text)?.[1]);
  if (id !== undefined && status > 0) steps.push({ kind: "answered", id, status, at });
}

/** A write that was asked for over HTTP and answered 200. */
export type Asked = {
  readonly id: string;
  /** A word that is in what it stores, and in nothing else. */
  readonly mark?: string;
  readonly upload?: boolean;
};

/** What breaks the promise, in words; empty when every answer waited for its flush. */
export function earlyAnswers(steps: readonly Step[], asks: readonly Asked[]): readonly string[] {
  const isLog = (file: string): boolean => file.endsWith("/luxhub.db-wal");
  const isUpload = (file: string): boolean => file.includes("/files/.partial/");
  return asks.flatMap(({ id, mark, upload = false }) => {
    const askedAt = steps.find((step) => step.kind === "asked" && step.id === id)?.at;
    const answer = steps.find((step) => step.kind === "answered" && step.id === id);
    if (askedAt === undefined || answer?.kind !== "answered") return [`${id}: not in the trace`];
    if (answer.status !== 200) return [`${id}: answered ${answer.status}`];
    const within = steps.filter((step) => step.at > askedAt && step.at < answer.at);
    const isFlushed = (file: string, writtenAt: number): boolean =>
      within.some((step) => step.kind === "flushed" && step.file === file && step.sinceAt > writtenAt);
    const written = within.filter((step) => step.kind === "written");
    const faults: string[] = [];
    const check = (what: string, which: (step: { file: string; text: string }) => boolean): void => {
      const found = written.filter(which);
      if (found.length === 0) faults.push(`${id}: ${what} was not written before the answer`);
      if (found.some(({ file, at }) => !isFlushed(file, at)))
        faults.push(`${id}: ${what} was not flushed before the answer`);
    };
    check("the log", ({ file }) => isLog(file));
    if (mark !== undefined) check(`"${mark}"`, ({ file, text }) => isLog(file) && text.includes(mark));
    if (upload) check("the file", ({ file }) => isUpload(file));
    return faults;
  });
}

/** Writes of every kind, one after the other and then at once; all are answered 200. */
async function writeAll(hub: Hub, atOnce: number): Promise<readonly Asked[]> {
  const asks: Asked[] = [];
  const send = async (ask: Omit<Asked, "id">, path: string, body: object): Promise<string> => {
    const id = `write-${asks.length}`;
    asks.push({ id, ...ask });
    const headers = { "X-Request-Id": id };
    const answer =
      body instanceof FormData
        ? await hub.call("POST", path, { body, headers })
        : await hub.post(path, body, { headers });
    if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return String(answer.body["task_id"] ?? answer.body["message_id"]);
  };
  const node_id = "n1";
  await send({ mark: "mark-name" }, "/node/register", { node_id, name: "mark-name" });
  await send({}, "/node/heartbeat", { node_id });
  const task_id = await send({ mark: "mark-title" }, "/task/create", {
    title: "mark-title",
    description: "d",
  });
  await send({}, "/task/claim", { task_id, node_id });
  const result = { problem: "p", improvement: "i", lesson: "mark-lesson" };
  await send({ mark: "mark-lesson" }, "/task/complete", { task_id, node_id, result });
  await send({}, "/signin", { node_id });
  const message = { from_node: "op", to_node: node_id, content: "mark-content", require_ack: true };
  const message_id = await send({ mark: "mark-content" }, "/message/send", message);
  await send({}, "/message/receive", { node_id });
  await send({}, "/message/ack", { node_id, message_id });
  const form = new FormData();
  form.append("file", new Blob(["x".repeat(300_000)]), "mark-file");
  await send({ mark: "mark-file", upload: true }, "/file/upload", form);
  await Promise.all(
    Array.from({ length: atOnce }, (_, i) => {
      const mark = `mark-at-once-${i}-`;
      return send({ mark }, "/task/create", { title: mark, description: "d" });
    }),
  );
  return asks;
}

export async function traceWrites(
  program: readonly string[],
  atOnce: number,
): Promise<{ asks: number; early: readonly string[] }> {
  using dir = new TempDir();
  const output = dir.join("trace");
  await using hub = await Hub.start({ command: traced(output, program), data: dir.join("data") });
  const asks = await writeAll(hub, atOnce);
  await hub.stop();
  return { asks: asks.length, early: earlyAnswers(parseTrace(await readTrace(output, hub.pid)), asks) };
}
