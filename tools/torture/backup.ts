/**
 * A backup of a busy hub, or of two on one PostgreSQL: writers record every acknowledged write, and files are uploaded
 * and deleted meanwhile. The backup is restored elsewhere and must be one snapshot with everything that was
 * acknowledged before it began: its events are a prefix of the hub's, its rows are consistent, and every file has its
 * bytes.
 */
import { statSync } from "node:fs";
import { Hub, Program, TempDir, listOf, memoryMib, objectOf, until } from "../../test/e2e/program.ts";
import type { Figure, Section } from "./section.ts";

const WRITERS = 8;
const MIB = 1024 * 1024;

export type BackupOptions = {
  /** Files that are there before the backup begins, and their size. */
  readonly files: number;
  readonly fileBytes: number;
  /** How long the writers work before it begins. */
  readonly warmUpMs: number;
  readonly pauseMs: number;
  /** On PostgreSQL: the database of the hubs, and an empty one. The backup is restored into that and into a directory. */
  readonly databases?: { readonly from: string; readonly to: string };
};

const DELETE_EVERY_MS = 50;
/** Writes before it begins, at the least. */
const WARM_UP_WRITES = 200;

export type BackupReport = {
  sizeMib: number;
  seconds: number;
  memoryMib: number;
  restoreSeconds: number;
  /** Of the writers' requests, before and during the backup. */
  readonly p99Ms: { before: number; during: number };
  /** Writes that were acknowledged before it began, and while it ran. */
  readonly writes: { before: number; during: number };
  /** Files that were deleted while it ran. */
  deletedMeanwhile: number;
  readonly faults: string[];
};

class Told {
  readonly tasks = new Map<string, string>();
  readonly messages = new Map<string, string>();
  readonly files = new Map<string, string>();
  readonly deleted = new Set<string>();
  latenciesMs: number[] = [];
  writes = 0;
}

type Mark = Pick<Told, "tasks" | "messages" | "files" | "deleted">;

const markOf = ({ tasks, messages, files, deleted }: Told): Mark => ({
  tasks: new Map(tasks),
  messages: new Map(messages),
  files: new Map(files),
  deleted: new Set(deleted),
});

export async function backUpUnderLoad(
  options: BackupOptions,
  progress: (line: string) => void,
): Promise<BackupReport> {
  using dir = new TempDir();
  const told = new Told();
  const archive = dir.join("hub.tar");
  const { databases } = options;
  const env = onDatabase(databases?.from);
  await using hub = await Hub.start({ data: dir.join("data"), env });
  await using second = databases ? await Hub.start({ data: dir.join("second"), env }) : null;
  for (let i = 0; i < WRITERS; i++) await hub.register(`w${i}`);
  for (let i = 0; i < options.files; i++) await upload(hub, told, options.fileBytes);
  const early = [...told.files.keys()];
  progress(`${options.files} files of ${options.fileBytes} bytes are there`);

  const stopping = new AbortController();
  const working = Promise.all(
    Array.from({ length: WRITERS }, (_, i) => {
      const at = second !== null && i % 2 === 1 ? second : hub;
      return write(at, told, i, options.pauseMs, stopping.signal);
    }),
  );
  await Bun.sleep(options.warmUpMs); // load, for as long as was asked
  await until(() => told.writes > early.length + WARM_UP_WRITES);
  const before = { p99: p99Of(told), writes: told.writes, mark: markOf(told) };
  const deleting = deleteInTurn(hub, told, early, stopping.signal);
  const ended = await runWatched(["backup", archive, "--data", dir.join("data")], env);
  const during = { p99: p99Of(told), writes: told.writes - before.writes };
  const deletedMeanwhile = told.deleted.size - before.mark.deleted.size;
  stopping.abort();
  await Promise.all([working, deleting]);
  const report: BackupReport = {
    sizeMib: statSync(archive, { throwIfNoEntry: false })?.size ?? 0,
    seconds: ended.seconds,
    memoryMib: ended.memoryMib,
    restoreSeconds: 0,
    p99Ms: { before: before.p99, during: during.p99 },
    writes: { before: before.writes, during: during.writes },
    deletedMeanwhile,
    faults: [],
  };
  report.sizeMib /= MIB;
  if (ended.code !== 0) report.faults.push(`backup ended with ${ended.code}: ${ended.stderr}`);
  progress(`backed up ${report.sizeMib.toFixed(1)} MiB in ${ended.seconds.toFixed(1)} s`);
  if (ended.code !== 0) return report;
  const restored = { hub, archive, mark: before.mark };
  await restoreAndLook({ ...restored, to: dir.join("again") }, report);
  if (databases) await restoreAndLook({ ...restored, to: dir.join("third"), database: databases.to }, report);
  return report;
}

