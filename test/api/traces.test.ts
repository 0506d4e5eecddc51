/** W3C Trace Context: what the creator of a task sends, its workers and webhooks get. */
import { expect, test } from "bun:test";
import type { Post } from "../../src/http/outbound.ts";
import { startHub } from "../support/hub.ts";
import { ok, refused, until } from "./scene.ts";

const TRACE = `00-${"4b".repeat(16)}-${"a1".repeat(8)}-01`;
const OTHER = `00-${"5c".repeat(16)}-${"b2".repeat(8)}-00`;
const HEADERS = { headers: { traceparent: TRACE, tracestate: "vendor=1" } };
const task = (fields: object = {}): object => ({ title: "t", description: "d", ...fields });

test("a task belongs to the trace of the request, or to the one that it names", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  expect(await ok(hub.post("/task/create", task(), HEADERS))).toMatchObject({
    task: { traceparent: TRACE, tracestate: "vendor=1" },
  });
  expect(await ok(hub.post("/task/next", { node_id: "n1" }))).toMatchObject({
    task: { traceparent: TRACE, tracestate: "vendor=1" },
  });
  const named = await ok(hub.post("/task/create", task({ traceparent: OTHER }), HEADERS));
  expect(named["task"]).toMatchObject({ traceparent: OTHER });
  expect(named["task"]).not.toHaveProperty("tracestate");
  const requests = [{ path: "task/create", body: task() }];
  expect(await ok(hub.post("/batch", { requests }, HEADERS))).toMatchObject({
    answers: [{ body: { task: { traceparent: TRACE } } }],
  });
});

test("a header that is no trace is ignored, a field that is none is refused", async () => {
  await using hub = await startHub();
  for (const traceparent of [
    "nonsense",
    TRACE.toUpperCase(),
    `00-${"0".repeat(32)}-${"a1".repeat(8)}-01`,
    `${TRACE}-x`,
  ]) {
    const made = await ok(hub.post("/task/create", task(), { headers: { traceparent } }));
    expect(made["task"]).not.toHaveProperty("traceparent");
    await refused(hub.post("/task/create", task({ traceparent })), 400, "invalid_request");
  }
  for (const tracestate of ["x".repeat(600), "vendor=\u00e9"]) {
    const made = await ok(hub.post("/task/create", task(), { headers: { traceparent: TRACE, tracestate } }));
    expect(made["task"]).toMatchObject({ traceparent: TRACE });
    expect(made["task"]).not.toHaveProperty("tracestate");
  }
  for (const tracestate of ["a=1\r\nX-Other: 1", "a=1\nX-Other: 1", "\u65e5\u672c=1", " a=1", ""])
    await refused(hub.post("/task/create", task({ traceparent: TRACE, tracestate })), 400, "invalid_request");
});

test("a webhook of a task's event has the headers of its trace", async () => {
  const sent: Readonly<Record<string, string>>[] = [];
  const post: Post = async ({ headers }) => {
    sent.push(headers);
    return { status: 200, retryAfter: null };
  };
  await using hub = await startHub({ post });
  await ok(hub.admin("/webhook/put", { name: "w", url: "http://receiver.test/", kinds: ["task.created"] }));
  await ok(hub.post("/task/create", task(), HEADERS));
  await ok(hub.post("/task/create", task()));
  await hub.sweep();
  await until("two messages", async () => sent.length === 2);
  expect(sent.map(({ traceparent, tracestate }) => [traceparent, tracestate])).toEqual([
    [TRACE, "vendor=1"],
    [undefined, undefined],
  ]);
});
