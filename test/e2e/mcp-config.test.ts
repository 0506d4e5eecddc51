/**
 * `luxhub mcp-config` with the real program: the form for each client, what it does to files, and the keys that it
 * creates.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { ADMIN_KEY, type Ended, Hub, SECRET, TempDir, objectOf, run } from "./program.ts";

const CLIENTS = [
  "claude",
  "cline",
  "codex",
  "copilot",
  "cursor",
  "gemini",
  "opencode",
  "qwen",
  "vscode",
  "zed",
] as const;
const dir = new TempDir();
let hub: Hub;

beforeAll(async () => {
  hub = await Hub.start({ data: dir.join("data") });
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

/** Runs it in a home and a project of its own. */
function configure(
  at: TempDir,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  mkdirSync(at.join("project"), { recursive: true });
  const place = { HOME: at.path, LUXHUB_URL: `http://127.0.0.1:${hub.port}` };
  return run(["mcp-config", ...args], {
    cwd: at.join("project"),
    env: { ...place, LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY, ...env },
  });
}

const FILES = {
  claude: "project/.mcp.json",
  cline: ".cline/data/settings/cline_mcp_settings.json",
  codex: ".codex/config.toml",
  copilot: ".copilot/mcp-config.json",
  cursor: ".cursor/mcp.json",
  gemini: ".gemini/settings.json",
  opencode: ".config/opencode/opencode.json",
  qwen: ".qwen/settings.json",
  vscode: "project/.vscode/mcp.json",
  zed: ".config/zed/settings.json",
};

const ROOTS: Readonly<Record<string, string>> = {
  codex: "mcp_servers",
  opencode: "mcp",
  vscode: "servers",
  zed: "context_servers",
};
const rootOf = (client: string): string => ROOTS[client] ?? "mcpServers";

function parsed(client: (typeof CLIENTS)[number], text: string): Readonly<Record<string, unknown>> {
  return client === "codex" ? { ...Bun.TOML.parse(text) } : objectOf(text);
}

/** The node that a secret speaks for. */
async function nodeOf(secret: string): Promise<unknown> {
  const headers = { Authorization: `Bearer ${secret}`, Accept: "*/*", "Content-Type": "application/json" };
  const params = { name: "hub_status", arguments: {} };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const text = await (
    await fetch(`http://127.0.0.1:${hub.port}/mcp`, { method: "POST", headers, body })
  ).text();
  return /"node_id":"([^"]+)"/.exec(text.replaceAll("\\", ""))?.[1];
}

