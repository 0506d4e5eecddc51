/**
 * MCP at /mcp, by the official client in both revisions of the protocol: authorisation, each tool, repeated calls, the
 * size of the list of tools, and agents that share work. The conformance suite is in tools/torture/mcp.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { MINUTE_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { SECRET, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { Agent, ERAS } from "../support/mcp.ts";
import { addKey } from "./key-commands.ts";
import { list, ok, pick, record, until } from "./scene.ts";

const RESULT = { problem: "it was slow", improvement: "it is fast", lesson: "measure first" };

const FORM = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };

/** One message, as a client of 2025 sends it. */
function post(
  hub: TestHub,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${hub.base()}/mcp`, {
    method: "POST",
    headers: { ...FORM, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** The same by a client of 2026. */
function modern(hub: TestHub, method: string, params: Record<string, unknown> = {}): Promise<Response> {
  const headers = { ...WITH_SECRET, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method };
  return post(hub, { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: MODERN_META } }, headers);
}

const MODERN_META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

const PING = { jsonrpc: "2.0", id: 1, method: "ping" };
const WITH_SECRET = { "X-Matrix-Secret": SECRET };

function taskIdOf(data: Record<string, unknown>): string {
  return String(record(data["task"])["task_id"]);
}

/** The names of tools by a query, best first, as clients rank them: BM25 over the words of name and description. */
function searchOver(tools: readonly { readonly name: string; readonly description?: string | undefined }[]) {
  const wordsOf = (text: string): readonly string[] =>
    (text.toLowerCase().match(/[a-z]+/g) ?? []).map((word) => word.replace(/(?<=..)s$/, ""));
  const texts = tools.map(({ name, description = "" }) => wordsOf(`${name} ${description}`));
  const mean = texts.reduce((sum, { length }) => sum + length, 0) / texts.length;
  const score = (words: readonly string[], word: string): number => {
    const having = texts.filter((text) => text.includes(word)).length;
    const count = words.filter((other) => other === word).length;
    const rarity = Math.log(1 + (texts.length - having + 0.5) / (having + 0.5));
    return (rarity * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * words.length) / mean));
  };
  return (query: string): readonly string[] => {
    const sums = texts.map((words) => wordsOf(query).reduce((sum, word) => sum + score(words, word), 0));
    const ranked = tools.map(({ name }, i) => ({ name, sum: sums[i] ?? 0 })).filter(({ sum }) => sum > 0);
    return ranked.toSorted((a, b) => b.sum - a.sum).map(({ name }) => name);
  };
}

async function create(agent: Agent, fields: Record<string, unknown> = {}): Promise<string> {
  const key = crypto.randomUUID();
  return taskIdOf(await agent.ok("task_create", { title: "t", description: "d", key, ...fields }));
}

describe("who may call", () => {
  let hub: TestHub;
  beforeAll(async () => void (hub = await startHub()));
  afterAll(() => hub.close());

  test("no secret is 401 on both variants, and no OAuth is advertised", async () => {
    for (const variant of ["A", "B"] as const) {
      const answer = await fetch(`${hub.base(variant)}/mcp`, {
        method: "POST",
        headers: FORM,
        body: JSON.stringify(PING),
      });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toStartWith('Bearer realm="luxhub"');
      expect(answer.headers.get("www-authenticate")).not.toMatch(/resource_metadata|oauth/i);
      expect(await answer.json()).toMatchObject({ error: "unauthorized" });
      for (const name of ["oauth-protected-resource", "oauth-authorization-server"])
        expect((await fetch(`${hub.base(variant)}/.well-known/${name}`)).status).toBe(404);
    }
  });

  test("every client is understood: any Accept, a slash after the path, and older revisions", async () => {
    for (const Accept of ["*/*", "application/json, */*;q=0.1", FORM.Accept])
      expect((await post(hub, PING, { ...WITH_SECRET, Accept })).status).toBe(200);
    expect((await post(hub, PING, { ...WITH_SECRET, Accept: "text/html" })).status).toBe(406);
    const nulls = { name: "hub_status", arguments: null, _meta: { progressToken: null } };
    const calls = [
      { ...PING, params: null },
      { ...PING, method: "tools/list", params: { cursor: null, _meta: null } },
      { ...PING, method: "tools/call", params: nulls },
      { ...PING, method: "tools/call", params: { ...nulls, _meta: { progressToken: 0 } } },
    ];
    for (const [Accept, type] of [
      ["application/json", "application/json"],
      ["text/event-stream", "text/event-stream"],
    ] as const)
      for (const call of calls) {
        const answer = await post(hub, call, { ...WITH_SECRET, Accept });
        expect([call, answer.headers.get("content-type")]).toEqual([call, type]);
        const text = (await answer.text()).replace(/^[^]*\ndata: /, "");
        expect(JSON.parse(text)).toMatchObject({ id: 1, result: expect.anything() });
      }
    const options = { method: "POST", headers: { ...FORM, ...WITH_SECRET }, body: JSON.stringify(PING) };
    expect((await fetch(`${hub.base()}/mcp/`, options)).status).toBe(200);
    for (const protocolVersion of ["2025-06-18", "2025-03-26", "2024-11-05"]) {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } };
      const answer = await post(hub, { jsonrpc: "2.0", id: 1, method: "initialize", params }, WITH_SECRET);
      expect(await answer.text()).toContain(`"protocolVersion":"${protocolVersion}"`);
    }
  });

  test("the secret comes as a bearer token or as X-Matrix-Secret", async () => {
    expect((await post(hub, PING, WITH_SECRET)).status).toBe(200);
    expect((await post(hub, PING, { Authorization: `Bearer ${SECRET}` })).status).toBe(200);
    expect((await post(hub, PING, { Authorization: "Bearer wrong" })).status).toBe(401);
  });

  test("a viewer is 403", async () => {
    const secret = await addKey(hub, "looks", { role: "viewer" });
    const answer = await post(hub, PING, { "X-Matrix-Secret": secret });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ error: "viewer_not_allowed" });
  });

  test("a key of a node speaks as that node, and as no other", async () => {
    const secret = await addKey(hub, "bound", { node_id: "bound-1" });
    await using agent = await Agent.connect(hub.base(), "bound-1", "2026-07-28", {
      Authorization: `Bearer ${secret}`,
    });
    expect(record((await agent.ok("hub_status"))["you"])["node_id"]).toBe("bound-1");
    const taskId = await create(agent);
    expect((await hub.taskOf(taskId))["creator_node"]).toBe("bound-1");
    const asOther = await post(hub, PING, { "X-Matrix-Secret": secret, "X-Node-Id": "other" });
    expect(asOther.status).toBe(403);
    expect(await asOther.json()).toMatchObject({ error: "key_bound_to_other_node" });
    await agent.ok("mail_send", { to_node: "bound-1", content: "hello" });
    expect(list(await agent.ok("mail_check"), "messages")).toMatchObject([{ verified: true }]);
  });

  test("without a node an agent can look and create, and is told how to name one", async () => {
    await using agent = await Agent.connect(hub.base(), "", "2026-07-28", WITH_SECRET);
    expect(await agent.ok("hub_status")).toMatchObject({ you: null });
    const taskId = await create(agent);
    expect(record((await agent.ok("task_get", { task_id: taskId }))["task"])).toMatchObject({
      creator_node: "the operator",
    });
    const { isError, say } = await agent.call("task_next");
    expect(isError).toBe(true);
    expect(say).toContain("X-Node-Id: is missing, and this tool acts for a node. Tell your user: ");
    await using bad = await Agent.connect(hub.base(), "not an id");
    expect((await bad.call("hub_status")).say).toContain("X-Node-Id: must");
  });

  test("a page of another origin is 403, also with the secret", async () => {
    const host = new URL(hub.base()).host;
    const cases: readonly (readonly [origin: string, host: string, status: number])[] = [
      ["https://evil.example", host, 403],
      ["null", host, 403],
      [`http://${host}`, host, 200],
      [`https://${host}x`, host, 403],
      ["http://evil.example", "evil.example", 403], // a name that was rebound to the hub's address
    ];
    for (const [origin, named, status] of cases) {
      const answer = await post(hub, PING, { ...WITH_SECRET, Origin: origin, Host: named });
      expect([origin, named, answer.status]).toEqual([origin, named, status]);
    }
    await using open = await startHub({ cors: ["https://app.example"] });
    expect((await post(open, PING, { ...WITH_SECRET, Origin: "https://app.example" })).status).toBe(200);
  });

  test("wrong secrets count as they do elsewhere, and calls are in the metrics and the log", async () => {
    await using other = await startHub();
    for (let i = 1; i < 20; i++)
      expect((await post(other, PING, { Authorization: `Bearer wrong-${i}` })).status).toBe(401);
    const answer = await post(other, PING, { Authorization: "Bearer wrong-20" });
    expect([answer.status, answer.headers.has("retry-after")]).toEqual([429, true]);
    const metrics = await fetch(`${other.base()}/metrics`, { headers: WITH_SECRET });
    expect(await metrics.text()).toContain('endpoint="/mcp",status="429"} 1');
    await until("the calls are logged", async () => other.logged.join("").includes('"/mcp"'));
  });

  test("a body that is not a message of the protocol is refused", async () => {
    const broken = await post(hub, "{", WITH_SECRET);
    expect(broken.status).toBe(400);
    expect(await broken.json()).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32_700 } });
    const several = await post(hub, [PING, PING], WITH_SECRET);
    expect([several.status, await several.json()]).toMatchObject([
      400,
      { id: null, error: { code: -32_600 } },
    ]);
    for (const [method, params] of [
      ["initialize", {}],
      ["initialize", undefined],
      ["tools/list", { cursor: 5 }],
      ["tools/call", { name: "hub_status", arguments: [] }],
    ] as const)
      for (const Accept of [FORM.Accept, "application/json"]) {
        const answer = await post(hub, { ...PING, method, params }, { ...WITH_SECRET, Accept });
        expect(await answer.text()).toContain('"error":{"code":-32602,');
      }
    const large = await post(hub, { ...PING, params: { x: "x".repeat(2 ** 20) } }, WITH_SECRET);
    expect(large.status).toBe(413);
    const get = await fetch(`${hub.base()}/mcp`, { headers: WITH_SECRET });
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
    for (const rounded of [
      `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
      `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":9007199254740993}}}`,
    ]) {
      const answer = await post(hub, rounded, WITH_SECRET);
      expect([answer.status, await answer.json()]).toMatchObject([
        400,
        { id: null, error: { code: -32_600 } },
      ]);
    }
    const listen = await modern(hub, "subscriptions/listen", { notifications: {} });
    expect(await listen.json()).toMatchObject({ error: { code: -32_601 } });
    const deep = `{"id":${"[".repeat(49_000)}${"]".repeat(49_000)},"method":"subscriptions/listen"}`;
    expect(await (await post(hub, deep, WITH_SECRET)).json()).toMatchObject({ id: null });
  });

  test("--mcp off", async () => {
    await using off = await startHub({ mcp: false });
    expect((await post(off, PING, WITH_SECRET)).status).toBe(404);
  });
});

