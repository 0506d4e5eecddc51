/**
 * The limits of docs/errors-and-limits.md, and those that bound memory, written out as numbers: other tests import them
 * from limits.ts, or cannot wait as long, and would not notice a change. And the limits of each request field, tested
 * with the largest accepted and the smallest refused value.
 */
import { describe, expect, test } from "bun:test";
import * as z from "zod/mini";
import * as limit from "../../src/domain/limits.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { hashJson, idempotencyKeyOf } from "../../src/api/idempotency.ts";
import { parseInput } from "../../src/api/input.ts";
import { MESSAGE_ENDPOINTS } from "../../src/api/messages.ts";
import { Problem } from "../../src/http/problem.ts";
import { KeepAlive } from "../../src/http/sse.ts";
import { loadRows } from "../../src/service/list-pages.ts";

const NAMED: readonly (readonly [what: string, is: number, wanted: number])[] = [
  ["JSON body, bytes", limit.JSON_BODY_MAX_BYTES, 1_048_576],
  ["message content, bytes", limit.CONTENT_MAX_BYTES, 262_144],
  ["title, characters", limit.TITLE_MAX_CHARS, 500],
  ["description, bytes", limit.DESCRIPTION_MAX_BYTES, 65_536],
  ["each result text, bytes", limit.RESULT_TEXT_MAX_BYTES, 65_536],
  ["further keys of a result, bytes", limit.RESULT_EXTRA_MAX_BYTES, 65_536],
  ["node_id, characters", limit.NODE_ID_MAX_CHARS, 128],
  ["name, characters", limit.NODE_NAME_MAX_CHARS, 200],
  ["lux_reward", limit.LUX_REWARD_MAX, 1_000_000_000],
  ["sign-in, LUX", limit.SIGNIN_LUX, 10],
  ["batch-assign", limit.BATCH_ASSIGN_MAX, 500],
  ["task types of one task/next", limit.TASK_TYPES_MAX, 64],
  ["per_page", limit.PER_PAGE_MAX, 50],
  ["per_page when nothing is said", limit.PER_PAGE_DEFAULT, 20],
  ["one page of B", limit.WHOLE_PAGE, 500],
  ["pull", limit.PULL_DEFAULT, 20],
  ["top nodes", limit.TOP_NODES_MAX, 10],
  ["receive", limit.RECEIVE_DEFAULT, 10],
  ["history", limit.HISTORY_DEFAULT, 50],
  ["messages of one answer", limit.MESSAGES_MAX, 1_000],
  ["ledger entries", limit.ENTRIES_DEFAULT, 100],
  ["ledger entries of one answer", limit.ENTRIES_MAX, 1_000],
  ["events", limit.EVENTS_DEFAULT, 100],
  ["events of one answer", limit.EVENTS_MAX, 1_000],
  ["timeout of receive, s", limit.RECEIVE_TIMEOUT_DEFAULT_SECONDS, 5],
  ["timeout of poll, s", limit.POLL_TIMEOUT_DEFAULT_SECONDS, 25],
  ["longest timeout, s", limit.WAIT_MAX_SECONDS, 300],
  ["to ack, ms", limit.ACK_LEASE_MS, 30_000],
  ["redeliveries", limit.REDELIVERIES_MAX, 5],
  ["messages and events are kept, ms", limit.RETAIN_DEFAULT_MS, 7 * 86_400_000],
  ["stored answers are kept, ms", limit.IDEMPOTENCY_RETAIN_MS, 86_400_000],
  ["file, bytes", limit.FILE_DEFAULT_MAX_BYTES, 1_073_741_824],
  ["waiting calls", limit.WAIT_SHARES.keys, 20_000],
  ["waiting calls of one bound key, or viewer", limit.WAIT_SHARES.limitedKey, 500],
  ["waiting calls without a secret", limit.WAIT_SHARES.addresses, 2_000],
  ["waiting calls without a secret from one address", limit.WAIT_SHARES.address, 500],
  ["uploads of one bound key", limit.UPLOAD_SHARES.limitedKey, 16],
  ["secrets that are looked up at once", limit.KEY_LOOKUPS_MAX, 500],
  ["how often keys are read, ms", limit.KEYS_RELOAD_EVERY_MS, 500],
  ["streams", limit.STREAM_SHARES.keys, 20_000],
  ["bytes that wait for one stream", limit.STREAM_BACKLOG_MAX_BYTES, 1_048_576],
  ["bytes that are held for all streams", limit.STREAM_BYTES_SHARES.keys, 67_108_864],
  ["pending events of a stream", limit.STREAM_PENDING_MAX, 1_000],
  ["bytes that are held of large answers", limit.ANSWER_BYTES_SHARES.keys, 67_108_864],
  ["bytes of an answer that is not counted", limit.ANSWER_UNCOUNTED_MAX_BYTES, 65_536],
  ["bytes by which an answer must move on", limit.ANSWER_SLICE_BYTES, 65_536],
  ["in so long, ms", limit.ANSWER_STALL_MS, 25_000],
  ["and a large one waits, ms", limit.ANSWER_WAIT_MS, 30_000],
  ["bytes of messages in one answer", limit.MESSAGES_ANSWER_MAX_BYTES, 8_388_608],
  ["bytes of tasks in one pull", limit.PULL_ANSWER_MAX_BYTES, 8_388_608],
  ["nodes of one part", limit.NODES_PART, 100],
  ["uploads", limit.UPLOAD_SHARES.keys, 256],
  ["files of a task", limit.FILES_OF_TASK_MAX, 100],
  ["tasks that the balancer gives out at once", limit.BALANCE_ROUND_MAX, 5_000],
  ["pages that wait", limit.LIST_FAR_PAGES_MAX, 256],
  ["messages that are counted at once", limit.WAITING_PART_MAX, 5_000],
  ["keys", limit.KEYS_MAX, 1_000],
  ["watched addresses", limit.WATCHED_ADDRESSES_MAX, 10_000],
  ["requests of a batch", limit.BATCH_REQUESTS_MAX, 500],
  ["bytes of the answers of a batch", limit.BATCH_ANSWERS_MAX_BYTES, 2_097_152],
  ["rows of a batch", limit.BATCH_ROWS_MAX, 6_000],
  ["transactions of a group", limit.GROUP_MAX, 1_024],
  ["transactions that wait", limit.QUEUE_MAX, 20_000],
  ["changes gathered on PostgreSQL", limit.PENDING_MAX_CHANGES, 10_000],
  ["characters of a secret", limit.SECRET_MAX_CHARS, 512],
  ["characters of log that wait", limit.LOG_BACKLOG_MAX_CHARS, 8_388_608],
  ["rows of one periodic step", limit.SWEEP_BATCH, 500],
  ["wrong secrets", limit.WRONG_SECRETS_PER_MINUTE, 20],
  ["in so long, ms", limit.WRONG_SECRET_WINDOW_MS, 60_000],
];

