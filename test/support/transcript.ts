/**
 * Transcripts: API tests as the calls of clients, a line each, with what the hub must answer.
 *
 *   nodes boss w1                                registers nodes
 *   t = task/create {lux_reward: 3}              a POST; `t` is the answer, and `$t` the id in it
 *   c = task/claim $t w1                         words after the path: the task ($…), then the node
 *   task/complete $t w1 {epoch: $c.lease.epoch} -> lux_paid 3
 *   B task/create {title: 5} -> 400 title ~text  a 400 names the fields, and may have a text; any other error its code
 *   GET task/$t -> task {status: completed, started_at: *}
 *   -> task.failure null                         more about the same answer
 *   w = & task/next w1 {wait: 60}                a call that blocks; the next line runs when it waits
 *   $w waits                                     it is not answered yet
 *   $w -> task.task_id $t                        now it is
 *   s = & stream 2 agent/sse?node_id=w1          a stream, until it has so many events or ends; {after: 5} resumes it
 *   $s -> [task.assigned, message]               their kinds; events.data and events.id have the rest
 *   f = upload a.txt {task_id: $t, node: w1}     a file with this name and metadata; its text is `content of a.txt`, or
 *                                                what the fields content, type and metadata say
 *   upload $u.url a.txt                          the same to a URL; `GET $u.url` reads
 *   task/<claim|fail> $t w1 -> 409 task_failed   two lines; in a title, two tests; lines that end with `;` are one
 *
 * Words before a path: `admin` (with the administrator key), `B` (the variant), `as $key` (with the secret of a key),
 * `anon` (with no secret), `with {…}` (headers), `key K` (an Idempotency-Key), `replay` (the first answer with the key
 * must come back; alone on a line it repeats the last call with a key), `until` (asks again until the answer is as
 * expected, with periodic work between). A message goes from the first node to the second, and a text between `'` is a
 * body as it is. Lines that begin with `+ ` are the requests of the `batch` above them, each with what it must be
 * answered, or the calls of an `at once -> {statuses: {"200": 2}, different: 1, replayed: 1}`.
 *
 * Other lines: `pass 60s n1` (time passes with periodic work, and n1 sends heartbeats), `tick 60s` (time passes, and
 * nothing is done), `jump 1h` (only the wall clock does), `day 12:00:00` (it is then, of a day to come), `sweep`
 * (periodic work), `restart` (the hub, on its data), `# comment`; `task $t`, `node n1` and `events $t` are the GETs of
 * a task, a node and the kinds of a task's events.
 *
 * An expectation is a path into the answer, which goes through lists (`tasks.task_id [$a, $b]`; `all` is its text,
 * `header` its head), and a pattern: an object matches if it has at least these fields, a list if it has exactly these
 * items; `*` is anything but null, `absent` no field, `#3` a list of 3, `~text` has the text in it, `!x` does not match
 * x, `4..6` a number between, `+60s` a time so long from now (or at most 10 seconds less), `$c.lease.epoch+1` one more
 * than in an earlier answer, `$i.line.tail` what stands there after the last point. In what is sent, `+60s` and `-60s`
 * are times. `x*500` is a text of 500 x.
 */
import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { HEARTBEAT_FRESH_MS } from "../../src/domain/limits.ts";
import { isoTime } from "../../src/lib/clock.ts";
import { RESULT, record } from "../api/scene.ts";
import {
  ADMIN_KEY,
  type Answer,
  type CallOptions,
  type HubOptions,
  SECRET,
  TestClock,
  type TestHub,
  newDataDir,
  startHub,
} from "./hub.ts";
import { checkQuotas } from "./consistency-check.ts";
import { HANG_MS } from "./hang.ts";
import { IS_LONG } from "./long.ts";
import { POSTGRES_MISSING } from "./postgres.ts";
import { dropSchemas } from "./schemas.ts";
import { SseReader } from "./sse.ts";

/** What a call sends besides what its line says. */
const USUAL: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "task/create": { title: "t", description: "d" },
  "task/fail": { error: "e" },
  "task/ask": { question: "Which?" },
  "message/send": { content: "hello" },
  "message/broadcast": { content: "hello" },
  "agent/message": { content: "hello" },
  "agent/broadcast": { content: "hello" },
};