describe.each(CLIENTS)("%s", (client) => {
  test("prints its form with a key that is bound to the node, and keeps the secret for the next time", async () => {
    using at = new TempDir();
    const args = [client, "--node", `agent-${client}`, "--http"];
    const { code, stdout, stderr } = await configure(at, args);
    expect([code, stderr]).toEqual([0, expect.stringContaining(`Created the key agent-${client}-${client}`)]);
    const [, secret = ""] = /Bearer ([\w-]+)/.exec(stdout) ?? [];
    const url = `http://127.0.0.1:${hub.port}/mcp`;
    const headers = { Authorization: `Bearer ${secret}` };
    const server = {
      claude: { type: "http", url, headers },
      cline: { transport: { type: "streamableHttp", url, headers } },
      codex: { url, http_headers: headers },
      copilot: { type: "http", url, headers, tools: ["*"] },
      cursor: { url, headers },
      gemini: { httpUrl: url, headers },
      opencode: { type: "remote", url, headers, enabled: true },
      qwen: { httpUrl: url, headers },
      vscode: { type: "http", url, headers },
      zed: { url, headers },
    };
    expect(parsed(client, stdout)).toEqual({ [rootOf(client)]: { luxhub: server[client] } });
    expect(await nodeOf(secret)).toBe(`agent-${client}`);
    expect(readdirSync(at.path).toSorted()).toEqual([".config", "project"]);
    expect(readdirSync(at.join("project"))).toEqual([]);
    const again = await configure(at, args);
    expect([again.stdout, again.stderr.includes("Created")]).toEqual([stdout, false]);
  });

  test("--write makes its file, which only its owner can read, without the secret but with --http", async () => {
    using at = new TempDir();
    const file = at.join(FILES[client]);
    const http = await configure(at, [client, "--node", "n", "--write", "--http", "--name", "by-http"]);
    expect(http).toMatchObject({ code: 0, stdout: `wrote ${file}\n` });
    expect(http.stderr.includes("keep it out of version control")).toBe(FILES[client].startsWith("project"));
    expect(readFileSync(file, "utf8")).toContain("Bearer ");
    expect(statSync(file).mode & 0o777).toBe(0o600);

    rmSync(file);
    const stdio = await configure(at, [client, "--node", "n", "--write"]);
    expect([stdio.code, stdio.stderr.includes("Created")]).toEqual([0, false]);
    const [, secretFile = ""] = /The secret is in (.+)\.\n/.exec(stdio.stderr) ?? [];
    expect(statSync(secretFile).mode & 0o777).toBe(0o600);
    const secret = readFileSync(secretFile, "utf8").trim();
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(secret);
    const { [rootOf(client)]: servers } = parsed(client, text);
    const { luxhub: entry } = objectOf(JSON.stringify(servers));
    const { transport = entry } = objectOf(JSON.stringify(entry));
    const { command, args = [] } = objectOf(JSON.stringify(transport));
    const words = [command, args].flat().map(String);
    const place = ["--url", `http://127.0.0.1:${hub.port}`, "--secret-file", secretFile, "--node", "n.*"];
    expect(words.slice(-7)).toEqual(["mcp", ...place]);

    // What it has written starts the bridge.
    const ping = new Blob([`{"jsonrpc":"2.0","id":1,"method":"ping"}\n`]);
    const child = Bun.spawn(words, { stdin: ping, stdout: "pipe", env: {}, cwd: at.path });
    expect(objectOf(await child.stdout.text())).toMatchObject({ id: 1, result: {} });
  });
});

test("it says what a client without a person needs; --trust writes that where a file can have it", async () => {
  using at = new TempDir();
  const said = async (...args: readonly string[]): Promise<string | undefined> =>
    /needs: (.*)/.exec((await configure(at, [...args, "--node", "n"])).stderr)?.[1];
  expect(await said("claude")).toContain("--allowedTools mcp__luxhub");
  expect(await said("copilot", "--name", "hub")).toContain("--allow-tool hub");
  for (const client of ["cline", "codex", "opencode"]) expect(await said(client)).toBeUndefined();
  for (const client of ["gemini", "qwen"]) {
    expect(await said(client)).toContain("--trust");
    const { stdout, stderr } = await configure(at, [client, "--node", "n", "--trust"]);
    expect(objectOf(stdout)).toMatchObject({ mcpServers: { luxhub: { trust: true } } });
    expect(stderr).not.toContain("needs:");
  }
  expect((await configure(at, ["claude", "--node", "n", "--trust"])).code).toBe(2);
});

