/**
 * What the workers of the pipeline wrote down, against what the hub has: everything that it accepted is there once, and
 * nothing is there that nobody sent.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LuxHub } from "../../src/client/luxhub.ts";
import { type Line, type Place, askingOf, shortOf, summaryOf } from "./pipeline-worker.ts";

export type PipelineFindings = {
  readonly words: string[];
  readonly counts: Record<string, number>;
};

export type PipelineEvidence = {
  readonly hub: LuxHub;
  /** The documents, and as the last the combining task. */
  readonly ids: readonly string[];
  readonly lines: readonly Line[];
  /** The answers that the hub accepted, by question_id. */
  readonly accepted: ReadonlyMap<string, readonly unknown[]>;
  readonly data: string;
  /** Null: the database is SQLite's, in `data`. */
  readonly databaseUrl: string | null;
};

/** Reads the lines; the last may be cut, by a kill. */
export function readLines(path: string): readonly Line[] {
  if (!existsSync(path)) return [];
  const texts = readFileSync(path, "utf8").split("\n");
  return texts.flatMap((text): Line[] => (text.endsWith("}") ? [JSON.parse(text)] : []));
}

export async function checkPipeline(evidence: PipelineEvidence): Promise<PipelineFindings> {
  const { lines } = evidence;
  const findings: PipelineFindings = { words: [], counts: {} };
  for (const line of lines)
    if (line.kind === "fault") findings.words.push(`a worker was refused: ${line.words}`);
  const byTask = Map.groupBy(lines, ({ task }) => task);
  for (const [task, own] of byTask) checkCheckpoints(task, own, findings);
  await checkUsage(evidence, findings);
  await checkTasks(evidence, byTask, findings);
  await checkCompletions(evidence, findings);
  count(lines, findings);
  return findings;
}

function count(lines: readonly Line[], { counts }: PipelineFindings): void {
  const started = new Set<string>();
  const ended = new Set<string>();
  for (const line of lines) {
    const attempt = `${line.task} ${line.epoch}`;
    if (line.kind === "started") started.add(attempt);
    if (line.kind === "ended") ended.add(attempt);
  }
  const endings = (how: string): number =>
    lines.filter((line) => line.kind === "ended" && line.how === how).length;
  counts["attempts"] = started.size;
  counts["failed"] = endings("failed");
  counts["parked"] = endings("parked");
  counts["crashed"] = lines.filter(({ kind }) => kind === "crashing").length;
  counts["saved"] = lines.filter(({ kind }) => kind === "saved").length;
}

/** Each attempt begins where an earlier one has saved last: not before what was accepted, nor at what nobody sent. */
function checkCheckpoints(task: string, lines: readonly Line[], { words }: PipelineFindings): void {
  const sent = new Set<string>();
  const saved: Place[] = [];
  for (const line of lines) {
    if (line.kind === "saving") sent.add(nameOf(line.place));
    if (line.kind === "saved") saved.push(line.place);
  }
  for (const line of lines) {
    if (line.kind !== "started") continue;
    const { epoch, checkpoint } = line;
    const earlier = saved.filter((place) => place.epoch < epoch);
    const least = earlier.toSorted(compare).at(-1);
    const about = `attempt ${epoch} of ${task} began at ${checkpoint === null ? "nothing" : nameOf(checkpoint)}`;
    if (checkpoint === null) {
      if (least !== undefined) words.push(`${about}, after ${nameOf(least)} was saved`);
      continue;
    }
    if (!sent.has(nameOf(checkpoint)) || checkpoint.epoch >= epoch)
      words.push(`${about}, which nobody saved`);
    if (least !== undefined && compare(checkpoint, least) < 0)
      words.push(`${about}, after ${nameOf(least)} was saved`);
  }
}

function nameOf({ epoch, step }: Place): string {
  return `step ${step} of attempt ${epoch}`;
}

function compare(a: Place, b: Place): number {
  return a.epoch - b.epoch || a.step - b.step;
}

type Row = Readonly<Record<string, unknown>>;

/** The rows that a query finds, of either engine. */
async function rowsOf({ data, databaseUrl }: PipelineEvidence, text: string): Promise<readonly Row[]> {
  if (databaseUrl === null) {
    using db = new Database(join(data, "luxhub.db"), { readonly: true });
    return db.query<Row, []>(text).all();
  }
  await using sql = new SQL(databaseUrl, { max: 1 });
  const rows: readonly Row[] = await sql.unsafe(text);
  return rows;
}

