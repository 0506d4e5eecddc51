/**
 * The numbers that the specification (section 8) and decisions.md name, written out once more: other tests take them
 * from limits.ts, or cannot wait as long, and would not notice that one has changed.
 */
import { expect, test } from "bun:test";
import * as limit from "../../src/domain/limits.ts";
import { MESSAGE_ENDPOINTS } from "../../src/api/messages.ts";
import { Heartbeats } from "../../src/http/sse.ts";

const NAMED: readonly (readonly [what: string, is: number, wanted: number])[] = [
  ["JSON body, bytes", limit.JSON_BODY_MAX_BYTES, 1_048_576],
  ["message content, bytes", limit.CONTENT_MAX_BYTES, 262_144],
  ["title, characters", limit.TITLE_MAX_CHARS, 500],
  ["description, bytes", limit.DESCRIPTION_MAX_BYTES, 65_536],
  ["each result text, bytes", limit.RESULT_TEXT_MAX_BYTES, 65_536],
  ["node_id, characters", limit.NODE_ID_MAX_CHARS, 128],
  ["name, characters", limit.NODE_NAME_MAX_CHARS, 200],
  ["lux_reward", limit.LUX_REWARD_MAX, 1_000_000_000],
  ["sign-in, LUX", limit.SIGNIN_LUX, 10],
  ["batch-assign", limit.BATCH_ASSIGN_MAX, 500],
  ["per_page", limit.PER_PAGE_MAX, 50],
  ["per_page when nothing is said", limit.PER_PAGE_DEFAULT, 20],
  ["one page of B", limit.WHOLE_PAGE, 500],
  ["pull", limit.PULL_DEFAULT, 20],
  ["top nodes", limit.TOP_NODES_MAX, 10],
  ["receive", limit.RECEIVE_DEFAULT, 10],
  ["history", limit.HISTORY_DEFAULT, 50],
  ["messages of one answer", limit.MESSAGES_MAX, 1_000],
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
  ["wrong secrets", limit.WRONG_SECRETS_PER_MINUTE, 20],
  ["in so long, ms", limit.WRONG_SECRET_WINDOW_MS, 60_000],
];

test("the numbers are the ones that were asked for", () => {
  expect(NAMED.map(([what, is]) => [what, is])).toEqual(NAMED.map(([what, , wanted]) => [what, wanted]));
});

test("a receive that says nothing takes 10, and blocks for 5 s if it is to block", () => {
  const receive = MESSAGE_ENDPOINTS.find(({ path }) => path === "/api/v1/message/receive");
  const read = receive?.kind === "json" ? receive.input().parse({ node_id: "n1" }) : null;
  expect(read).toEqual({ node_id: "n1", count: 10, blocking: false, timeout: 5_000 });
});

test("a stream gets its comment every 15 s", () => {
  const ticks: (() => void)[] = [];
  let everyMs = 0;
  let beats = 0;
  const heartbeats = new Heartbeats(undefined, (ms, tick) => {
    everyMs = ms;
    ticks.push(tick);
    return () => undefined;
  });
  heartbeats.add({ beat: () => beats++ });
  let count = 0;
  for (const tick of ticks) for (; beats < 1; count++) tick();
  const first = count;
  for (const tick of ticks) for (; beats < 2; count++) tick();
  expect((count - first) * everyMs).toBe(15_000);
});