describe("a node that joins through MCP", () => {
  test("is registered by its first call, and offline after 900 s of silence", async () => {
    await using hub = await startHub();
    await using agent = await Agent.connect(hub.base(), "thinker");
    expect((await hub.get("/node/thinker")).status).toBe(404); // connecting is no call of a tool
    await agent.ok("node_list");
    expect(await hub.nodeOf("thinker")).toMatchObject({ status: "online", auto_assign: false });
    const taskId = await create(agent);
    await agent.ok("task_next");
    for (const [seconds, status] of [
      [840, "online"],
      [840, "online"], // the call between was a heartbeat
      [960, "offline"],
    ] as const) {
      for (let passed = 0; passed < seconds; passed += 60) {
        hub.clock.pass(Math.min(60, seconds - passed) * SECOND_MS);
        await hub.sweep();
      }
      expect((await hub.nodeOf("thinker"))["status"]).toBe(status);
      if (status === "online") await agent.ok("mail_check");
    }
    expect(await hub.taskOf(taskId)).toMatchObject({ status: "open", attempts: 1 });
    expect(await ok(hub.post("/node/heartbeat", { node_id: "thinker" }))).toMatchObject({
      heartbeat_interval: 300,
    });
  });

  test("a node that registered over HTTP keeps its interval", async () => {
    await using hub = await startHub();
    await hub.addNode("n1");
    await using agent = await Agent.connect(hub.base(), "n1");
    await agent.ok("hub_status");
    expect(await ok(hub.post("/node/heartbeat", { node_id: "n1" }))).toMatchObject({
      heartbeat_interval: 60,
    });
  });
});

