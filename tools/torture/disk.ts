/**
 * A full disk: the real program with its data, or only its files, on a tmpfs of 16 MiB that is filled and emptied. Each
 * violation becomes a text in `faults`; a round continues as far as it can.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Answer, Hub, TempDir, listOf, run, until } from "../../test/e2e/program.ts";
import { type Picture, type Ready, WRITES, everyRow, formOf, makeReady, pictureOf } from "./disk-writes.ts";
import { type Section, notRun } from "./section.ts";
import { PROGRAM } from "../../test/support/executable.ts";
import { SmallDisk, whyNoSmallDisk } from "../../test/support/small-disk.ts";

export type Extent = "data" | "files";

/** A hub whose room is back must be well again within this. */
const RECOVERY_MS = 5_000;
/** Room that is left for the writers who meet the end of it. */
const LEFT_BYTES = 2 * 1024 * 1024;
const WRITERS = 8;
const REFUSALS_EACH = 3;

export type DiskReport = {
  refused: number;
  taken: number;
  /** From room to status ok, one for each time. */
  readonly recoveriesMs: number[];
  readonly faults: string[];
};

export function newDiskReport(): DiskReport {
  return { refused: 0, taken: 0, recoveriesMs: [], faults: [] };
}

export async function fillOnce(extent: Extent, report: DiskReport): Promise<void> {
  using dir = new TempDir();
  const data = dir.join("data");
  await using disk = await SmallDisk.mount(extent === "data" ? data : join(data, "files"));
  const round = new Round(extent, disk, data, report);
  await using hub = await round.start();
  const ready = await makeReady(hub, 1);
  disk.fill(LEFT_BYTES);
  const flood = await round.flood(hub);
  disk.fill();
  await round.refuses(hub, ready);
  await round.recovers(hub);
  round.same("what was written under load", flood, await round.found(hub, flood));
  await round.takes(hub, extent === "data" ? ready : await makeReady(hub, 2));
  await round.leftovers(hub);
  if (extent === "data") await round.restarts(hub, ready);
  else await hub.stop();
  round.integrity();
}

/** A first start with no room at all is refused in one line, and works as soon as there is room. */
export async function startOnFullDisk(report: DiskReport): Promise<void> {
  using dir = new TempDir();
  await using disk = await SmallDisk.mount(dir.join("disk"));
  const data = dir.join("disk", "data");
  const round = new Round("data", disk, data, report);
  disk.fill();
  await round.refusesToStart(false);
  await round.refusesToStart(true);
  disk.free();
  await using hub = await Hub.start({ command: disk.command(PROGRAM), data, ownSecrets: false });
  await hub.register("n1");
}

/**
 * What a full disk did to writes for which the database need not grow, and the size of the log around the first of
 * them.
 */
export type Reuse = { readonly statuses: readonly number[]; readonly logBytes: readonly [number, number] };

/** Heartbeats change rows that there are: a checkpoint gives the room of the log back to them. */
export async function beatOnFullDisk(): Promise<Reuse> {
  using dir = new TempDir();
  const data = dir.join("data");
  await using disk = await SmallDisk.mount(data);
  const start = (): Promise<Hub> => Hub.start({ command: disk.command(PROGRAM), data });
  const beat = async (hub: Hub): Promise<number> =>
    (await hub.post("/node/heartbeat", { node_id: "n1" })).status;
  await using first = await start();
  await first.register("n1");
  await first.stop(); // the log is in the database now
  await using hub = await start();
  const logBytes = (): number => statSync(disk.inside(join(data, "luxhub.db-wal"))).size;
  do {
    disk.free();
    while (logBytes() < LEFT_BYTES) await beat(hub);
    disk.fill();
  } while (logBytes() < LEFT_BYTES); // the hub has written something itself meanwhile, and the disk took its room
  const before = logBytes();
  const statuses = [await beat(hub)];
  const after = logBytes();
  while (statuses.length < 50) statuses.push(await beat(hub));
  await hub.stop();
  return { statuses, logBytes: [before, after] };
}

type Flood = ReadonlyMap<string, boolean>;

class Round {
  readonly #extent: Extent;
  readonly #disk: SmallDisk;
  readonly #data: string;
  readonly #report: DiskReport;

  constructor(extent: Extent, disk: SmallDisk, data: string, report: DiskReport) {
    this.#extent = extent;
    this.#disk = disk;
    this.#data = data;
    this.#report = report;
  }

