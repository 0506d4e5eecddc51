/** `luxhub mcp`, the bridge from stdio to a hub: by the official client, and line by line. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { PROGRAM } from "../support/executable.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { Hub, SECRET, TempDir, objectOf, run, until } from "./program.ts";

const dir = new TempDir();
let hub: Hub;

beforeAll(async () => {
  writeFileSync(dir.join("secret"), `${SECRET}\n`);
  chmodSync(dir.join("secret"), 0o600);
  hub = await start();
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

function start(port = "0"): Promise<Hub> {
  return Hub.start({ data: dir.join("data"), host: OWN_HOST, env: { LUXHUB_PORT: port } });
}

function words(node: string, secret = "secret"): readonly string[] {
  const place = ["--url", `http://${OWN_HOST}:${hub.port}`, "--secret-file", dir.join(secret)];
  return [...PROGRAM, "mcp", ...place, "--node", node];
}

const ENVIRONMENT = { PATH: process.env["PATH"] ?? "", HOME: dir.path };

type Agent = AsyncDisposable & { readonly client: Client; readonly pid: number };

async function connect(
  node: string,
  era: "2025-11-25" | "2026-07-28" = "2025-11-25",
  [command = "", ...args] = words(node),
): Promise<Agent> {
  const transport = new StdioClientTransport({ command, args, env: ENVIRONMENT, cwd: dir.path });
  const mode = era === "2025-11-25" ? "legacy" : { pin: era };
  const client = new Client({ name: node, version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  expect(client.getNegotiatedProtocolVersion()).toBe(era);
  return { client, pid: transport.pid ?? 0, [Symbol.asyncDispose]: () => client.close() };
}

type Called = { readonly text: string; readonly data: Readonly<Record<string, unknown>> };

async function call(
  { client }: Agent,
  name: string,
  args: Record<string, unknown> = {},
  options: Parameters<Client["callTool"]>[1] = {},
): Promise<Called> {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args }, options);
  const [first] = content;
  const text = first?.type === "text" ? first.text : "";
  expect([name, isError === true ? text : "ok"]).toEqual([name, "ok"]);
  return { text, data: objectOf(JSON.stringify(structuredContent)) };
}

/** The bridge with lines that a test writes. */
class Lines implements AsyncDisposable {
  readonly child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly told: string[] = [];
  stderr = "";

