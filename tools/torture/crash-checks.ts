/**
 * The checks after each start: everything in the ledger is in the database, nothing happened twice, and every total
 * equals its count. They read one snapshot of the tables next to the running hub, without indexes. A second check
 * reads the acknowledged writes of the last cycle over HTTP.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { EventKind } from "../../src/domain/event.ts";
import { EMPTY_LEDGER, chainFault, toLux } from "../../src/domain/lux.ts";
import type { LedgerHead } from "../../src/domain/model.ts";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { toLedgerEntry } from "../../src/store/sql/rows.ts";
import { TASK_FEATURES } from "../../src/store/sql/tables.ts";
import { type Hub, listOf } from "../../test/e2e/program.ts";
import { onPostgres } from "../../test/support/consistency-check.ts";
import { OUTPUT_ATTEMPTS_KEPT } from "../../src/domain/limits.ts";
import { GRAPH_TAG, LIMIT_KEY, type Ledger, outputOf } from "./crash-writer.ts";

export class Findings {
  missing = 0;
  twice = 0;
  unequal = 0;
  readonly words: string[] = [];

  add(kind: "missing" | "twice" | "unequal", words: string): void {
    this[kind]++;
    if (this.words.length < 20) this.words.push(`${kind}: ${words}`);
  }
}

type Row = Readonly<Record<string, string | number | null>>;

/** Holds the whole ledger, and all that can be counted in two ways, against the database in `data`. */
export async function checkDatabase(data: string, ledger: Ledger, findings: Findings): Promise<void> {
  const db = new Database(join(data, "luxhub.db"), { readonly: true });
  try {
    db.run("BEGIN"); // one moment for all that follows
    const rows: Rows = async (sql) => db.query<Row, []>(sql).all();
    await checkRows(rows, ledger, findings);
    for (const { name, sql } of FACTS)
      // what the doctor looks for, in the SQL of SQLite
      for (const row of await rows(sql)) findings.add("unequal", `${name}: ${JSON.stringify(row)}`);
    checkBytes(await rows("SELECT file_id, size_bytes FROM files"), findings, data);
    const integrity = (await rows("PRAGMA integrity_check")).map((row) => Object.values(row)[0]);
    if (integrity.join() !== "ok") findings.add("unequal", `integrity_check: ${integrity.join()}`);
  } finally {
    db.close();
  }
}

/** The same of a database in PostgreSQL; `url` leads into its schema. */
export async function checkPostgres(url: string, ledger: Ledger, findings: Findings): Promise<void> {
  const sql = new SQL(url, { max: 1 });
  try {
    await sql.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", (moment) =>
      checkRows(async (text) => (await moment.unsafe(onPostgres(text))).map(withNumbers), ledger, findings),
    );
  } finally {
    await sql.close();
  }
}

/** The driver gives a BIGINT as text. */
function withNumbers(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]) => {
    const isNumber = typeof value === "string" && /^-?\d{1,15}$/.test(value);
    return [name, isNumber ? Number(value) : value] as const;
  });
  return Object.fromEntries(entries);
}

async function checkRows(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  await checkTasks(rows, ledger, findings);
  await checkOutput(rows, ledger, findings);
  await checkLux(rows, ledger, findings);
  await checkReviews(rows, ledger, findings);
  await checkMessages(rows, ledger, findings);
  await checkFiles(rows, ledger, findings);
  await checkNotes(rows, ledger, findings);
  await checkQuestions(rows, ledger, findings);
  await checkRules(rows, ledger, findings);
  for (const [what, sql] of NEVER)
    for (const row of await rows(sql))
      findings.add(what, `${sql.trim().split("\n")[0]}: ${JSON.stringify(row)}`);
}

