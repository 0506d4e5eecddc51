/**
 * Ten jobs, done by two scripted models: one sees only the structured content of each result, as some clients show it, the
 * other only the text. Each takes every id, and the tool that it calls next, from what it has seen. A refusal, or a call
 * more than the job needs, is a wrong turn.
 */
import { describe, expect, test } from "bun:test";
import { type TestHub, startHub } from "../support/hub.ts";
import { Agent } from "../support/mcp.ts";
import { RESULT, list, ok, record, until } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a model sees of a result, and how it finds a fact there. */
type Seen = {
  readonly say: string;
  /** The values of all fields of this name, in their order; of a list each item. */
  all(name: string): readonly string[];
};

class SeenJson implements Seen {
  readonly #data: unknown;

  constructor(json: string) {
    this.#data = JSON.parse(json);
  }

  get say(): string {
    return this.all("say")[0] ?? "";
  }

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

class SeenText implements Seen {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get say(): string {
    return this.#text.split("\n")[0] ?? "";
  }

  all(name: string): readonly string[] {
    const field = new RegExp(`(?:^\\s*(?:- )?|; )${name}(?:, by [^:]*)?: (<<<([0-9a-f]+)\\n|[^\\n]*)`, "gm");
    return [...this.#text.matchAll(field)].flatMap(({ 1: value = "", 2: fence, index, 0: match }) => {
      if (fence !== undefined) {
        const rest = this.#text.slice(index + match.length);
        return [rest.slice(0, rest.indexOf(`\n${fence}>>>`))];
      }
      if (/^[{[]/.test(value)) return [value];
      const [quoted] = /^"(?:[^"\\]|\\.)*"/.exec(value) ?? [];
      if (quoted !== undefined) return [String(JSON.parse(quoted))];
      const [bare = ""] = /^[^;]*/.exec(value) ?? [];
      return bare === "none" ? [] : bare.split(", ");
    });
  }
}

/** A model that sees one form only, and goes no way that no result has shown it. */
class Model {
  readonly #agent: Agent;
  readonly #form: "structured" | "text";
  /** All that it has seen, and the tools that it knows from the list of tools. */
  #memory = "";
  calls = 0;

  constructor(agent: Agent, form: "structured" | "text") {
    this.#agent = agent;
    this.#form = form;
  }

