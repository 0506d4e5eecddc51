/**
 * Questions of workers: task/ask, task/answer, task/<id>/questions and questions; and what an open question does to the
 * clocks of its task, its readiness and its context.
 */
import { describe, expect, test } from "bun:test";
import { OPEN_QUESTIONS_OF_TASK_MAX, QUESTION_MAX_SECONDS } from "../../src/domain/limits.ts";
import { type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { RESULT, addNode, addNodes, addTask, badFields, list, ok, record, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);
type Fields = Readonly<Record<string, unknown>>;

const A_DAY = 86_400_000;

/** A task that n1 holds. */
async function taken(hub: TestHub, fields: Fields = {}): Promise<string> {
  const taskId = await addTask(hub, { backoff_s: 0, creator_node: "boss", ...fields });
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
  return taskId;
}

async function asked(hub: TestHub, taskId: string, fields: Fields = {}): Promise<Fields> {
  const body = { task_id: taskId, node_id: "n1", question: "Which?", ...fields };
  return record((await ok(hub.post("/task/ask", body)))["question"]);
}

function answer(hub: TestHub, question: Fields, value: unknown, fields: Fields = {}) {
  const { task_id, question_id } = question;
  return hub.post("/task/answer", { task_id, question_id, answer: value, ...fields });
}

async function taskOf(hub: TestHub, taskId: string): Promise<Fields> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

async function eventsOf(hub: TestHub, taskId: string): Promise<readonly string[]> {
  const { events } = await ok(hub.get(`/events?since=0&task_id=${taskId}`));
  return list({ events }, "events").map(({ kind }) => String(kind).replace("task.", ""));
}

function open(hub: TestHub, query = ""): Promise<Fields> {
  return ok(hub.get(`/questions${query}`));
}

describe("task/ask", () => {
  test("stores a question, which GET questions lists until it is answered", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub, { title: "Choose" });
    const schema = { type: "object", properties: { big: { const: 12345678901234567890n.toString() } } };
    const question = await asked(hub, taskId, { choices: ["red", "blue"], schema, within_s: 60 });
    expect(question).toMatchObject({
      task_id: taskId,
      question: "Which?",
      choices: ["red", "blue"],
      schema,
      asked_by: "n1",
      state: "open",
      answer: null,
      answered_by: null,
      answered_at: null,
      verified: false,
    });
    expect(Date.parse(String(question["until"])) - Date.parse(String(question["asked_at"]))).toBe(60_000);
    expect((await taskOf(hub, taskId))["waiting_for"]).toBe("answer");
    const waiting = await open(hub, "?state=open");
    expect(waiting).toMatchObject({ total: 1, next_cursor: null });
    expect(list(waiting, "questions")).toEqual([{ ...question, task_title: "Choose", creator_node: "boss" }]);
    const given = await ok(answer(hub, question, { colour: "red" }, { node_id: "n1" }));
    expect(given["question"]).toMatchObject({
      ...question,
      state: "answered",
      answer: { colour: "red" },
      answered_by: "n1",
      answered_at: expect.any(String),
    });
    expect(await open(hub)).toMatchObject({ questions: [], total: 0 });
    expect((await taskOf(hub, taskId))["waiting_for"]).toBeNull();
    expect(await eventsOf(hub, taskId)).toEqual(["created", "assigned", "asked", "answered"]);
  });

  test("with wait returns when it is answered, and when the wait is over", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub);
    expect(await asked(hub, taskId, { wait: 0.01 })).toMatchObject({ state: "open" });
    const waiting = asked(hub, taskId, { wait: 60 }); // the same question
    const { questions } = await ok(hub.get(`/task/${taskId}/questions`));
    const [question = {}] = list({ questions }, "questions");
    await ok(answer(hub, question, 7));
    expect(await waiting).toMatchObject({
      question_id: question["question_id"],
      state: "answered",
      answer: 7,
    });
  });

  once.test(
    "the same question is the open one, also for the next worker, and a new one after its answer",
    async () => {
      await using hub = await startHub();
      await addNodes(hub, ["n1", "n2"]);
      const taskId = await taken(hub);
      const first = await asked(hub, taskId, { choices: ["a"] });
      expect(await asked(hub, taskId, { choices: ["a"] })).toEqual(first);
      expect((await asked(hub, taskId, { choices: ["b"] }))["question_id"]).not.toBe(first["question_id"]);
      await ok(hub.post("/task/release", { task_id: taskId, node_id: "n1" }));
      await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n2" }));
      expect(await asked(hub, taskId, { node_id: "n2", choices: ["a"] })).toEqual(first);
      await ok(answer(hub, first, "a"));
      const again = await asked(hub, taskId, { node_id: "n2", choices: ["a"] });
      expect(again).toMatchObject({ asked_by: "n2", state: "open" });
      expect(again["question_id"]).not.toBe(first["question_id"]);
    },
  );

  once.test("is refused to others than the holder, with an old epoch, and beyond the limit", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const taskId = await taken(hub);
    const ask = (fields: Fields) =>
      hub.post("/task/ask", { task_id: taskId, node_id: "n1", question: "?", ...fields });
    await refused(ask({ node_id: "n2" }), 403, "not_assigned_to_node");
    await refused(ask({ epoch: 0 }), 409, "stale_lease");
    await refused(ask({ task_id: "none" }), 404, "task_not_found");
    await refused(ask({ node_id: "n3" }), 404, "node_not_found");
    await badFields(ask({ question: " ", choices: Array.from({ length: 21 }, String) }), [
      "question",
      "choices",
    ]);
    await badFields(ask({ within_s: QUESTION_MAX_SECONDS + 1, schema: [] }), ["within_s", "schema"]);
    for (let i = 0; i < OPEN_QUESTIONS_OF_TASK_MAX; i++) await ok(ask({ question: `${i}?` }));
    await refused(ask({ question: "one more?" }), 409, "questions_limit");
    await ok(ask({ question: "3?" })); // a repeat
    await ok(hub.post("/task/release", { task_id: taskId, node_id: "n1" }));
    await refused(ask({}), 409, "task_not_assigned");
  });

  once.test("may be in a batch if it does not wait", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub);
    const body = { task_id: taskId, node_id: "n1", question: "?" };
    const requests = [
      { path: "task/ask", body },
      { path: "task/ask", body: { ...body, wait: 1 } },
      { path: "task/complete", body: { task_id: taskId, node_id: "n1", result: RESULT } },
    ];
    const answers = list(await ok(hub.post("/batch", { requests })), "answers");
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200]);
    expect(await open(hub)).toMatchObject({ total: 0 });
  });
});