describe("the list of tools", () => {
  let hub: TestHub;
  beforeAll(async () => void (hub = await startHub()));
  afterAll(() => hub.close());

  test("is short: every conversation of every agent holds it", async () => {
    const tools: string[] = [];
    for (const era of ERAS) {
      await using agent = await Agent.connect(hub.base(), "n1", era);
      const answer = await agent.client.listTools();
      const json = JSON.stringify(answer.tools);
      const shown = answer.tools.map(({ name, description, inputSchema }) => ({
        name,
        description,
        inputSchema,
      }));
      expect(JSON.stringify(shown).length / 4).toBeLessThan(2_500); // the rest clients keep to themselves
      expect(json).not.toMatch(/\$schema|9007199254740991/);
      expect(json).not.toMatch(/"type":"array"(?!,"items")/); // models refuse a request with such a tool
      tools.push(json);
      const names = answer.tools.map(({ name }) => name);
      expect(names.length).toBeLessThanOrEqual(24);
      const page = readFileSync(join(import.meta.dir, "../../docs/mcp.md"), "utf8");
      const rows = page.slice(page.indexOf("<!-- tools -->"), page.indexOf("<!-- /tools -->"));
      const shownNames = [...rows.matchAll(/`(\w+)`/g)].map(([, name]) => name);
      expect(shownNames.toSorted()).toEqual(names.toSorted());
      for (const { name, description = "", inputSchema, annotations } of answer.tools) {
        expect(description).toMatch(/^[A-Z].{30,}\.$/);
        expect(Object.keys(inputSchema.properties ?? {})).not.toContain("from_node");
        for (const property of Object.values(inputSchema.properties ?? {}))
          expect(["type", "anyOf"].some((key) => Object.hasOwn(record(property), key))).toBeTrue();
        const reads = /^(?:hub_status|\w+_(?:list|get|wait|check))$/.test(name);
        expect({ name, ...annotations }).toEqual({
          name,
          readOnlyHint: reads,
          destructiveHint: name === "task_cancel",
          idempotentHint: true,
          openWorldHint: false,
        });
      }
    }
    expect(tools[0]).toBe(tools[1] ?? "");
  });

  test("is found by what one searches for, because most clients show only what they have found", async () => {
    await using agent = await Agent.connect(hub.base(), "n1");
    const { tools } = await agent.client.listTools();
    const find = searchOver(tools);
    for (const [query, tool] of [
      ["lock file edit conflict", "lease"],
      ["lock files before editing", "lease"],
      ["work queue task", "task_next"],
      ["claim next task", "task_next"],
      ["report progress", "task_progress"],
      ["finish task with result", "task_complete"],
      ["complete my task", "task_complete"],
      ["create subtasks for other agents", "task_create"],
      ["delegate work to another agent", "task_create"],
      ["wait for results of subtasks", "task_wait"],
      ["send message to another agent", "mail_send"],
      ["read my mail messages", "mail_check"],
      ["ask human question", "task_ask"],
      ["review result", "task_review"],
      ["shared memory notes", "note"],
      ["store file", "file_put"],
    ] as const)
      expect([query, find(query).slice(0, 5)]).toEqual([query, expect.arrayContaining([tool])]);
    const meta = (name: string) => tools.flatMap(({ name: tool, _meta }) => (_meta?.[name] ? [tool] : []));
    expect(meta("anthropic/alwaysLoad")).toEqual([
      "task_next",
      "task_progress",
      "task_complete",
      "task_create",
      "task_wait",
      "mail_send",
      "mail_check",
    ]);
    expect(meta("anthropic/searchHint")).toEqual(["lease"]);
    const beginning = agent.client.getInstructions()?.slice(0, 250) ?? "";
    for (const tool of ["task_next", "task_complete", "task_create", "task_wait", "mail_send", "mail_check"])
      expect(beginning).toContain(tool);
  });

  test("has no usage, which a model does not know and would invent", async () => {
    await using agent = await Agent.connect(hub.base(), "n1");
    expect(JSON.stringify((await agent.client.listTools()).tools)).not.toContain("usage");
  });

  test("may be cached in the revision of 2026, because it never changes", async () => {
    for (const method of ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]) {
      const answer = await modern(hub, method);
      expect(answer.headers.get("content-type")).toContain("application/json");
      expect(await answer.json()).toMatchObject({ result: { ttlMs: 3_600_000, cacheScope: "public" } });
    }
    const discovered = await modern(hub, "server/discover");
    expect(await discovered.json()).toMatchObject({ result: { supportedVersions: ["2026-07-28"] } });
  });

  test("task_ask waits for the answer, is safe to repeat, and parks the task", async () => {
    await using agent = await Agent.connect(hub.base(), "n1");
    await using boss = await Agent.connect(hub.base(), "boss");
    const { task_id } = await boss.ok("task_create", { title: "t", description: "d" });
    await agent.ok("task_next", { task_id });
    const asking = { task_id, question: "Which?", choices: ["a", "b"] };
    const waiting = agent.ok("task_ask", asking);
    const shown = async () => record((await boss.ok("task_get", { task_id }))["task"]);
    const answersOf = async () => list(record((await shown())["context"] ?? { answers: [] }), "answers");
    let [open] = await answersOf();
    while (open === undefined) [open] = await answersOf();
    expect(await shown()).toMatchObject({ status: "assigned", waiting_for: "answer" });
    const { question_id } = open;
    await boss.ok("task_answer", { task_id, question_id, answer: { is: "b" } });
    expect(await waiting).toMatchObject({ question: { state: "answered", answer: { is: "b" } } });
    // The response was lost: the same call has the same answer, and asks nobody again.
    const repeated = await agent.ok("task_ask", asking);
    expect(repeated).toMatchObject({ question: { question_id, answer: { is: "b" } } });
    expect(repeated["say"]).toStartWith("You asked this before");
    const parked = await agent.ok("task_ask", { ...asking, park: true });
    expect(parked).toMatchObject({ question: { state: "open" } });
    expect(parked["say"]).toContain("you no longer hold it");
    expect(await shown()).toMatchObject({ status: "open", ready: false });
    await boss.ok("task_cancel", { task_id });
  });

  test("an argument that is wrong, missing or none of the tool's is named", async () => {
    await using agent = await Agent.connect(hub.base(), "n1");
    const named = async (tool: string, args: Record<string, unknown>): Promise<readonly string[]> => {
      const { data, say } = await agent.call(tool, args);
      expect([tool, data["error"]]).toEqual([tool, "invalid_request"]);
      return [...say.matchAll(/(?:^|[.;] )([a-z_.0-9]+): /g)].map(([, path = ""]) => path);
    };
    const wrong = { title: 1, creator: "n2", priority: "urgent" };
    expect(await named("task_create", wrong)).toEqual(["description", "title", "creator", "priority"]);
    expect(await named("task_create", { tasks: [{ title: "t" }, { creator: "x", title: 2 }] })).toEqual([
      "tasks.1.creator",
      "tasks.1.title",
    ]);
    expect(await named("task_create", { tasks: ["t"] })).toEqual(["tasks"]);
    expect(await named("task_complete", { task_id: "x", ...RESULT, lesson: " " })).toEqual(["lesson"]);
    const large = { task_id: "x", ...RESULT, output: "x".repeat(66_000) };
    expect(await named("task_complete", large)).toEqual(["output"]);
    // Lists, numbers and booleans come as texts, too.
    const liberal = await agent.ok("task_create", {
      title: "t",
      description: "d",
      tags: '["a", "b"]',
      files: "[]",
    });
    expect((await hub.taskOf(taskIdOf(liberal)))["tags"]).toEqual(["a", "b"]);
    const { say: woken } = await agent.call("task_wait", { task_ids: taskIdOf(liberal) });
    expect(woken).toStartWith("0 completed, 0 failed, 1 not ended.");
    await agent.ok("task_cancel", { task_id: taskIdOf(liberal) });
    await expect(agent.call("task_steal")).rejects.toThrow("Unknown tool");
    const unknown = await agent.call("task_get", { task_id: "x" });
    expect(unknown.say).toBe("There is no task x. Check the task_id: task_list shows the tasks.");
  });
});