test("--hooks adds the hooks of Claude Code once; one refuses an edit under another node's lease, and mentions mail", async () => {
  using at = new TempDir();
  const file = at.join("project/.claude/settings.local.json");
  mkdirSync(dirname(file), { recursive: true });
  const own = { hooks: [{ type: "command", command: "mine" }] };
  writeFileSync(file, JSON.stringify({ hooks: { Stop: [own] } }));
  const args = ["claude", "--node", "hooked", "--hooks", "--write"];
  expect(await configure(at, args)).toMatchObject({ code: 0 });
  const written = readFileSync(file, "utf8");
  expect(await configure(at, args)).toMatchObject({ code: 0 });
  expect(readFileSync(file, "utf8")).toBe(written);
  const hooks = objectOf(JSON.stringify(objectOf(written)["hooks"]));
  expect(hooks["Stop"]).toEqual([own, expect.anything()]);
  const [, command = ""] = /"command":"([^"]*mcp-hook[^"]*)"/.exec(JSON.stringify(hooks)) ?? [];

  for (const id of ["hooked", "bob"]) await hub.post("/node/register", { node_id: id, name: id });
  const acquire = (name: string, node_id: string): Promise<unknown> =>
    hub.post("/lease/acquire", { name, node_id, ttl_s: 600 });
  await acquire("src/**", "bob");
  await acquire("docs/**", "hooked");
  const project = at.join("project");
  const hook = async (event: string, fields: Readonly<Record<string, unknown>> = {}): Promise<Ended> => {
    const input = JSON.stringify({ hook_event_name: event, session_id: "s", cwd: project, ...fields });
    const env = { HOME: at.path, CLAUDE_PROJECT_DIR: project, PATH: process.env["PATH"] ?? "" };
    const child = Bun.spawn(["sh", "-c", JSON.parse(`"${command}"`)], {
      ...{ cwd: project, env, stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" },
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, stdout, stderr };
  };
  const edit = (path: string): Promise<Ended> =>
    hook("PreToolUse", { tool_name: "Edit", tool_input: { file_path: join(project, path) } });
  for (const [path, code] of [
    ["src/a.ts", 2],
    ["src/new/deep/b.ts", 2],
    ["docs/a.md", 0],
    ["README.md", 0],
    ["../src/a.ts", 0],
  ] as const)
    expect([path, (await edit(path)).code]).toEqual([path, code]);
  expect((await edit("src/a.ts")).stderr).toContain("bob");

  expect(await hook("SessionStart")).toEqual({ code: 0, stdout: "", stderr: "" });
  await hub.post("/message/send", { from_node: "bob", to_node: "hooked", content: "STOP" });
  expect((await hook("SessionStart")).stdout).toContain("mail_check");
  expect((await hook("Stop")).code).toBe(2);
  expect((await hook("Stop", { stop_hook_active: true })).code).toBe(0);
  expect((await hook("PreToolUse", { tool_input: {} })).code).toBe(0);
  expect(await run(["mcp-hook", "--newer-flag"])).toMatchObject({ code: 1 }); // 2 would stop each edit
  await hub[Symbol.asyncDispose]();
  expect((await edit("src/a.ts")).code).toBe(1); // leases are advisory
  hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_PORT: String(hub.port) } });
});

describe("a file that is there", () => {
  const OTHERS = `{\n\t"theme": "dark",\n\t"big": 12345678901234567890,\n\t"mcpServers": {\n\t\t"other": { "command": "x" }\n\t}\n}\n`;

  test("JSON: all that is there stays, its mode too, and a copy of it", async () => {
    using at = new TempDir();
    const file = at.join(FILES.gemini);
    mkdirSync(dirname(file));
    writeFileSync(file, OTHERS);
    chmodSync(file, 0o640);
    const { code, stdout, stderr } = await configure(at, ["gemini", "--node", "n", "--write", "--http"]);
    expect(code).toBe(0);
    expect(stderr).toContain("other users may read");
    const [, backup = ""] = /old content is in (.+)\n/.exec(stdout) ?? [];
    expect(readFileSync(backup, "utf8")).toBe(OTHERS);
    const text = readFileSync(file, "utf8");
    expect(text).toStartWith(
      `{\n\t"theme": "dark",\n\t"big": 12345678901234567890,\n\t"mcpServers": {\n\t\t"other": {`,
    );
    expect(Object.keys(objectOf(JSON.stringify(objectOf(text)["mcpServers"])))).toEqual(["other", "luxhub"]);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(readdirSync(dirname(file)).length).toBe(2);
  });

  test("TOML: the text that is there stays, with its comments", async () => {
    using at = new TempDir();
    const file = at.join(FILES.codex);
    mkdirSync(dirname(file));
    const old = `# mine\nmodel = "m" # the best\n\n[mcp_servers.other]\ncommand = "x"\n\n[[list]]\nn = 1`;
    writeFileSync(file, old);
    expect(await configure(at, ["codex", "--node", "n", "--write", "--http"])).toMatchObject({ code: 0 });
    const text = readFileSync(file, "utf8");
    expect(text).toStartWith(`${old}\n\n[mcp_servers.luxhub]\nurl = `);
    expect({ ...Bun.TOML.parse(text) }).toMatchObject({
      model: "m",
      list: [{ n: 1 }],
      mcp_servers: { other: { command: "x" }, luxhub: { http_headers: {} } },
    });
  });

  test("a link to it stays a link", async () => {
    using at = new TempDir();
    mkdirSync(at.join("dotfiles"));
    mkdirSync(at.join(".cursor"));
    writeFileSync(at.join("dotfiles", "mcp.json"), "{}");
    symlinkSync(at.join("dotfiles", "mcp.json"), at.join(FILES.cursor));
    expect(await configure(at, ["cursor", "--node", "n", "--write", "--http"])).toMatchObject({ code: 0 });
    expect(lstatSync(at.join(FILES.cursor)).isSymbolicLink()).toBe(true);
    expect(readFileSync(at.join("dotfiles", "mcp.json"), "utf8")).toContain("Bearer");
  });

  test.each([
    ["zed", `// my settings\n{ "theme": "dark" }`, "has comments, or is not JSON"],
    ["zed", `{ "theme": "dark", }`, "has comments, or is not JSON"],
    ["gemini", `[]`, "is not a JSON object"],
    ["gemini", `{ "mcpServers": [] }`, "has mcpServers, but not as an object"],
    ["gemini", `{ "mcpServers": { "luxhub": {} } }`, "has a server luxhub already"],
    ["codex", `[mcp_servers.luxhub]\nurl = "x"`, "has a server luxhub already"],
    ["codex", `mcp_servers = { other = { command = "x" } }`, "has mcp_servers, but not as tables"],
    ["codex", `not toml`, "is not TOML as luxhub reads it"],
  ] as const)(
    "%s: %s is refused in plain words: nothing is written, no key is made",
    async (client, old, reason) => {
      using at = new TempDir();
      const file = at.join(FILES[client]);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, old);
      const keysBefore = await keyNames();
      const { code, stdout, stderr } = await configure(at, [client, "--node", "n", "--write"]);
      expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
      expect(stderr).toBe(
        `luxhub: ${file} ${reason}: it was not changed. Without --write the command prints what to add\n`,
      );
      expect(readFileSync(file, "utf8")).toBe(old);
      expect(readdirSync(dirname(file)).length).toBe(1);
      expect(await keyNames()).toEqual(keysBefore);
    },
  );
});