/** Below every lease of a node. */
const BEAT_MS = 30_000;
const SHOWN_CHARS = 1_500;
const TIME_TOLERANCE_MS = 10_000;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

type Body = Readonly<Record<string, unknown>>;

/** A call that is on its way. */
class Pending {
  isAnswered = false;
  readonly answer: Promise<Answer>;

  constructor(answer: Promise<Answer>) {
    this.answer = answer.finally(() => (this.isAnswered = true));
    this.answer.catch(() => undefined); // whoever reads it hears of the failure
  }
}

/** A pattern that is no value: null if it matches, else what is wrong. */
class Check {
  readonly fault: (value: unknown, path: string) => string | null;

  constructor(fault: Check["fault"]) {
    this.fault = fault;
  }
}

/** Plays a transcript against a hub; `names` are values that it can use as `$name`. */
export async function play(
  hub: TestHub,
  text: string,
  names: Body = {},
): Promise<ReadonlyMap<string, unknown>> {
  const player = new Player(hub, new Map(Object.entries(names)), () => Promise.reject(new Error("not here")));
  await player.playAll(text);
  return player.names;
}

/**
 * Tests: the transcripts under each title, a line that begins with `==`. They run on SQLite, and on two hubs on one
 * PostgreSQL, which take turns at the calls; in the long form also on one hub on PostgreSQL. Those under `=`, about the
 * order of callers that wait at one hub, run on one hub on each engine. Those under `--` are rules that no store can
 * change, and run on SQLite only. A title may end with settings of the hub: `{selfReward: false}`.
 */
export function transcripts(text: string): void {
  afterAll(dropSchemas);
  const blocks = text.match(TITLED) ?? [];
  if (blocks.join("").trim() !== text.trim()) throw new Error("A transcript begins with a title");
  for (const block of blocks)
    for (const variation of variationsOf(block, block.split("\n")[0])) define(variation);
}

function define(block: string): void {
  const [, mark, title = "", settings = "{}", lines = ""] = BLOCK.exec(block) ?? [];
  const options: HubOptions = new Reader(settings, new Map(), 0, false).value() as HubOptions;
  const run = (more: HubOptions) => async (): Promise<void> => {
    const kept = /(?:^ *|; *)restart\b/m.test(lines) ? { dataDir: newDataDir(), clock: new TestClock() } : {};
    const opened = { ...options, ...more, ...kept };
    const player = new Player(await startHub(opened), new Map(), (settings) =>
      startHub({ ...opened, ...settings }),
    );
    try {
      await player.playAll(lines);
      if (player.hub.database !== null) await checkQuotas(player.hub.database);
    } finally {
      await player.hub.close();
      if (kept.dataDir !== undefined) rmSync(kept.dataDir, { recursive: true });
    }
  };
  test(title, run({}));
  if (mark === "--") return;
  const onPostgres = POSTGRES_MISSING === null ? test : test.skip;
  const engine = "postgresql";
  if (mark === "==") onPostgres(`${title} (two hubs)`, run({ engine, size: 2 }));
  if (mark === "=" || IS_LONG) onPostgres(`${title} (PostgreSQL)`, run({ engine }));
}

/** A title, and the lines to the next one. */
const TITLED = /^[ ]*(?:==?|--) .*\n(?:(?![ ]*(?:==?|--) ).*(?:\n|$))*/gm;
const BLOCK = /^[ ]*(==?|--) (.*?)(?: (\{.*\}))?\n([^]*)$/;

/**
 * A text with `<a|b>` stands for a text with `a` and one with `b`. Several of as many alternatives change together; the
 * others of a title's test are those of their lines.
 */
function variationsOf(text: string, title = text): readonly string[] {
  const count = ALTERNATIVES.exec(title)?.[1]?.split("|").length;
  if (count === undefined) return [text];
  const variations = Array.from({ length: count }, (_, i) =>
    text.replaceAll(new RegExp(ALTERNATIVES, "g"), (all, words: string) => {
      const alternatives = words.split("|");
      return alternatives.length === count ? (alternatives[i] ?? "") : all;
    }),
  );
  return title === text ? variations.flatMap((variation) => variationsOf(variation)) : variations;
}

/** Before a request of a batch, or a call of those at once. */
const ITEM = "\n+ ";
const ALTERNATIVES = /<([^<>\n]*\|[^<>\n]*)>/;