for (const era of ERAS)
  describe(`an agent of ${era}`, () => {
    let hub: TestHub;
    let agent: Agent;
    beforeAll(async () => {
      hub = await startHub();
      agent = await Agent.connect(hub.base(), "a1", era);
    });
    afterAll(async () => {
      await agent.client.close();
      await hub.close();
    });

    test("works: next, progress, complete", async () => {
      await hub.addNode("boss");
      const taskId = await hub.addTask({ creator_node: "boss", title: "build", priority: 0, lux_reward: 2 });
      const { say, data } = await agent.call("task_next");
      expect(say).toStartWith("This task is yours. End it with task_complete,");
      const creator = { creator_node: "boss", creator_verified: false, title: "build", description: "d" };
      expect(data["task"]).toMatchObject({
        task_id: taskId,
        priority: "high",
        assigned_node: "a1",
        ...creator,
      });
      await agent.ok("task_progress", { task_id: taskId, note: "half" });
      expect((await hub.taskOf(taskId))["progress"]).toBe("half");
      const output = { rows: [1, { deep: null }] };
      expect(await agent.ok("task_complete", { task_id: taskId, ...RESULT, output })).toEqual({
        say: "Completed. Call task_next for the next task.",
        task_id: taskId,
        status: "completed",
        lux_paid: 2,
      });
      expect((await hub.taskOf(taskId))["result"]).toEqual({ ...RESULT, output });
      expect((await agent.call("task_next")).say).toStartWith("No task for you now.");
    });

    test("reports usage with each tool that a worker reports with, and a repeat counts once", async () => {
      const taskId = await hub.addTask({ max_cost_usd: 2, backoff_s: 0 });
      const args = { task_id: taskId, note: "n" };
      const usage = { seq: 1, model: "large", input_tokens: 100, output_tokens: 10, cost_usd: 0.5 };
      await agent.ok("task_next", { task_id: taskId });
      expect(await agent.ok("task_progress", { ...args, usage })).toMatchObject({ budget_left_usd: 1.5 });
      const unpriced = { ...usage, seq: 2, cost_usd: null };
      const { say } = await agent.call("task_progress", { ...args, usage: [usage, unpriced] });
      expect(say).toContain("It may cost 1.5 USD more.");
      await agent.ok("task_fail", { task_id: taskId, error: "e", usage: { ...usage, seq: 3 } });
      await agent.ok("task_next", { task_id: taskId });
      await agent.ok("task_release", { task_id: taskId, usage });
      await agent.ok("task_next", { task_id: taskId });
      const wrong = await agent.call("task_complete", { task_id: taskId, ...RESULT, usage: {} });
      expect(wrong.say).toMatch(/usage.*seq/);
      await agent.ok("task_complete", { task_id: taskId, ...RESULT, usage });
      expect((await hub.taskOf(taskId))["usage"]).toEqual({
        input_tokens: 500,
        output_tokens: 50,
        cached_tokens: 0,
        cost_usd: 2,
        reports: 5,
        without_cost: 1,
      });
    });

    test("says that a task which has cost too much has failed", async () => {
      const usage = { seq: 1, model: "large", input_tokens: 1, output_tokens: 1, cost_usd: 0.5 };
      for (const [name, more, words] of [
        ["task_progress", { note: "n" }, "The task has cost more than it may, and has failed: drop it."],
        ["task_release", {}, "Your attempt is recorded as failed."],
      ] as const) {
        const taskId = await hub.addTask({ max_cost_usd: 0.1 });
        await agent.ok("task_next", { task_id: taskId });
        const { say, data } = await agent.call(name, { task_id: taskId, ...more, usage });
        expect(say).toStartWith(words);
        expect(data["task"]).toMatchObject({ status: "failed", failure: "budget" });
      }
    });

    test("counts in words, of one and of many", async () => {
      await using counting = await Agent.connect(hub.base(), "counting", era);
      const said = async (): Promise<string> => (await counting.call("hub_status")).say;
      expect(await said()).toContain("you hold 0 tasks, and 0 messages wait for you (");
      const taskId = await create(counting);
      await counting.ok("task_next", { task_id: taskId });
      await counting.ok("mail_send", { to_node: "counting", content: "x" });
      expect(await said()).toContain("you hold 1 task, and 1 message waits for you (");
      await counting.ok("task_cancel", { task_id: taskId });
    });

    test("keeps every digit of an output, both ways", async () => {
      const taskId = await create(agent);
      await agent.ok("task_next", { task_id: taskId });
      const output = '{"id":12345678901234567890,"share":[0.1000000000000000055511151231257827,1e400],"n":7}';
      const texts = JSON.stringify({ task_id: taskId, ...RESULT });
      const call = (name: string, args: string) =>
        post(
          hub,
          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
          { ...WITH_SECRET, "X-Node-Id": "a1" },
        ).then((answer) => answer.text());
      const deep = `${"[".repeat(49_000)}1e400${"]".repeat(49_000)}`;
      expect(await call("task_complete", `${texts.slice(0, -1)},"output":${deep}}`)).toContain(
        "output: must not be nested deeper than 64",
      );
      expect(await call("task_complete", `${texts.slice(0, -1)},"output":${output}}`)).toContain(
        "Completed.",
      );
      const stored = await fetch(`${hub.base()}/api/v1/task/${taskId}`);
      expect(await stored.text()).toContain(`"output":${output}`);
      const shown = await call("task_get", JSON.stringify({ task_id: taskId }));
      expect(shown).toContain(`"output":${output}`); // the structured content
      expect(shown).toContain(JSON.stringify(`"output":${output}`).slice(1, -1)); // and the text
    });

    test("chooses, gives back, fails and cancels", async () => {
      const taskId = await create(agent, { task_type: "odd" });
      expect((await agent.ok("task_next", { task_id: taskId }))["task"]).toMatchObject({ task_type: "odd" });
      await agent.ok("task_release", { task_id: taskId, reason: "no tool" });
      expect(await hub.taskOf(taskId)).toMatchObject({ status: "open", attempts: 0 });
      await agent.ok("task_next", { task_id: taskId });
      await agent.ok("task_fail", { task_id: taskId, error: "broken", retry: false });
      expect(await hub.taskOf(taskId)).toMatchObject({ status: "failed", failure: { message: "broken" } });
      expect(await agent.refused("task_complete", { task_id: taskId, ...RESULT })).toBe("task_failed");
      const other = await create(agent);
      await agent.ok("task_cancel", { task_id: other, reason: "not needed" });
      expect((await hub.taskOf(other))["failure"]).toMatchObject({
        kind: "cancelled",
        message: "not needed",
      });
    });

    test("lists tasks by pages", async () => {
      await hub.addNode("lister");
      const created: string[] = [];
      for (let i = 0; i < 5; i++)
        created.push(await hub.addTask({ creator_node: "lister", title: `page ${i}` }));
      const shown: unknown[] = [];
      let cursor: unknown = null;
      do {
        const page: Record<string, unknown> = await agent.ok("task_list", {
          creator_node: "lister",
          limit: 2,
          cursor,
        });
        shown.push(...list(page, "tasks").map((task) => task["task_id"]));
        cursor = page["next_cursor"];
      } while (cursor !== null);
      expect(shown).toEqual(created.toReversed());
      expect((await agent.call("task_list", { q: "page", status: "open", limit: "1" })).say).toContain(
        "There are more: call again with cursor next_cursor.",
      );
      for (const taskId of created) await agent.ok("task_cancel", { task_id: taskId });
    });

    test("changes its profile, and leaves the rest as it is", async () => {
      await agent.ok("node_update", { name: "The agent", capabilities: ["x", "y"] });
      const { node } = await agent.ok("node_update", { max_tasks: 3, drain: true });
      expect(node).toMatchObject({
        name: "The agent",
        capabilities: ["x", "y"],
        max_tasks: 3,
        draining: true,
      });
      expect((await agent.call("task_next")).say).toContain("you drain");
      await agent.ok("node_update", { drain: false, capabilities: [] });
      const { nodes } = await agent.ok("node_list", { online: true, limit: 50 });
      expect(nodes).toContainEqual(expect.objectContaining({ node_id: "a1", name: "The agent" }));
    });

    test("sends, sees and acknowledges messages", async () => {
      await hub.addNode("friend");
      const sent = await agent.ok("mail_send", { to_node: "friend", content: "hello", require_ack: true });
      expect(sent["message_id"]).toBeString();
      expect(await agent.refused("mail_send", { to_node: "nobody", content: "hello" })).toBe(
        "node_not_found",
      );
      const ids = [await hub.send("friend", "a1", { content: "first" }), await hub.send("friend", "a1")];
      for (let i = 0; i < 2; i++) {
        const messages = list(await agent.ok("mail_check"), "messages");
        expect(messages.map(({ message_id }) => message_id)).toEqual(ids);
        expect(messages[0]).toMatchObject({ from_node: "friend", verified: false, content: "first" });
      }
      const answer = await agent.ok("mail_ack", { message_ids: [ids[0], String(sent["message_id"])] });
      expect(answer).toMatchObject({ acked: [ids[0]], refused: [{ error: "not_your_message" }] });
      expect(pick(await agent.ok("mail_check"), "messages", "message_id")).toEqual([ids[1]]);
      await agent.ok("mail_ack", { message_ids: [ids[1]] });
    });

    test("waits for a task, for the end of one, and for a message", async () => {
      const next = agent.ok("task_next", { wait_s: 25 });
      await until("the call waits", () => hub.waits(1));
      const taskId = await hub.addTask();
      expect(taskIdOf(await next)).toBe(taskId);
      const end = agent.ok("task_get", { task_id: taskId, wait_s: 25 });
      await until("the call waits", () => hub.waits(1));
      await ok(hub.post("/task/complete", { task_id: taskId, node_id: "a1", result: RESULT }));
      expect(record((await end)["task"])["status"]).toBe("completed");
      const mail = agent.ok("mail_check", { wait_s: 25 });
      await until("the call waits", () => hub.waits(1));
      const messageId = await hub.send("op", "a1");
      expect(list(await mail, "messages")).toMatchObject([{ message_id: messageId }]);
      // Nothing was taken out.
      expect(await ok(hub.post("/message/receive", { node_id: "a1" }))).toMatchObject({ count: 1 });
    });

    test("stores and reads files: a text in parts, the rest by URLs without a key", async () => {
      const taskId = await create(agent);
      const put = await agent.ok("file_put", { name: "note.md", content: "# Grüße\n", task_id: taskId });
      const file = record(put["file"]);
      expect(file).toMatchObject({ name: "note.md", node_id: "a1", task_id: taskId, size: 10 });
      expect((await hub.taskOf(taskId))["files"]).toEqual([put["file_id"]]);
      expect(await agent.ok("file_get", { file_id: put["file_id"] })).toMatchObject({ content: "# Grüße\n" });
      const content = Buffer.from([0xff, 0, 0xfe]).toString("base64");
      const image = await agent.ok("file_put", { name: "a.png", content, encoding: "base64" });
      const shown = await agent.ok("file_get", { file_id: image["file_id"] });
      expect(shown).toMatchObject({ base64: content, file: { content_type: "image/png" } });

      const whole = "Straße ".repeat(10_000);
      const asked = await agent.ok("file_put", { name: "large.txt" });
      expect(String(asked["command"])).toEndWith(`'${String(asked["url"])}'`);
      const form = new FormData();
      form.set("file", new Blob([whole]), "large.txt");
      const uploaded = await fetch(String(asked["url"]), { method: "POST", body: form });
      const { file_id } = record(await uploaded.json());
      let text = "";
      for (let offset: unknown = 0; offset !== undefined;) {
        const part = await agent.ok("file_get", { file_id, offset });
        text += String(part["content"]);
        expect(await (await fetch(String(part["url"]))).text()).toBe(whole);
        offset = part["cut"] === undefined ? undefined : list(part, "cut")[0]?.["offset"];
      }
      expect(text).toBe(whole);
      const listed = await agent.ok("file_get", { limit: 1 });
      expect(pick(listed, "files", "file_id")).toEqual([file_id]);
      const rest = await agent.ok("file_get", { cursor: listed["next_cursor"] });
      expect(pick(rest, "files", "file_id").slice(0, 2)).toEqual([image["file_id"], put["file_id"]]);
      expect(pick(await agent.ok("file_get", { task_id: taskId }), "files", "name")).toEqual(["note.md"]);
      const pasted = { name: "large.txt", task_id: "'; rm -rf x; '" };
      expect(await agent.refused("file_put", pasted)).toBe("task_not_found");
      const tooLarge = { name: "large.txt", content: "x".repeat(64 * 1024 + 1) };
      expect((await agent.call("file_put", tooLarge)).text).toContain("leave it out");
      expect(await agent.refused("file_put", { name: "a/b", content: "" })).toBe("invalid_request");
      expect(await agent.refused("file_get", { file_id: "none" })).toBe("file_not_found");
      await agent.ok("task_cancel", { task_id: taskId });
    });

    test("creates a task with its files; its worker tells inputs from outputs", async () => {
      const { file } = await agent.ok("file_put", { name: "in.txt", content: "input" });
      const input = String(record(file)["file_id"]);
      const taskId = await create(agent, { files: [input], priority: "high" });
      await agent.ok("task_next", { task_id: taskId });
      const put = await agent.ok("file_put", { name: "out.txt", content: "output", task_id: taskId });
      const output = String(record(put["file"])["file_id"]);
      await agent.ok("task_release", { task_id: taskId });
      // A file of another task is copied, once for a call and its repeats, and not for one that is refused.
      const again = { title: "t", description: "d", files: [input, output], key: era };
      const copied = taskIdOf(await agent.ok("task_create", again));
      expect(await agent.ok("task_create", again)).toMatchObject({ repeated: true });
      expect(await agent.refused("task_create", { ...again, depends_on: ["none"] })).toBe("invalid_request");
      const copies = list(await agent.ok("file_get"), "files").filter(({ name }) => name === "in.txt");
      expect(copies.slice(0, 2)).toMatchObject([{ task_id: copied }, { file_id: input }]);
      const other = await Agent.connect(hub.base(), `other-${era}`, era);
      await other.ok("task_next", { task_id: taskId });
      expect((await other.ok("task_next"))["task"]).toMatchObject({
        files: [{ file_id: input, name: "in.txt", size: 5 }],
        outputs: [{ file_id: output, name: "out.txt", size: 6 }],
      });
      await agent.ok("task_cancel", { task_id: copied });
      await other.ok("task_cancel", { task_id: taskId });
      await other.client.close();
    });

    test("shows the first of many dependencies, and what a task waits for", async () => {
      const many = await hub.addTasks(30, { task_type: "none" });
      const taskId = await create(agent, { depends_on: many });
      expect((await agent.ok("task_get", { task_id: taskId }))["task"]).toMatchObject({
        depends_on: many.slice(0, 20),
        depends_on_count: 30,
        unmet: { count: 30, task_ids: many.slice(0, 20) },
      });
      await agent.ok("task_cancel", { task_id: taskId });
      for (const task_id of many) await ok(hub.post("/task/cancel", { task_id }));
    });

    test("reads resources, and gets the prompt", async () => {
      const taskId = await create(agent);
      const read = async (uri: string): Promise<Record<string, unknown>> => {
        const [first] = (await agent.client.readResource({ uri })).contents;
        if (first === undefined || !("text" in first)) throw new Error(`${uri} is no text`);
        return JSON.parse(first.text);
      };
      expect(await read(`luxhub://task/${taskId}`)).toMatchObject({ task_id: taskId, status: "open" });
      const newest = await read("luxhub://events");
      expect(list(newest, "events").at(-1)).toMatchObject({ kind: "task.created", task_id: taskId });
      expect(await read(`luxhub://events?since=${newest["cursor"]}`)).toMatchObject({ events: [] });
      const { file } = await agent.ok("file_put", { name: "a.txt", content: "text" });
      const fileUri = `luxhub://file/${record(file)["file_id"]}`;
      expect((await agent.client.readResource({ uri: fileUri })).contents).toMatchObject([{ text: "text" }]);
      for (const uri of [
        "luxhub://task/none",
        "luxhub://file/none",
        "luxhub://nothing",
        "file:///etc/passwd",
      ])
        await expect(agent.client.readResource({ uri })).rejects.toThrow("not found");
      const { resources } = await agent.client.listResources();
      const { resourceTemplates } = await agent.client.listResourceTemplates();
      expect([resources.length, resourceTemplates.length]).toEqual([1, 3]);

      const { prompts } = await agent.client.listPrompts();
      expect(prompts.map(({ name }) => name)).toEqual(["work_for_this_hub"]);
      const { tools } = await agent.client.listTools();
      const prompt = { name: "work_for_this_hub", arguments: { task_types: "a, b" } };
      const [message] = (await agent.client.getPrompt(prompt)).messages;
      const text = message?.content.type === "text" ? message.content.text : "";
      expect(text).toContain('task_next {wait_s: 50, task_types: ["a","b"]}');
      for (const [named] of text.matchAll(/\b(?:task|mail|file|node|hub)_[a-z]+\b/g))
        expect(["task_id", "task_types", ...tools.map(({ name }) => name)]).toContain(named);
      await agent.ok("task_cancel", { task_id: taskId });
    });
  });