  constructor(node: string, more: readonly string[] = []) {
    this.child = Bun.spawn([...words(node), ...more], {
      cwd: dir.path,
      env: ENVIRONMENT,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    void this.#read();
  }

  say(...lines: readonly string[]): void {
    this.child.stdin.write(lines.map((line) => `${line}\n`).join(""));
    void this.child.stdin.flush();
  }

  async #read(): Promise<void> {
    void (async () => {
      for await (const bytes of this.child.stderr) this.stderr += new TextDecoder().decode(bytes);
    })();
    let rest = "";
    for await (const bytes of this.child.stdout) {
      const lines = (rest + new TextDecoder().decode(bytes)).split("\n");
      rest = lines.pop() ?? "";
      this.told.push(...lines);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.child.exited;
  }
}

function request(id: unknown, method: string, params: Record<string, unknown> = {}): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

describe.each(["2025-11-25", "2026-07-28"] as const)("revision %s", (era) => {
  test("tools, resources and prompts, as over HTTP", async () => {
    await using agent = await connect(`all-${era}`, era);
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).toContain("task_next");
    const { data } = await call(agent, "task_create", { title: "T", description: "Ünï", task_type: era });
    const { contents } = await agent.client.readResource({ uri: `luxhub://task/${String(data["task_id"])}` });
    expect(JSON.stringify(contents)).toContain("Ünï");
    const { messages } = await agent.client.getPrompt({ name: "work_for_this_hub", arguments: {} });
    expect(JSON.stringify(messages)).toContain("task_complete");
    await expect(agent.client.callTool({ name: "no_such", arguments: {} })).rejects.toThrow("no_such");
  });

  test("a call that waits is answered when its task comes, and other calls meanwhile", async () => {
    await using agent = await connect(`waits-${era}`, era);
    const type = `waits-${era}`;
    const next = call(agent, "task_next", { wait_s: 50, task_types: [type] });
    await call(agent, "node_list");
    const created = await hub.post("/task/create", { title: "late", description: "d", task_type: type });
    expect((await next).data["task"]).toMatchObject({ task_id: created.body["task_id"] });
  });
});

test("a call survives a hub that is killed and starts again", async () => {
  await using agent = await connect("survivor");
  await call(agent, "hub_status");
  const { port } = hub;
  const waiting = call(agent, "task_next", { wait_s: 50, task_types: ["survivor"] });
  await until(async () => (await hub.get("/node/list")).status === 200);
  hub.program.child.kill("SIGKILL");
  await hub.program.ended;
  const meanwhile = call(agent, "task_create", {
    title: "meanwhile",
    description: "d",
    task_type: "survivor",
  });
  hub = await start(String(port));
  expect((await meanwhile).data["task_id"]).toBeString();
  expect((await waiting).data["task"]).toMatchObject({ title: "meanwhile" });
  const { body } = await hub.get("/task/list?q=meanwhile");
  expect(body["total"]).toBe(1);
});

test("processes for NODE.* are nodes of their own, if the key is for these, and get different tasks", async () => {
  const again = async (name: string): Promise<readonly [Agent, unknown]> => {
    const agent = await connect(name, "2025-11-25", words(`${name}.*`, name));
    const { you } = (await call(agent, "hub_status")).data;
    return [agent, objectOf(JSON.stringify(you))["node_id"]];
  };
  const connected = async (name: string, nodeId: string): Promise<readonly [Agent, unknown]> => {
    const { body } = await hub.admin("/key/add", { name, node_id: nodeId });
    writeFileSync(dir.join(name), String(body["secret"]), { mode: 0o600 });
    return again(name);
  };
  const [first, firstName] = await connected("many", "many.*");
  const [second, secondName] = await again("many");
  expect([firstName, secondName]).toEqual(["many", "many.2"]);
  for (const title of ["a", "b"])
    await hub.post("/task/create", { title, description: "d", task_type: "many" });
  const taskOf = async (agent: Agent): Promise<unknown> =>
    objectOf(JSON.stringify((await call(agent, "task_next", { task_types: ["many"] })).data["task"]))[
      "title"
    ];
  expect([await taskOf(first), await taskOf(second)]).toEqual(["a", "b"]);
  process.kill(first.pid, "SIGKILL");
  await until(async () => !isAlive(first.pid), 10_000);
  const [third, thirdName] = await again("many");
  expect([thirdName, await taskOf(third)]).toEqual(["many", "a"]);
  await third[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();

  const [alone, aloneName] = await connected("alone", "alone");
  const [other, otherName] = await again("alone");
  expect([aloneName, otherName]).toEqual(["alone", "alone"]);
  await alone[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

/** A client that starts a bridge for each line, and when it is connected runs a hook, whose exit code it prints. */
const CLIENT = `
const [bridge, hook, input] = JSON.parse(process.argv[1]);
const first = Bun.spawn(bridge, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
first.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\\n');
await first.stdin.flush();
await first.stdout.getReader().read();
const child = Bun.spawn(hook, { stdin: new Blob([input]), stdout: "inherit", stderr: "ignore" });
console.log(await child.exited);
first.kill();
`;

test("a hook acts for the session of its own client", async () => {
  await using first = await connect("hooked.*");
  expect((await call(first, "lease", { action: "acquire", name: "src/**" })).data["acquired"]).toBe(true);
  const cwd = dir.path;
  const input = { hook_event_name: "PreToolUse", cwd, tool_input: { file_path: dir.join("src/a.ts") } };
  const hook = words("hooked.*").map((word) => (word === "mcp" ? "mcp-hook" : word));
  const codeIn = async (client: readonly string[]): Promise<string> => {
    const child = Bun.spawn([...client], { cwd, env: ENVIRONMENT, stdout: "pipe" });
    return (await child.stdout.text()).trim();
  };
  const asked = JSON.stringify([words("hooked.*"), hook, JSON.stringify(input)]);
  expect(await codeIn([process.execPath, "-e", CLIENT, asked])).toBe("2");
  const own = Bun.spawn(hook, { cwd, env: ENVIRONMENT, stdin: new Blob([JSON.stringify(input)]) });
  expect(await own.exited).toBe(0);
});

test("--task leaves out what a worker does for its agent", async () => {
  await using agent = await connect("of-worker", "2025-11-25", [...words("of-worker"), "--task", "t1"]);
  const { tools } = await agent.client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toContain("task_create");
  for (const name of ["task_next", "task_complete", "task_fail", "task_release", "task_ask", "node_update"]) {
    expect(names).not.toContain(name);
    await expect(agent.client.callTool({ name, arguments: {} })).rejects.toThrow("Unknown tool");
  }
  expect(agent.client.getInstructions()).not.toContain("task_next");
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("notifications about the progress of a long call pass", async () => {
  // A server of HTTP that answers as a hub does, but with its notification at once.
  using server = Bun.serve({
    port: 0,
    hostname: OWN_HOST,
    fetch: async (asked) => {
      const { id } = objectOf(await asked.text());
      const progress = { method: "notifications/progress", params: { progressToken: 7, progress: 1 } };
      const events = [progress, { id, result: { n: 1 } }].map(
        (message) => `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`,
      );
      const body = `: hello\n\n${events.join("")}`;
      return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
    },
  });
  const given = [...PROGRAM, "mcp", "--url", server.url.href];
  const input = new Blob([`${request(1, "tools/call")}\n`]);
  const child = Bun.spawn(given, { env: ENVIRONMENT, cwd: dir.path, stdin: input, stdout: "pipe" });
  expect((await child.stdout.text()).trim().split("\n").map(objectOf)).toMatchObject([
    { method: "notifications/progress" },
    { id: 1, result: { n: 1 } },
  ]);
  expect(await child.exited).toBe(0);
});

test("it ends with its input, also while a call waits, and nothing but messages is on its output", async () => {
  await using lines = new Lines("ends");
  lines.say(
    request(1, "ping"),
    "",
    request("two", "tools/call", { name: "task_next", arguments: { wait_s: 50, task_types: ["ends"] } }),
  );
  await until(() => lines.told.length === 1);
  await lines.child.stdin.end();
  expect(await lines.child.exited).toBe(0);
  expect(lines.told.map(objectOf)).toMatchObject([
    { id: 1, result: {} },
    { id: "two", error: { code: -32_000 } },
  ]);
});

test("a cancelled request gets no response, and its task stays open", async () => {
  await using lines = new Lines("cancels");
  const params = { name: "task_next", arguments: { wait_s: 50, task_types: ["cancels"] } };
  lines.say(request(1, "tools/call", params), request(2, "tools/call", { name: "node_list", arguments: {} }));
  await until(() => lines.told.length === 1);
  lines.say(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }));
  lines.say(request(3, "ping"));
  await until(() => lines.told.length === 2);
  const { body } = await hub.post("/task/create", { title: "t", description: "d", task_type: "cancels" });
  await lines.child.stdin.end();
  await lines.child.exited;
  expect(lines.told.map((line) => objectOf(line)["id"])).toEqual([2, 3]);
  const { body: shown } = await hub.get(`/task/${String(body["task_id"])}`);
  expect(shown["task"]).toMatchObject({ status: "open" });
});

test("what is no message, and what the hub refuses, is an error with the id of its request", async () => {
  await using lines = new Lines("errors");
  const long = request(9, "tools/call", { name: "x".repeat(1_100_000) });
  lines.say("no JSON", "[1]", request(1, "no/such/method"), `{"jsonrpc":"1.0","id":2,"method":"ping"}`, long);
  await until(() => lines.told.length === 5);
  const told = lines.told.map(objectOf);
  expect(told.filter(({ id }) => id === null)).toMatchObject([
    { error: { code: -32_700 } },
    { error: { code: -32_700 } },
  ]);
  for (const id of [1, 2, 9]) expect(told.find((one) => one["id"] === id)).toHaveProperty("error.message");
});

test("a wrong secret: the error says what to change; a file that is not there is exit code 1", async () => {
  writeFileSync(dir.join("wrong"), "wrong\n");
  const place = ["--url", `http://${OWN_HOST}:${hub.port}`, "--secret-file"];
  const given = [...PROGRAM, "mcp", ...place, dir.join("wrong")];
  const input = new Blob([`${request(1, "initialize")}\n`]);
  const child = Bun.spawn(given, { env: ENVIRONMENT, cwd: dir.path, stdin: input, stdout: "pipe" });
  expect(objectOf(await child.stdout.text())).toMatchObject({
    id: 1,
    error: { message: expect.stringContaining("--secret-file") },
  });
  expect(await run(["mcp", ...place, dir.join("none")])).toMatchObject({ code: 1, stdout: "" });
});

test("a hub that is not there yet: the request waits for it", async () => {
  await using lines = new Lines("early");
  const { port } = hub;
  await hub[Symbol.asyncDispose]();
  lines.say(request(1, "ping"));
  await until(() => lines.stderr.includes("cannot be reached"));
  hub = await start(String(port));
  await until(() => lines.told.length === 1);
  expect(objectOf(lines.told[0] ?? "")).toMatchObject({ id: 1, result: {} });
  await until(() => lines.stderr.includes("answers again")); // another pipe than that of the answer
  expect(lines.stderr).toMatch(/trying again\nluxhub: the hub answers again\n$/);
});
