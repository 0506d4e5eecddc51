/**
 * Webhooks over HTTP: what is stored and shown, the signature, the order, repeats with the same id, suspension, gaps, and
 * the buttons of ntfy. The tests set the hub's clock; the receiver is on loopback, where the program itself sends nothing.
 */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import * as limit from "../../src/domain/limits.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { ADMIN_KEY, TestClock, type TestHub, newDataDir, startHub, onlyOnce } from "../support/hub.ts";
import { RECEIVER_URL, type Received, Receiver, idOf, typeOf } from "../support/receiver.ts";
import { list, ok, record, refused, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const HOOK = { name: "ci", url: RECEIVER_URL, kinds: ["task.created"] };
const AS_ADMIN = { headers: { "X-Admin-Key": ADMIN_KEY } };

function put(hub: TestHub, fields: Fields = {}): Promise<Fields> {
  return ok(hub.admin("/webhook/put", { ...HOOK, ...fields }));
}

async function hooks(hub: TestHub): Promise<readonly Fields[]> {
  return list(await ok(hub.get("/webhook/list", AS_ADMIN)), "webhooks");
}

async function hook(hub: TestHub): Promise<Fields> {
  return record((await hooks(hub))[0]);
}

/** The hub does its periodic work until its webhook is so. */
async function becomes(hub: TestHub, wanted: Fields): Promise<void> {
  await until(`the webhook is ${JSON.stringify(wanted)}`, async () => {
    await hub.sweep();
    const found = await hook(hub);
    return Object.entries(wanted).every(([name, value]) => Bun.deepEquals(found[name], value));
  });
}

/**
 * The hub does its periodic work until its webhook has failed so often, or oftener: a slow machine takes the next
 * retry, too.
 */
async function hasFailed(hub: TestHub, attempts: number): Promise<void> {
  await until(`the webhook has failed ${attempts} times`, async () => {
    await hub.sweep();
    return Number((await hook(hub))["attempts"]) >= attempts;
  });
}

/** Time passes in steps, and the hub does its periodic work after each, until the receiver has enough. */
async function passUntil(
  hub: TestHub,
  receiver: Receiver,
  isEnough: (received: readonly Received[]) => boolean,
): Promise<void> {
  await until("the receiver has enough", async () => {
    hub.clock.pass(2 * SECOND_MS);
    await hub.sweep();
    return isEnough(receiver.received);
  });
}

/** Of the event task.created. */
function titleOf({ body: { data } }: Received): unknown {
  return (data as { readonly data?: { readonly title?: unknown } }).data?.title; // of the messages of this test
}

async function create(hub: TestHub, titles: readonly string[]): Promise<void> {
  for (const title of titles) await hub.addTask({ title });
}

/** Verifies a message as Standard Webhooks 1.0 says. */
function isSigned({ headers, text }: Received, secret: unknown): boolean {
  const key = Buffer.from(String(secret).replace("whsec_", ""), "base64");
  const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${text}`;
  const mac = new Bun.CryptoHasher("sha256", key).update(signed).digest("base64");
  return headers.get("webhook-signature") === `v1,${mac}`;
}

describe.concurrent("a webhook", () => {
  test("gets each event that it wants, in order, signed with the secret that was shown once", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    await create(hub, ["before"]);
    const { secret } = await put(hub);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    await hub.sweep();
    await hub.addNode("n1");
    await create(hub, ["a", "b", "c"]);
    const received = await receiver.until(({ length }) => length === 3);
    expect(received.map(titleOf)).toEqual(["a", "b", "c"]);
    expect(received.map((one) => isSigned(one, secret))).toEqual([true, true, true]);
    expect(new Set(received.map(idOf)).size).toBe(3);
    expect(received[0]?.headers.get("content-type")).toBe("application/json");
    const { events } = await ok(hub.get("/events?kind=task.created&limit=1"));
    const [last] = list({ events }, "events");
    expect(received[2]?.body).toEqual({ type: "task.created", timestamp: last?.["at"], data: last });
    await becomes(hub, { cursor: last?.["id"], attempts: 0, last_error: null, state: "active" });
    expect(JSON.stringify(await hooks(hub))).not.toContain("whsec_");
    expect(hub.logged.join("")).not.toContain("whsec_");
  });

  once.test(
    "is replaced without a new secret, from its cursor on; the same put changes nothing",
    async () => {
      await using receiver = new Receiver();
      await using hub = await startHub({ post: receiver.post });
      const first = await put(hub);
      expect(await put(hub)).toEqual({ ...first, secret: undefined });
      const changed = await put(hub, { kinds: ["Node.Registered"] });
      expect(changed).not.toContainKey("secret");
      expect(record(changed["webhook"])).toMatchObject({ kinds: ["node.registered"] });
      await hub.sweep();
      await hub.addNode("n1");
      const [one] = await receiver.until(({ length }) => length === 1);
      expect(one && isSigned(one, first["secret"])).toBeTrue();
      expect(await hub.eventKinds()).toEqual(
        expect.arrayContaining(["webhook.saved", "webhook.saved", "node.registered"]),
      );
      await ok(hub.admin("/webhook/delete", { name: "ci" }));
      await hub.sweep();
      await hub.addNode("n2");
      await refused(hub.admin("/webhook/test", { name: "ci" }), 404, "webhook_not_found");
      await refused(hub.admin("/webhook/resume", { name: "ci" }), 404, "webhook_not_found");
      await refused(hub.admin("/webhook/delete", { name: "ci" }), 404, "webhook_not_found");
      expect(receiver.received).toHaveLength(1);
    },
  );

  test("filters by task, node, creator and group", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    await hub.addNode("boss");
    await hub.addNode("n1");
    const task = await hub.addTask({ creator_node: "boss", group: "g" });
    const filters: Fields[] = [
      { task_id: task },
      { node_id: "n1" },
      { creator_node: "boss" },
      { group: "g" },
    ];
    for (const [n, filter] of filters.entries())
      await put(hub, { name: `f${n}`, url: `https://receiver.test/f${n}`, kinds: undefined, ...filter });
    await hub.sweep();
    await ok(hub.post("/task/claim", { task_id: task, node_id: "n1" }));
    await ok(hub.complete(task, "n1"));
    const other = await hub.addTask({ creator_node: "n1" });
    await ok(hub.post("/task/claim", { task_id: other, node_id: "n1" }));
    await receiver.until(({ length }) => length >= 2 + 2 + 2 + 3 + 2);
    await hub.sweep();
    const of = (n: number): unknown[] =>
      receiver.received.filter(({ path }) => path === `/f${n}`).map(typeOf);
    const done = ["task.assigned", "task.completed"];
    expect(of(0)).toEqual([...done]);
    expect(of(1)).toEqual([...done, "task.created", "task.assigned"]);
    expect(of(2)).toEqual([...done]);
    expect(of(3)).toEqual([...done, "group.ended"]);
  });

  once.test(
    "of a creator has what that node does with its own tasks, and not with those that nobody created",
    async () => {
      await using receiver = new Receiver();
      await using hub = await startHub({ post: receiver.post });
      await hub.addNode("n1");
      await put(hub, { kinds: undefined, creator_node: "n1" });
      const work = async (creator_node: string | undefined) => {
        const taskId = await hub.addTask({ creator_node, max_attempts: 1 });
        await ok(hub.post("/task/update", { task_id: taskId, priority: 0 }));
        await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
        await ok(hub.post("/task/fail", { task_id: taskId, node_id: "n1", error: "no" }));
        await ok(hub.post("/task/retry", { task_id: taskId }));
        await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
        await ok(hub.complete(taskId, "n1"));
        await ok(hub.admin("/task/delete", { task_id: taskId }));
        return taskId;
      };
      for (const creator of [undefined, "n2"]) await work(creator);
      const own = await work("n1");
      await receiver.until((received) => received.some((one) => typeOf(one) === "task.deleted"));
      const sent = receiver.received.map((one) => [record(one.body["data"])["task_id"], typeOf(one)]);
      expect(sent).toEqual(
        [
          "task.created",
          "task.updated",
          "task.assigned",
          "task.attempt_failed",
          "task.failed",
          "task.retried",
          "task.assigned",
          "task.completed",
          "task.deleted",
        ].map((kind) => [own, kind]),
      );
    },
  );

  test("is sent again with the same id after a failure, and nothing overtakes it", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    receiver.answer = (_, n) => new Response(null, { status: n % 3 === 0 ? 500 : 200 });
    await put(hub);
    const titles = Array.from({ length: 10 }, (_, n) => `t${n}`);
    await create(hub, titles);
    const isLast = (one: Received): boolean => titleOf(one) === "t9";
    await passUntil(hub, receiver, (received) => received.some(isLast));
    await becomes(hub, { attempts: 0 });
    const { received } = receiver;
    const distinct = new Map(received.map((one) => [idOf(one), titleOf(one)]));
    expect([...distinct.values()]).toEqual(titles);
    expect(received.length).toBeGreaterThan(titles.length);
    expect(received.map(titleOf)).toEqual(received.map(titleOf).toSorted());
    expect(receiver.mostAtOnce).toBe(1);
  });

  once.test("waits as long as the receiver asks for", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    receiver.answer = (_, n) =>
      new Response(null, n === 1 ? { status: 503, headers: { "Retry-After": "600.5" } } : {});
    await put(hub);
    await create(hub, ["a"]);
    await becomes(hub, { attempts: 1, last_error: "HTTP 503" });
    const { next_attempt_at: next, failing_since: since } = await hook(hub);
    const waits = Date.parse(String(next)) - Date.parse(String(since));
    expect(waits).toBeGreaterThanOrEqual(600.5 * SECOND_MS);
    hub.clock.pass(500 * SECOND_MS);
    await hub.sweep();
    expect(receiver.received).toHaveLength(1);
    hub.clock.pass(200 * SECOND_MS);
    await becomes(hub, { attempts: 0, failing_since: null, next_attempt_at: null });
  });

  once.test("does not wait for hours more after the clock was set back", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    receiver.isAway = true;
    await put(hub);
    await create(hub, ["a"]);
    await hasFailed(hub, 1);
    receiver.isAway = false;
    hub.clock.jump(-5 * HOUR_MS);
    await becomes(hub, { attempts: 0, next_attempt_at: null });
    expect(receiver.received.map(titleOf)).toEqual(["a"]);
  });

  once.test("does not follow a redirect", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    receiver.answer = () => Response.redirect("/other", 307);
    await put(hub);
    await create(hub, ["a"]);
    await becomes(hub, { last_error: "HTTP 307, a redirect, which is not followed" });
    expect([...new Set(receiver.received.map(({ path }) => path))]).toEqual(["/hook"]);
  });

  once.test("is suspended after a day without its receiver, and resumes with nothing missed", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    await put(hub);
    receiver.isAway = true;
    await create(hub, ["a", "b"]);
    await hasFailed(hub, 1);
    for (let attempts = 1; attempts < limit.WEBHOOK_SUSPEND_ATTEMPTS_MIN; attempts++) {
      hub.clock.pass(DAY_MS / limit.WEBHOOK_SUSPEND_ATTEMPTS_MIN);
      await hasFailed(hub, attempts + 1);
      expect(await hook(hub)).toMatchObject({ state: "active" });
    }
    hub.clock.pass(3 * HOUR_MS);
    await becomes(hub, { state: "suspended", last_error: "connection refused", next_attempt_at: null });
    const { events } = await ok(hub.get("/events?kind=webhook.suspended"));
    const [event, ...others] = list({ events }, "events");
    expect([others, event]).toMatchObject([[], { data: { name: "ci", reason: "failing" } }]);
    expect(Number(record(event?.["data"])["attempts"])).toBeGreaterThan(limit.WEBHOOK_SUSPEND_ATTEMPTS_MIN);
    expect(await ok(hub.get("/status"))).toMatchObject({ webhooks_suspended: 1 });
    receiver.isAway = false;
    await create(hub, ["c"]);
    hub.clock.pass(DAY_MS);
    await hub.sweep();
    expect(receiver.received).toEqual([]);
    await ok(hub.admin("/webhook/resume", { name: "ci" }));
    await receiver.until(({ length }) => length === 3);
    expect(receiver.received.map(titleOf)).toEqual(["a", "b", "c"]);
    expect(await ok(hub.get("/status"))).not.toContainKey("webhooks_suspended");
  });

  once.test("is suspended at once by 410, and resumes where it is told to", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    await put(hub);
    receiver.answer = () => new Response(null, { status: 410 });
    await create(hub, ["poison", "good"]);
    await becomes(hub, { state: "suspended", attempts: 1, last_error: "HTTP 410" });
    receiver.answer = () => new Response();
    const after = record(receiver.received[0]?.body["data"])["id"];
    await ok(hub.admin("/webhook/resume", { name: "ci", after }));
    await becomes(hub, { state: "active" });
    await receiver.until(({ length }) => length === 2);
    expect(receiver.received.map(titleOf)).toEqual(["poison", "good"]);
  });

  test("tells of a gap when the log has been pruned", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post, retainMs: HOUR_MS });
    await put(hub);
    receiver.answer = () => new Response(null, { status: 410 });
    await create(hub, ["gone"]);
    await becomes(hub, { state: "suspended" });
    hub.clock.pass(2 * HOUR_MS);
    await hub.sweep();
    await create(hub, ["kept"]);
    receiver.answer = () => new Response();
    await ok(hub.admin("/webhook/resume", { name: "ci" }));
    const received = await receiver.until((all) => all.some((one) => titleOf(one) === "kept"));
    expect(received.map(typeOf)).toEqual(["task.created", "gap", "task.created"]);
    const data = record(received[1]?.body["data"]);
    expect(Number(data["resumed_at"])).toBeGreaterThan(Number(data["after"]) + 1);
  });

  test("goes on after a restart of the hub, with the same ids for what is sent again", async () => {
    const path = newDataDir();
    const clock = new TestClock();
    await using receiver = new Receiver();
    {
      await using hub = await startHub({ dataDir: path, clock, post: receiver.post });
      await put(hub);
      receiver.answer = (_, n) => new Response(null, { status: n === 1 ? 200 : 500 });
      await create(hub, ["a", "b", "c"]);
      await hasFailed(hub, 1);
    }
    const again = receiver.received.length - 1; // "b", which has failed once or oftener
    receiver.answer = () => new Response();
    {
      await using hub = await startHub({ dataDir: path, clock, post: receiver.post });
      clock.pass(10 * SECOND_MS);
      await hub.sweep();
      const received = await receiver.until((all) => all.some((one) => titleOf(one) === "c"));
      expect(received.map(titleOf)).toEqual(["a", ...new Array(again + 1).fill("b"), "c"]);
      expect(new Set(received.map(idOf)).size).toBe(3);
    }
    rmSync(path, { recursive: true });
  });

  once.test("that is slow does not hold up the others, of which a bounded number is under way", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    const more = 8;
    const names = Array.from({ length: limit.WEBHOOK_DELIVERIES_MAX + more }, (_, n) => `w${n}`);
    for (const name of names) await put(hub, { name });
    const slow = Promise.withResolvers<Response>();
    receiver.answer = (_, n) => (n <= limit.WEBHOOK_DELIVERIES_MAX - 1 ? slow.promise : new Response());
    await hub.sweep();
    await create(hub, ["a"]);
    // All but one of the places are taken: the others share that one.
    await receiver.until(({ length }) => length === names.length);
    expect(receiver.mostAtOnce).toBe(limit.WEBHOOK_DELIVERIES_MAX);
    slow.resolve(new Response());
    await until("all have delivered", async () =>
      (await hooks(hub)).every(({ last_delivered_at: at }) => at !== null),
    );
    expect(new Set(receiver.received.map(idOf)).size).toBe(names.length);
  });

  once.test("is tested with a message of its own, which moves nothing", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    const { secret } = await put(hub);
    expect(await ok(hub.admin("/webhook/test", { name: "ci" }))).toMatchObject({
      delivered: true,
      status: 204,
      error: null,
    });
    const [one] = receiver.received;
    expect(one?.body).toMatchObject({ type: "test", data: {} });
    expect(one && isSigned(one, secret)).toBeTrue();
    receiver.isAway = true;
    expect(await ok(hub.admin("/webhook/test", { name: "ci" }))).toMatchObject({
      delivered: false,
      status: null,
      error: "connection refused",
    });
    expect(await hook(hub)).toMatchObject({ attempts: 0, state: "active" });
  });
});