/** After these events a task is open; task.failed may follow. */
const OPENED = [
  "task.created",
  "task.released",
  "task.revoked",
  "task.requeued",
  "task.attempt_failed",
  "task.timed_out",
  "task.review_rejected",
  "task.retried",
] as const satisfies readonly EventKind[];
const ENDED = ["task.completed", "task.failed"] as const satisfies readonly EventKind[];
const ATTEMPTS = [
  "task.attempt_failed",
  "task.timed_out",
  "task.requeued",
  "task.review_rejected",
] as const satisfies readonly EventKind[];
const quoted = (kinds: readonly EventKind[]): string => kinds.map((kind) => `'${kind}'`).join(", ");
/** Every step of every task, with the one before it and how many come after it. */
const STEPS = `
  SELECT id, task_id, kind, CAST(data AS text) LIKE '%"resume"%' AS is_again, lag(kind) OVER (PARTITION BY task_id ORDER BY id) AS earlier,
    row_number() OVER (PARTITION BY task_id ORDER BY id DESC) AS back
  FROM events WHERE kind IN ('task.assigned', ${quoted([...OPENED, ...ENDED])})`;

/** Queries that must find nothing, in SQL that onPostgres() makes that of both engines. */
const NEVER: readonly (readonly ["twice" | "unequal", string])[] = [
  // Two winners, and what was repeated after it was cut. A node may take again what it holds.
  [
    "twice",
    `SELECT task_id, kind, earlier FROM (${STEPS}) AS steps
     WHERE kind = 'task.assigned' AND NOT is_again AND earlier NOT IN (${quoted(OPENED)})`,
  ],
  [
    "twice",
    `SELECT task_id FROM events WHERE kind IN ('task.completed', 'task.review_rejected') GROUP BY task_id
     HAVING count(*) FILTER (WHERE kind = 'task.completed')
       > 1 + count(*) FILTER (WHERE kind = 'task.review_rejected')`,
  ],
  // The copies of a quorum have the title of their task.
  [
    "twice",
    `SELECT title FROM task_rows WHERE schedule IS NULL AND parent_task IS NULL GROUP BY title HAVING count(*) > 1`,
  ],
  [
    "twice",
    "SELECT unique_key FROM task_rows WHERE unique_key IS NOT NULL GROUP BY unique_key HAVING count(*) > 1",
  ],
  // A schedule of one second creates one task for each, whether a hub ran at that moment or not.
  [
    "twice",
    `SELECT schedule, schedule_at FROM task_rows WHERE schedule_at IS NOT NULL
     GROUP BY schedule, schedule_at HAVING count(*) > 1`,
  ],
  [
    "unequal",
    `SELECT schedule, count(*) AS tasks FROM task_rows WHERE schedule_at IS NOT NULL GROUP BY schedule
     HAVING max(schedule_at) - min(schedule_at) <> 1000 * (count(*) - 1)`,
  ],
  // In a graph of one batch, the second task depends on the first.
  [
    "unequal",
    `SELECT b.title FROM task_rows b JOIN task_rows a ON a.title = substr(b.title, 1, length(b.title) - 1) || 'a'
     WHERE b.tags LIKE '%,${GRAPH_TAG},%' AND coalesce(b.depends_on, '') NOT LIKE '%' || a.task_id || '%'`,
  ],
  // A group of which all tasks have ended has said so since, or is marked to be looked at.
  [
    "unequal",
    `SELECT t.task_group FROM task_rows t WHERE t.task_group IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM group_endings g WHERE g.task_group = t.task_group)
     GROUP BY t.task_group
     HAVING sum(CASE WHEN t.status IN ('open', 'assigned') THEN 1 ELSE 0 END) = 0
       AND coalesce((SELECT max(e.id) FROM events e WHERE e.kind = 'group.ended'
           AND e.data LIKE '%"group":"' || t.task_group || '"%'), 0)
         < (SELECT max(e.id) FROM events e JOIN task_rows x ON x.task_id = e.task_id
            WHERE x.task_group = t.task_group AND e.kind IN (${quoted(ENDED)}))`,
  ],
  // The writers ask each question once.
  ["twice", "SELECT question FROM questions GROUP BY question HAVING count(*) > 1"],
  // Of a batch all is there or nothing.
  [
    "unequal",
    `SELECT substr(title, 1, length(title) - 2) AS pair FROM task_rows WHERE title LIKE '% pair _'
     GROUP BY substr(title, 1, length(title) - 2) HAVING count(*) <> 2`,
  ],
  ["twice", "SELECT content FROM messages GROUP BY content HAVING count(*) > 1"],
  // LUX paid twice.
  ["twice", "SELECT task_id FROM ledger WHERE kind = 'reward' GROUP BY task_id HAVING count(*) > 1"],
  // What is held for a review is settled once: paid, or given back each time that the result was rejected.
  [
    "twice",
    `SELECT t.task_id, t.status, holds, rewards, returns, rejected FROM task_rows t
     LEFT JOIN (
       SELECT task_id, count(*) FILTER (WHERE kind = 'hold') AS holds, count(*) FILTER (WHERE kind = 'reward') AS rewards,
         count(*) FILTER (WHERE kind = 'return') AS returns
       FROM ledger GROUP BY task_id) AS l ON l.task_id = t.task_id
     LEFT JOIN (
       SELECT task_id, count(*) AS rejected FROM events WHERE kind = 'task.review_rejected' GROUP BY task_id) AS e
       ON e.task_id = t.task_id
     WHERE (t.review IS NULL AND coalesce(holds, 0) + coalesce(returns, 0) > 0)
       OR (t.review IS NOT NULL AND (coalesce(returns, 0) <> coalesce(rejected, 0)
         OR coalesce(rewards, 0) <> (CASE WHEN t.status = 'completed' AND t.review_until IS NULL THEN 1 ELSE 0 END)
         OR coalesce(holds, 0) <> coalesce(rewards, 0) + coalesce(returns, 0)
           + (CASE WHEN t.review_until IS NULL THEN 0 ELSE 1 END)))`,
  ],
  // The copies of a quorum share the reward of their task when it is decided, and have nothing before.
  [
    "unequal",
    `SELECT p.task_id, p.status, p.lux_reward_micro, paid FROM task_rows p
     LEFT JOIN (
       SELECT c.parent_task, sum(l.amount_micro) AS paid FROM task_rows c JOIN ledger l ON l.task_id = c.task_id
       WHERE c.parent_task IS NOT NULL GROUP BY c.parent_task) AS copies ON copies.parent_task = p.task_id
     WHERE p.quorum IS NOT NULL
       AND coalesce(paid, 0) <> (CASE WHEN p.status = 'completed' THEN p.lux_reward_micro ELSE 0 END)`,
  ],
  [
    "twice",
    `SELECT node_id FROM ledger WHERE kind = 'signin' GROUP BY node_id, at / 86400000 HAVING count(*) > 1`,
  ],
  // Balances are sums, entries are numbered without a gap.
  [
    "unequal",
    `SELECT node_id FROM (
       SELECT node_id, n, balance_micro, sum(amount_micro) OVER w AS total, row_number() OVER w AS place
       FROM ledger WHERE node_id IS NOT NULL WINDOW w AS (PARTITION BY node_id ORDER BY n ROWS UNBOUNDED PRECEDING)) AS entries
     WHERE balance_micro <> total OR n <> place`,
  ],
  // A completed task with a reward, no review and no quorum is paid, to its node, exactly; and nothing else is.
  [
    "unequal",
    `SELECT t.task_id FROM task_rows t LEFT JOIN ledger l ON l.task_id = t.task_id AND l.kind = 'reward'
     WHERE (t.status = 'completed' AND t.lux_reward_micro > 0 AND t.review_until IS NULL AND t.quorum IS NULL)
         <> (l.task_id IS NOT NULL)
       OR l.amount_micro <> t.lux_reward_micro OR l.node_id <> t.assigned_node`,
  ],
  // A task is where its last step left it.
  [
    "unequal",
    `SELECT t.task_id, t.status, kind FROM task_rows t JOIN (${STEPS}) AS steps ON steps.task_id = t.task_id AND back = 1
     WHERE t.status <> CASE kind WHEN 'task.assigned' THEN 'assigned' WHEN 'task.completed' THEN 'completed'
       WHEN 'task.failed' THEN 'failed' ELSE 'open' END`,
  ],
  // Its attempts are those in the log, since it was last retried.
  [
    "unequal",
    `SELECT t.task_id, t.attempts, count(e.id) AS logged FROM task_rows t
     LEFT JOIN (SELECT task_id, max(id) AS at FROM events WHERE kind = 'task.retried' GROUP BY task_id) AS retried
       ON retried.task_id = t.task_id
     LEFT JOIN (SELECT id, task_id FROM events WHERE kind IN (${quoted(ATTEMPTS)})) AS e
       ON e.task_id = t.task_id AND e.id > coalesce(retried.at, 0)
     GROUP BY t.task_id, t.attempts HAVING t.attempts <> count(e.id)`,
  ],
  // Each hand-out and each return to open has counted the epoch up.
  [
    "unequal",
    `SELECT t.task_id, t.epoch, counted.least FROM task_rows t JOIN (
       SELECT task_id, count(*) FILTER (WHERE kind = 'task.assigned') AS least FROM (${STEPS}) AS steps
       GROUP BY task_id) AS counted ON counted.task_id = t.task_id
     WHERE t.epoch < counted.least`,
  ],
  // Running totals are what is there.
  [
    "unequal",
    `SELECT * FROM task_totals, (
       SELECT count(*) FILTER (WHERE status = 'open') AS o, count(*) FILTER (WHERE status = 'assigned') AS a,
         count(*) FILTER (WHERE status = 'completed') AS c, count(*) FILTER (WHERE status = 'failed') AS f
       FROM task_rows) AS counted
     WHERE open <> o OR assigned <> a OR completed <> c OR failed <> f`,
  ],
  [
    "unequal",
    `SELECT * FROM file_totals, (SELECT count(*) AS n, coalesce(sum(size_bytes), 0) AS sum FROM files) AS counted
     WHERE files <> n OR bytes <> sum`,
  ],
  [
    "unequal",
    `SELECT n.node_id FROM nodes n LEFT JOIN (
         SELECT assigned_node, count(*) FILTER (WHERE status = 'assigned') AS held,
           count(*) FILTER (WHERE status = 'completed') AS done
         FROM task_rows GROUP BY assigned_node) t ON t.assigned_node = n.node_id
       LEFT JOIN (SELECT node_id, sum(amount_micro) AS earned FROM ledger WHERE kind = 'reward' GROUP BY node_id) l
         ON l.node_id = n.node_id
     WHERE n.tasks_assigned <> coalesce(t.held, 0) OR n.tasks_completed <> coalesce(done, 0)
       OR n.lux_earned_micro <> coalesce(earned, 0)`,
  ],
  ["unequal", FACTS.find(({ name }) => name === "usage")?.sql ?? "no such fact"],
  // Every assignment, completion, payment and file is in the log of events, which has no gap.
  ["unequal", `SELECT count(*) AS events FROM events HAVING count(*) <> max(id) - min(id) + 1`],
  [
    "unequal",
    `SELECT count(*) AS entries FROM ledger WHERE node_id IS NOT NULL
     HAVING count(*) <> (SELECT count(*) FROM events WHERE kind IN ('lux.paid', 'lux.signin'))`,
  ],
];

