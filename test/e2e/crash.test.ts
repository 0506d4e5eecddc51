/**
 * A 200 means on disk: writers keep a ledger of every success they were told of, the hub is killed with SIGKILL in the
 * middle of it, again and again, and after each start everything in the ledger is there.
 *
 * The moments are random and printed with their seed; E2E_SEED repeats a run's moments, if not the machine's timing.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { Hub, TempDir, listOf, objectOf } from "./program.ts";

const CYCLES = 3;
const WRITERS = 10;
const KILL_AFTER_MS = { least: 300, most: 1_200 };

type Row = Readonly<Record<string, unknown>>;

/** What the writers were told. */
class Ledger {
  readonly nodes = new Set<string>();
  readonly signedIn = new Set<string>();
  /** Reward in millionths, by task. */
  readonly tasks = new Map<string, number>();
  readonly winners = new Map<string, string[]>();
  readonly completed = new Map<string, { nodeId: string; lesson: string }>();
  /** Recipient by message. */
  readonly sent = new Map<string, string>();
  readonly received: string[] = [];
  /** SHA-256 by file. */
  readonly files = new Map<string, string>();
  /** Receives that were cut off: each may have taken a message along that nobody saw. */
  cutReceives = 0;
}

/** A small generator of numbers in [0, 1) that a seed repeats. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One writer of one cycle: it stops at the first call that is not answered. */
class Writer {
  readonly nodeId: string;
  readonly #hub: Hub;
  readonly #ledger: Ledger;
  readonly #random: () => number;
  readonly #open: string[];
  readonly #peers: readonly string[];
  #step = 0;

  constructor(
    hub: Hub,
    ledger: Ledger,
    random: () => number,
    shared: { open: string[]; peers: readonly string[]; nodeId: string },
  ) {
    this.#hub = hub;
    this.#ledger = ledger;
    this.#random = random;
    this.#open = shared.open;
    this.#peers = shared.peers;
    this.nodeId = shared.nodeId;
  }

  /** Resolves when the hub is gone. */
  async work(): Promise<void> {
    try {
      for (;;) await this.#round();
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
  }

  async #round(): Promise<void> {
    const step = this.#step++;
    if (step === 0) {
      await this.#signIn();
      return;
    }
    await this.#create(step);
    await this.#claimAndComplete(step);
    await this.#send(step);
    await this.#receive();
    if (step % 5 === 1) await this.#upload(step);
  }

  async #signIn(): Promise<void> {
    await this.#told("/signin", { node_id: this.nodeId });
    this.#ledger.signedIn.add(this.nodeId);
  }

  async #create(step: number): Promise<void> {
    const rewardMicro = Math.floor(this.#random() * 5_000_000);
    const body = await this.#told("/task/create", {
      title: `${this.nodeId} ${step}`,
      description: "Survive",
      lux_reward: rewardMicro / 1_000_000,
    });
    this.#ledger.tasks.set(String(body["task_id"]), rewardMicro);
    this.#open.push(String(body["task_id"]));
  }

  /** One of the newest tasks, so that several writers want the same. */
  async #claimAndComplete(step: number): Promise<void> {
    const taskId = this.#open.at(-1 - Math.floor(this.#random() * 3)) ?? this.#open[0];
    if (taskId === undefined) return;
    const claim = await this.#post("/task/claim", { task_id: taskId, node_id: this.nodeId });
    if (claim.status !== 200) return;
    const winners = this.#ledger.winners.get(taskId) ?? [];
    this.#ledger.winners.set(taskId, [...winners, this.nodeId]);
    const at = this.#open.indexOf(taskId);
    if (at !== -1) this.#open.splice(at, 1);
    if (step % 4 === 0) return; // some stay assigned
    const lesson = `lesson ${this.nodeId} ${step}`;
    const result = { problem: "A crash", improvement: "A log", lesson };
    await this.#told("/task/complete", { task_id: taskId, node_id: this.nodeId, result });
    this.#ledger.completed.set(taskId, { nodeId: this.nodeId, lesson });
  }

  async #send(step: number): Promise<void> {
    const toNode = this.#peers[Math.floor(this.#random() * this.#peers.length)] ?? this.nodeId;
    const body = await this.#told("/message/send", {
      from_node: this.nodeId,
      to_node: toNode,
      content: `${this.nodeId} ${step}`,
    });
    this.#ledger.sent.set(String(body["message_id"]), toNode);
  }

  async #receive(): Promise<void> {
    this.#ledger.cutReceives++;
    const { messages } = await this.#told("/message/receive", { node_id: this.nodeId, count: 1 });
    this.#ledger.cutReceives--;
    for (const message of listOf(messages)) this.#ledger.received.push(String(message["id"]));
  }

  async #upload(step: number): Promise<void> {
    const bytes = Buffer.alloc(1 + Math.floor(this.#random() * 40_000), `${this.nodeId} ${step} `);
    const body = new FormData();
    body.append("file", new Blob([bytes]), "crash.bin");
    const answer = await this.#hub.call("POST", "/file/upload", { body });
    const sha256 = Bun.SHA256.hash(bytes, "hex");
    if (answer.status !== 200) throw new Refused(JSON.stringify(answer.body));
    expect(answer.body["sha256"]).toBe(sha256);
    this.#ledger.files.set(String(answer.body["file_id"]), sha256);
  }

  async #told(path: string, body: object): Promise<Row> {
    const answer = await this.#post(path, body);
    if (answer.status !== 200) throw new Refused(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  #post(path: string, body: object) {
    return this.#hub.post(path, body);
  }
}

