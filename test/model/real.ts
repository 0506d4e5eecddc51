/** The hub that is compared with the model: its listeners, its clock, and the part of the log that a client has read. */
import { expect } from "bun:test";
import { rmSync } from "node:fs";
import { problemOf } from "../../src/api/error-table.ts";
import { Rejection, reject } from "../../src/domain/decision.ts";
import type { Post } from "../../src/http/outbound.ts";
import { DAY_MS } from "../../src/lib/clock.ts";
import { HANG_MS } from "../support/hang.ts";
import { type Answer, SECRET, TestClock, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { type Event, type Model, Refused } from "./model.ts";

/** The model does not know of task.stuck. */
const NEVER_STUCK_MS = 1_000 * DAY_MS;

/** A clock that stands until it is moved: then every lease ends to the millisecond, as it does in the model. */
class StandingClock extends TestClock {
  #wall: number;
  #steady: number;

  constructor(wall: number) {
    super();
    this.#wall = wall;
    this.#steady = wall;
  }

  override now(): number {
    return this.#wall;
  }

  override steady(): number {
    return this.#steady;
  }

  override timers(): number {
    return 0;
  }

  override pass(ms: number): void {
    this.#wall += ms;
    this.#steady += ms;
  }

  override jump(ms: number): void {
    this.#wall += ms;
  }
}

type Posted = {
  readonly path: string;
  readonly body: unknown;
  readonly variant: "A" | "B";
  readonly resolve: (answer: Answer) => void;
};

export class Real implements AsyncDisposable {
  readonly #dataDir = newDataDir();
  readonly #clock: StandingClock;
  #hub: TestHub | null = null;
  #seen = 0;
  /** What came to each URL of a webhook, each message once, by its id. */
  readonly #sent = new Map<string, Map<string, string>>();
  #came = Promise.withResolvers<void>();

  private constructor(now: number) {
    this.#clock = new StandingClock(now);
  }

  static async start(now: number): Promise<Real> {
    const real = new Real(now);
    await real.#start();
    return real;
  }

  get hub(): TestHub {
    if (!this.#hub) throw new Error("the hub does not run");
    return this.#hub;
  }

  /** As many together as come one after the other in one variant. */
  async inBatches(run: () => readonly Promise<void>[]): Promise<void> {
    const { hub } = this;
    const asked: Posted[] = [];
    const collecting: TestHub = Object.create(hub);
    collecting.post = (path, body, { variant = "A" } = {}) =>
      new Promise((resolve) => asked.push({ path: path.slice(1), body, variant, resolve }));
    this.#hub = collecting;
    let running: readonly Promise<void>[];
    try {
      running = run();
    } finally {
      this.#hub = hub;
    }
    while (asked.length > 0) {
      const variant = asked[0]?.variant ?? "A";
      const others = asked.findIndex((one) => one.variant !== variant);
      const together = asked.splice(0, others === -1 ? asked.length : others);
      const requests = together.map(({ path, body }) => ({ path, body }));
      const { status, headers, body } = await hub.post("/batch", { requests }, { variant });
      expect(status).toBe(200);
      const answers = arrayOf(body["answers"]);
      expect(answers).toHaveLength(together.length);
      for (const [i, { resolve }] of together.entries()) {
        const answer = answers[i];
        resolve({ status: Number(answer?.["status"]), headers, body: { ...Object(answer?.["body"]) } });
      }
    }
    await Promise.all(running);
  }

  async pass(ms: number): Promise<void> {
    this.#clock.pass(ms);
    await this.hub.sweep();
  }

  async jump(ms: number): Promise<void> {
    this.#clock.jump(ms);
    await this.hub.sweep();
  }

  now(): number {
    return this.#clock.now();
  }

  async restart(): Promise<void> {
    await this.hub.close();
    await this.#start();
  }

  async #start(): Promise<void> {
    this.#hub = await startHub({
      dataDir: this.#dataDir,
      clock: this.#clock,
      stuckAfterMs: NEVER_STUCK_MS,
      post: this.#receive,
    });
    await this.#hub.sweep(); // the first one must not see the clock move
  }

  /** The receiver of the webhooks. A message may come twice, when the hub was stopped before it had noted the first. */
  readonly #receive: Post = ({ url, headers, body }) => {
    const sent = this.#sent.get(url) ?? new Map<string, string>();
    this.#sent.set(url, sent);
    sent.set(String(headers["webhook-id"]), toText(Object(JSON.parse(body)).data));
    this.#came.resolve();
    return Promise.resolve({ status: 204, retryAfter: null });
  };

  async sentTo(url: string, count: number): Promise<readonly string[]> {
    const sent = (): readonly string[] => [...(this.#sent.get(url)?.values() ?? [])];
    const late = setTimeout(() => this.#came.reject(new Error(`${url} got only: ${sent().join()}`)), HANG_MS);
    while (sent().length < count) {
      await this.#came.promise;
      this.#came = Promise.withResolvers();
    }
    clearTimeout(late);
    return sent();
  }

  /** The log goes on where it was, with no gap, and says what the model says. */
  async compareEvents(model: Model): Promise<void> {
    const { body } = await this.hub.get(`/events?since=${this.#seen}&limit=1000`);
    const events = arrayOf(body["events"]);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => this.#seen + 1 + i));
    const expected = model.events.slice(this.#seen);
    expect(inOrder(events.map(toText), expected)).toEqual(inOrder(expected.map(eventText), expected));
    this.#seen += events.length;
  }

  async compareStream(
    model: Model,
    nodeId: string,
    after: number,
    happen: () => Promise<void>,
  ): Promise<void> {
    const url = `${this.hub.base()}/api/v1/agent/sse?node_id=${nodeId}`;
    const headers = { "X-Matrix-Secret": SECRET, "Last-Event-ID": String(after) };
    const hangUp = new AbortController();
    const response = await fetch(url, { headers, signal: hangUp.signal });
    expect(response.status).toBe(200);
    const frames = framesOf(response);
    const late = setTimeout(() => hangUp.abort(), HANG_MS);
    try {
      await expectFrames(frames, streamed(model, nodeId, after));
      const end = model.events.length;
      await happen();
      await expectFrames(frames, streamed(model, nodeId, end));
    } finally {
      clearTimeout(late);
      hangUp.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#hub?.close();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}

export async function same(
  asked: Promise<Answer>,
  expected: (answer: Answer["body"]) => Readonly<Record<string, unknown>>,
): Promise<void> {
  const { status, body } = await asked;
  let words: Readonly<Record<string, unknown>>;
  try {
    words = expected(body);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const problem = problemOf(new Rejection(reject(error.code, "")));
    expect({ status, error: body["error"] }).toEqual({ status: problem?.status ?? 0, error: error.code });
    return;
  }
  expect({ status, error: body["error"] }).toEqual({ status: 200, error: undefined });
  expect(body).toMatchObject(words);
}

export function arrayOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value : [];
}

function toText({ kind, node_id, task_id }: Readonly<Record<string, unknown>>): string {
  return `${kind} ${node_id} ${task_id}`;
}

export function eventText({ kind, node, task }: Event): string {
  return `${kind} ${node} ${task}`;
}

/** The texts of one batch are sorted among themselves, for nobody promises their order. */
export function inOrder(texts: readonly string[], expected: readonly Event[]): string[] {
  const rows = texts.map((text, i) => ({ text, i, batch: expected[i]?.batch ?? null }));
  const groups = Object.values(
    Object.groupBy(rows, ({ i, batch }) => (batch === null ? `one ${i}` : `batch ${batch}`)),
  );
  return groups.flatMap((group) => (group ?? []).map(({ text }) => text).toSorted());
}

function streamed(model: Model, nodeId: string, after: number): readonly Event[] {
  return model.events.slice(after).filter(({ kind, node, message }) => {
    if (kind === "message.sent") return message?.to.has(nodeId);
    return message ? message.from === nodeId : node === nodeId && kind.startsWith("task.");
  });
}

type Frame = {
  readonly id: number;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
};

async function expectFrames(frames: AsyncIterator<Frame>, expected: readonly Event[]): Promise<void> {
  const got: { id: number; text: string; content: string | null }[] = [];
  for (const _ of expected) {
    const { value } = await frames.next();
    if (!value) break;
    const { id, event, data }: Frame = value;
    got.push({
      id,
      text: event === "message" ? "message" : toText(data),
      content: event === "message" ? String(data["content"]) : null,
    });
  }
  const texts = expected.map((event) => (event.kind === "message.sent" ? "message" : eventText(event)));
  expect(
    inOrder(
      got.map(({ text }) => text),
      expected,
    ),
  ).toEqual(inOrder(texts, expected));
  expect(got.every(({ id }, i) => i === 0 || id > (got[i - 1]?.id ?? 0))).toBe(true);
  const contents = expected.flatMap(({ kind, message }) =>
    message && kind === "message.sent" ? [message.content] : [],
  );
  expect(got.flatMap(({ content }) => content ?? [])).toEqual(contents);
}

async function* framesOf(response: Response): AsyncGenerator<Frame> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const pieces = text.split("\n\n");
    text = pieces.pop() ?? "";
    for (const piece of pieces) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(piece)?.[1];
      const data = field("data");
      if (data !== undefined)
        yield { id: Number(field("id")), event: field("event") ?? "", data: JSON.parse(data) };
    }
  }
}