describe("a call that waits long", () => {
  /** The notifications and the result of a call, as events of a stream. */
  async function* framesOf(response: Response): AsyncGenerator<Record<string, unknown>, void, undefined> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
        const [, data] = /^data: (.+)$/m.exec(text.slice(0, end)) ?? [];
        text = text.slice(end + 2);
        if (data !== undefined) yield record(JSON.parse(data));
      }
    }
  }

  /** Calls a tool as a client of either revision that wants to hear of its progress. */
  function callWithProgress(
    hub: TestHub,
    era: (typeof ERAS)[number],
    name: string,
    args: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<Response> {
    const isModern = era === "2026-07-28";
    const params = {
      name,
      arguments: args,
      _meta: { progressToken: "p1", ...(isModern ? MODERN_META : {}) },
    };
    const headers = {
      ...FORM,
      ...WITH_SECRET,
      "X-Node-Id": "a1",
      "MCP-Protocol-Version": era,
      ...(isModern ? { "Mcp-Method": "tools/call", "Mcp-Name": name } : {}),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params });
    return fetch(`${hub.base()}/mcp`, { method: "POST", headers, body, ...(signal ? { signal } : {}) });
  }

  test.each(ERAS)("tells a client of %s of its progress, and then the result", async (era) => {
    await using hub = await startHub();
    const response = await callWithProgress(hub, era, "task_next", { wait_s: 1_000 });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const frames = framesOf(response);
    expect((await frames.next()).value).toMatchObject({
      method: "notifications/progress",
      params: { progressToken: "p1", progress: 0, total: 240 },
    });
    await until("it waits", () => hub.waits(1));
    const taskId = await hub.addTask();
    const result = record(record((await frames.next()).value)["result"]);
    expect(taskIdOf(record(result["structuredContent"]))).toBe(taskId);
    expect((await frames.next()).done).toBe(true);
    // A call that need not wait has its result alone.
    const quick = await callWithProgress(hub, era, "task_next", { wait_s: 200 });
    expect(await quick.text()).not.toContain("notifications/progress");
  });

  test.each(ERAS)("loses no task when a client of %s hangs up", async (era) => {
    await using hub = await startHub();
    const hangUp = new AbortController();
    const response = await callWithProgress(hub, era, "task_next", { wait_s: 200 }, hangUp.signal);
    await framesOf(response).next();
    await until("it waits", () => hub.waits(1));
    hangUp.abort();
    await until("the hub has noticed", () => hub.waits(0));
    const taskId = await hub.addTask();
    expect(await hub.taskOf(taskId)).toMatchObject({ status: "open" });
  });

  test("is cut, and not refused, when it asks for more than it may", async () => {
    await using hub = await startHub();
    await using agent = await Agent.connect(hub.base(), "a1");
    const next = agent.ok("task_next", { wait_s: 1_000 });
    await until("it waits", () => hub.waits(1));
    const taskId = await hub.addTask();
    expect(taskIdOf(await next)).toBe(taskId);
  });
});