type Rows = (sql: string) => Promise<readonly Row[]>;

function byKey(rows: readonly Row[], key: string): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [String(row[key]), row]));
}

async function checkTasks(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const nodes = byKey(await rows("SELECT node_id FROM nodes"), "node_id");
  for (const nodeId of ledger.nodes) if (!nodes.has(nodeId)) findings.add("missing", `node ${nodeId}`);
  const tasks = byKey(
    await rows("SELECT task_id, status, assigned_node, epoch, lesson, lux_reward_micro FROM task_rows"),
    "task_id",
  );
  for (const [taskId, rewardMicro] of ledger.tasks) {
    if (tasks.get(taskId)?.["lux_reward_micro"] !== rewardMicro) findings.add("missing", `task ${taskId}`);
  }
  for (const [handOut, winners] of ledger.winners)
    if (winners.size > 1)
      findings.add("twice", `task and epoch ${handOut} won by ${[...winners].join(" and ")}`);
  for (const [taskId, told] of ledger.epochs) {
    const epoch = tasks.get(taskId)?.["epoch"];
    if (!(Number(epoch) >= told))
      findings.add("unequal", `epoch of ${taskId}: ${epoch}, but ${told} was told`);
  }
  for (const [taskId, { nodeId, epoch }] of ledger.holds) {
    const task = tasks.get(taskId);
    // Another epoch: the hub took it back. Failed: it has expired.
    if (task?.["epoch"] !== epoch || task["status"] === "failed") continue;
    if (task["assigned_node"] !== nodeId) findings.add("missing", `claim of ${taskId} by ${nodeId}`);
  }
  const failed = await rows(
    `SELECT node_id, task_id, count(*) AS times FROM events WHERE kind = 'task.attempt_failed'
     GROUP BY node_id, task_id`,
  );
  const times = new Map(failed.map((row) => [`${row["node_id"]} ${row["task_id"]}`, Number(row["times"])]));
  for (const [attempt, { asked, told }] of ledger.failures) {
    const logged = times.get(attempt) ?? 0;
    if (logged < told) findings.add("missing", `a failure by ${attempt}: ${logged} of ${told}`);
    if (logged > asked) findings.add("twice", `a failure by ${attempt}: ${logged}, asked for ${asked}`);
  }
  for (const [taskId, { nodeId, lesson }] of ledger.completed) {
    const task = tasks.get(taskId);
    const found = [task?.["status"], task?.["assigned_node"], task?.["lesson"]];
    if (found.join() !== ["completed", nodeId, lesson].join())
      findings.add("missing", `completion of ${taskId}`);
  }
}