describe("task/answer", () => {
  test("the first answer counts: the same again succeeds, another is refused", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const question = await asked(hub, await taken(hub));
    await ok(answer(hub, question, { a: 1, b: [true] }));
    const again = await ok(answer(hub, question, { b: [true], a: 1 }));
    expect(again["question"]).toMatchObject({ answer: { a: 1, b: [true] } });
    await refused(answer(hub, question, { a: 2 }), 409, "question_answered");
  });

  once.test("is refused for what there is not, and without an answer", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const question = await asked(hub, await taken(hub));
    await refused(answer(hub, { ...question, task_id: "none" }, 1), 404, "task_not_found");
    await refused(answer(hub, { ...question, question_id: "none" }, 1), 404, "question_not_found");
    await refused(answer(hub, question, 1, { node_id: "n9" }), 404, "node_not_found");
    await badFields(answer(hub, question, null), ["answer"]);
    await badFields(answer(hub, question, "x".repeat(16_384)), ["answer"]);
  });

  once.test(
    "a key that is bound to a node answers for tasks that its node created, and is verified",
    async () => {
      await using hub = await startHub();
      await addNodes(hub, ["n1", "boss", "other"]);
      const question = await asked(hub, await taken(hub));
      const keyOf = async (nodeId: string) => {
        const { secret } = await ok(hub.admin("/key/add", { name: nodeId, node_id: nodeId }));
        return { headers: { "X-Matrix-Secret": String(secret) } };
      };
      const body = { task_id: question["task_id"], question_id: question["question_id"], answer: "yes" };
      await refused(hub.post("/task/answer", body, await keyOf("other")), 403, "key_bound_to_other_node");
      const given = await ok(hub.post("/task/answer", body, await keyOf("boss")));
      expect(given["question"]).toMatchObject({ answered_by: "boss" });
      const { questions } = await ok(hub.get(`/task/${String(question["task_id"])}/questions`));
      expect(list({ questions }, "questions")).toMatchObject([{ answered_by: "boss", verified: true }]);
      const { events } = await ok(hub.get("/events?since=0&kind=task.answered"));
      expect(list({ events }, "events")).toMatchObject([
        {
          node_id: "n1",
          verified: true,
          data: { question_id: question["question_id"], answered_by: "boss", creator_node: "boss" },
        },
      ]);
    },
  );
});