describe("a call that is repeated", () => {
  let hub: TestHub;
  let agent: Agent;
  beforeAll(async () => {
    hub = await startHub();
    agent = await Agent.connect(hub.base(), "a1");
    await hub.addNode("friend");
  });
  afterAll(async () => {
    await agent.client.close();
    await hub.close();
  });

  test("task_next: its last hand-out, until the agent ends that task or says how it goes", async () => {
    const [first, second] = [await create(agent), await create(agent)];
    for (let i = 0; i < 3; i++) expect(taskIdOf(await agent.ok("task_next"))).toBe(first);
    expect((await hub.eventKinds(first)).filter((kind) => kind === "task.assigned")).toHaveLength(1);
    await agent.ok("task_get", { task_id: first });
    expect((await agent.call("task_next")).say).toStartWith(
      "You hold this task, and have said nothing of it",
    );
    await agent.ok("task_progress", { task_id: first, note: "begun" });
    for (let i = 0; i < 2; i++) expect(taskIdOf(await agent.ok("task_next"))).toBe(second);
    await agent.ok("task_complete", { task_id: first, ...RESULT });
    expect(await agent.ok("task_next")).not.toHaveProperty("drain");
    await agent.ok("node_update", { drain: true });
    expect(await agent.ok("task_next")).toMatchObject({ task: { task_id: second }, drain: true });
    await agent.ok("node_update", { drain: false });
    // It is taken from the agent, so there is nothing to repeat.
    await ok(hub.admin("/task/delete", { task_id: second }));
    expect(await agent.ok("task_next")).toMatchObject({ task: null });
  });

  test("task_next at a hub that was restarted", async () => {
    const dataDir = newDataDir();
    const taskIds: unknown[] = [];
    for (let run = 0; run < 2; run++) {
      await using hub = await startHub({ dataDir });
      await using agent = await Agent.connect(hub.base(), "a1");
      if (run === 0) for (let i = 0; i < 2; i++) await create(agent);
      taskIds.push(taskIdOf(await agent.ok("task_next")));
    }
    expect(taskIds[1]).toBe(taskIds[0]);
    await using hub = await startHub({ dataDir });
    await using agent = await Agent.connect(hub.base(), "a1");
    await agent.ok("task_progress", { task_id: taskIds[0], note: "begun" }); // so it is not repeated
    expect(taskIdOf(await agent.ok("task_next"))).not.toBe(taskIds[0]);
    await hub.close();
    for (let run = 0; run < 2; run++) {
      await using other = await startHub({ dataDir });
      await using same = await Agent.connect(other.base(), "a1");
      await same.ok("task_fail", { task_id: taskIds[0], error: "no luck" });
      expect(await other.taskOf(String(taskIds[0]))).toMatchObject({ status: "open", attempts: 1 });
    }
    rmSync(dataDir, { recursive: true, force: true });
  });

  test("a caller of a waiting task_next that hangs up loses no task", async () => {
    await using one = await Agent.connect(hub.base(), "one");
    const params = { name: "task_next", arguments: { wait_s: 25 } };
    const headers = { ...FORM, ...WITH_SECRET, "X-Node-Id": "other" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const calls = [
      (signal: AbortSignal) => one.client.callTool(params, { signal }),
      (signal: AbortSignal) => fetch(`${hub.base()}/mcp`, { method: "POST", headers, body, signal }),
    ];
    for (const call of calls) {
      const hangUp = new AbortController();
      const next = call(hangUp.signal);
      next.catch(() => {});
      await until("the call waits", () => hub.waits(1));
      hangUp.abort();
      await expect(next).rejects.toThrow();
      await until("the hub has noticed", () => hub.waits(0));
    }
    const taskId = await create(agent);
    expect(taskIdOf(await agent.ok("task_next"))).toBe(taskId);
    await agent.ok("task_complete", { task_id: taskId, ...RESULT });
  });

  test("task_create, mail_send and file_put: done once, unless the call has another key", async () => {
    const calls = [
      ["task_create", { title: "same", description: "d" }, "task"],
      ["mail_send", { to_node: "friend", content: "same" }, "message_id"],
      ["file_put", { name: "same.txt", content: "same" }, "file"],
    ] as const;
    for (const [name, args, field] of calls) {
      const [first, again] = await Promise.all([agent.ok(name, args), agent.ok(name, args)]);
      await using atB = await Agent.connect(hub.base("B"), "a1");
      const third = await atB.ok(name, args);
      expect([name, again[field], third[field]]).toEqual([name, first[field], first[field]]);
      expect([first, again, third].filter((one) => one["repeated"] === true)).toHaveLength(2);
      const other = await agent.ok(name, { ...args, key: "2" });
      expect([name, other["repeated"]]).toEqual([name, undefined]);
      expect(other[field]).not.toEqual(first[field]);
      await using stranger = await Agent.connect(hub.base(), "a2");
      expect((await stranger.ok(name, args))["repeated"]).toBeUndefined();
    }
    hub.clock.pass(10 * MINUTE_MS);
    for (const [name, args] of calls) expect((await agent.ok(name, args))["repeated"]).toBeUndefined();
    for (const task of list(await agent.ok("task_list", { status: "open" }), "tasks"))
      await agent.ok("task_cancel", { task_id: task["task_id"] });
  });

  test("a refusal is not repeated: the next call may succeed", async () => {
    const late = { to_node: "late", content: "hello" };
    expect(await agent.refused("mail_send", late)).toBe("node_not_found");
    await hub.addNode("late");
    expect((await agent.ok("mail_send", late))["repeated"]).toBeUndefined();
  });

  test("task_fail and task_release: once for each hand-out", async () => {
    const taskId = await create(agent, { max_attempts: 9, max_run_s: 86_400 });
    expect(await hub.taskOf(taskId)).toMatchObject({ max_run_s: 86_400 });
    const claim = async (): Promise<void> => {
      hub.clock.pass(MINUTE_MS); // the backoff is over
      await hub.sweep();
      expect(taskIdOf(await agent.ok("task_next"))).toBe(taskId);
    };
    for (const attempt of [1, 2]) {
      await claim();
      for (let i = 0; i < 2; i++) await agent.ok("task_fail", { task_id: taskId, error: "no luck" });
      // In other words: the first ones stand, and the agent hears nothing of a header that it never sent.
      const { isError, say } = await agent.call("task_fail", { task_id: taskId, error: "another" });
      expect([isError, say]).toEqual([
        true,
        "You have ended this attempt before, in other words, and those stand. " +
          "Call task_next for another task.",
      ]);
      expect(await hub.taskOf(taskId)).toMatchObject({ status: "open", attempts: attempt });
    }
    await claim();
    for (let i = 0; i < 2; i++) await agent.ok("task_release", { task_id: taskId });
    expect(await agent.ok("task_next")).toMatchObject({ task: null });
    hub.clock.pass(9 * MINUTE_MS);
    await claim(); // ten minutes later
    expect(await hub.taskOf(taskId)).toMatchObject({ status: "assigned", attempts: 2 });
    await agent.ok("task_cancel", { task_id: taskId });
  });

  test("what a node has released is not offered to it again, however much it is", async () => {
    await using picky = await Agent.connect(hub.base(), "picky");
    const tasks = [...(await hub.addTasks(12)), await hub.addTask({ limit_key: "k" })];
    for (const taskId of tasks) {
      expect(taskIdOf(await picky.ok("task_next"))).toBe(taskId);
      await picky.ok("task_release", { task_id: taskId });
    }
    expect(await picky.ok("task_next")).toMatchObject({ task: null });
    const low = await hub.addTask({ priority: 2 });
    expect(taskIdOf(await picky.ok("task_next"))).toBe(low);
    for (const task_id of [...tasks, low]) await ok(hub.post("/task/cancel", { task_id }));
  });

  test("a task that the node does not hold is neither failed nor released, and the refusal says why", async () => {
    await using stranger = await Agent.connect(hub.base(), "stranger");
    await stranger.ok("hub_status");
    const taskId = await create(agent);
    const end = async (tool: string) => {
      const args = { task_id: taskId, ...(tool === "task_fail" ? { error: "e" } : {}) };
      return stranger.refused(tool, args);
    };
    const ends = async () => [await end("task_fail"), await end("task_release")];
    expect(await ends()).toEqual(["task_not_assigned", "task_not_assigned"]);
    await agent.ok("task_next", { task_id: taskId });
    expect(await ends()).toEqual(["not_assigned_to_node", "not_assigned_to_node"]);
    await agent.ok("task_complete", { task_id: taskId, ...RESULT });
    const { data, say } = await agent.call("task_fail", { task_id: taskId, error: "e" });
    expect([data["error"], say]).toEqual(["task_completed", expect.stringContaining("that stands")]);
    expect(await ends()).toEqual(["not_assigned_to_node", "not_assigned_to_node"]);
  });

  test("many tasks at once: those that are refused are named, and a repeat creates none", async () => {
    const tasks = [
      { ref: "a", title: "a", description: "d" },
      { ref: "b", title: "b", description: " " },
      { title: "c", description: "d", depends_on: ["b"] },
      { title: "d", description: "d", depends_on: ["a"] },
    ];
    const { file_id } = await agent.ok("file_put", { name: "all.txt", content: "for all" });
    const common = { task_type: "none", files: [file_id] };
    const made = await agent.ok("task_create", { tasks, ...common });
    expect(list(made, "tasks").map(({ ref, title, error }) => [ref, title, error])).toEqual([
      ["a", "a", undefined],
      ["b", "b", "invalid_request"],
      [undefined, "c", "ref_refused"],
      [undefined, "d", undefined],
    ]);
    for (const { task_id, error } of list(made, "tasks"))
      if (error === undefined)
        expect(record((await agent.ok("task_get", { task_id }))["task"])["files"]).toMatchObject([
          { name: "all.txt", size: 7 },
        ]);
    expect(await agent.ok("task_create", { tasks, ...common })).toEqual({
      ...made,
      say: expect.stringContaining("You made this very call before"),
      repeated: true,
    });
    for (const { task_id } of list(made, "tasks").toReversed())
      if (task_id !== undefined) await agent.ok("task_cancel", { task_id });
    // Nothing is left of what was copied for tasks that were refused, and for the repeat.
    const files = list(await agent.ok("file_get"), "files").filter(({ name }) => name === "all.txt");
    expect(files.map((file) => file["task_id"] !== undefined)).toEqual([true, true]);
  });

  test("the others change nothing more", async () => {
    const taskId = await create(agent, { lux_reward: 5 });
    const messageId = await hub.send("friend", "a1");
    const before = Number((await hub.nodeOf("a1"))["lux_balance"]);
    for (let i = 0; i < 2; i++) {
      await agent.ok("task_next", { task_id: taskId });
      await agent.ok("task_progress", { task_id: taskId, note: "half" });
      await agent.ok("mail_ack", { message_ids: [messageId] });
      await agent.ok("node_update", { name: "a1" });
    }
    for (let i = 0; i < 2; i++) await agent.ok("task_complete", { task_id: taskId, ...RESULT });
    expect((await hub.nodeOf("a1"))["lux_balance"]).toBe(before + 5);
    const other = await create(agent);
    for (let i = 0; i < 2; i++) await agent.ok("task_cancel", { task_id: other });
    expect((await hub.eventKinds(other)).filter((kind) => kind === "task.failed")).toHaveLength(1);
    expect(await agent.refused("task_complete", { task_id: taskId, ...RESULT, lesson: "another" })).toBe(
      "task_completed",
    );
  });
});

test("three agents share thirty tasks that depend on each other; one is killed; all is done once", async () => {
  await using hub = await startHub();
  await using boss = await Agent.connect(hub.base(), "boss", "2025-11-25");
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) {
    const before = [ids[i - 1], ids[i - 7], ids[Math.floor(i / 2)]].filter((id) => id !== undefined);
    const depends_on = i % 5 === 0 ? [] : [...new Set(before.slice(0, i % 3))];
    ids.push(await create(boss, { title: `step ${i}`, depends_on }));
  }
  const done = new Map<string, string[]>();
  /** Works until there is nothing for it; `dieWith`: is killed when it holds so many-th task. */
  const work = async (nodeId: string, dieWith = Infinity): Promise<void> => {
    await using agent = await Agent.connect(
      hub.base(),
      nodeId,
      nodeId === "w2" ? "2025-11-25" : "2026-07-28",
    );
    for (let taken = 1; ; taken++) {
      const { task } = await agent.ok("task_next");
      if (task === null || taken === dieWith) return;
      const taskId = String(record(task)["task_id"]);
      const needed = record(task)["depends_on"] ?? [];
      for (const id of Array.isArray(needed) ? needed : []) expect(done.get(String(id))).toHaveLength(1);
      if (taken % 3 === 0) await agent.ok("task_progress", { task_id: taskId, note: "half" });
      done.set(taskId, [...(done.get(taskId) ?? []), nodeId]);
      await agent.ok("task_complete", { task_id: taskId, ...RESULT });
    }
  };
  await Promise.all([work("w1"), work("w2"), work("w3", 4)]);
  // The others go on; after 900 s without a call the hub gives the task of the killed one to them.
  for (let minute = 0; done.size < 30 && minute < 20; minute++) {
    hub.clock.pass(MINUTE_MS);
    await hub.sweep();
    await Promise.all([work("w1"), work("w2")]);
  }
  expect([...done.keys()].toSorted()).toEqual(ids.toSorted());
  for (const workers of done.values()) expect(workers).toHaveLength(1);
  const kinds = await hub.eventKinds();
  expect(kinds.filter((kind) => kind === "task.completed")).toHaveLength(30);
  expect(kinds.filter((kind) => kind === "task.requeued")).toHaveLength(1);
});