/** Every accepted piece is there once, and at most the one after it, which was cut. Older attempts may be gone. */
async function checkOutput(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const stored = new Map<string, string>();
  for (const { task_id, epoch, data } of await rows(
    "SELECT task_id, epoch, data FROM output_blocks ORDER BY task_id, epoch, n",
  ))
    stored.set(`${task_id} ${epoch}`, (stored.get(`${task_id} ${epoch}`) ?? "") + String(data));
  const epochs = Map.groupBy(
    [...stored.keys()].map((attempt) => attempt.split(" ")),
    ([taskId]) => taskId,
  );
  for (const [attempt, text] of stored) {
    const told = ledger.outputs.get(attempt) ?? 0;
    if (text !== outputOf(attempt, told) && text !== outputOf(attempt, told + 1))
      findings.add("unequal", `the output of ${attempt} is not its ${told} pieces`);
  }
  for (const attempt of ledger.outputs.keys()) {
    if (stored.has(attempt)) continue;
    const [taskId = "", epoch] = attempt.split(" ");
    const newer = (epochs.get(taskId) ?? []).filter(([, other]) => Number(other) > Number(epoch));
    if (newer.length < OUTPUT_ATTEMPTS_KEPT) findings.add("missing", `the output of ${attempt}`);
  }
}

