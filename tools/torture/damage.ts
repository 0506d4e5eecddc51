/**
 * Damage: flipped bits, emptied sectors and cut ends in the database and its log, each in a copy of its own. The hub must
 * refuse to start, or each of its answers must be right or a refusal, unless SQLite cannot detect the damage.
 *
 * An answer is right if the undamaged copy gives the same. A log that lost its end is an earlier state: then the events
 * must be a prefix of the hub's, and the rows must be consistent.
 */
import { Database } from "bun:sqlite";
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { listOf, objectOf } from "../../test/e2e/program.ts";
import { SECRET, type TestHub, newDataDir, startHub } from "../../test/support/hub.ts";
import { randomFrom } from "./random.ts";
import type { Figure, Section } from "./section.ts";

const DATABASE = "luxhub.db";
const LOG = "luxhub.db-wal";
const SECTOR = 512;
const NODES = ["n1", "n2", "n3", "n4", "n5", "n6"];
const HEADERS = { "X-Matrix-Secret": SECRET };

/** Where: in a hub that ended in order, or in one that was killed, whose last commits are in the log. */
type Harm = {
  readonly base: "ended" | "killed";
  readonly file: string;
  readonly how: "flip" | "empty" | "cut";
};

const HARMS: readonly Harm[] = [
  { base: "ended", file: DATABASE, how: "flip" },
  { base: "ended", file: DATABASE, how: "flip" },
  { base: "killed", file: LOG, how: "flip" },
  { base: "ended", file: DATABASE, how: "flip" },
  { base: "ended", file: DATABASE, how: "cut" },
  { base: "killed", file: LOG, how: "flip" },
  { base: "killed", file: DATABASE, how: "flip" },
  { base: "killed", file: LOG, how: "cut" },
  { base: "ended", file: DATABASE, how: "empty" },
  { base: "killed", file: LOG, how: "empty" },
];

export type DamageReport = {
  tries: number;
  /** The hub did not start, and said what to do. */
  refused: number;
  /** It started, and every answer was right. */
  right: number;
  /** It started; some answers were a 500, all others right. */
  failing: number;
  /** An answer was wrong, and SQLite finds nothing wrong with the file. */
  unseen: number;
  /** The end of the log was lost, and what the hub shows is an earlier moment, whole. */
  earlier: number;
  readonly faults: string[];
};