async function keyNames(): Promise<unknown> {
  const { body } = await hub.get("/key/list", { headers: { "X-Admin-Key": ADMIN_KEY } });
  return body["keys"];
}

test("a stored key is used until it is revoked, and the next one has a number; another hub does not get it", async () => {
  using at = new TempDir();
  const made = async (env: Readonly<Record<string, string>> = {}): Promise<string | undefined> =>
    /Created the key ([\w-]+)/.exec((await configure(at, ["claude", "--node", "twice"], env)).stderr)?.[1];
  expect(await made()).toBe("twice-claude");
  expect(await made()).toBeUndefined();
  const seen: string[] = [];
  using other = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      seen.push(String(request.headers.get("x-matrix-secret")));
      return new Response(null, { status: 404 });
    },
  });
  expect(await made({ LUXHUB_URL: `http://127.0.0.1:${other.port}` })).toBeUndefined();
  expect(new Set(seen)).toEqual(new Set([SECRET]));
  await hub.admin("/key/revoke", { name: "twice-claude" });
  expect(await made()).toBe("twice-claude-2");
});

test("without the administrator key it takes the secret that is given; without both it says so", async () => {
  using at = new TempDir();
  const file = at.join("given");
  writeFileSync(file, `${SECRET}\n`);
  const none = { LUXHUB_ADMIN_KEY: "" };
  const given = await configure(at, ["cursor", "--node", "n", "--secret-file", file], none);
  expect(given).toMatchObject({ code: 0, stdout: expect.stringContaining(file) });
  expect(existsSync(at.join(".config"))).toBe(false);
  const byEnvironment = await configure(at, ["cursor", "--node", "n", "--http"], none);
  expect(byEnvironment.stdout).toContain(`Bearer ${SECRET}`);
  const without = await configure(at, ["cursor", "--node", "n"], { ...none, LUXHUB_SECRET: "" });
  expect(without).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("LUXHUB_ADMIN_KEY to create a key"),
  });
});

test("a wrong word; the paragraph for AGENTS.md, which needs no hub", async () => {
  using at = new TempDir();
  expect(await configure(at, ["cluade", "--node", "n"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("did you mean claude?"),
  });
  const { code, stdout } = await configure(at, ["agents-md"], { LUXHUB_URL: "" });
  expect(code).toBe(0);
  for (const word of ["task_next", "task_complete", "task_create", "mail_check", "data"])
    expect(stdout).toContain(word);
});
