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
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { ADMIN_KEY, type Ended, Hub, SECRET, TempDir, objectOf, run } from "./program.ts";

const CLIENTS = ["claude", "codex", "cursor", "gemini", "vscode", "zed"] as const;
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
  codex: ".codex/config.toml",
  cursor: ".cursor/mcp.json",
  gemini: ".gemini/settings.json",
  vscode: "project/.vscode/mcp.json",
  zed: ".config/zed/settings.json",
};

const ROOTS = {
  claude: "mcpServers",
  codex: "mcp_servers",
  cursor: "mcpServers",
  gemini: "mcpServers",
  vscode: "servers",
  zed: "context_servers",
};

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
  test("prints its form with a key that is bound to the node, and keeps only the secret, for the next time", async () => {
    using at = new TempDir();
    const { code, stdout, stderr } = await configure(at, [client, "--node", `agent-${client}`]);
    expect([code, stderr]).toEqual([0, expect.stringContaining(`Created the key agent-${client}-${client}`)]);
    const [, secret = ""] = /Bearer ([\w-]+)/.exec(stdout) ?? [];
    const url = `http://127.0.0.1:${hub.port}/mcp`;
    const headers = { Authorization: `Bearer ${secret}` };
    const server = {
      claude: { type: "http", url, headers },
      codex: { url, http_headers: headers },
      cursor: { url, headers },
      gemini: { httpUrl: url, headers },
      vscode: { type: "http", url, headers },
      zed: { url, headers },
    };
    expect(parsed(client, stdout)).toEqual({ [ROOTS[client]]: { luxhub: server[client] } });
    expect(await nodeOf(secret)).toBe(`agent-${client}`);
    expect(readdirSync(at.path).toSorted()).toEqual([".config", "project"]);
    expect(readdirSync(at.join("project"))).toEqual([]);
    const again = await configure(at, [client, "--node", `agent-${client}`]);
    expect([again.stdout, again.stderr.includes("Created")]).toEqual([stdout, false]);
  });

  test("--write makes its file, which only its owner can read; --stdio keeps the secret out of it", async () => {
    using at = new TempDir();
    const file = at.join(FILES[client]);
    const http = await configure(at, [client, "--node", "n", "--write"]);
    expect(http).toMatchObject({ code: 0, stdout: `wrote ${file}\n` });
    expect(http.stderr.includes("keep it out of version control")).toBe(FILES[client].startsWith("project"));
    expect(readFileSync(file, "utf8")).toContain("Bearer ");
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const stdio = await configure(at, [client, "--node", "n", "--write", "--stdio", "--name", "by-stdio"]);
    expect(stdio.code).toBe(0);
    const [, secretFile = ""] = /The secret is in (.+)\.\n/.exec(stdio.stderr) ?? [];
    expect(statSync(secretFile).mode & 0o777).toBe(0o600);
    const secret = readFileSync(secretFile, "utf8").trim();
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain(secret);
    const { [ROOTS[client]]: servers } = parsed(client, text);
    const both = objectOf(JSON.stringify(servers));
    expect(Object.keys(both)).toEqual(["luxhub", "by-stdio"]);
    const { command, args } = objectOf(JSON.stringify(both["by-stdio"]));
    expect(args).toEqual(["mcp", "--url", `http://127.0.0.1:${hub.port}`, "--secret-file", secretFile]);

    // What it has written starts the bridge.
    const ping = new Blob([`{"jsonrpc":"2.0","id":1,"method":"ping"}\n`]);
    const given = [String(command), ...(Array.isArray(args) ? args.map(String) : [])];
    const child = Bun.spawn(given, { stdin: ping, stdout: "pipe", env: {}, cwd: at.path });
    expect(objectOf(await child.stdout.text())).toMatchObject({ id: 1, result: {} });
  });
});

describe("a file that is there", () => {
  const OTHERS = `{\n\t"theme": "dark",\n\t"big": 12345678901234567890,\n\t"mcpServers": {\n\t\t"other": { "command": "x" }\n\t}\n}\n`;

  test("JSON: all that is there stays, its mode too, and a copy of it", async () => {
    using at = new TempDir();
    const file = at.join(FILES.gemini);
    mkdirSync(dirname(file));
    writeFileSync(file, OTHERS);
    chmodSync(file, 0o640);
    const { code, stdout, stderr } = await configure(at, ["gemini", "--node", "n", "--write"]);
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
    expect(await configure(at, ["codex", "--node", "n", "--write"])).toMatchObject({ code: 0 });
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
    expect(await configure(at, ["cursor", "--node", "n", "--write"])).toMatchObject({ code: 0 });
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
  const given = await configure(at, ["cursor", "--node", "n", "--secret-file", file, "--stdio"], none);
  expect(given).toMatchObject({ code: 0, stdout: expect.stringContaining(file) });
  expect(existsSync(at.join(".config"))).toBe(false);
  const byEnvironment = await configure(at, ["cursor", "--node", "n"], none);
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