function onDatabase(url?: string): Readonly<Record<string, string>> {
  return url === undefined ? {} : { LUXHUB_DATABASE: url };
}

type Restored = {
  readonly hub: Hub;
  readonly archive: string;
  readonly to: string;
  readonly database?: string;
  readonly mark: Mark;
};

async function restoreAndLook(
  { hub, archive, to, database, mark }: Restored,
  report: BackupReport,
): Promise<void> {
  const { faults } = report;
  const env = onDatabase(database);
  const restored = await runWatched(["restore", archive, "--data", to], env);
  report.restoreSeconds = restored.seconds;
  if (restored.code !== 0) faults.push(`restore ended with ${restored.code}: ${restored.stderr}`);
  const doctor = await runWatched(["doctor", "--data", to], env);
  if (doctor.code !== 0 || doctor.stdout.includes("note"))
    faults.push(`doctor: ${doctor.stdout}${doctor.stderr}`);
  if (faults.length > 0) return;
  await using again = await Hub.start({ data: to, env });
  await lookForAll(again, mark, faults);
  const is = await eventsOf(again, 1); // but for that of its own start
  const was = await eventsOf(hub, 0);
  if (!is.every((event, i) => event === was[i])) faults.push("an event is not what it was");
  if (is.length < mark.tasks.size) faults.push(`only ${is.length} events`);
}

/** Everything that had been acknowledged, as it was acknowledged; and every file that is named, byte for byte. */
async function lookForAll(again: Hub, mark: Mark, faults: string[]): Promise<void> {
  const tasks = await everyRow(again, "/task/list?", "tasks");
  const lessons = new Map(
    tasks.map((task) => [task["task_id"], objectOf(JSON.stringify(task["result"]))["lesson"]]),
  );
  for (const [taskId, lesson] of mark.tasks) {
    if (lessons.get(taskId) !== lesson) faults.push(`task ${taskId} is not completed as it was`);
  }
  const known = new Set<unknown>();
  for (const node of new Set(mark.messages.values())) {
    const { body } = await again.get(`/message/history?node_id=${node}&count=1000`);
    for (const { id } of listOf(body["messages"])) known.add(id);
  }
  const newest = [...mark.messages.keys()].slice(-500); // a history answers so many
  for (const id of newest) if (!known.has(id)) faults.push(`message ${id} is lost`);
  const named = new Map<string, unknown>();
  for (const file of await everyRow(again, "/file/list?", "files")) {
    named.set(String(file["file_id"]), file["sha256"]);
    const response = await fetch(`${again.api}/file/download/${String(file["file_id"])}`);
    const hash = new Bun.CryptoHasher("sha256");
    for await (const chunk of response.body ?? []) hash.update(chunk);
    if (response.status !== 200 || hash.digest("hex") !== file["sha256"]) {
      faults.push(`file ${String(file["file_id"])} is ${response.status}, or not its bytes`);
    }
  }
  const missing = [...mark.files].filter(([fileId, sha256]) => named.get(fileId) !== sha256);
  // What was deleted after the mark, but before the backup's moment, is rightly gone: its event says so.
  const gone = new Set((await deletionsOf(again)).map(String));
  for (const [fileId] of missing) if (!gone.has(fileId)) faults.push(`file ${fileId} is lost`);
  for (const fileId of mark.deleted) if (named.has(fileId)) faults.push(`file ${fileId} is back`);
}

async function deletionsOf(hub: Hub): Promise<readonly unknown[]> {
  const ids: unknown[] = [];
  for (let since = 0; ;) {
    const { body } = await hub.get(`/events?kind=file.deleted&since=${since}&limit=1000`);
    const events = listOf(body["events"]);
    if (events.length === 0) return ids;
    for (const event of events) ids.push(objectOf(JSON.stringify(event["data"]))["file_id"]);
    since = Number(body["cursor"]);
  }
}

async function write(hub: Hub, told: Told, i: number, pauseMs: number, signal: AbortSignal): Promise<void> {
  const nodeId = `w${i}`;
  for (let step = 0; !signal.aborted; step++) {
    if (pauseMs > 0) await Bun.sleep(pauseMs);
    const created = await call(hub, told, "/task/create", {
      title: nodeId,
      description: "x",
      lux_reward: 0.5,
    });
    const at = { task_id: created["task_id"], node_id: nodeId };
    await call(hub, told, "/task/claim", at);
    const lesson = `${nodeId} ${step}`;
    await call(hub, told, "/task/complete", { ...at, result: { problem: "p", improvement: "i", lesson } });
    told.tasks.set(String(at.task_id), lesson);
    const toNode = `w${(i + step) % WRITERS}`;
    const sent = await call(hub, told, "/message/send", {
      from_node: nodeId,
      to_node: toNode,
      content: lesson,
    });
    told.messages.set(String(sent["message_id"]), toNode);
    const turn = step + i; // not all of them at the same time
    if (turn % 4 !== 0) continue;
    const fileId = await upload(hub, told, 2_000);
    if (turn % 8 === 0) await deleteFile(hub, told, fileId); // one in two
  }
}