/** Lines, where one continues while a bracket is open. */
function linesOf(text: string): readonly string[] {
  const lines: string[] = [];
  let open = "";
  for (const part of text.split("\n").map((line) => line.trim())) {
    if (part === "" || part.startsWith("# ")) continue;
    open = open === "" ? part : `${open} ${part}`;
    if (depthOf(open) > 0 || /(->|;)$/.test(open)) continue;
    if (open.startsWith("+ ")) lines.push(`${lines.pop()}\n${open}`);
    else lines.push(open);
    open = "";
  }
  expect(open).toBe("");
  return lines;
}

function depthOf(text: string): number {
  const bare = text.replaceAll(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "");
  return (bare.match(/[[{]/g)?.length ?? 0) - (bare.match(/[\]}]/g)?.length ?? 0);
}

class Player {
  readonly names: Map<string, unknown>;
  readonly #restart: (settings: HubOptions) => Promise<TestHub>;
  /** The first answers with an Idempotency-Key. */
  readonly #byKey = new Map<string, Answer>();
  #hub: TestHub;
  #last: Answer | null = null;
  #before: Call = { said: "", items: [] };

  constructor(
    hub: TestHub,
    names: Map<string, unknown>,
    restart: (settings: HubOptions) => Promise<TestHub>,
  ) {
    this.#hub = hub;
    this.names = names;
    this.#restart = restart;
  }

  get hub(): TestHub {
    return this.#hub;
  }

  async playAll(text: string): Promise<void> {
    for (const lines of linesOf(text)) {
      const [head = "", ...items] = lines.split(ITEM);
      if (items.length > 0)
        await this.play([head, ...items.flatMap((item) => variationsOf(item))].join("\n+ "));
      else for (const line of variationsOf(head).flatMap((one) => one.split(/; +/))) await this.play(line);
    }
  }