/** A writer was refused what must succeed. */
class Refused extends Error {
  override readonly name = "Refused";
}

/** All pages of a list. */
async function everyRow(hub: Hub, path: string, name: string): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { body } = await hub.get(`${path}${path.includes("?") ? "&" : "?"}per_page=50&page=${page}`);
    rows.push(...listOf(body[name]));
    pages = Number(body["pages"]);
  }
  return rows;
}

const toMicro = (lux: unknown): number => Math.round(Number(lux) * 1_000_000);

async function checkTasks(hub: Hub, ledger: Ledger): Promise<void> {
  const rows = await everyRow(hub, "/task/list", "tasks");
  const tasks = new Map(rows.map((task) => [String(task["task_id"]), task]));
  expect(tasks.size).toBe(rows.length);
  const missing = [...ledger.tasks.keys()].filter((taskId) => !tasks.has(taskId));
  expect(missing).toEqual([]);
  for (const [taskId, winners] of ledger.winners) {
    expect(winners).toHaveLength(1);
    expect(tasks.get(taskId)?.["assigned_node"]).toBe(winners[0]);
  }
  for (const [taskId, { nodeId, lesson }] of ledger.completed) {
    const task = tasks.get(taskId);
    expect([task?.["status"], task?.["assigned_node"]]).toEqual(["completed", nodeId]);
    expect(objectOf(JSON.stringify(task?.["result"]))["lesson"]).toBe(lesson);
  }
  // The running totals are those of the rows.
  const counted = { open: 0, assigned: 0, completed: 0 };
  for (const { status } of rows) {
    if (status === "open" || status === "assigned" || status === "completed") counted[status]++;
  }
  const { body } = await hub.get("/task/stats");
  expect([body["total"], body["by_status"]]).toEqual([rows.length, counted]);
}

async function checkLux(hub: Hub, ledger: Ledger): Promise<void> {
  const { body } = await hub.get("/node/list");
  const nodes = new Map(listOf(body["nodes"]).map((node) => [String(node["node_id"]), node]));
  const paid = new Map<unknown, Row>();
  const signedIn = new Set<string>();
  for (const nodeId of ledger.nodes) {
    const entries = await everyRow(hub, `/lux/ledger?node_id=${nodeId}`, "entries");
    const sum = entries.reduce((total, entry) => total + toMicro(entry["amount"]), 0);
    expect([nodeId, toMicro(nodes.get(nodeId)?.["lux_balance"])]).toEqual([nodeId, sum]);
    for (const entry of entries) {
      if (entry["kind"] === "signin") {
        expect([signedIn.has(nodeId), entry["amount"]]).toEqual([false, 10]);
        signedIn.add(nodeId);
      } else {
        expect(paid.has(entry["task_id"])).toBe(false); // no task pays twice
        paid.set(entry["task_id"], entry);
      }
    }
  }
  for (const nodeId of ledger.signedIn) expect(signedIn.has(nodeId)).toBe(true);
  for (const [taskId, { nodeId }] of ledger.completed) {
    const reward = ledger.tasks.get(taskId);
    if (reward === undefined || reward === 0) continue; // created by a call whose answer was lost
    const entry = paid.get(taskId);
    expect([entry?.["node_id"], toMicro(entry?.["amount"])]).toEqual([nodeId, reward]);
  }
}