  /** Writers work until each was refused a few times. */
  async flood(hub: Hub): Promise<Flood> {
    const flood = new Map<string, boolean>();
    const padding = "x".repeat(20_000);
    const writer = async (id: number): Promise<void> => {
      const node = `writer-${id}`;
      for (let refusals = 0, step = 0; refusals < REFUSALS_EACH; step++) {
        const name = `${node} ${step}`;
        const told = (kind: string, answer: Answer): boolean => {
          const taken = answer.status === 200;
          if (!taken && this.#refusedWhenFull(kind === "file"))
            this.#expect(`${kind} under load`, answer, 507);
          else this.#expect(`${kind} under load`, answer, 200);
          flood.set(`${kind} ${name}`, taken);
          if (!taken) refusals++;
          return taken;
        };
        told("file", await hub.call("POST", "/file/upload", { body: formOf(name, 60_000) }));
        const message = { from_node: name.replace(" ", "."), to_node: "node-1", content: padding };
        told("message", await hub.post("/message/send", message));
        const created = await hub.post("/task/create", { title: name, description: padding, lux_reward: 1 });
        if (!told("task", created)) continue;
        const task_id = String(created.body["task_id"]);
        if (!told("claim", await hub.post("/task/claim", { task_id, node_id: "node-1" }))) continue;
        const result = { problem: padding, improvement: "i", lesson: "l" };
        told("result", await hub.post("/task/complete", { task_id, node_id: "node-1", result }));
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, (_, id) => writer(id)));
    return flood;
  }

  async found(hub: Hub, flood: Flood): Promise<Flood> {
    const files = new Set((await everyRow(hub, "/file/list", "files")).map(({ name }) => name));
    const tasks = new Map((await everyRow(hub, "/task/list", "tasks")).map((task) => [task["title"], task]));
    const entries = await everyRow(hub, "/lux/ledger?node_id=node-1", "entries");
    const paid = new Set(entries.map((entry) => entry["task_id"]));
    const history = await hub.get("/message/history?node_id=node-1&count=1000");
    const senders = new Set(JSON.stringify(history.body["messages"]).match(/writer-\d+\.\d+/g));
    const found = (key: string): boolean => {
      const [kind, ...words] = key.split(" ");
      const name = words.join(" ");
      const task = tasks.get(name);
      if (kind === "file") return files.has(name);
      if (kind === "message") return senders.has(name.replace(" ", "."));
      if (kind === "task") return task !== undefined;
      if (kind === "claim") return task?.["assigned_node"] === "node-1";
      const completed = task?.["status"] === "completed";
      this.same(`whether ${name} was paid`, completed, paid.has(task?.["task_id"]));
      return completed;
    };
    return new Map([...flood.keys()].map((key) => [key, found(key)]));
  }

  /** On a disk filled to the last byte: writes are refused, reads go on, nothing moves, status says so. */
  async refuses(hub: Hub, ready: Ready): Promise<void> {
    if (this.#extent === "data") await this.#useUp(hub, ready);
    const before = await pictureOf(hub, ready);
    for (const { name, upload = false, send } of WRITES) {
      this.#expect(
        `${name} on a full disk`,
        await send(hub, ready),
        this.#refusedWhenFull(upload) ? 507 : 200,
      );
    }
    const large = await hub.call("POST", "/file/upload", { body: formOf("large", 5_000_000) });
    this.#expect("a large upload on a full disk", large, 507);
    const { status, body } = await hub.get("/status");
    this.same("status on a full disk", [200, "degraded"], [status, body["status"]]);
    if (this.#extent === "data") {
      this.same("what can be read, on a full disk", before, await pictureOf(hub, ready));
    }
  }

  /** With room again and nobody writing, the hub recovers; the long form judges how soon. */
  async recovers(hub: Hub): Promise<void> {
    const startedMs = performance.now();
    this.#disk.free();
    try {
      await until(async () => (await hub.get("/status")).body["status"] === "ok");
    } catch {
      this.#report.faults.push("status is never ok again after there was room");
    }
    this.#report.recoveriesMs.push(performance.now() - startedMs);
  }

  async takes(hub: Hub, ready: Ready): Promise<void> {
    for (const { name, send } of WRITES) {
      this.#expect(`${name} with room again`, await send(hub, ready), 200);
    }
    const { body } = await hub.get("/node/list");
    const offline = listOf(body["nodes"]).filter(({ status }) => status !== "online");
    this.same("nodes that went offline", [], offline);
  }

  /** Every record has its bytes, and no bytes are without a record. */
  async leftovers(hub: Hub): Promise<void> {
    const records = (await everyRow(hub, "/file/list", "files")).map(({ file_id }) => String(file_id));
    const folder = this.#disk.inside(join(this.#data, "files"));
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    this.same("files on the disk", records.toSorted(), files.toSorted());
  }

  /** Ended in order and by SIGKILL, it starts on a full disk, degraded, and with room it has everything. */
  async restarts(first: Hub, ready: Ready): Promise<void> {
    await this.#useUp(first, ready);
    const before = withoutLog(await pictureOf(first, ready));
    this.same("the exit code at the end on a full disk", 0, (await first.stop()).code);
    for (const end of ["SIGKILL", "SIGTERM", "SIGKILL", "SIGTERM"] as const)
      await this.#servesReads(ready, before, end);
    this.#disk.free();
    const second = await this.start();
    this.same("what can be read with room again", before, withoutLog(await pictureOf(second, ready)));
    await second.stop(); // with room: SQLite removes its -shm file, and has none to begin with at the next start
    for (const end of ["SIGTERM", "SIGTERM"] as const) await this.#servesReads(ready, before, end);
    this.#disk.free();
    await using third = await this.start();
    this.same("what can be read with room again", before, withoutLog(await pictureOf(third, ready)));
    await third.stop();
  }

  async #servesReads(ready: Ready, before: Partial<Picture>, end: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#disk.fill();
    await using hub = await this.start();
    this.same("what can be read on a full disk", before, withoutLog(await pictureOf(hub, ready)));
    await this.#useUp(hub, ready);
    this.same("status on a full disk", "degraded", (await hub.get("/status")).body["status"]);
    hub.program.child.kill(end);
    const code = await hub.program.ended;
    this.same("the exit code at the end on a full disk", end === "SIGTERM" ? 0 : null, code);
  }