/** Deletes files while they are copied, from the end: those of the end are copied last. */
async function deleteInTurn(hub: Hub, told: Told, files: string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const fileId = files.pop();
    if (fileId === undefined) return;
    await deleteFile(hub, told, fileId);
    await Bun.sleep(DELETE_EVERY_MS);
  }
}

async function deleteFile(hub: Hub, told: Told, fileId: string): Promise<void> {
  await call(hub, told, "/file/delete", { file_id: fileId });
  told.deleted.add(fileId);
}

async function call(
  hub: Hub,
  told: Told,
  path: string,
  body: object,
): Promise<Readonly<Record<string, unknown>>> {
  const startedMs = performance.now();
  const answer = await hub.post(path, body);
  told.latenciesMs.push(performance.now() - startedMs);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  told.writes++;
  return answer.body;
}

async function upload(hub: Hub, told: Told, bytes: number): Promise<string> {
  const content = Buffer.alloc(bytes, Bun.randomUUIDv7());
  const body = new FormData();
  body.append("file", new Blob([content]), "backup.bin");
  const answer = await hub.call("POST", "/file/upload", { body });
  if (answer.status !== 200) throw new Error(`upload: ${JSON.stringify(answer.body)}`);
  const fileId = String(answer.body["file_id"]);
  told.files.set(fileId, Bun.SHA256.hash(content, "hex"));
  told.writes++;
  return fileId;
}

function p99Of(told: Told): number {
  const sorted = told.latenciesMs.toSorted((a, b) => a - b);
  told.latenciesMs = [];
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}

/** Runs the program to its end and watches how much memory it takes. */
async function runWatched(args: readonly string[], env: Readonly<Record<string, string>>) {
  await using program = new Program(args, { env });
  let mostMib = 0;
  const timer = setInterval(() => {
    try {
      mostMib = Math.max(mostMib, memoryMib(program.child.pid, "VmHWM") || 0);
    } catch {
      // it has ended
    }
  }, 20);
  const code = await program.ended;
  clearInterval(timer);
  const seconds = (performance.now() - program.startedMs) / 1_000;
  return { code, stdout: program.stdout, stderr: program.stderr, seconds, memoryMib: mostMib };
}

/** All events, as text; but for the last few. */
async function eventsOf(hub: Hub, butLast: number): Promise<readonly string[]> {
  const all: string[] = [];
  for (let since = 0; ;) {
    const { body } = await hub.get(`/events?since=${since}&limit=1000`);
    const events = listOf(body["events"]);
    if (events.length === 0) return all.slice(0, all.length - butLast);
    all.push(...events.map((event) => JSON.stringify(event)));
    since = Number(body["cursor"]);
  }
}

async function everyRow(hub: Hub, path: string, name: string) {
  const rows: Readonly<Record<string, unknown>>[] = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { body } = await hub.get(`${path}per_page=50&page=${page}`);
    rows.push(...listOf(body[name]));
    pages = Number(body["pages"]);
  }
  return rows;
}

export const backupSection: Section = {
  name: "backup",
  title: "Backup under load",
  limitMs: 10 * 60_000,
  run: async (scale, _seed, progress) => {
    const options = {
      files: Math.ceil(64 * scale),
      fileBytes: 16 * MIB,
      warmUpMs: 10_000 * scale,
      pauseMs: 0,
    };
    const report = await backUpUnderLoad(options, progress);
    for (const fault of report.faults.slice(0, 20)) progress(fault);
    const told = (what: string, value: string): Figure => ({ what, value, goal: "", held: true });
    const { p99Ms, writes } = report;
    return [
      told("Size, MiB", report.sizeMib.toFixed(0)),
      told(
        "Time to back up / to restore, s",
        `${report.seconds.toFixed(1)} / ${report.restoreSeconds.toFixed(1)}`,
      ),
      {
        what: "Most memory of the backup, MiB",
        value: report.memoryMib.toFixed(0),
        goal: "at most 128",
        held: report.memoryMib <= 128,
      },
      told("Writes acknowledged before / during", `${writes.before} / ${writes.during}`),
      told("p99 of them before / during, ms", `${p99Ms.before.toFixed(1)} / ${p99Ms.during.toFixed(1)}`),
      told("Files deleted while it ran", String(report.deletedMeanwhile)),
      {
        what: "Lost, back again, or not of one moment",
        value: String(report.faults.length),
        goal: "0",
        held: report.faults.length === 0,
      },
    ];
  },
};