describe("the clocks of a task", () => {
  test("stand still while a question is open, and start again at the answer", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub, { timeout_s: 60, max_run_s: 100 });
    hub.clock.pass(50_000);
    const first = await asked(hub, taskId);
    const second = await asked(hub, taskId, { question: "And?" });
    const leaseEnd = async (): Promise<unknown> =>
      record((await ok(hub.post("/task/extend", { task_id: taskId, node_id: "n1" })))["lease"])["expires_at"];
    expect(await leaseEnd()).toBeNull();
    hub.clock.pass(150_000);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "assigned", attempts: 0 });
    await ok(answer(hub, first, 1));
    expect(await leaseEnd()).toBeNull();
    await ok(answer(hub, second, 1));
    hub.clock.pass(59_000);
    await hub.sweep();
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "assigned" });
    hub.clock.pass(1_001);
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "open", attempts: 1 });
  });

  test("a dead worker's task opens again, with its questions; the clocks of the next one wait for them too", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "n2"]);
    const taskId = await taken(hub, { timeout_s: 60 });
    const question = await asked(hub, taskId);
    hub.clock.pass(181_000);
    await ok(hub.post("/node/heartbeat", { node_id: "n2" }));
    await hub.sweep();
    expect(await taskOf(hub, taskId)).toMatchObject({
      status: "open",
      ready: true,
      attempts: 1,
      waiting_for: "answer",
    });
    const { task, lease, context } = await ok(hub.post("/task/next", { node_id: "n2" }));
    expect(record(task)["task_id"]).toBe(taskId);
    expect(record(lease)["expires_at"]).toBeNull();
    expect(record(context)["answers"]).toEqual([question]);
    await ok(answer(hub, question, "late"));
    const { context: after } = await ok(hub.get(`/task/${taskId}?context=1`));
    expect(record(after)["answers"]).toMatchObject([{ state: "answered", answer: "late" }]);
    const extended = await ok(hub.post("/task/extend", { task_id: taskId, node_id: "n2" }));
    expect(record(extended["lease"])["expires_at"]).not.toBeNull();
  });
});

