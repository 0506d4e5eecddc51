/** The commands of the real program with the URLs of several hubs: the command line, the worker, the MCP bridge, a join. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LuxHub } from "../../src/client/index.ts";
import { type JoinedHub, joinedHub } from "../../src/client/joined.ts";
import { Imitation, silent, standby } from "../client/imitated-hub.ts";
import { PROGRAM } from "../support/executable.ts";
import { Hub, Program, SECRET, TempDir, objectOf, run, until } from "./program.ts";

const dir = new TempDir();
let hub: Hub;
let url: string;

beforeAll(async () => {
  hub = await Hub.start({ data: dir.join("data") });
  url = hub.listeners[0]?.url ?? "";
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

const ADD = ["task", "add", "t", "-d", "d"];
const environment = (urls: string) => ({
  LUXHUB_URL: urls,
  LUXHUB_SECRET: SECRET,
  XDG_STATE_HOME: dir.join("state"),
});

test("--url and LUXHUB_URL take several URLs, and each command goes to the hub that accepts it", async () => {
  await using away = new Imitation(() => standby());
  for (const urls of [`${away.url},${url}`, ` ${url}/ , ${away.url}`])
    expect(await run(ADD, { env: environment(urls) })).toMatchObject({ code: 0, stderr: "" });
  const byFlag = await run([...ADD, "--url", `${away.url},${url}`], { env: environment("") });
  expect(byFlag).toMatchObject({ code: 0, stderr: "" });
  await away.refuseConnections();
  const { stdout } = await run(["status", "--url", `${away.url},${url}`], { env: environment("") });
  expect(stdout).toMatch(new RegExp(`^url +${url}$`, "m"));
});

test("when no hub can be reached, the message names all; each URL must be one", async () => {
  await using away = new Imitation(() => standby());
  await using gone = new Imitation(() => standby());
  await Promise.all([away.refuseConnections(), gone.refuseConnections()]);
  expect(await run(ADD, { env: environment(`${away.url},${gone.url}`) })).toMatchObject({
    code: 6,
    stderr: `luxhub: the hub at ${away.url}, or at ${gone.url} cannot be reached: nothing listens there; is the URL right, and does the hub run?\n`,
  });
  const wrong = await run(ADD, { env: environment(`${url},localhost:1`) });
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain(`the URL is "localhost:1"`);
});

test("a worker goes on at another hub, says so, and gives its commands all URLs", async () => {
  await using away = new Imitation(() => standby(url));
  const words = [
    "worker",
    "--node",
    "w",
    "--capabilities",
    "w",
    "--once",
    "--",
    "sh",
    "-c",
    'echo "$LUXHUB_URL"',
  ];
  await using worker = new Program(words, { env: environment(away.url) });
  await until(() => worker.stderr.includes("registered"));
  expect(worker.stderr).toMatch(new RegExp(`another hub accepts the calls +url=${url}\n`));
  const { body } = await hub.post("/task/create", { title: "t", description: "d", task_type: "w" });
  expect(await worker.ended).toBe(0);
  const { body: done } = await hub.get(`/task/${body["task_id"]}`);
  expect(Object(done["task"]).result).toMatchObject({ output: away.url });
});

test.each([
  ["is a copy", () => standby()],
  [
    "has died meanwhile",
    (away: Imitation) => {
      away.isOff = true;
      return silent();
    },
  ],
])("the MCP bridge sends each message to another hub when one %s", async (_, reply) => {
  await using away: Imitation = new Imitation(() => reply(away));
  writeFileSync(dir.join("secret"), `${SECRET}\n`, { mode: 0o600 });
  const urls = `${away.url},${url}`;
  const bridge = Bun.spawn(
    [...PROGRAM, "mcp", "--url", urls, "--secret-file", dir.join("secret"), "--node", "m"],
    {
      env: { PATH: process.env["PATH"] ?? "", HOME: dir.path },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const list = (id: number) => `${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list" })}\n`;
  bridge.stdin.write(list(1));
  bridge.stdin.write(list(2));
  let stdout = "";
  const decoder = new TextDecoder();
  for await (const chunk of bridge.stdout) {
    stdout += decoder.decode(chunk, { stream: true });
    if (stdout.split("\n").length > 2) await bridge.stdin.end();
  }
  expect(await bridge.stderr.text()).toBe("");
  const answers = stdout.trimEnd().split("\n").map(objectOf);
  expect(answers.map(({ id }) => id).toSorted()).toEqual([1, 2]);
  for (const { result } of answers) expect(Object(result).tools.length).toBeGreaterThan(10);
});

test("a joined machine keeps the hubs that it has learnt, for the next program", async () => {
  await using first = new Imitation(() => standby(url));
  const file = dir.join("config", "luxhub", "hub.json");
  mkdirSync(dir.join("config", "luxhub"), { recursive: true });
  const joined: JoinedHub = {
    ...{ url: first.url, secret: SECRET, node_id: "joined", key: "k" },
    ...{ ca: null, server_name: null },
  };
  writeFileSync(file, JSON.stringify(joined), { mode: 0o600 });
  const env = { XDG_CONFIG_HOME: dir.join("config"), XDG_STATE_HOME: dir.join("state"), HOME: dir.path };
  expect(await run(ADD, { env })).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ...joined, hubs: [url, first.url] });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await first.refuseConnections();
  expect(await run(ADD, { env })).toMatchObject({ code: 0, stderr: "" });

  const { nodeId, ...options } = joinedHub(file);
  const client = new LuxHub({ ...options, retry: { forMs: 0 } });
  expect((await client.nodes.register({ node_id: nodeId, name: nodeId })).created).toBe(true);
});

const python = Bun.which("python3");
if (python === null) console.log("The Python client does not join: there is no python3 on the path.");
test.skipIf(python === null)("so does the Python client", async () => {
  await using first = new Imitation(() => standby(url));
  const file = dir.join("python.json");
  const joined = { url: first.url, secret: SECRET, node_id: "python", key: "k", ca: null };
  writeFileSync(file, JSON.stringify(joined), { mode: 0o600 });
  const code = `import luxhub
hub = luxhub.LuxHub.joined(retry=luxhub.Retry(0))
print(hub.nodes.register(luxhub.joined_node(), "p")["created"], hub.url)`;
  const env = {
    LUXHUB_JOINED: file,
    PYTHONPATH: join(import.meta.dir, "../../src/client"),
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const python3 = () => run(["-c", code], { command: [python ?? ""], env });
  expect(await python3()).toEqual({ code: 0, stderr: "", stdout: `True ${url}\n` });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ...joined, hubs: [url, first.url] });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await first.refuseConnections();
  expect(await python3()).toEqual({ code: 0, stderr: "", stdout: `False ${url}\n` });
});