  /** `ids`: arguments that it must have seen before. */
  async call(tool: string, args: Fields = {}, ids: readonly string[] = []): Promise<Seen> {
    this.calls++;
    for (const id of ids) {
      expect(id.length).toBeGreaterThan(0);
      expect(this.#memory).toContain(id);
    }
    const { text, data, isError } = await this.#agent.call(tool, { ...args });
    expect([tool, args, isError ? text : "no refusal"]).toEqual([tool, args, "no refusal"]);
    const seen = this.#form === "text" ? text : JSON.stringify(data);
    this.#memory += `${seen}\n`;
    return this.#form === "text" ? new SeenText(seen) : new SeenJson(seen);
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

/** The calls that each needs, and how it is done. */
const JOBS: Readonly<Record<string, readonly [calls: number, job: Job]>> = {
  "says who it is, and what waits for it": [
    3,
    async (model, hub) => {
      await hub.addNode("ann", { auto_assign: false });
      await hub.send("bob", "ann", { content: "good morning" });
      const seen = await model.call("hub_status");
      expect([one(seen, "node_id"), one(seen, "messages_waiting")]).toEqual(["ann", "1"]);
      follows(seen, "mail_check");
      const mail = await model.call("mail_check");
      expect([one(mail, "from_node"), one(mail, "content"), one(mail, "verified")]).toEqual([
        "bob",
        "good morning",
        "false",
      ]);
      follows(mail, "mail_ack");
      const id = one(mail, "message_id");
      await model.call("mail_ack", { message_ids: [id] }, [id]);
    },
  ],
  "has one node do a task": [
    3,
    async (model, hub) => {
      const nodes = await model.call("node_list", { online: true });
      expect(nodes.all("node_id")).toContain("bob");
      const made = await model.call(
        "task_create",
        { title: "Greet", description: "Say hello", node_id: "bob" },
        ["bob"],
      );
      expect(one(made, "assigned_node")).toBe("bob");
      follows(made, "task_get {task_id, wait_s: 50}");
      const taskId = one(made, "task_id");
      const wait = model.call("task_get", { task_id: taskId, wait_s: 50 }, [taskId]);
      await until("it waits", () => hub.waits(1));
      expect(await bobDoes(hub)).toBe(taskId);
      const seen = await wait;
      expect([one(seen, "status"), JSON.parse(one(seen, "output"))]).toEqual(["completed", OUTPUT]);
    },
  ],
  "does a task": [
    4,
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
      const done = await model.call("task_complete", { task_id: taskId, ...result }, [taskId]);
      follows(done, "task_next");
      const idle = await model.call("task_next");
      expect(idle.all("task_id")).toEqual([]);
      follows(idle, "task_next with wait_s: 50");
      expect(record((await ok(hub.get(`/task/${taskId}`)))["task"])["result"]).toEqual(result);
    },
  ],
  "splits work, waits for all of it, and joins the results": [
    5,
    async (model, hub) => {
      const parts: string[] = [];
      for (const title of ["part 1", "part 2"])
        parts.push(
          one(await model.call("task_create", { title, description: "d", task_type: "draw" }), "task_id"),
        );
      const fields = { title: "join", description: "d", task_type: "draw", depends_on: parts };
      const joined = one(await model.call("task_create", fields, parts), "task_id");
      const working = Promise.all([bobDoes(hub, { n: 1 }), bobDoes(hub, { n: 2 })]).then(() =>
        bobDoes(hub, { n: 3 }),
      );
      const first = await model.call("task_wait", { task_ids: parts, wait_s: 50 }, parts);
      expect(first.all("status")).toEqual(["completed", "completed"]);
      expect(first.all("output").map((text) => JSON.parse(text))).toEqual([{ n: 1 }, { n: 2 }]);
      const last = await model.call("task_wait", { task_ids: [joined], until: "any", wait_s: 50 }, [joined]);
      expect([one(last, "done"), one(last, "output")]).toEqual(["true", '{"n":3}']);
      await working;
    },
  ],
  "finds the tasks that it has created": [
    2,
    async (model) => {
      const made = one(
        await model.call("task_create", { title: "Find me", description: "d", task_type: "sing" }),
        "task_id",
      );
      const mine = await model.call("task_list", { creator_node: "me", status: "open" });
      expect(mine.all("task_id")).toEqual([made]);
    },
  ],
  "is warned that nobody takes a task, and cancels it": [
    3,
    async (model) => {
      const made = await model.call("task_create", { title: "t", description: "d", task_type: "translte" });
      expect(one(made, "warning")).toContain("No other node that is online takes this task_type");
      follows(made, "node_list");
      const nodes = await model.call("node_list", { online: true });
      expect(nodes.all("capabilities")).toContain("translate");
      const taskId = one(made, "task_id");
      await model.call("task_cancel", { task_id: taskId, reason: "misspelt" }, [taskId]);
    },
  ],
  "asks, and gets the answer to its question": [
    4,
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
      const answer = one(mail, "message_id");
      await model.call("mail_ack", { message_ids: [answer] }, [answer]);
      const thread = one(asked, "thread");
      const talk = await model.call("mail_check", { thread }, [thread]);
      expect(talk.all("content")).toEqual(["19104", "Which port?"]);
      expect(talk.all("state")[1]).toBe("acked"); // require_ack shows up at the sender
    },
  ],
  "tells everyone, and those who can do something": [
    2,
    async (model, hub) => {
      const all = await model.call("mail_send", { to_node: "*", content: "The hub restarts at noon." });
      expect(all.all("receivers")).toEqual(["bob", "eve"]);
      const some = await model.call("mail_send", { capability: "translate", content: "Who has time?" });
      expect(some.all("receivers")).toEqual(["eve"]);
      await ok(hub.post("/message/receive", { node_id: "bob" }));
      await ok(hub.post("/message/receive", { node_id: "eve" }));
    },
  ],
  "shares a small file and a large one, and reads them": [
    5,
    async (model) => {
      const small = one(await model.call("file_put", { name: "plan.md", content: "# Plan" }), "file_id");
      const upload = await model.call("file_put", { name: "data.csv" });
      const url = one(upload, "url");
      expect(one(upload, "command")).toContain(url);
      const whole = "1,2,3\n".repeat(20_000);
      const form = new FormData();
      form.set("file", new File([whole], "data.csv"));
      expect((await fetch(url, { method: "POST", body: form })).status).toBe(200);
      const files = await model.call("file_get");
      const [large = "", other] = files.all("file_id");
      expect(other).toBe(small);
      expect(one(await model.call("file_get", { file_id: small }, [small]), "content")).toBe("# Plan");
      const shown = await model.call("file_get", { file_id: large }, [large]);
      expect(whole).toStartWith(one(shown, "content"));
      expect(await (await fetch(one(shown, "url"))).text()).toBe(whole);
    },
  ],
  "learns why a task failed, and has it tried again": [
    4,
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
};

describe.each(["structured", "text"] as const)("a model that sees only the %s form", (form) => {
  test.each(Object.entries(JOBS))("%s", async (_, [calls, job]) => {
    await using hub = await startHub();
    await hub.addNode("bob", { capabilities: ["draw"], auto_assign: false });
    await hub.addNode("eve", { capabilities: ["translate"], auto_assign: false });
    await using agent = await Agent.connect(hub.base(), "ann", form === "text" ? "2025-11-25" : "2026-07-28");
    const model = new Model(agent, form);
    await job(model, hub);
    expect(model.calls).toBe(calls);
  });
});