describe("park", () => {
  test("gives the task back without an attempt, and the answer makes it ready for the next worker", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", { max_tasks: 1 });
    await addNode(hub, "n2");
    const taskId = await taken(hub, { timeout_s: 60, delay_s: 0 });
    const { lease } = await ok(hub.post("/task/claim", { task_id: taskId, node_id: "n1" }));
    const fields = { park: true, epoch: record(lease)["epoch"] };
    const question = await asked(hub, taskId, fields);
    expect(await taskOf(hub, taskId)).toMatchObject({
      status: "open",
      ready: false,
      attempts: 0,
      assigned_node: null,
      waiting_for: "answer",
    });
    expect(await asked(hub, taskId, fields)).toEqual(question); // a repeat
    expect(await eventsOf(hub, taskId)).toEqual(["created", "assigned", "asked", "released"]);
    const claim = { task_id: taskId, node_id: "n2" };
    await refused(hub.post("/task/claim", claim), 409, "task_not_ready");
    expect(list(await ok(hub.get("/task/pull?node_id=n2")), "tasks")).toEqual([]);
    // Room for another task.
    const other = await addTask(hub);
    expect(record((await ok(hub.post("/task/next", { node_id: "n1" })))["task"])["task_id"]).toBe(other);
    hub.clock.pass(150_000);
    await ok(hub.post("/node/heartbeat", { node_id: "n2" }));
    await hub.sweep();
    expect((await ok(hub.post("/task/next", { node_id: "n2" })))["task"]).toBeNull();
    const next = hub.post("/task/next", { node_id: "n2", wait: 60 });
    await ok(answer(hub, question, ["x"]));
    const handed = await ok(next);
    expect(record(handed["task"])).toMatchObject({ task_id: taskId, attempts: 0, waiting_for: null });
    expect(record(handed["context"])["answers"]).toMatchObject([{ state: "answered", answer: ["x"] }]);
  });

  test("waits for all open questions, and the balancer assigns the task at the last answer", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1", {}, "B");
    const created = await ok(hub.post("/task/create", { title: "t", description: "d" }, { variant: "B" }));
    const taskId = String(created["task_id"]);
    expect(created["assigned_node"]).toBe("n1");
    const first = await asked(hub, taskId);
    const second = await asked(hub, taskId, { question: "And?", park: true });
    await ok(answer(hub, first, 1));
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "open", ready: false });
    await ok(answer(hub, second, 1));
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "assigned", assigned_node: "n1" });
  });

  once.test("an open question can park the task later", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub);
    const question = await asked(hub, taskId);
    expect(await asked(hub, taskId, { park: true })).toEqual(question);
    expect(await taskOf(hub, taskId)).toMatchObject({ status: "open", ready: false });
    expect(await eventsOf(hub, taskId)).toEqual(["created", "assigned", "asked", "released"]);
  });
});

describe("a deadline", () => {
  test("times the question out: the worker decides", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const held = await taken(hub, { timeout_s: 300 });
    const waiting = await asked(hub, held, { within_s: 60 });
    const parked = await taken(hub);
    const other = await asked(hub, parked, { within_s: 60, park: true });
    const longer = await asked(hub, held, { question: "Longer?" });
    expect(Date.parse(String(longer["until"])) - Date.parse(String(longer["asked_at"]))).toBe(A_DAY);
    const wait = hub.get(`/task/${held}/questions?wait=60&question_id=${String(waiting["question_id"])}`);
    hub.clock.pass(60_001);
    await refused(answer(hub, waiting, 1), 409, "question_timed_out");
    await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
    await hub.sweep();
    const { questions } = await ok(wait);
    expect(list({ questions }, "questions")).toMatchObject([
      { state: "timed_out", answer: null, answered_by: null, answered_at: expect.any(String) },
    ]);
    expect(await taskOf(hub, held)).toMatchObject({ status: "assigned", waiting_for: "answer" });
    expect(await taskOf(hub, parked)).toMatchObject({ status: "open", ready: true, waiting_for: null });
    expect((await eventsOf(hub, parked)).at(-1)).toBe("question_timed_out");
    await refused(answer(hub, other, 1), 409, "question_timed_out");
    expect((await open(hub))["total"]).toBe(1);
  });

  once.test("the end of its task ends it too", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const completed = await taken(hub);
    const first = await asked(hub, completed);
    await ok(hub.post("/task/complete", { task_id: completed, node_id: "n1", result: RESULT }));
    await refused(answer(hub, first, 1), 409, "question_timed_out");
    const cancelled = await taken(hub);
    const second = await asked(hub, cancelled, { park: true });
    const waiting = hub.get(`/task/${cancelled}/questions?wait=60`);
    await ok(hub.post("/task/cancel", { task_id: cancelled }));
    await refused(answer(hub, second, 1), 409, "question_timed_out");
    expect(list(await ok(waiting), "questions")).toMatchObject([{ state: "timed_out" }]);
    expect((await open(hub))["total"]).toBe(0);
    await ok(hub.post("/task/retry", { task_id: cancelled }));
    expect(await taskOf(hub, cancelled)).toMatchObject({ status: "open", ready: true });
    await ok(hub.admin("/task/delete", { task_id: cancelled }));
    await refused(hub.get(`/task/${cancelled}/questions`), 404, "task_not_found");
  });
});