  start(): Promise<Hub> {
    return Hub.start({ command: this.#disk.command(PROGRAM), data: this.#data });
  }

  /** `ownSecrets`: whether they come by the environment, so that none has to be written. */
  async refusesToStart(ownSecrets = true): Promise<void> {
    const env = ownSecrets ? { LUXHUB_SECRET: "s", LUXHUB_ADMIN_KEY: "a" } : {};
    const command = this.#disk.command(PROGRAM);
    const ended = await run(["serve", "--port", "0", "--data", this.#data], { command, env });
    const oneLine = /^luxhub: [^\n]*(?:is full: make room|no space left)[^\n]*\n$/.test(ended.stderr);
    this.same("a start on a full disk", [1, "", true], [ended.code, ended.stdout, oneLine]);
    if (!oneLine) this.#report.faults.push(ended.stderr);
  }

  /** The database by SQLite's own check, in the namespace of its disk. */
  integrity(): void {
    const script = `
      const { Database } = require("bun:sqlite");
      console.log(new Database(process.argv[1]).query("PRAGMA integrity_check").values().join());`;
    const words = [process.execPath, "-e", script, join(this.#data, "luxhub.db")];
    const { stdout, stderr } = Bun.spawnSync([...this.#disk.command(words)]);
    this.same("integrity_check", "ok", `${stdout}${stderr}`.trim());
  }

  same(what: string, expected: unknown, found: unknown): void {
    if (isDeepStrictEqual(expected, found)) return;
    this.#report.faults.push(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  }

  /**
   * Fills the disk until a heartbeat, the smallest write there is, is refused: a failed commit leaves room in the log,
   * and a checkpoint gives the room of the log back.
   */
  async #useUp(hub: Hub, { node }: Ready): Promise<void> {
    for (let status = 200; status === 200;) {
      this.#disk.fill();
      ({ status } = await hub.post("/node/heartbeat", { node_id: node }));
    }
  }

  #refusedWhenFull(upload: boolean): boolean {
    return this.#extent === "data" || upload;
  }

  #expect(what: string, answer: Answer, status: 200 | 507): void {
    this.#count(answer);
    const error = status === 507 ? "insufficient_storage" : undefined;
    this.same(what, [status, error], [answer.status, answer.body["error"]]);
  }

  #count({ status }: Answer): void {
    if (status === 200) this.#report.taken++;
    if (status === 507) this.#report.refused++;
  }
}

/** The log of events grows with each start. */
function withoutLog({ events: _, poll: __, ...rest }: Picture): Partial<Picture> {
  return rest;
}

const ROUNDS = 20;

export const diskSection: Section = {
  name: "disk",
  title: "Full disk",
  limitMs: 10 * 60_000,
  run: async (scale, _seed, progress) => {
    using dir = new TempDir();
    const reason = await whyNoSmallDisk(dir.join("try"));
    if (reason !== null) return [notRun("Disks of 16 MiB filled", reason)];
    const report = newDiskReport();
    const rounds = Math.max(1, Math.round(ROUNDS * scale));
    for (let round = 1; round <= rounds; round++) {
      for (const extent of ["data", "files"] as const) await fillOnce(extent, report);
      await startOnFullDisk(report);
      progress(`${round} of ${rounds} rounds, ${report.faults.length} faults`);
    }
    for (const fault of report.faults) progress(fault);
    const slowestMs = Math.max(...report.recoveriesMs);
    return [
      {
        what: "Disks of 16 MiB filled: data; files alone",
        value: `${rounds}; ${rounds}`,
        goal: "",
        held: true,
      },
      { what: "Writes answered 507", value: String(report.refused), goal: "", held: report.refused > 0 },
      {
        what: "Refused and yet there, taken and not there, or otherwise wrong",
        value: String(report.faults.length),
        goal: "0",
        held: report.faults.length === 0,
      },
      {
        what: "From room to status ok, with nobody writing, slowest, s",
        value: (slowestMs / 1_000).toFixed(1),
        goal: `${RECOVERY_MS / 1_000}`,
        held: slowestMs <= RECOVERY_MS,
      },
    ];
  },
};
