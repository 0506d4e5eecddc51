/**
 * Shared by the tests of hostile requests: a real hub with some data, its visible state, and a row: the bytes to send
 * over a separate connection, and the required outcome. A connection that stays open must still be synchronised: the
 * next request on it gets its own answer.
 */
import { expect } from "bun:test";
import { HANG_MS } from "../support/hang.ts";
import { Hub, SECRET, TempDir, workedMs } from "./program.ts";
import { RawConnection } from "./raw.ts";

export type Row = {
  readonly name: string;
  /** A string stands for its bytes in Latin-1. */
  readonly send: string | Uint8Array;
  /** The answers in order, each `status` or `status code`; `closed` at the end when the hub closes the connection. */
  readonly get: readonly string[];
  /** Events that the hub may log for it: what it has done. None, if not said. */
  readonly does?: number | readonly number[];
};

/** One answer off the wire. */
export type WireAnswer = { readonly head: string; readonly body: string };

export const NODE = "corpus-node";

const NEXT = `GET /api/v1/status HTTP/1.1\r\nHost: hub\r\nX-Request-Id: next\r\nX-Matrix-Secret: ${SECRET}\r\n\r\n`;
const NEXT_ANSWERED = /X-Request-Id: next\r\n[\s\S]*?\r\n\r\n\{[^}]*\}/i;

/** A hub for a table of rows, and what it was like before the first. */
export class Corpus implements AsyncDisposable {
  readonly hub: Hub;
  readonly #dir: TempDir;

  private constructor(hub: Hub, dir: TempDir) {
    this.hub = hub;
    this.#dir = dir;
  }

  static async open(args: readonly string[] = []): Promise<Corpus> {
    const dir = new TempDir();
    const hub = await Hub.start({ data: dir.join("data"), args });
    await hub.register(NODE);
    await hub.post("/task/create", { title: "Stays as it is", description: "Whatever is sent" });
    return new Corpus(hub, dir);
  }

  /** A path in its directory; the data is in `data`. */
  join(...names: readonly string[]): string {
    return this.#dir.join(...names);
  }

  /** Sends a row's bytes and says what became of them. */
  async run(row: Row): Promise<void> {
    const eventsBefore = await lastEventOf(this.hub);
    const connection = await RawConnection.open(this.hub.port);
    connection.send(typeof row.send === "string" ? Buffer.from(row.send, "latin1") : row.send);
    const isClosed = row.get.at(-1) === "closed";
    if (isClosed) await inTime(connection.ended(), connection);
    else {
      await inTime(connection.got(answersBefore(row.get.length)), connection);
      connection.send(NEXT);
      await inTime(connection.got(NEXT_ANSWERED), connection);
    }
    const got = answersIn(connection.received).map(wordOf);
    connection.cut();
    expect(got).toEqual(isClosed ? row.get.slice(0, -1) : [...row.get, "200"]);
    expect([row.does ?? 0].flat()).toContain((await lastEventOf(this.hub)) - eventsBefore);
  }

  /** Work of the hub that no single row may reach: that of 100 harmless bodies of 1 MB. Takes a fifth of them to know. */
  async workMax(): Promise<number> {
    const body = `{"title":"t","description":"d"${" ".repeat(1_000_000)}}`;
    const before = workedMs(this.hub.pid);
    for (let i = 0; i < 20; i++)
      expect((await this.hub.call("POST", "/task/create", { body })).status).toBe(200);
    return 5 * (workedMs(this.hub.pid) - before);
  }

  /** That the hub is well, and has said nothing that it should not. */
  async isWell(): Promise<void> {
    expect((await this.hub.get("/status")).body).toMatchObject({ success: true, status: "ok" });
    expect(this.hub.program.stderr).toBe("");
    expect(this.hub.program.stdout).not.toMatch(/ error /);
    // Nothing that a caller sends moves the cursor of a terminal, or looks like a line of its own.
    expect(this.hub.program.stdout).not.toMatch(/[^\n\P{C}]/u); // names may have letters of any script
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hub[Symbol.asyncDispose]();
    this.#dir[Symbol.dispose]();
  }
}

/** That all rows that are refused leave a hub, to which nothing else is sent, as it was. */
export async function expectUnchanged(rows: readonly Row[], args: readonly string[] = []): Promise<void> {
  await using corpus = await Corpus.open(args);
  const before = await stateOf(corpus.hub);
  const refused = rows.filter(({ does }) => does === undefined);
  expect(refused.length).toBeGreaterThan(20);
  for (const row of refused) await corpus.run(row);
  expect(await stateOf(corpus.hub)).toBe(before);
  await corpus.isWell();
}

/** Everything that can be asked of a hub without changing it, but for when its node was last heard of. */
async function stateOf(hub: Hub): Promise<string> {
  const paths = [
    "/node/list",
    "/task/list?per_page=50",
    "/task/stats",
    "/file/list",
    "/events?since=0&limit=1000",
    `/message/history?node_id=${NODE}&count=1000`,
    `/lux/ledger?node_id=${NODE}`,
  ];
  const answers = await Promise.all(paths.map((path) => hub.get(path)));
  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
  return JSON.stringify(answers.map(({ body }) => body)).replaceAll(/"last_heartbeat":"[^"]*"/g, "");
}

/** A row that goes wrong fails by itself, before the test's own time is over. */
async function inTime<T>(awaited: Promise<T>, connection: RawConnection): Promise<T> {
  const late = Promise.withResolvers<never>();
  const fail = (): void => late.reject(new Error(`nothing more than: ${connection.received}`));
  const timer = setTimeout(fail, HANG_MS);
  return Promise.race([awaited, late.promise]).finally(() => clearTimeout(timer));
}

/** After what other connections have begun: a caller who is gone may still be worked for. */
async function lastEventOf(hub: Hub): Promise<number> {
  for (let i = 0; i < 2; i++) await hub.post("/node/heartbeat", { node_id: NODE });
  return Number((await hub.get("/events?limit=1")).body["cursor"]);
}

/** So many heads of answers; what their bodies hold may still be on its way. */
function answersBefore(count: number): RegExp {
  return new RegExp(`(?:HTTP/1\\.1 \\d{3} [\\s\\S]*?\\r\\n\\r\\n[\\s\\S]*?){${count}}`);
}

/** The answers one after the other; a bare one has neither length nor body. */
export function answersIn(received: string): readonly WireAnswer[] {
  const answers: WireAnswer[] = [];
  for (let at = 0; at < received.length;) {
    const end = received.indexOf("\r\n\r\n", at);
    const head = received.slice(at, end === -1 ? received.length : end);
    expect(head).toMatch(/^HTTP\/1\.1 \d{3} /);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    const start = end === -1 ? received.length : end + 4;
    answers.push({ head, body: received.slice(start, start + length) });
    at = start + length;
  }
  return answers;
}

function wordOf({ head, body }: WireAnswer): string {
  const code = /"error":"(\w+)"/.exec(body)?.[1];
  return head.slice(9, 12) + (code === undefined ? "" : ` ${code}`);
}