async function checkMessages(hub: Hub, ledger: Ledger): Promise<void> {
  const known = new Set<string>();
  for (const nodeId of ledger.nodes) {
    const { body } = await hub.get(`/message/history?node_id=${nodeId}&count=1000`);
    for (const message of listOf(body["messages"])) known.add(String(message["id"]));
    for (let more = true; more;) {
      const taken = await hub.post("/message/receive", { node_id: nodeId, count: 1000 });
      const messages = listOf(taken.body["messages"]);
      for (const message of messages) ledger.received.push(String(message["id"]));
      more = messages.length > 0;
    }
  }
  expect([...ledger.sent.keys()].filter((id) => !known.has(id))).toEqual([]);
  // Handed out once: to nobody twice, and to nobody only where a receive was cut off.
  expect(new Set(ledger.received).size).toBe(ledger.received.length);
  const received = new Set(ledger.received);
  const lost = [...ledger.sent.keys()].filter((id) => !received.has(id));
  expect(lost.length).toBeLessThanOrEqual(ledger.cutReceives);
}

async function checkFiles(hub: Hub, ledger: Ledger): Promise<void> {
  for (const [fileId, sha256] of ledger.files) {
    const response = await fetch(`${hub.api}/file/download/${fileId}`);
    expect([response.status, Bun.SHA256.hash(await response.bytes(), "hex")]).toEqual([200, sha256]);
  }
  // Every record has its bytes, acknowledged or not.
  for (const file of await everyRow(hub, "/file/list", "files")) {
    const head = await fetch(`${hub.api}/file/download/${String(file["file_id"])}`, { method: "HEAD" });
    expect([head.status, Number(head.headers.get("content-length"))]).toEqual([200, Number(file["size"])]);
  }
}

function checkDatabase(data: string): void {
  const db = new Database(`${data}/luxhub.db`, { readonly: true });
  try {
    expect(db.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
    expect(db.query("PRAGMA foreign_key_check").values()).toEqual([]);
  } finally {
    db.close();
  }
}

test("everything that was acknowledged survives kill -9", async () => {
  const seed = Number(process.env["E2E_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const random = randomFrom(seed);
  using dir = new TempDir();
  const data = dir.join("data");
  const ledger = new Ledger();
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    await using hub = await Hub.start({ data });
    const peers = Array.from({ length: WRITERS }, (_, i) => `node-${cycle}-${i}`);
    const open: string[] = [];
    await Promise.all(
      peers.map(async (nodeId) => {
        await hub.register(nodeId);
        ledger.nodes.add(nodeId);
      }),
    );
    const writers = peers.map((nodeId) => new Writer(hub, ledger, random, { open, peers, nodeId }));
    const working = Promise.all(writers.map((writer) => writer.work()));
    const { least, most } = KILL_AFTER_MS;
    const killMs = Math.round(least + random() * (most - least));
    await Bun.sleep(killMs); // the moment is what this test is about
    hub.program.child.kill("SIGKILL");
    await working;
    expect(await hub.program.ended).toBeNull();

    await using next = await Hub.start({ data });
    for (const nodeId of ledger.nodes) expect((await next.get(`/node/${nodeId}`)).status).toBe(200);
    await checkTasks(next, ledger);
    await checkLux(next, ledger);
    await checkMessages(next, ledger);
    await checkFiles(next, ledger);
    checkDatabase(data);
    next.program.child.kill("SIGKILL"); // also a hub that has only read is ended without notice
    await next.program.ended;
    const { tasks, completed, sent, files } = ledger;
    console.log(
      `seed ${seed}, cycle ${cycle}: killed after ${killMs} ms; so far ${tasks.size} tasks, ` +
        `${completed.size} completed, ${sent.size} messages, ${files.size} files, all there`,
    );
  }
  // It was under load: a writer that never gets to work proves nothing.
  expect(ledger.completed.size).toBeGreaterThan(WRITERS * CYCLES);
}, 60_000);