test("every limit has its documented value", () => {
  expect(NAMED.map(([what, is]) => [what, is])).toEqual(NAMED.map(([what, , wanted]) => [what, wanted]));
});

test("a receive without options takes 10, and a blocking one waits 5 s", () => {
  const receive = MESSAGE_ENDPOINTS.find(({ path }) => path === "/api/v1/message/receive");
  const read = receive?.kind === "json" ? receive.input().parse({ node_id: "n1" }) : null;
  expect(read).toEqual({ node_id: "n1", count: 10, blocking: false, timeout: 5_000 });
});

test("a stream gets its keep-alive comment every 15 s", () => {
  const ticks: (() => void)[] = [];
  let everyMs = 0;
  let comments = 0;
  const timer = new KeepAlive(undefined, (ms, tick) => {
    everyMs = ms;
    ticks.push(tick);
    return () => undefined;
  });
  timer.add({ keepAlive: () => comments++ });
  let count = 0;
  for (const tick of ticks) for (; comments < 1; count++) tick();
  const first = count;
  for (const tick of ticks) for (; comments < 2; count++) tick();
  expect((count - first) * everyMs).toBe(15_000);
});

const NODE = { node_id: "n1", name: "n" };
const TASK = { title: "t", description: "d" };
const x = (count: number): string => "x".repeat(count);