describe("lists", () => {
  test("task/<id>/questions waits for a change, and pages", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub);
    const first = await asked(hub, taskId, { question: "1?" });
    const path = `/task/${taskId}/questions`;
    const { version } = await ok(hub.get(path));
    const waiting = ok(hub.get(`${path}?wait=60&since=${String(version)}`));
    await asked(hub, taskId, { question: "2?" });
    const now = await waiting;
    expect(list(now, "questions").map(({ question }) => question)).toEqual(["1?", "2?"]);
    await ok(answer(hub, first, 1));
    // What has changed since then returns at once.
    const changed = await ok(hub.get(`${path}?wait=60&since=${String(now["version"])}`));
    expect(list(changed, "questions").map(({ state }) => state)).toEqual(["answered", "open"]);
    const page = await ok(hub.get(`${path}?limit=1`));
    expect(page).toMatchObject({ total: 2, next_cursor: "1" });
    const rest = await ok(hub.get(`${path}?limit=1&cursor=1`));
    expect(list(rest, "questions")).toMatchObject([{ question: "2?" }]);
    expect(rest["next_cursor"]).toBeNull();
    await refused(hub.get(`${path}?question_id=none`), 404, "question_not_found");
    await refused(hub.get("/task/none/questions?wait=60"), 404, "task_not_found");
  });

  test("questions are listed by their deadline, in pages", async () => {
    await using hub = await startHub();
    await addNode(hub, "n1");
    const taskId = await taken(hub);
    const hours = [5, 1, 3, 2, 4];
    for (const hour of hours) await asked(hub, taskId, { question: `${hour}`, within_s: hour * 3_600 });
    const seen: unknown[] = [];
    let query = "?limit=2";
    for (let pages = 0; pages < 3; pages++) {
      const page = await open(hub, query);
      expect(page["total"]).toBe(5);
      seen.push(...list(page, "questions").map(({ question }) => question));
      query = `?limit=2&cursor=${String(page["next_cursor"])}`;
    }
    expect(seen).toEqual(["1", "2", "3", "4", "5"]);
    await badFields(hub.get("/questions?cursor=nonsense&state=closed"), ["cursor", "state"]);
    await refused(hub.get("/questions", { headers: { "X-Matrix-Secret": null } }), 401, "unauthorized");
  });

  test("the events reach the streams of the worker and of the creator, without texts", async () => {
    await using hub = await startHub();
    await addNodes(hub, ["n1", "boss"]);
    const taskId = await taken(hub);
    const question = await asked(hub, taskId, { question: "secret question" });
    await ok(answer(hub, question, "secret answer"));
    const { events } = await ok(hub.get(`/events?since=0&task_id=${taskId}`));
    expect(JSON.stringify(events)).not.toContain("secret");
    expect(list({ events }, "events").slice(-2)).toMatchObject([
      {
        kind: "task.asked",
        node_id: "n1",
        data: { question_id: question["question_id"], creator_node: "boss", parked: false },
      },
      { kind: "task.answered", node_id: "n1", data: { answered_by: null, creator_node: "boss" } },
    ]);
  });
});