async function checkLux(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const signedIn = byKey(
    await rows("SELECT node_id FROM ledger WHERE kind = 'signin' AND amount_micro = 10000000"),
    "node_id",
  );
  for (const nodeId of ledger.signedIn) {
    if (!signedIn.has(nodeId)) findings.add("missing", `sign-in of ${nodeId}`);
  }
  const entries = (
    await rows("SELECT *, CAST(balance_micro AS TEXT) AS balance FROM ledger ORDER BY seq")
  ).map(toLedgerEntry);
  let head: LedgerHead = EMPTY_LEDGER;
  for (const entry of entries) {
    const fault = chainFault(entry, head);
    if (fault !== null) findings.add("unequal", `the hash chain: ${fault}`);
    head = entry;
  }
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  for (const [taskId, receipt] of ledger.receipts) {
    if (receipt === null) continue; // it paid nothing
    const [{ entry_id, amount, hash } = {}] = listOf([receipt]);
    const entry = byId.get(String(entry_id));
    if (entry?.taskId !== taskId || toLux(entry.amountMicro) !== amount || entry.hash !== hash)
      findings.add("missing", `the entry of a receipt for task ${taskId}`);
  }
}

/** Every accepted verdict is in the ledger. */
async function checkReviews(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const settled = byKey(
    await rows(
      `SELECT task_id, count(*) FILTER (WHERE kind = 'reward') AS passed,
         count(*) FILTER (WHERE kind = 'return') AS rejected
       FROM ledger WHERE task_id IS NOT NULL GROUP BY task_id`,
    ),
    "task_id",
  );
  for (const [taskId, { pass, reject }] of ledger.verdicts) {
    const entries = settled.get(taskId);
    if (Number(entries?.["passed"] ?? 0) < pass)
      findings.add("missing", `the reward of ${taskId}: it passed`);
    if (Number(entries?.["rejected"] ?? 0) < reject)
      findings.add("missing", `what was held for ${taskId}, rejected ${reject} times, is not given back`);
  }
}

