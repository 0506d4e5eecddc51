/**
 * Jobs of an agent, done by a scripted model with as many calls and tokens as each needs. It takes every id, and the tool
 * that it calls next, from the results that it has seen. A refusal, or a call more than the job needs, is a wrong turn.
 */
import { describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/lib/clock.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { Agent } from "../support/mcp.ts";
import { RESULT, list, ok, record, until } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a model sees of a result. */
class Seen {
  readonly #data: unknown;

  constructor(text: string) {
    this.#data = JSON.parse(text);
  }

  get say(): string {
    return this.all("say")[0] ?? "";
  }

  /** The values of all fields of this name, in their order; of a list each item. */
  all(name: string): readonly string[] {
    const found: string[] = [];
    const visit = (value: unknown): void => {
      if (Array.isArray(value)) return value.forEach(visit);
      if (typeof value !== "object" || value === null) return;
      for (const [key, inner] of Object.entries(value)) {
        if (key !== name) visit(inner);
        else if (typeof inner !== "object") found.push(String(inner));
        else if (Array.isArray(inner) && inner.every((item) => typeof item !== "object"))
          found.push(...inner.map(String));
        else if (inner !== null && !Array.isArray(inner)) found.push(JSON.stringify(inner));
        else visit(inner);
      }
    };
    visit(this.#data);
    return found;
  }
}

/** A model that goes no way that no result has shown it. */
class Model {
  readonly agent: Agent;
  #memory = "";
  calls = 0;
  /** Of its calls and their results, four characters each. */
  tokens = 0;

  constructor(agent: Agent) {
    this.agent = agent;
  }

  /** `ids`: arguments that it must have seen before. */
  async call(tool: string, args: Fields = {}, ids: readonly string[] = []): Promise<Seen> {
    this.calls++;
    for (const id of ids) {
      expect(id.length).toBeGreaterThan(0);
      expect(this.#memory).toContain(id);
    }
    const { text, isError } = await this.agent.call(tool, { ...args });
    expect([tool, args, isError ? text : "no refusal"]).toEqual([tool, args, "no refusal"]);
    this.#memory += `${text}\n`;
    this.tokens += (JSON.stringify(args).length + text.length) / 4;
    return new Seen(text);
  }
}

function one(seen: Seen, name: string): string {
  const [value = ""] = seen.all(name);
  return value;
}

/** The result says which tool comes next. */
function follows(seen: Seen, tool: string): void {
  expect(seen.say).toContain(tool);
}

/** Bob works for the hub by HTTP. */
async function bobDoes(hub: TestHub, output: unknown = { en: "house" }): Promise<string> {
  const { task } = await ok(hub.post("/task/next", { node_id: "bob", wait: 30 }));
  const { task_id } = record(task);
  await ok(hub.post("/task/complete", { task_id, node_id: "bob", result: { ...RESULT, output } }));
  return String(task_id);
}

const OUTPUT = { en: "house" };

type Job = (model: Model, hub: TestHub) => Promise<void>;

/** What each needs at most, and how it is done. */
const JOBS: Readonly<Record<string, readonly [calls: number, tokens: number, job: Job]>> = {
  "finds work, and finishes it": [
    4,
    400,
    async (model, hub) => {
      const draft = {
        title: "Count",
        description: 'Count the words of "a b c".',
        creator_node: "bob",
        timeout_s: 600,
      };
      await ok(hub.post("/task/create", draft));
      const next = await model.call("task_next", { wait_s: 50 });
      expect(one(next, "description")).toBe(draft.description);
      const taskId = one(next, "task_id");
      follows(next, "task_complete");
      await model.call("task_progress", { task_id: taskId, note: "half" }, [taskId]);
      const result = { problem: "words", improvement: "counted: 3", lesson: "none", output: { words: 3 } };
      await hub.send("bob", "ann", { content: "Stop, do not deploy." });
      const done = await model.call("task_complete", { task_id: taskId, ...result }, [taskId]);
      follows(done, "task_next");
      follows(done, "1 message waits: mail_check");
      const idle = await model.call("task_next");
      expect(idle.all("task_id")).toEqual([]);
      follows(idle, "task_next with wait_s: 50");
      expect(record((await ok(hub.get(`/task/${taskId}`)))["task"])["result"]).toEqual(result);
    },
  ],
  "reads the input of a task, which is large, and a file of another node": [
    3,
    1_100,
    async (model, hub) => {
      const whole = "1,2,3\n".repeat(500_000);
      const form = new FormData();
      form.set("file", new File([whole], "data.csv"));
      const { file_id } = await ok(hub.post("/file/upload", form));
      const draft = { title: "Sum", description: "d", files: [file_id], creator_node: "bob" };
      await ok(hub.post("/task/create", draft));
      const next = await model.call("task_next");
      const id = one(next, "file_id");
      expect([id, one(next, "name"), one(next, "size")]).toEqual([String(file_id), "data.csv", "3000000"]);
      const shown = await model.call("file_get", { file_id: id }, [id]);
      expect(whole).toStartWith(one(shown, "content"));
      expect(await (await fetch(one(shown, "url"))).text()).toBe(whole);
      // It goes to another task, too.
      const part = { title: "Sum a part", description: "d", files: [id], node_id: "bob" };
      const made = one(await model.call("task_create", part, [id]), "task_id");
      const { files } = record((await ok(hub.get(`/task/${made}`)))["task"]);
      const [input] = list(await ok(hub.get(`/file/list?task_id=${made}`)), "files");
      expect(input).toMatchObject({ file_id: (files as string[])[0], name: "data.csv", size: whole.length });
    },
  ],
  "asks a person about its task, and waits for the answer": [
    3,
    320,
    async (model, hub) => {
      await ok(hub.post("/task/create", { title: "Deploy", description: "d" }));
      const next = await model.call("task_next");
      expect(one(next, "creator_node")).toBe("the operator");
      const taskId = one(next, "task_id");
      const question = { task_id: taskId, question: "To production?", choices: ["yes", "no"] };
      const wait = model.call("task_ask", question, [taskId]);
      await until("it waits", () => hub.waits(1));
      const [open] = list(await ok(hub.get(`/task/${taskId}/questions`)), "questions");
      await ok(
        hub.post("/task/answer", { task_id: taskId, question_id: open?.["question_id"], answer: "yes" }),
      );
      const answered = await wait;
      expect([one(answered, "answer"), one(answered, "answered_by")]).toEqual(["yes", "the operator"]);
      await model.call("task_complete", { task_id: taskId, ...RESULT }, [taskId]);
    },
  ],
  "hands out twenty tasks and one that joins them, and combines their results": [
    2,
    2_400,
    async (model, hub) => {
      const parts = Array.from({ length: 20 }, (_, i) => ({
        ref: `p${i}`,
        title: `part ${i}`,
        description: "d",
      }));
      const join = { title: "join", description: "d", depends_on: parts.map(({ ref }) => ref) };
      const common = { task_type: "draw", group: "book", tags: ["draft"], max_cost_usd: 1 };
      const made = await model.call("task_create", { tasks: [...parts, join], ...common });
      const ids = made.all("task_id");
      const joined = record((await ok(hub.get(`/task/${ids[20]}`)))["task"]);
      expect(joined).toMatchObject({ ...common, depends_on: ids.slice(0, 20) });
      const wait = model.call("task_wait", { task_ids: ids, wait_s: 50 }, ids);
      for (let i = 0; i < 20; i++) await bobDoes(hub, { n: i });
      await bobDoes(hub, { n: 20 });
      const seen = await wait;
      expect(one(seen, "done")).toBe("true");
      expect(seen.all("output").map((text) => JSON.parse(text))).toEqual(ids.map((_, n) => ({ n })));
    },
  ],
  "has the work of another reviewed, and reviews it": [
    5,
    700,
    async (model, hub) => {
      const fields = { title: "Draw", description: "d", task_type: "draw", review: "creator" };
      const made = one(await model.call("task_create", fields), "task_id");
      await bobDoes(hub);
      const waiting = await model.call("task_review");
      expect(one(waiting, "task_id")).toBe(made);
      follows(waiting, "task_review with verdict");
      const seen = await model.call("task_get", { task_id: made }, [made]);
      expect([one(seen, "waiting_for"), JSON.parse(one(seen, "output"))]).toEqual(["review", OUTPUT]);
      await model.call("task_review", { task_id: made, verdict: "reject", note: "no roof" }, [made]);
      const { context } = await ok(hub.post("/task/next", { node_id: "bob", wait: 30 }));
      expect(context).toMatchObject({ review: { note: "no roof" } });
      await ok(hub.post("/task/complete", { task_id: made, node_id: "bob", result: RESULT }));
      const passed = await model.call("task_review", { task_id: made, verdict: "pass" }, [made]);
      expect(one(passed, "status")).toBe("completed");
    },
  ],
  "keeps others out of a directory while it has its task": [
    4,
    340,
    async (model, hub) => {
      await ok(hub.post("/task/create", { title: "Edit", description: "d" }));
      const taskId = one(await model.call("task_next"), "task_id");
      const lock = { action: "acquire", name: "./src/", task_id: taskId };
      expect(one(await model.call("lease", lock, [taskId]), "name")).toBe("src/**");
      follows(await model.call("lease", { action: "acquire", name: "docs" }), "for all below it, docs/**");
      const edit = () => hub.post("/lease/acquire", { name: "src/a.ts", node_id: "bob" });
      hub.clock.pass(10 * MINUTE_MS);
      expect((await edit()).status).toBe(409);
      await model.call("task_complete", { task_id: taskId, ...RESULT }, [taskId]);
      await ok(edit());
    },
  ],
  "writes a note, and finds it": [
    3,
    160,
    async (model) => {
      await model.call("note", { action: "put", key: "build", text: "Run bun run build." });
      const found = await model.call("note", { action: "search", text: "run build" });
      expect(found.all("key")).toEqual(["build"]);
      follows(await model.call("note", { action: "search", text: "how to build" }), "all these words");
    },
  ],
  "asks by mail, and gets the answer to its question": [
    4,
    480,
    async (model, hub) => {
      const asked = await model.call("mail_send", {
        to_node: "bob",
        content: "Which port?",
        require_ack: true,
      });
      const question = one(asked, "message_id");
      follows(asked, "mail_check {wait_s}");
      const wait = model.call("mail_check", { wait_s: 50 });
      await until("it waits", () => hub.waits(1));
      const [got] = list(await ok(hub.post("/message/receive", { node_id: "bob" })), "messages");
      await ok(hub.post("/message/ack", { node_id: "bob", message_id: got?.["id"] }));
      const reply = { from_node: "bob", to_node: "ann", content: "19104", reply_to: got?.["id"] };
      await ok(hub.post("/message/send", reply));
      const mail = await wait;
      expect([one(mail, "reply_to"), one(mail, "content")]).toEqual([question, "19104"]);
      expect([one(mail, "from_node"), one(mail, "verified")]).toEqual(["bob", "false"]);
      const answer = one(mail, "message_id");
      follows(mail, "mail_ack");
      await model.call("mail_ack", { message_ids: [answer] }, [answer]);
      const thread = one(asked, "thread");
      const talk = await model.call("mail_check", { thread }, [thread]);
      expect(talk.all("content")).toEqual(["19104", "Which port?"]);
      expect(talk.all("state")[1]).toBe("acked"); // require_ack shows up at the sender
    },
  ],
  "learns why a task failed, and has it tried again": [
    4,
    550,
    async (model, hub) => {
      const made = one(
        await model.call("task_create", { title: "Draw", description: "d", task_type: "draw" }),
        "task_id",
      );
      const { task } = await ok(hub.post("/task/next", { node_id: "bob", wait: 30 }));
      const failed = { task_id: record(task)["task_id"], node_id: "bob", error: "no ink", retry: false };
      await ok(hub.post("/task/fail", failed));
      const seen = await model.call("task_list", { creator_node: "me", status: "failed" });
      expect([one(seen, "task_id"), one(seen, "failure_message")]).toEqual([made, "no ink"]);
      const again = await model.call("task_retry", { task_id: made }, [made]);
      follows(again, "task_get with wait_s");
      await bobDoes(hub);
      expect(one(await model.call("task_get", { task_id: made, wait_s: 50 }, [made]), "status")).toBe(
        "completed",
      );
    },
  ],
  "stays in a budget": [
    3,
    340,
    async (model, hub) => {
      const fields = { title: "Draw", description: "d", max_cost_usd: 0.5, unique_key: "drawing" };
      const made = one(await model.call("task_create", fields), "task_id");
      follows(await model.call("task_create", { ...fields, key: "again" }), "unique_key is there already");
      const { task } = await ok(hub.post("/task/next", { node_id: "bob" }));
      expect(record(task)["task_id"]).toBe(made);
      const usage = [{ seq: 1, model: "large", input_tokens: 9, output_tokens: 9, cost_usd: 0.6 }];
      await ok(hub.post("/task/extend", { task_id: made, node_id: "bob", usage }));
      const seen = await model.call("task_wait", { task_ids: [made], wait_s: 50 }, [made]);
      expect([one(seen, "status"), one(seen, "failure")]).toEqual(["failed", "budget"]);
    },
  ],
  "says who it is, and what waits for it": [
    1,
    100,
    async (model, hub) => {
      await hub.addNode("ann", { auto_assign: false });
      await hub.send("bob", "ann", { content: "good morning" });
      const seen = await model.call("hub_status");
      expect([one(seen, "node_id"), one(seen, "messages_waiting")]).toEqual(["ann", "1"]);
      follows(seen, "mail_check");
    },
  ],
  "has one node do a task": [
    3,
    340,
    async (model, hub) => {
      const nodes = await model.call("node_list", { online: true });
      expect(nodes.all("node_id")).toContain("bob");
      const fields = { title: "Greet", description: "Say hello", node_id: "bob" };
      const made = await model.call("task_create", fields, ["bob"]);
      expect(one(made, "assigned_node")).toBe("bob");
      follows(made, "task_wait {task_ids, wait_s: 50}");
      const taskId = one(made, "task_id");
      const wait = model.call("task_wait", { task_ids: [taskId], wait_s: 50 }, [taskId]);
      await until("it waits", () => hub.waits(1));
      expect(await bobDoes(hub)).toBe(taskId);
      const seen = await wait;
      expect([one(seen, "status"), JSON.parse(one(seen, "output"))]).toEqual(["completed", OUTPUT]);
    },
  ],
  "gives a task back that is not for it, and gets others": [
    4,
    410,
    async (model, hub) => {
      const [odd, next] = [await hub.addTask({ title: "odd" }), await hub.addTask()];
      expect(one(await model.call("task_next"), "task_id")).toBe(odd);
      follows(await model.call("task_release", { task_id: odd }, [odd]), "not offered it for 10 minutes");
      expect(one(await model.call("task_next"), "task_id")).toBe(next);
      const { task } = await ok(hub.post("/task/next", { node_id: "bob" })); // others are offered it
      expect(record(task)["task_id"]).toBe(odd);
      await ok(hub.post("/task/release", { task_id: odd, node_id: "bob" }));
      await model.call("task_complete", { task_id: next, ...RESULT }, [next]);
    },
  ],
  "is warned that nobody takes a task, and cancels it": [
    3,
    380,
    async (model) => {
      const made = await model.call("task_create", { title: "t", description: "d", task_type: "translte" });
      follows(made, "No other node that is online takes the task_type");
      follows(made, "node_list");
      const nodes = await model.call("node_list", { online: true });
      expect(nodes.all("capabilities")).toContain("translate");
      const taskId = one(made, "task_id");
      await model.call("task_cancel", { task_id: taskId, reason: "misspelt" }, [taskId]);
    },
  ],
  "tells everyone, and those who can do something": [
    2,
    190,
    async (model, hub) => {
      const all = await model.call("mail_send", { to_node: "*", content: "The hub restarts at noon." });
      expect(all.all("receivers")).toEqual(["bob", "eve"]);
      const some = await model.call("mail_send", { capability: "translate", content: "Who has time?" });
      expect(some.all("receivers")).toEqual(["eve"]);
      await ok(hub.post("/message/receive", { node_id: "bob" }));
      await ok(hub.post("/message/receive", { node_id: "eve" }));
    },
  ],
  "shares a small file and a large one": [
    4,
    550,
    async (model) => {
      const small = one(await model.call("file_put", { name: "plan.md", content: "# Plan" }), "file_id");
      const upload = await model.call("file_put", { name: "data.csv" });
      const url = one(upload, "url");
      expect(one(upload, "command")).toContain(url);
      const form = new FormData();
      form.set("file", new File(["1,2,3\n"], "data.csv"));
      expect((await fetch(url, { method: "POST", body: form })).status).toBe(200);
      const [large, other] = (await model.call("file_get")).all("file_id");
      expect([typeof large, other]).toEqual(["string", small]);
      expect(one(await model.call("file_get", { file_id: small }, [small]), "content")).toBe("# Plan");
    },
  ],
};

describe("a model", () => {
  test.each(Object.entries(JOBS))("%s", async (_, [calls, tokens, job]) => {
    await using hub = await startHub();
    await hub.addNode("bob", { capabilities: ["draw"], auto_assign: false });
    await hub.addNode("eve", { capabilities: ["translate"], auto_assign: false });
    await using agent = await Agent.connect(hub.base(), "ann");
    const model = new Model(agent);
    await job(model, hub);
    expect([model.calls, model.tokens <= tokens ? "few" : model.tokens]).toEqual([calls, "few"]);
  });
});
