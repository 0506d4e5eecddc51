/**
 * Every call that acts for a node (docs/security.md), by the node's own key and by others, alone and in a batch: which
 * events are verified, and what a hub with --strict refuses.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Endpoint } from "../../src/api/endpoint.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { addKey } from "./key-commands.ts";

/** A call for n1 and what the hub must declare, its events by n1's own key, and what must be there for it. */
type Case = readonly [call: string, strict: "bound" | "administrator", events: string, prepared?: string];

const OPEN = "t = task/create";
const HELD = "t = task/create {lux_reward: 2}\nas $n1 task/claim $t n1";
const OWN = "t = as $n1 task/create";
const SENT = "m = as $n2 message/send n2 n1 {require_ack: true}";

/** After an event: it is not verified, because it names no node, or another than the one that acts. */
const CASES: readonly Case[] = [
  ["node/register n1 {name: $unique}", "bound", "node.updated"],
  ["node/heartbeat n1", "bound", ""],
  ["node/drain n1 {drain: true}", "administrator", "node.draining"],
  ["node/leave n1", "bound", "node.left node.offline"],
  ["task/create {creator_node: n1}", "bound", "task.created"],
  ["task/next n1", "bound", "task.assigned", OPEN],
  ["task/claim $t n1", "bound", "task.assigned", OPEN],
  ["task/assign $t n1", "administrator", "task.assigned", OPEN],
  ["task/batch-assign {assignments: [{task_id: $t, node_id: n1}]}", "administrator", "task.assigned", OPEN],
  ["task/complete $t n1", "bound", "task.completed lux.paid", HELD],
  ["task/release $t n1", "bound", "task.released", HELD],
  ["task/fail $t n1 {retry: false}", "bound", "task.attempt_failed task.failed", HELD],
  ["task/extend $t n1 {note: x}", "bound", "task.progress", HELD],
  ["task/output $t n1 {offset: 0, data: x}", "bound", "", HELD],
  ["task/ask $t n1", "bound", "task.asked", HELD],
  [
    "task/answer $t n1 {question_id: $q, answer: 1}",
    "bound",
    "task.answered",
    `${OWN}\nas $n1 task/claim $t n1\nq = as $n1 task/ask $t n1`,
  ],
  ["task/cancel $t n1", "bound", "task.failed!", OWN],
  [
    "task/review $t n1 {verdict: pass}",
    "bound",
    "task.review_passed",
    "t = as $n1 task/create {review: creator}\nas $n2 task/claim $t n2\nas $n2 task/complete $t n2",
  ],
  [
    "group/cancel n1 {group: $unique/n1}",
    "bound",
    "task.failed! group.ended!",
    "as $n1 task/create {group: $unique}",
  ],
  [
    "limit/hold n1 {key: $unique, for_s: 1}",
    "bound",
    "limit.held!",
    "t = task/create {limit_key: $unique}\nas $n1 task/claim $t n1",
  ],
  [
    "schedule/put {name: $unique, every_s: 3600, task: {title: t, description: d, creator_node: n1}}",
    "bound",
    "schedule.saved",
  ],
  ["note/put n1 {key: $unique, text: x}", "bound", "note.changed"],
  ["note/delete n1 {key: $unique}", "bound", "note.deleted", "as $n1 note/put n1 {key: $unique, text: x}"],
  ["lease/acquire n1 {name: free}", "bound", ""],
  ["lease/renew n1 {name: held}", "bound", "", "as $n1 lease/acquire n1 {name: held}"],
  ["lease/release n1 {name: held}", "administrator", "", "as $n1 lease/acquire n1 {name: held}"],
  ["message/send n1 n2", "bound", "message.sent"],
  ["agent/message n1 n2", "bound", "message.sent"],
  ["message/broadcast n1", "bound", "message.sent"],
  ["agent/broadcast n1", "bound", "message.sent"],
  ["message/receive n1", "bound", ""],
  ["message/ack n1 {message_id: $m}", "bound", "message.acked", SENT],
  ["agent/ack n1 {message_id: $m}", "bound", "message.acked", SENT],
  ["message/redrive n1 {message_id: $m}", "administrator", "", SENT], // it is not parked
  ["signin n1", "bound", "lux.signin"],
  ["file/upload-url n1", "bound", ""],
  ["upload x.txt {node: n1}", "bound", "file.uploaded"],
];

/** They are no part of a batch. */
const ALONE = /^(?:upload|file|task\/batch|message\/broadcast|agent\/broadcast)/;

const pathOf = ([call]: Case): string =>
  call.startsWith("upload") ? "file/upload" : (call.split(" ")[0] ?? "");

/** The callers' words before a path. */
const CALLERS = ["as $n1", "as $n2", "", "admin"] as const;

/** What the call of a case by a caller must be answered. */
function wantedOf(call: string, strict: Case[1], caller: string, isStrict: boolean): string {
  if (caller === "as $n2") return "-> 403 key_bound_to_other_node";
  if (isStrict && caller !== "as $n1" && (caller === "" || strict === "bound")) return "-> 403 key_not_bound";
  return call.startsWith("message/redrive") ? "-> 409 message_not_parked" : "";
}

describe.each([false, true])("a call that acts for a node (--strict: %p)", (isStrict) => {
  let hub: TestHub;
  const keys: Record<string, unknown> = {};
  beforeAll(async () => {
    hub = await startHub({ variants: ["A"], isStrict });
    for (const node of ["n1", "n2"]) {
      keys[node] = { secret: await addKey(hub, node, { node_id: node }) };
      await play(hub, `as $${node} node/register ${node} {name: ${node}}`, keys);
    }
  });
  afterAll(() => hub.close());

  test.each(CASES)("%s", async (call, strict, events, prepared = "") => {
    for (const caller of CALLERS)
      for (const isBatch of ALONE.test(call) ? [false] : [false, true]) {
        const wanted = wantedOf(call, strict, caller, isStrict);
        const isFirst = !call.startsWith("signin") || !isBatch; // of the day
        const expected = caller === "as $n1" && isFirst ? events.split(" ").filter(Boolean) : [];
        const shown = expected.map(
          (kind) => `{kind: ${kind.replace("!", "")}, verified: ${!kind.endsWith("!")}}`,
        );
        await play(
          hub,
          `as $n1 node/heartbeat n1
          as $n1 node/drain n1 {drain: false}
          ${prepared}
          e = GET events?limit=1
          ${caller} ${isBatch ? `batch\n+ ${call}` : call} ${wanted}
          GET events?since=$e.cursor -> events ${
            caller === "as $n1" || wanted.includes("403") ? `[${shown.join(", ")}]` : '!~"verified":true'
          }`,
          { ...keys, unique: crypto.randomUUID().slice(0, 8) },
        );
      }
  });
});

test("the table has every call that acts for a node", () => {
  const acting = DECLARED.filter(({ strict }) => strict !== undefined);
  const declared = acting.map(({ path, strict }) => `${path.replace("/api/v1/", "")} ${strict}`).toSorted();
  expect(CASES.map((row) => `${pathOf(row)} ${row[1]}`).toSorted()).toEqual(declared);
  for (const endpoint of DECLARED) {
    const { method, path, auth, strict } = endpoint;
    const namesNode =
      "actsFor" in endpoint && (endpoint as Endpoint & { actsFor?: unknown }).actsFor !== undefined;
    if (method === "POST" && auth === "secret" && namesNode)
      expect({ path, isStrict: strict !== undefined }).toEqual({ path, isStrict: true });
    else if (method !== "POST" || auth === "admin")
      expect({ path, strict }).toEqual({ path, strict: undefined });
  }
});