export async function damage(
  tries: number,
  seed: number,
  progress: (line: string) => void,
): Promise<DamageReport> {
  const random = randomFrom(seed);
  const report: DamageReport = { tries, refused: 0, right: 0, failing: 0, unseen: 0, earlier: 0, faults: [] };
  const folder = newDataDir();
  try {
    const truth = await makeBases(folder);
    for (let i = 0; i < tries; i++) {
      const harm = HARMS[i % HARMS.length] ?? HARMS[0];
      if (!harm) break;
      const data = join(folder, "try");
      cpSync(join(folder, harm.base), data, { recursive: true });
      const place = inflict(harm, data, random);
      await judge(harm, place, data, truth, report);
      rmSync(data, { recursive: true });
      if ((i + 1) % 100 === 0)
        progress(`${i + 1} of ${tries}: ${JSON.stringify({ ...report, faults: report.faults.length })}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return report;
}

/** What a whole copy answers, by request. */
type Truth = ReadonlyMap<string, string>;

async function makeBases(folder: string): Promise<Truth> {
  const ended = join(folder, "ended");
  mkdirSync(ended);
  const hub = await startHub({ dataDir: ended });
  await work(hub, 0);
  await hub.close();
  const again = await startHub({ dataDir: ended }); // so that the log begins where all of that is in the database
  await work(again, 1);
  cpSync(ended, join(folder, "killed"), { recursive: true });
  await again.close();
  const whole = join(folder, "whole");
  cpSync(join(folder, "killed"), whole, { recursive: true });
  const last = await startHub({ dataDir: whole });
  try {
    return await everything(last);
  } finally {
    await last.close();
  }
}

/** A bit of everything that the hub stores. */
async function work(hub: TestHub, round: number): Promise<void> {
  for (const node_id of NODES) {
    await hub.post("/node/register", { node_id, name: node_id, capabilities: "coding,writing" });
    await hub.post("/signin", { node_id });
  }
  for (let i = 0; i < 60; i++) {
    const node_id = NODES[i % NODES.length] ?? "";
    const description = `What to do, at length. `.repeat(i % 10 === 0 ? 500 : 5);
    const task = await hub.post("/task/create", { title: `${round} ${i}`, description, lux_reward: i / 4 });
    const at = { task_id: task.body["task_id"], node_id };
    if (i % 3 > 0) await hub.post("/task/claim", at);
    const result = { problem: "p", improvement: "i", lesson: `lesson ${i}` };
    if (i % 3 > 1) await hub.post("/task/complete", { ...at, result });
    const to_node = NODES[(i * 5 + 1) % NODES.length];
    const ack = { require_ack: i % 4 === 0 };
    await hub.post("/message/send", {
      from_node: node_id,
      to_node,
      content: `message ${i} `.repeat(4),
      ...ack,
    });
    if (i % 5 === 0) await hub.post("/message/receive", { node_id, count: 3 });
    if (i % 20 === 0) await hub.post("/message/broadcast", { from_node: node_id, content: "to all" });
  }
  for (let i = 0; i < 3; i++) {
    const body = new FormData();
    body.append("file", new Blob([`file ${round} ${i} `.repeat(200)]), `${i}.txt`);
    await hub.call("POST", "/file/upload", { body });
  }
}

async function everything(hub: TestHub): Promise<Truth> {
  const answers = new Map<string, string>();
  const get = async (path: string): Promise<string> => {
    const response = await fetch(`${hub.base()}/api/v1${path}`, { headers: HEADERS });
    const text = await response.text();
    const answer = response.ok ? text : `${response.status}`;
    answers.set(path, answer);
    return answer;
  };
  for (const path of ["/node/list", "/task/stats", "/file/list?per_page=50"]) await get(path);
  for (let page = 1; page <= 3; page++) await get(`/task/list?per_page=50&page=${page}`);
  for (const status of ["open", "assigned", "completed"])
    await get(`/task/list?per_page=50&status=${status}`);
  for (const node of NODES) {
    await get(`/node/${node}`);
    await get(`/lux/ledger?node_id=${node}&per_page=50`);
    await get(`/message/history?node_id=${node}&count=200`);
    await get(`/task/list?per_page=50&node_id=${node}`);
    await get(`/task/pull?node_id=${node}&limit=100`);
  }
  await get("/events?kind=task.completed&limit=1000");
  for (const file of listOf(objectOf(answers.get("/file/list?per_page=50") ?? "")["files"])) {
    await get(`/file/download/${String(file["file_id"])}`);
  }
  const events = await get("/events?since=0&limit=1000");
  answers.set("/events?since=0&limit=1000", /^\d+$/.test(events) ? events : JSON.stringify(eventsIn(events)));
  return answers;
}

/** Events but for those that a start adds. */
function eventsIn(answer: string): readonly unknown[] {
  return listOf(objectOf(answer)["events"]).filter(({ kind }) => kind !== "hub.started");
}

function inflict({ file, how }: Harm, data: string, random: () => number): string {
  const path = join(data, file);
  const bytes = readFileSync(path);
  const at = Math.floor(random() * bytes.length);
  if (how === "cut") truncateSync(path, at);
  else {
    const bit = 1 << Math.floor(random() * 8);
    const start = at - (at % SECTOR);
    if (how === "flip") bytes[at] = (bytes[at] ?? 0) ^ bit;
    else bytes.fill(0, start, start + SECTOR);
    writeFileSync(path, bytes);
  }
  return `${how} ${file} (${bytes.length} bytes) at ${at}`;
}

async function judge(
  harm: Harm,
  place: string,
  data: string,
  truth: Truth,
  report: DamageReport,
): Promise<void> {
  const seen = sqliteSees(data);
  let hub: TestHub;
  try {
    hub = await startHub({ dataDir: data, isDamaged: true });
  } catch (error) {
    report.refused++;
    const says = error instanceof Error ? error.message : String(error);
    if (!/luxhub doctor .*luxhub restore|newer luxhub/.test(says))
      report.faults.push(`${place}: refused with ${says}`);
    return;
  }
  try {
    const found = await everything(hub);
    const wrong = [...found].filter(([path, answer]) => answer !== "500" && answer !== truth.get(path));
    if (wrong.length === 0) {
      const failing = [...found.values()].includes("500");
      report[failing ? "failing" : "right"]++;
    } else if (seen !== null)
      report.faults.push(`${place}: ${wrong[0]?.[0]} is wrong, and SQLite says ${seen}`);
    else if (harm.file === LOG) judgeEarlier(place, data, { found, truth }, report);
    else report.unseen++;
    await tryWrites(hub, place, report);
  } finally {
    await hub.close().catch((error: unknown) => {
      if (!/malformed|damaged/.test(String(error))) throw error;
    });
  }
}

/** What SQLite itself finds wrong; null when nothing. Asked of another copy: to ask is to open. */
function sqliteSees(data: string): string | null {
  const copy = `${data}-asked`;
  cpSync(data, copy, { recursive: true });
  try {
    const db = new Database(join(copy, DATABASE));
    try {
      const rows = db.query("PRAGMA integrity_check(1)").values();
      return rows[0]?.[0] === "ok" ? null : String(rows[0]?.[0]);
    } finally {
      db.close();
    }
  } catch (error) {
    return String(error);
  } finally {
    rmSync(copy, { recursive: true });
  }
}

type Compared = { readonly found: Truth; readonly truth: Truth };

/** The log lost its end: what is left must be a moment that there was. */
function judgeEarlier(place: string, data: string, { found, truth }: Compared, report: DamageReport): void {
  report.earlier++;
  const path = "/events?since=0&limit=1000";
  const is = listOf(JSON.parse(found.get(path) ?? "[]")).map((event) => JSON.stringify(event));
  const was = listOf(JSON.parse(truth.get(path) ?? "[]")).map((event) => JSON.stringify(event));
  const prefix = is.every((event, i) => event === was[i]);
  if (!prefix) report.faults.push(`${place}: an event is not what it was`);
  const db = new Database(join(data, DATABASE), { readonly: true });
  try {
    for (const { name, sql } of FACTS) {
      const faults = db.query(sql).values();
      if (faults.length > 0) report.faults.push(`${place}: ${name}: ${String(faults[0])}`);
    }
  } finally {
    db.close();
  }
}

/** A write is done or refused; what was done can be read. */
async function tryWrites(hub: TestHub, place: string, report: DamageReport): Promise<void> {
  const post = async (
    path: string,
    body: object,
  ): Promise<{ status: number; body: Readonly<Record<string, unknown>> }> => {
    const init = { method: "POST", headers: HEADERS, body: JSON.stringify(body) };
    const response = await fetch(`${hub.base()}/api/v1${path}`, init);
    return { status: response.status, body: objectOf(await response.text()) };
  };
  const { status, body } = await post("/task/create", { title: "After", description: "the damage" });
  if (status !== 200 && status !== 500) report.faults.push(`${place}: create is ${status}`);
  if (status !== 200) return;
  const again = await post("/task/claim", { task_id: body["task_id"], node_id: NODES[0] });
  const found = again.status === 200 && objectOf(JSON.stringify(again.body["task"]))["title"] === "After";
  // A node that cannot be read or that was lost with the end of the log cannot claim.
  if (!found && again.status !== 500 && again.status !== 404)
    report.faults.push(`${place}: claim is ${again.status}`);
}

const TRIES = 1_000;

export const damageSection: Section = {
  name: "damage",
  title: "Damaged data directory",
  limitMs: 15 * 60_000,
  run: async (scale, seed, progress) => {
    const report = await damage(Math.ceil(TRIES * scale), seed, progress);
    for (const fault of report.faults.slice(0, 20)) progress(fault);
    return figuresOf(report);
  },
};

function figuresOf({
  tries,
  refused,
  right,
  failing,
  unseen,
  earlier,
  faults,
}: DamageReport): readonly Figure[] {
  const told = (what: string, value: number): Figure => ({
    what,
    value: String(value),
    goal: "",
    held: true,
  });
  return [
    told("Flipped bits, emptied sectors, lost ends", tries),
    told("- refused at the start, with what to do", refused),
    told("- every answer right", right),
    told("- some answers 500, all others right", failing),
    told("- the log's end lost: an earlier moment, whole", earlier),
    told("- inside a text, where SQLite has no checksum", unseen),
    {
      what: "Wrong answers that SQLite could have detected",
      value: String(faults.length),
      goal: "0",
      held: faults.length === 0,
    },
  ];
}