  async play(line: string): Promise<void> {
    try {
      await this.#play(line);
    } catch (error) {
      throw new Error(
        `${line.slice(0, SHOWN_CHARS)}\n  ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  async #play(line: string): Promise<void> {
    const [head = "", ...items] = line.split(ITEM);
    const { names, said, wanted } = stepOf(head);
    const [, before = "", nodes] = /^((?:B |as \$\w+ )*)nodes (.*)$/.exec(said) ?? [];
    if (nodes !== undefined) return this.#register(before, nodes);
    const words = said.split(" ");
    if (said === "") return this.#expect(this.#last, wanted ?? "");
    const act = names.length === 0 && wanted === undefined ? this.#acts[words[0] ?? ""] : undefined;
    if (act) return act(words.slice(1));
    if (words[0] === "replay")
      return this.#replay(
        words.length === 1 ? this.#before : { said: said.slice("replay ".length), items: [] },
      );
    if (words[0] === "until") {
      this.#last = await this.#until(said.slice("until ".length), wanted ?? "");
      return this.#take({ names, said, wanted }, this.#last);
    }
    const pending = /^\$\w+$/.test(words[0] ?? "")
      ? this.names.get(said.split(" ")[0]?.slice(1) ?? "")
      : null;
    if (pending instanceof Pending) {
      if (words[1] === "waits") return expect(pending.isAnswered).toBe(false);
      this.#last = await pending.answer;
      this.names.set(words[0]?.slice(1) ?? "", this.#last.body);
      return this.#expect(this.#last, wanted ?? "");
    }
    if (words[0] === "&") return this.#begin(names[0] ?? "", said.slice(2));
    for (const name of names.length === 0 ? [""] : names) {
      this.#last = await this.#call(said, items.map(stepOf));
      if (isReplay(this.#last)) throw new Error("the answer is a replay: say so");
      this.#take({ names: [name], said, wanted }, this.#last);
      if (/\bkey \S/.test(said)) this.#before = { said, items: items.map(stepOf) };
    }
  }

  #take({ names, wanted }: Step, answer: Answer): void {
    this.#expect(answer, wanted ?? "");
    for (const name of names) if (name !== "") this.names.set(name, answer.body);
  }

  /** The first answer with the same Idempotency-Key comes back. */
  async #replay({ said, items }: Call): Promise<void> {
    const [, key = ""] = /\bkey (\S+)/.exec(said) ?? [];
    const again = await this.#call(said, items);
    expect(isReplay(again)).toBe(true);
    const [first, repeat] = [this.#byKey.get(key), again].map((one) => [one?.status, one?.body]);
    expect(repeat).toEqual(first ?? []);
    this.#last = again;
  }

  readonly #acts: Readonly<Record<string, (words: readonly string[]) => Promise<void>>> = {
    pass: async ([time = "", ...nodeIds]) => {
      for (let left = durationOf(time); left > 0; left -= BEAT_MS) {
        this.#hub.clock.pass(Math.min(left, BEAT_MS));
        for (const nodeId of nodeIds) await this.#play(`node/heartbeat ${nodeId}`);
        await this.#hub.sweep();
      }
    },
    jump: async ([time = ""]) => this.#hub.clock.jump(durationOf(time)),
    tick: async ([time = ""]) => this.#hub.clock.pass(durationOf(time)),
    sweep: () => this.#hub.sweep(),
    day: async ([time = ""]) => {
      const { clock } = this.#hub;
      const tomorrow = isoTime(clock.now() + UNIT_MS.d).slice(0, 10);
      clock.jump(Date.parse(`${tomorrow}T${time}Z`) - clock.now());
    },
    restart: async (words) => {
      await this.#hub.close();
      const settings = new Reader(words.join(" ") || "{}", this.names, 0, false).value();
      this.#hub = await this.#restart(settings as HubOptions);
    },
  };

  /** Nodes that the balancer may give tasks to. */
  async #register(before: string, said: string): Promise<void> {
    const [, nodeIds = "", fields = "}"] = /^([^{]*)(?:\{(.*))?$/.exec(said) ?? [];
    for (const nodeId of nodeIds.trim().split(" "))
      await this.#play(`${before}node/register ${nodeId} {name: ${nodeId}, auto_assign: true, ${fields}`);
  }

  /** Asks until the answer is as expected. */
  async #until(said: string, wanted: string): Promise<Answer> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      try {
        const answer = await this.#call(said);
        this.#expect(answer, wanted);
        return answer;
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
      await this.#hub.sweep();
      await Bun.sleep(10);
    }
  }

  /**
   * Begins a call, and resolves when it waits: the hub counts it, and a worker's call has written its heartbeat, which it
   * does in its last transaction before it sleeps.
   */
  async #begin(name: string, said: string): Promise<void> {
    const [, nodeId = null] = /task\/next (\w+)/.exec(said) ?? [];
    const beat = async (): Promise<unknown> =>
      nodeId === null
        ? null
        : fieldOf((await this.#hub.get(`/node/${nodeId}`)).body, ["node", "last_heartbeat"]);
    this.#hub.clock.pass(HEARTBEAT_FRESH_MS);
    const before = [await this.#waiting(), await beat()] as const;
    const pending = new Pending(this.#call(said));
    this.names.set(name, pending);
    const deadline = performance.now() + HANG_MS;
    const hasBegun = async (): Promise<boolean> =>
      (await this.#waiting()) > before[0] && (nodeId === null || (await beat()) !== before[1]);
    while (!pending.isAnswered && !(await hasBegun())) {
      if (performance.now() > deadline) throw new Error("the call does not wait");
      await Bun.sleep(5);
    }
  }

  /** How many calls wait, and how many streams are open, by the metrics of the hubs. */
  async #waiting(): Promise<number> {
    let count = 0;
    for (let i = 0; i < this.#hub.size; i++) {
      const { text } = (await this.#read("/metrics", {})).body;
      for (const [, waiting] of String(text).matchAll(WAITING)) count += Number(waiting);
    }
    return count;
  }

  /** What is no JSON, as the field `text` of an answer. */
  async #read(path: string, { headers, variant }: CallOptions): Promise<Answer> {
    const sent = Object.entries({ "X-Matrix-Secret": SECRET, ...headers }).flatMap(([name, value]) =>
      value === null || value === undefined ? [] : [[name, value] as [string, string]],
    );
    const response = await fetch(this.#hub.base(variant) + path, { headers: sent });
    const text = await response.text();
    const { status } = response;
    return {
      status,
      headers: response.headers,
      body: response.ok ? { success: true, text } : JSON.parse(text),
    };
  }

  async #call(said: string, items: readonly Step[] = []): Promise<Answer> {
    const reader = new Reader(said, this.names, this.#hub.clock.now(), false);
    const headers: Record<string, string | null> = {};
    let options: CallOptions = { headers };
    for (;;) {
      const word = reader.word();
      if (word === "admin") headers["X-Admin-Key"] = ADMIN_KEY;
      else if (word === "B") options = { ...options, variant: "B" };
      else if (word === "as") headers["X-Matrix-Secret"] = this.#text(`${reader.word()}.secret`);
      else if (word === "anon") headers["X-Matrix-Secret"] = null;
      else if (word === "with")
        for (const [name, value] of Object.entries(record(reader.value())))
          headers[name] = value === null ? null : this.#text(String(value));
      else if (word === "key") headers["Idempotency-Key"] = reader.word();
      else {
        const answer = await this.#send(word, reader, options, items);
        const key = headers["Idempotency-Key"];
        if (typeof key === "string" && !isReplay(answer) && [200, 403, 404, 409].includes(answer.status))
          this.#byKey.set(key, answer);
        return answer;
      }
    }
  }

  #send(word: string, reader: Reader, options: CallOptions, items: readonly Step[]): Promise<Answer> {
    const get = (path: string): Promise<Answer> => this.#hub.get(`/${path}`, options);
    if (word === "at") return this.#atOnce(items);
    if (word === "batch" && items.length > 0) return this.#batch(items, options);
    if (word === "metrics") return this.#read("/metrics", options);
    if (word === "events") return get(this.#text(`events?since=0&limit=1000&task_id=${reader.word()}`));
    if (word === "task" || word === "node")
      return get(this.#text(`${word}/${reader.word()}`)).then((answer) => within(answer, word));
    if (/^(?:DELETE|PUT|PATCH|OPTIONS)$/.test(word))
      return this.#hub.call(word, `/${this.#text(reader.word())}`, options);
    if (word === "GET") {
      const path = this.#text(reader.word()).replace("/api/v1/", "");
      return path.startsWith("file/download/") ? this.#read(`/api/v1/${path}`, options) : get(path);
    }
    if (word === "stream") return this.#stream(Number(reader.word()), reader.word(), reader.body(), options);
    if (word === "upload") {
      const name = reader.word();
      if (!name.startsWith("$")) return this.#hub.post("/file/upload", formOf(name, reader.body()), options);
      const path = this.#text(name).replace("/api/v1", "");
      return this.#hub.post(path, formOf(reader.word(), reader.body()), options);
    }
    const raw = reader.raw();
    const body = raw === null ? bodyOf(word, reader.body()) : this.#text(raw);
    return this.#hub.post(`/${word}`, body, options);
  }

  /** Each request of a batch is answered as if it had come alone. */
  async #batch(items: readonly Step[], options: CallOptions): Promise<Answer> {
    const requests = items.map(({ said }) => {
      const reader = new Reader(said, this.names, this.#hub.clock.now(), false);
      const path = reader.word();
      return { path, body: bodyOf(path, reader.body()) };
    });
    const answer = await this.#hub.post("/batch", { requests }, options);
    const { answers } = answer.body;
    if (!Array.isArray(answers)) return answer;
    for (const [i, item] of items.entries()) {
      const { status, body } = answers[i];
      this.#take(item, { status, body, headers: answer.headers });
    }
    return answer;
  }

  async #atOnce(items: readonly Step[]): Promise<Answer> {
    const answers = await Promise.all(items.map(({ said }) => this.#call(said)));
    const statuses: Record<string, number> = {};
    for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
    for (const [i, item] of items.entries()) {
      const answer = answers[i];
      if (answer && item.names.length > 0) this.#take(item, answer);
    }
    const different = new Set(answers.map(({ body }) => JSON.stringify(body))).size;
    const replayed = answers.filter(isReplay).length;
    const body = { success: true, statuses, different, replayed };
    return { status: 200, headers: new Headers(), body };
  }

  /** The first events of a stream; the answer has them when there are so many, or when the stream has ended. */
  async #stream(count: number, path: string, { after }: Body, options: CallOptions): Promise<Answer> {
    const headers = new Headers({ "X-Matrix-Secret": SECRET });
    for (const [name, value] of Object.entries({ ...options.headers, "Last-Event-ID": after ?? null }))
      if (value === null) headers.delete(name);
      else headers.set(name, String(value));
    const response = await fetch(`${this.#hub.base(options.variant)}/api/v1/${this.#text(path)}`, {
      headers,
    });
    if (!response.ok || !response.body)
      return { status: response.status, headers: response.headers, body: record(await response.json()) };
    const events: Body[] = [];
    await using reader = new SseReader(response.body);
    for (let event = await reader.read(); event !== null; event = await reader.read()) {
      const id = /^\d+$/.test(event.id) ? Number(event.id) : event.id;
      events.push({ id, kind: event.event, data: JSON.parse(event.data) });
      if (events.length >= count) break;
    }
    return { status: 200, headers: response.headers, body: { success: true, events } };
  }

  /** A word in which `$name` stands for values. */
  #text(word: string): string {
    return word.replaceAll(/\$[\w.]+/g, (name) => String(valueOf(name, this.names)));
  }

  #expect(answer: Answer | null, wanted: string): void {
    if (answer === null) throw new Error("there is no answer yet");
    const { status } = answer;
    const body: Body = { ...answer.body, header: Object.fromEntries(answer.headers) };
    const [, code, rest = ""] = /^(4\d\d|5\d\d) (.*)$/.exec(wanted) ?? [];
    if (code === "400") {
      const fields = rest.split(" ").filter((word) => !word.startsWith("~"));
      const [said = ""] = rest.split(" ").filter((word) => word.startsWith("~"));
      const errors = body["errors"];
      const paths = Array.isArray(errors) ? errors.map((error) => String(error.path)).toSorted() : body;
      expect(JSON.stringify(errors)).toContain(said.slice(1));
      return expect({ status, error: body["error"], paths }).toEqual({
        status: 400,
        error: "invalid_request",
        paths: fields.map((field) => (field === '""' ? "" : field)).toSorted(),
      });
    }
    if (code !== undefined) {
      const [error, ...more] = rest.split(" ");
      expect(body["errors"]).toBeUndefined();
      expect({ status, error: body["error"] }).toEqual({ status: Number(code), error: error ?? "" });
      return more.length === 0 ? undefined : this.#match(body, more.join(" "));
    }
    if (status !== 200 || body["success"] !== true)
      throw new Error(`answered ${status} ${JSON.stringify(answer.body)}`);
    if (wanted !== "") this.#match(body, wanted);
  }

  #match(body: Body, wanted: string): void {
    const reader = new Reader(wanted, this.names, this.#hub.clock.now(), true);
    const path = /^[{$]/.test(wanted) ? "" : wanted.startsWith("[") ? "events.kind" : reader.word();
    const value = path === "" ? body : path === "all" ? JSON.stringify(body) : fieldOf(body, path.split("."));
    const fault = faultOf(value, reader.value(), path);
    if (fault !== null) throw new Error(`${fault}\n  in ${JSON.stringify(value)?.slice(0, SHOWN_CHARS)}`);
  }
}

const WAITING = /^luxhub_(?:waiting_calls\{secret="valid"\}|event_streams) (\d+)$/gm;

function bodyOf(path: string, fields: Body): Body {
  const result = path === "task/complete" && { result: { ...RESULT, ...(fields["result"] as Body) } };
  const { node_id, ...others } = fields;
  const isMessage = /^(?:message|agent)\/(?:send|message|broadcast)$/.test(path) && node_id !== undefined;
  return { ...USUAL[path], ...(isMessage ? { from_node: node_id, ...others } : fields), ...result };
}

/** A line: what it calls the answer, the call, and what the answer must be. */
type Step = {
  readonly names: readonly string[];
  readonly said: string;
  readonly wanted: string | undefined;
};

/** A call, and the requests of a batch. */
type Call = { readonly said: string; readonly items: readonly Step[] };

function stepOf(line: string): Step {
  const [, assigned, said = "", wanted] = /^(?:([\w, ]+) = )?(.*?)(?: ?-> (.*))?$/.exec(line) ?? [];
  return { names: assigned?.split(",").map((name) => name.trim()) ?? [], said, wanted };
}

function isReplay({ headers }: Answer): boolean {
  return headers.get("idempotent-replayed") === "true";
}

/** A file: its name, its metadata, and what else than the usual content and type. */
function formOf(name: string, sent: Body): FormData {
  const { metadata = {}, content = `content of ${name}`, type = "", ...fields } = sent;
  const form = new FormData();
  form.set(
    "metadata",
    typeof metadata === "string" ? metadata : JSON.stringify({ ...record(metadata), ...fields }),
  );
  form.set("file", new File([String(content)], name, { type: String(type) }));
  return form;
}

/** The answer as if its body were one of its fields. */
function within(answer: Answer, field: string): Answer {
  return answer.status === 200
    ? { ...answer, body: { success: true, ...(answer.body[field] as Body) } }
    : answer;
}

function durationOf(text: string): number {
  const [, count, unit] = /^(-?\d+)(s|m|h|d)$/.exec(text) ?? [];
  if (count === undefined) throw new Error(`${text} is no time such as 60s`);
  return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** A time so long after or before now. */
function timeOf(word: string, now: number): number {
  return now + durationOf(word.slice(1)) * (word.startsWith("-") ? -1 : 1);
}

/** What stands at a path; through a list, what stands there in each item. */
function fieldOf(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined || value === undefined || value === null) return value;
  if (typeof value === "string" && name === "tail") return value.slice(value.lastIndexOf(".") + 1);
  if (Array.isArray(value) && !/^\d+$/.test(name)) return value.map((item) => fieldOf(item, [name, ...rest]));
  return fieldOf(new Map(Object.entries(value)).get(name), rest);
}

/** What `$name` or `$name.path+1` stands for: of a whole answer the id in it, if it has one. */
function valueOf(word: string, names: ReadonlyMap<string, unknown>): unknown {
  const [, name = "", path = "", more] = /^\$(\w+)((?:\.\w+)*)(?:\+(\d+))?$/.exec(word) ?? [];
  if (!names.has(name)) throw new Error(`nothing is named ${word}`);
  const answer = names.get(name);
  const value = fieldOf(answer, path.split(".").slice(1));
  if (more !== undefined) return Number(value) + Number(more);
  if (path !== "" || typeof value !== "object" || value === null) return value;
  for (const place of ["file_id", "task_id", "task.task_id", "question.question_id", "message_id"]) {
    const id = fieldOf(answer, place.split("."));
    if (id !== undefined) return id;
  }
  return answer;
}

/** A task or a node before a body. */
const WORD = /\s*([^\s{]*)/y;

/** Reads words, bodies and patterns. */
class Reader {
  readonly #text: string;
  readonly #names: ReadonlyMap<string, unknown>;
  readonly #now: number;
  readonly #isPattern: boolean;
  #at = 0;

  constructor(text: string, names: ReadonlyMap<string, unknown>, now: number, isPattern: boolean) {
    this.#text = text;
    this.#names = names;
    this.#now = now;
    this.#isPattern = isPattern;
  }

  word(): string {
    return this.#take(/\s*(\S*)/y);
  }

  /** The task and the nodes that are named, and the fields. */
  body(): Body {
    const body: Record<string, unknown> = {};
    for (let word = this.#take(WORD); word !== ""; word = this.#take(WORD))
      if (word.startsWith("$")) body["task_id"] = valueOf(word, this.#names);
      else body[body["node_id"] === undefined ? "node_id" : "to_node"] = word;
    return this.#at < this.#text.length ? { ...body, ...(this.value() as Body) } : body;
  }

  /** A body that is sent as it is. */
  raw(): string | null {
    return this.#take(/\s*'([^']*)'/y) || null;
  }

  value(): unknown {
    if (this.#has("{")) return this.#object();
    if (this.#has("[")) return this.#list();
    const quoted = this.#take(/\s*("(?:[^"\\]|\\.)*")/y);
    if (quoted.startsWith('"~') && this.#isPattern) return this.#bare(JSON.parse(quoted));
    if (quoted !== "") return JSON.parse(quoted);
    return this.#bare(this.#take(/\s*([^\s,[\]{}]+)/y));
  }

  #object(): Body {
    const fields: Record<string, unknown> = {};
    while (!this.#has("}")) {
      const name = this.#take(/\s*"?([$\w.\-/]+)"?:/y);
      if (name === "") throw new Error(`a field is wanted at ${this.#text.slice(this.#at)}`);
      fields[name] = this.value();
      this.#has(",");
    }
    return fields;
  }

  #list(): readonly unknown[] {
    const items: unknown[] = [];
    while (!this.#has("]")) {
      items.push(this.value());
      this.#has(",");
    }
    return items;
  }

  #bare(word: string): unknown {
    if (word === "") throw new Error(`a value is wanted at ${this.#text.slice(this.#at)}`);
    if (word === "true" || word === "false") return word === "true";
    if (word === "null") return null;
    if (/^-?\d[\d_]*(\.\d+)?$/.test(word)) return Number(word.replaceAll("_", ""));
    if (/^\$\w+(?:\.\w+)*(?:\+\d+)?$/.test(word)) return valueOf(word, this.#names);
    const [, repeated, count] = /^(.)\*(\d+)$/u.exec(word) ?? [];
    if (repeated !== undefined) return repeated.repeat(Number(count));
    const check = this.#isPattern
      ? checkOf(this.#named(word), (other) => this.#bare(other), this.#now)
      : null;
    if (!this.#isPattern && /^[+-]\d+[smhd]$/.test(word)) return isoTime(timeOf(word, this.#now));
    return check ?? this.#named(word);
  }

  /** A word in which `$name` stands for values. */
  #named(word: string): string {
    return word.replaceAll(/\$\w[\w.]*/g, (name) => String(valueOf(name, this.#names)));
  }

  #has(mark: string): boolean {
    const at = this.#text.slice(this.#at).search(/\S/) + this.#at;
    if (this.#text[at] !== mark) return false;
    this.#at = at + 1;
    return true;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return "";
    this.#at = pattern.lastIndex;
    return found[1] ?? "";
  }
}

function checkOf(word: string, read: (word: string) => unknown, now: number): Check | null {
  const that = (what: string, holds: (value: unknown) => boolean): Check =>
    new Check((value, path) => (holds(value) ? null : `${path} is ${JSON.stringify(value)}, not ${what}`));
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(word) ?? [];
  if (word === "*") return that("there", (value) => value !== undefined && value !== null);
  if (word === "absent") return that("absent", (value) => value === undefined);
  if (word.startsWith("#"))
    return that(word, (value) => Array.isArray(value) && value.length === Number(word.slice(1)));
  if (word.startsWith("~"))
    return that(word, (value) =>
      (typeof value === "string" ? value : JSON.stringify(value ?? "")).includes(word.slice(1)),
    );
  if (word.startsWith("!") && word.length > 1) {
    const other = read(word.slice(1));
    return that(word, (value) => faultOf(value, other, "") !== null);
  }
  if (from !== undefined)
    return that(word, (value) => Number(value) >= Number(from) && Number(value) <= Number(to));
  if (/^[+-]\d+[smhd]$/.test(word)) {
    const at = timeOf(word, now);
    return that(word, (value) => {
      const early = at - Date.parse(String(value));
      return early > -1_000 && early < TIME_TOLERANCE_MS;
    });
  }
  return null;
}

/** What is wrong with a value; null if it matches the pattern. */
function faultOf(value: unknown, pattern: unknown, path: string): string | null {
  if (pattern instanceof Check) return pattern.fault(value, path);
  if (Array.isArray(pattern)) {
    if (!Array.isArray(value) || value.length !== pattern.length)
      return `${path} is ${JSON.stringify(value)}, not a list of ${pattern.length}`;
    for (const [i, item] of pattern.entries()) {
      const fault = faultOf(value[i], item, `${path}.${i}`);
      if (fault !== null) return fault;
    }
    return null;
  }
  if (typeof pattern === "object" && pattern !== null) {
    if (typeof value !== "object" || value === null) return `${path} is ${JSON.stringify(value)}, no object`;
    const fields = new Map(Object.entries(value));
    for (const [name, item] of Object.entries(pattern)) {
      const fault = faultOf(fields.get(name), item, `${path}.${name}`);
      if (fault !== null) return fault;
    }
    return null;
  }
  return isDeepStrictEqual(value, pattern)
    ? null
    : `${path} is ${JSON.stringify(value)}, not ${JSON.stringify(pattern)}`;
}
