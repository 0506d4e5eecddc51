/**
 * Fixtures of the API tests: expect a success or a problem, read answers, send bytes over a raw socket. TestHub has what
 * registers nodes and creates tasks. All of it uses the hub as a client does, and reads none of its internals.
 */
import { expect } from "bun:test";
import { HANG_MS } from "../support/hang.ts";
import { type Answer, SECRET } from "../support/hub.ts";

export const VARIANTS = ["A", "B"] as const;
export type VariantName = (typeof VARIANTS)[number];

export const RESULT = { problem: "it was slow", improvement: "it is fast", lesson: "measure first" } as const;

/** ISO 8601 UTC with milliseconds, the form of every time. */
export const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A UUIDv7 as no answer of these tests has one. */
export const NO_ID = "01890000-0000-7000-8000-000000000000";

/** The answer of a call that has to succeed. */
export async function ok(answer: Answer | Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  expect(body).toMatchObject({ success: true });
  expect(status).toBe(200);
  return body;
}

/** Expects an answer to be this problem. The test hub checks the form of every problem. */
export async function refused(
  answer: Answer | Promise<Answer>,
  status: number,
  code: string,
): Promise<Answer> {
  const got = await answer;
  expect({ status: got.status, error: got.body["error"] }).toEqual({ status, error: code });
  expect(got.body["errors"] !== undefined).toBe(status === 400);
  return got;
}

/** Says that an answer is a 400 that names exactly these fields, whatever their order. */
export async function badFields(answer: Answer | Promise<Answer>, paths: readonly string[]): Promise<void> {
  const { body } = await refused(answer, 400, "invalid_request");
  const errors = list(body, "errors");
  expect(errors.map((error) => error["path"]).toSorted()).toEqual([...paths].toSorted());
  for (const { message } of errors) expect(message).toMatch(/\w/);
}

export function record(value: unknown): Record<string, unknown> {
  expect(value).toEqual(expect.any(Object));
  return { ...(value as object) };
}

export function list(body: Readonly<Record<string, unknown>>, name: string): Record<string, unknown>[] {
  const value = body[name];
  if (!Array.isArray(value)) throw new Error(`${name} is no array: ${JSON.stringify(value)}`);
  return value.map(record);
}

/** One field of each item of a list. */
export function pick(body: Readonly<Record<string, unknown>>, name: string, field: string): unknown[] {
  return list(body, name).map((item) => item[field]);
}

/** Polls until the hub brings a condition about by itself (its sweeper runs every second of real time). */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${HANG_MS} ms: ${what}`);
    await Bun.sleep(20);
  }
}

/** What came back over a bare socket. */
export type RawAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
};

/** A request on its way over a socket of its own. */
export type Held = {
  readonly answered: Promise<RawAnswer>;
  /** Breaks the connection off, as a caller that goes away. */
  hangUp(): void;
  /** Sends more bytes; they must fit into the socket's buffer. */
  send(bytes: string): void;
};

/** Sends bytes as they are over a socket of their own, and goes on while the answer (with a Content-Length) is awaited. */
export async function hold(port: number, bytes: string | Uint8Array): Promise<Held> {
  const chunks: Uint8Array[] = [];
  const answered = Promise.withResolvers<RawAnswer>();
  answered.promise.catch(() => {}); // nobody need wait for it
  const look = (closed: boolean): void => {
    const answer = parseAnswer(Buffer.concat(chunks));
    if (answer) answered.resolve(answer);
    else if (closed) answered.reject(new Error("the connection closed without an answer"));
  };
  let left = typeof bytes === "string" ? Buffer.from(bytes) : Buffer.from(bytes);
  const write = (socket: { write(bytes: Uint8Array): number }): void => {
    left = left.subarray(socket.write(left));
  };
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, chunk) {
        chunks.push(new Uint8Array(chunk));
        look(false);
      },
      drain: write,
      close: () => look(true),
      error: (_, error) => answered.reject(error),
    },
  });
  write(socket);
  const end = (): void => {
    socket.end();
  };
  answered.promise.then(end, end);
  return {
    answered: answered.promise,
    hangUp: () => socket.terminate(),
    send: (more) => void socket.write(more),
  };
}

/** Sends bytes as they are over a socket of their own and reads one answer. */
export async function raw(port: number, bytes: string | Uint8Array): Promise<RawAnswer> {
  return (await hold(port, bytes)).answered;
}

/** The text of a POST with a JSON body and the secret. */
export function rawPost(path: string, body: unknown, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  return [
    `POST /api/v1${path} HTTP/1.1`,
    "Host: hub",
    `X-Matrix-Secret: ${SECRET}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    ...headers,
    "",
    text,
  ].join("\r\n");
}

function parseAnswer(bytes: Buffer): RawAnswer | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const body = bytes.subarray(end + 4);
  if (body.byteLength < Number(headers.get("content-length") ?? 0)) return null;
  return { status: Number(first.split(" ")[1]), headers, text: body.toString("utf8") };
}