/** Each report is there once; the sums are those of the reports, to a millionth of a dollar. */
async function checkUsage(evidence: PipelineEvidence, { words, counts }: PipelineFindings): Promise<void> {
  const { hub, lines, ids } = evidence;
  const sent = new Map<string, number>();
  const accepted = new Set<string>();
  const attempts = Map.groupBy(lines, ({ task, epoch }) => `${task} ${epoch}`);
  for (const [attempt, own] of attempts) {
    let acceptedTo = 0;
    for (const line of own) {
      if (line.kind === "used") sent.set(`${attempt} ${line.seq}`, line.costMicro);
      if (line.kind === "reported") acceptedTo = Math.max(acceptedTo, line.seq);
    }
    const used = own.filter(({ kind }) => kind === "used").length;
    if (own.some(({ kind }) => kind === "ended")) acceptedTo = used;
    for (let seq = 1; seq <= acceptedTo; seq++) accepted.add(`${attempt} ${seq}`);
  }
  const stored = new Set<string>();
  const ofTask = new Map<string, number>();
  let totalMicro = 0;
  for (const row of await rowsOf(evidence, "SELECT task_id, epoch, seq, cost_micro FROM usage_reports")) {
    const task = String(row["task_id"]);
    const name = `${task} ${row["epoch"]} ${row["seq"]}`;
    const micro = Number(row["cost_micro"]);
    if (stored.has(name)) words.push(`usage ${name} is there twice`);
    stored.add(name);
    if (sent.get(name) !== micro) words.push(`usage ${name} is ${micro}, and was sent as ${sent.get(name)}`);
    ofTask.set(task, (ofTask.get(task) ?? 0) + micro);
    totalMicro += micro;
  }
  for (const name of accepted)
    if (!stored.has(name)) words.push(`usage ${name} was accepted and is not there`);
  const { all } = await hub.costs.usage({ by: "model" });
  const total = { cost: microOf(all.cost_usd), reports: all.reports };
  if (total.cost !== totalMicro || total.reports !== stored.size)
    words.push(`usage says ${JSON.stringify(total)}: ${stored.size} reports of ${totalMicro} are there`);
  for (const task_id of ids) {
    const { task } = await hub.tasks.get({ task_id });
    const micro = task.usage === null ? 0 : microOf(task.usage.cost_usd);
    const expected = ofTask.get(task_id) ?? 0;
    if (micro !== expected) words.push(`task ${task_id} says it cost ${micro}, its reports say ${expected}`);
  }
  counts["reported"] = stored.size;
  counts["costMicro"] = totalMicro;
}

function microOf(usd: number | null): number {
  return Math.round((usd ?? 0) * 1e6);
}

async function checkTasks(
  evidence: PipelineEvidence,
  byTask: ReadonlyMap<string, readonly Line[]>,
  findings: PipelineFindings,
): Promise<void> {
  const { hub, ids } = evidence;
  const { words, counts } = findings;
  const expected = ids.slice(0, -1).map((_, i) => shortOf(summaryOf(`document ${i}`)));
  for (const [i, task_id] of ids.entries()) {
    const lines = byTask.get(task_id) ?? [];
    const { task } = await hub.tasks.get({ task_id });
    if (task.status !== "completed") words.push(`task ${task_id} is ${task.status}`);
    await checkOutput(hub, task_id, lines, findings);
    if (i < ids.length - 1) {
      if (task.result?.["summary"] !== summaryOf(task.title)) words.push(`${task.title} has another summary`);
      await checkQuestion(
        evidence,
        { task_id, title: task.title, told: task.result?.["answer"] },
        lines,
        words,
      );
      continue;
    }
    const read = Array.isArray(task.result?.["read"]) ? task.result["read"] : [];
    counts["combined"] = read.filter((short, n) => short === expected[n]).length;
    if (read.join() !== expected.join()) words.push(`the combining task read ${read.length} summaries`);
    for (const line of lines) {
      if (line.kind !== "inputs") continue;
      if (line.count !== expected.length || line.wrong > 0)
        words.push(`the combining task was given ${line.count} inputs, ${line.wrong} of them wrong`);
      counts["omitted"] = line.omitted;
    }
  }
}

/** One question, one answer that was accepted, and nobody was told another. */
async function checkQuestion(
  { hub, accepted }: PipelineEvidence,
  { task_id, title, told }: { readonly task_id: string; readonly title: string; readonly told: unknown },
  lines: readonly Line[],
  words: string[],
): Promise<void> {
  const { questions } = await hub.tasks.questions({ task_id });
  const isAsking = askingOf(title) !== null;
  if (questions.length !== (isAsking ? 1 : 0)) words.push(`${title} has ${questions.length} questions`);
  for (const { question_id, answer } of questions) {
    const winners = accepted.get(question_id) ?? [];
    if (winners.length !== 1) words.push(`${winners.length} answers were accepted for ${title}`);
    if (answer !== winners[0]) words.push(`the answer for ${title} is ${answer}, accepted was ${winners[0]}`);
    if (told !== answer) words.push(`the result of ${title} says ${told}, the answer was ${answer}`);
    for (const line of lines)
      if (line.kind === "told" && line.answer !== answer)
        words.push(`${title} was told ${line.answer} and not ${answer}`);
  }
}

/** What an attempt wrote is kept from its beginning; all of it, if the hub has accepted its outcome. */
async function checkOutput(
  hub: LuxHub,
  task_id: string,
  lines: readonly Line[],
  { words }: PipelineFindings,
): Promise<void> {
  const newest = await hub.tasks.readOutput({ task_id });
  const completed = lines.find((line) => line.kind === "ended" && line.how === "completed");
  if (completed !== undefined && newest.attempt !== completed.epoch)
    words.push(`the newest output of ${task_id} is of attempt ${newest.attempt}, not ${completed.epoch}`);
  for (const { attempt } of newest.attempts) {
    const own = lines.filter(({ epoch }) => epoch === attempt);
    const written = own.map((line) => (line.kind === "wrote" ? line.text : "")).join("");
    const { data } = await hub.tasks.readOutput({ task_id, attempt });
    if (!written.startsWith(data))
      words.push(`the output of attempt ${attempt} of ${task_id} is not its own`);
    if (own.some(({ kind }) => kind === "ended") && data !== written)
      words.push(`the output of attempt ${attempt} of ${task_id} has ${data.length} of ${written.length}`);
  }
}

/** By the event log. */
async function checkCompletions(evidence: PipelineEvidence, { words }: PipelineFindings): Promise<void> {
  const sql = "SELECT task_id, count(*) AS times FROM events WHERE kind = 'task.completed' GROUP BY task_id";
  const times = new Map(
    (await rowsOf(evidence, sql)).map((row) => [String(row["task_id"]), Number(row["times"])]),
  );
  for (const id of evidence.ids)
    if (times.get(id) !== 1) words.push(`${id} was completed ${times.get(id)} times`);
}