/** Where a field stands, what else its request says, the largest that it may be, and one more. */
const FIELDS: readonly (readonly [
  path: string,
  field: string,
  rest: object,
  most: unknown,
  more: unknown,
])[] = [
  ["/node/register", "node_id", NODE, x(128), x(129)],
  ["/node/register", "name", NODE, x(200), x(201)],
  ["/node/register", "host", NODE, x(255), x(256)],
  ["/node/register", "port", NODE, 65_535, 65_536],
  ["/node/register", "max_tasks", NODE, 1_000_000, 1_000_001],
  [
    "/node/register",
    "capabilities",
    NODE,
    Array.from({ length: 64 }, String),
    Array.from({ length: 65 }, String),
  ],
  ["/node/register", "capabilities", NODE, [x(100)], [x(101)]],
  ["/task/create", "title", TASK, x(500), x(501)],
  ["/task/create", "description", TASK, x(65_536), x(65_537)],
  ["/task/create", "task_type", TASK, x(100), x(101)],
  ["/task/create", "lux_reward", TASK, 1_000_000_000, 1_000_000_001],
  ["/task/next", "wait", { node_id: "n1" }, 300, 301],
  ["/task/next", "task_types", { node_id: "n1" }, new Array(64).fill("x"), new Array(65).fill("x")],
  ["/task/delete", "task_id", {}, x(128), x(129)],
  ["/task/revoke", "reason", { task_id: "t" }, x(500), x(501)],
  ["/task/pull", "limit", { node_id: "n1" }, "1000", "1001"],
  ["/task/list", "page", {}, "1000000000", "1000000001"],
  ["/message/history", "count", { node_id: "n1" }, "1000", "1001"],
  ["/agent/messages", "limit", { node_id: "n1" }, "1000", "1001"],
  ["/message/receive", "count", { node_id: "n1" }, 1_000, 1_001],
  ["/message/send", "content", { from_node: "a", to_node: "b" }, x(262_144), x(262_145)],
  ["/events", "limit", {}, "1000", "1001"],
  ["/poll", "timeout", {}, "300", "301"],
];

test.each(FIELDS)("%s takes %s up to its bound", (path, field, rest, most, more) => {
  const endpoint = ENDPOINTS.find((one) => one.path === `/api/v1${path}`);
  if (endpoint?.kind !== "json") throw new Error(`no ${path}`);
  const takes = (value: unknown): boolean => endpoint.input().safeParse({ ...rest, [field]: value }).success;
  expect([takes(most), takes(more)]).toEqual([true, false]);
});

function codeOf(act: () => unknown): string {
  try {
    act();
    return "taken";
  } catch (error) {
    return error instanceof Problem ? error.code : String(error);
  }
}

describe("limits outside of fields", () => {
  test("a body with an Idempotency-Key is at most 64 levels deep", () => {
    const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect([64, 65].map((levels) => codeOf(() => hashJson(nested(levels))))).toEqual([
      "taken",
      "invalid_request",
    ]);
  });

  test("an Idempotency-Key has at most 255 characters", () => {
    const keyOf = (key: string) => codeOf(() => idempotencyKeyOf(new Headers({ "Idempotency-Key": key })));
    expect([keyOf(x(255)), keyOf(x(256))]).toEqual(["taken", "invalid_request"]);
  });

  test("an answer names at most 100 invalid fields", () => {
    const bad = Array.from({ length: 150 }, () => 1);
    let named = 0;
    try {
      parseInput(z.array(z.string()), bad);
    } catch (error) {
      if (error instanceof Problem) named = error.extras.errors?.length ?? 0;
    }
    expect(named).toBe(100);
  });

  test("a part of a list holds at most 256 KiB", async () => {
    const sizes = Array.from({ length: 700 }, (_, seq) => ({ seq, bytes: 1_024 }));
    // The query and its rows are the numbers themselves.
    const read = async (asked: unknown) => asked;
    const { first, next } = await loadRows<number>(sizes, (seqs) => seqs as never, read as never);
    const lengths = [first.length];
    for (let part = await next?.(); part; part = await next?.()) lengths.push(part.length);
    expect(lengths).toEqual([256, 256, 188]);
  });
});