async function checkMessages(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const found = await rows(
    `SELECT m.message_id, m.require_ack, d.to_node, d.state, d.deliveries
     FROM messages m JOIN deliveries d ON d.seq = m.seq`,
  );
  const deliveries = byKey(found, "message_id");
  for (const [id, { toNode }] of ledger.sent) {
    if (deliveries.get(id)?.["to_node"] !== toNode) findings.add("missing", `message ${id}`);
  }
  for (const [id, times] of ledger.received) {
    const row = deliveries.get(id);
    const handedOut = row?.["require_ack"] === 1 ? Number(row["deliveries"]) >= 1 : row?.["state"] === "gone";
    if (!handedOut) findings.add("missing", `receipt of ${id}: ${JSON.stringify(row)}`);
    if (times > 1 && row?.["require_ack"] !== 1)
      findings.add("twice", `message ${id} handed out ${times} times`);
  }
  for (const id of ledger.acked) {
    if (deliveries.get(id)?.["state"] !== "acked") findings.add("missing", `ack of ${id}`);
  }
  // Gone without having come to anyone: only by a receive that was cut off.
  const lost = new Map<string, number>();
  for (const { message_id, to_node, state } of found) {
    if (state !== "gone" || ledger.received.has(String(message_id))) continue;
    lost.set(String(to_node), (lost.get(String(to_node)) ?? 0) + 1);
  }
  for (const [nodeId, count] of lost) {
    const cut = ledger.cutReceives.get(nodeId) ?? 0;
    if (count > cut) findings.add("missing", `${count} messages to ${nodeId}, who was cut off ${cut} times`);
  }
}

/** A put that was cut may be there: its writer has not been told, and repeats it. */
async function checkNotes(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const stored = byKey(await rows("SELECT key, version, content FROM notes"), "key");
  for (const [key, { version, text }] of ledger.notes) {
    const note = stored.get(key);
    const known = Number(note?.["version"] ?? 0);
    if (known < version) findings.add("missing", `version ${version} of the ${key}`);
    else if (known > version + 1) findings.add("twice", `the ${key} has version ${known}, not ${version}`);
    else if (known === version && note?.["content"] !== text)
      findings.add("unequal", `the ${key} is not "${text}"`);
  }
  const [last] = await rows("SELECT last FROM fencing");
  const highest = Math.max(0, ...ledger.fencing.keys());
  if (Number(last?.["last"]) < highest) findings.add("missing", `the fencing number ${highest}`);
}

async function checkQuestions(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const stored = byKey(await rows("SELECT question_id, state, answer FROM questions"), "question_id");
  for (const [questionId, answer] of ledger.questions) {
    const question = stored.get(questionId);
    if (!question) findings.add("missing", `question ${questionId}`);
    else if (answer !== null && question["answer"] !== JSON.stringify(answer))
      findings.add("unequal", `the answer to question ${questionId} is not "${answer}"`);
  }
}