describe.concurrent("ntfy", () => {
  const NTFY = { name: "phone", url: "https://receiver.test/push/alerts", format: "ntfy", kinds: undefined };

  async function asked(hub: TestHub, choices: readonly string[]): Promise<Fields> {
    await hub.addNode("n1");
    const task = await hub.addTaskOf("n1", { title: "Deploy" });
    const asking = { task_id: task, node_id: "n1", question: "Which colour?", choices };
    return record((await ok(hub.post("/task/ask", asking)))["question"]);
  }

  once.test("shows a question with its choices as buttons, each of which answers once", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post, publicUrl: "https://hub.example" });
    await put(hub, { ...NTFY, secret: "tk_abc" });
    await hub.sweep();
    const question = await asked(hub, ["blue", "green"]);
    const [one] = await receiver.until(({ length }) => length === 1);
    expect(one?.path).toBe("/push/");
    expect(one?.headers.get("authorization")).toBe("Bearer tk_abc");
    expect(one?.body).toMatchObject({
      topic: "alerts",
      title: "Question: Deploy",
      message: "Which colour?",
      priority: 4,
      tags: ["question"],
      click: `https://hub.example/#/tasks/${question["task_id"]}`,
      actions: ["blue", "green"].map((label) => ({
        action: "http",
        label,
        method: "POST",
        url: "https://hub.example/api/v1/task/answer-by-token",
      })),
    });
    const [blue, green] = list(one?.body ?? {}, "actions").map(({ body }) => String(body));
    const press = (body: string | undefined) =>
      hub.post("/task/answer-by-token", body, {
        headers: { "X-Matrix-Secret": null, "Content-Type": "application/json" },
      });
    await refused(press(JSON.stringify({ token: "wrong.token" })), 401, "unauthorized");
    const forged = record(JSON.parse(String(green)));
    const [claims, mac] = String(forged["token"]).split(".");
    const other = Buffer.from(String(claims), "base64url").toString().replace(",1,", ",0,");
    const wrong = { token: `${Buffer.from(other).toString("base64url")}.${mac}` };
    await refused(press(JSON.stringify(wrong)), 401, "unauthorized");
    expect(record((await ok(press(blue)))["question"])).toMatchObject({
      state: "answered",
      answer: "blue",
      answered_by: null,
      verified: false,
    });
    await ok(press(blue));
    await refused(press(green), 409, "question_answered");
  });

  once.test("has no buttons for more choices than it shows", async () => {
    await using receiver = new Receiver();
    await using hub = await startHub({ post: receiver.post });
    await put(hub, NTFY);
    await hub.sweep();
    await asked(hub, ["a", "b", "c", "d"]);
    const [one] = await receiver.until(({ length }) => length === 1);
    expect(one?.body).toMatchObject({ actions: [], message: "Which colour?\n\n- a\n- b\n- c\n- d" });
    expect(one?.headers.get("authorization")).toBeNull();
  });
});