async function checkRules(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const limits = byKey(await rows("SELECT limit_key, running FROM limits"), "limit_key");
  const pauses = byKey(await rows("SELECT value, reason FROM pauses WHERE scope = 'limit_key'"), "value");
  for (const [name, possible] of ledger.rules) {
    const [of, key = ""] = name.split(" ");
    const stored = of === "limit" ? limits.get(key)?.["running"] : pauses.get(key)?.["reason"];
    if (!possible.has(String(stored ?? "")))
      findings.add("missing", `the ${name}: ${stored}, not ${[...possible].join(" or ")}`);
  }
  const tasks = byKey(
    await rows("SELECT task_id, requires, limit_key FROM task_rows WHERE requires IS NOT NULL"),
    "task_id",
  );
  for (const [taskId, gpu] of ledger.gpus) {
    const task = tasks.get(taskId);
    const requires = TASK_FEATURES.columns.requires.decode(task ? String(task["requires"]) : null);
    if (requires?.resources["gpu"] !== gpu || task?.["limit_key"] !== LIMIT_KEY)
      findings.add("missing", `what task ${taskId} requires: ${JSON.stringify(task)}`);
  }
}

async function checkFiles(rows: Rows, ledger: Ledger, findings: Findings): Promise<void> {
  const files = byKey(await rows("SELECT file_id, sha256 FROM files"), "file_id");
  for (const [fileId, sha256] of ledger.files) {
    if (files.get(fileId)?.["sha256"] !== sha256) findings.add("missing", `file ${fileId}`);
  }
}

function checkBytes(files: readonly Row[], findings: Findings, data: string): void {
  for (const { file_id, size_bytes } of files) {
    const fileId = String(file_id);
    const path = join(data, "files", fileId.slice(-2), fileId);
    const bytes = statSync(path, { throwIfNoEntry: false })?.size;
    if (bytes !== size_bytes) findings.add("missing", `bytes of file ${fileId}: ${bytes}`);
  }
  const partial = readdirSync(join(data, "files", ".partial"));
  if (partial.length > 0) findings.add("unequal", `${partial.length} unfinished uploads were not swept`);
}

/** The last cycle once more, as its nodes would look at it. */
export async function checkOverHttp(
  hub: Pick<Hub, "get">,
  nodes: readonly string[],
  ledger: Ledger,
  findings: Findings,
): Promise<void> {
  const { body } = await hub.get("/node/list");
  const listed = new Map(listOf(body["nodes"]).map((node) => [String(node["node_id"]), node]));
  const known = new Set<string>();
  for (const nodeId of nodes) {
    if (listed.get(nodeId)?.["status"] !== "online")
      findings.add("missing", `${nodeId} is not listed as online`);
    const entries: number[] = [];
    for (let page = 1, pages = 1; page <= pages; page++) {
      const ledgerPage = await hub.get(`/lux/ledger?node_id=${nodeId}&per_page=50&page=${page}`);
      entries.push(...listOf(ledgerPage.body["entries"]).map(({ amount }) => toMicro(amount)));
      pages = Number(ledgerPage.body["pages"]);
    }
    const sum = entries.reduce((total, amount) => total + amount, 0);
    const balance = toMicro(listed.get(nodeId)?.["lux_balance"]);
    if (sum !== balance) findings.add("unequal", `balance of ${nodeId}: ${balance}, its entries: ${sum}`);
    const history = await hub.get(`/message/history?node_id=${nodeId}&count=1000`);
    for (const { id } of listOf(history.body["messages"])) known.add(String(id));
  }
  for (const [id, { toNode }] of ledger.sent) {
    if (nodes.includes(toNode) && !known.has(id))
      findings.add("missing", `message ${id} in the history of ${toNode}`);
  }
}

/** The bytes of these files, as they are downloaded. */
export async function checkDownloads(
  { api }: Pick<Hub, "api">,
  files: Iterable<readonly [string, string]>,
  findings: Findings,
): Promise<void> {
  for (const [fileId, sha256] of files) {
    const response = await fetch(`${api}/file/download/${fileId}`, { keepalive: false });
    const found = Bun.SHA256.hash(await response.bytes(), "hex");
    if (response.status !== 200 || found !== sha256)
      findings.add("missing", `download of ${fileId}: ${response.status}`);
  }
}

const toMicro = (lux: unknown): number => Math.round(Number(lux) * 1_000_000);
