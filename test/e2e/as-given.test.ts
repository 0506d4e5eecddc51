/**
 * What goes through the command line arrives as it was given: each digit, each byte, each time. What it sends goes to
 * the hub and to nobody else, whatever proxies the environment names.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { DAY_MS, isoTime, systemClock } from "../../src/lib/clock.ts";
import { refuseForeign } from "../../src/permissions.ts";
import { PROGRAM } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";
import { ADMIN_KEY, type Ended, Hub, SECRET, TempDir } from "./program.ts";

const dir = new TempDir();
let hub: Hub;

beforeAll(async () => {
  hub = await Hub.start({ data: dir.join("data") });
  await hub.register("n1");
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

async function luxhub(
  args: readonly string[],
  input: string | Uint8Array<ArrayBuffer> = "",
  more: Readonly<Record<string, string>> = {},
  cwd = dir.path,
): Promise<Ended> {
  const { PATH = "", HOME = "" } = process.env;
  const child = Bun.spawn([...PROGRAM, ...args], {
    cwd,
    env: {
      PATH,
      HOME,
      LUXHUB_SECRET: SECRET,
      LUXHUB_ADMIN_KEY: ADMIN_KEY,
      LUXHUB_DATA: dir.join("data"),
      ...more,
    },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  clearTimeout(timer);
  return { code: await child.exited, stdout: stdout.trimEnd(), stderr };
}

async function out(args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await luxhub(args, input);
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  return stdout;
}

async function claimed(...more: readonly string[]): Promise<string> {
  const id = await out(["task", "add", "t", "--description", "d", ...more]);
  await out(["task", "claim", id, "--node", "n1"]);
  return id;
}

/** Numbers that a double cannot hold, as JSON writes them. */
const NUMBERS = [
  "1546130668394913822",
  "1e400",
  "0.1000000000000000055511151231257827",
  "-12345678901234567890",
];
const TEXTS = `"problem":"p","improvement":"i","lesson":"l"`;

test("every digit of a number", async () => {
  const numbers = NUMBERS.map((number, i) => `"n${i}":${number}`).join();
  const id = await claimed("--group", "digits");
  await out(["task", "complete", id, "--node", "n1", "--result", "-"], `{${TEXTS},${numbers}}`);
  const metadata = `{"task_id":"${id}",${numbers}}`;
  const form = new FormData();
  form.append("metadata", metadata);
  form.append("file", new Blob(["x"]), "x.txt");
  expect((await hub.call("POST", "/file/upload", { body: form })).status).toBe(200);
  await out(["task", "add", "next", "--description", "d", "--type", "reads", "--after", id]);
  const worked = await luxhub(["worker", "--once", "--node", "w1", "--capabilities", "reads", "--", "cat"]);
  expect(worked.code).toBe(0);
  const running = await claimed();
  const checkpoint = `{"task_id":"${running}","node_id":"n1","checkpoint":{${numbers}}}`;
  expect((await hub.call("POST", "/task/extend", { body: checkpoint })).status).toBe(200);
  const context = await (await fetch(`${hub.api}/task/${running}?context=1`)).text();
  expect(context).toContain(`"data":{${numbers}}`);
  for (const args of [
    ["task", "show", id],
    ["task", "show", id, "--json"],
    ["task", "export", "--group", "digits"],
    ["task", "list", "--group", "digits", "--json"],
    ["task", "list", "--type", "reads", "--json"], // the input of its command is its result
    ["file", "list", "--json"],
  ]) {
    const text = await out(args);
    expect([args, NUMBERS.filter((number) => !text.includes(number))]).toEqual([args, []]);
  }
});

test("every digit of the id of a call, through the bridge of MCP and through A2A", async () => {
  const ids = ["9007199254740993", "123456789012345678901234567890", `"9007199254740993"`];
  for (const id of ids) {
    const call = `{"jsonrpc":"2.0","id":${id},"method":"tasks/none","params":{}}`;
    const { stdout } = await luxhub(["mcp", "--node", "n1"], `${call}\n`);
    expect(stdout).toContain(`"id":${id}`);
    const answer = await fetch(`http://127.0.0.1:${hub.port}/a2a`, {
      method: "POST",
      headers: { "X-Matrix-Secret": SECRET, "A2A-Version": "1.0" },
      body: call,
    });
    expect(await answer.text()).toContain(`"id":${id}`);
  }
});

test("text that is not UTF-8 is refused, and a byte order mark is not part of it", async () => {
  const result = `{${TEXTS},"x":"é"}`;
  const rows: readonly (readonly [string, Uint8Array<ArrayBuffer>, (id: string) => readonly string[]])[] = [
    [
      "a result",
      Buffer.from(result, "latin1"),
      (id) => ["task", "complete", id, "--node", "n1", "--result", "-"],
    ],
    ["a description", Buffer.from("é", "latin1"), () => ["task", "add", "t", "--description", "-"]],
    ["a message", Buffer.from("é", "latin1"), () => ["message", "send", "-", "--to", "n1", "--from", "n1"]],
    ["a note", Buffer.from("é", "latin1"), () => ["note", "put", "key", "-"]],
    ["a checkpoint", Buffer.from(`"é"`, "latin1"), (id) => ["task", "checkpoint", id, "--node", "n1"]],
  ];
  for (const [what, bytes, argsOf] of rows) {
    const { code, stderr } = await luxhub(argsOf(await claimed()), bytes);
    expect([what, code, stderr.includes("UTF-8"), stderr.includes("standard input")]).toEqual([
      what,
      2,
      true,
      true,
    ]);
  }
  writeFileSync(dir.join("latin.json"), Buffer.from(result, "latin1"));
  const refused = await luxhub([
    "task",
    "complete",
    await claimed(),
    "--node",
    "n1",
    "--result",
    dir.join("latin.json"),
  ]);
  expect([refused.code, refused.stderr.includes("latin.json")]).toEqual([2, true]);
  const id = await claimed();
  await out(["task", "complete", id, "--node", "n1", "--result", "-"], `\ufeff${result}`);
  expect(await out(["task", "show", id, "--json"])).toContain(`"x": "é"`);
  writeFileSync(dir.join("mcp.json"), `\ufeff{"mcpServers":{}}\n`);
  const written = await luxhub([
    "mcp-config",
    "claude",
    "--node",
    "n1",
    "--write",
    "--file",
    dir.join("mcp.json"),
  ]);
  expect(written.code).toBe(0);
});

test("a time needs its zone, and its day exists", async () => {
  const day = isoTime(systemClock().now() + 40 * DAY_MS).slice(0, 10);
  for (const [time, code] of [
    [`${day}T12:00:00Z`, 0],
    [`${day}t12:00:00.5+02:00`, 0],
    [`${day}`, 0],
    ["2h", 0],
    [`${day.slice(0, 4)}-02-30`, 2],
    [`${day}T12:00:00`, 2],
    [`${day} 12:00`, 2],
    [`${day.replaceAll("-", "/")}`, 2],
  ] as const)
    for (const args of [
      ["task", "add", "t", "--description", "d", "--expires", time],
      ["keys", "add", `k-${time.replaceAll(/\W/g, "-")}`, "--expires", time],
    ])
      expect([args, (await luxhub(args)).code]).toEqual([args, code]);
  for (const [time, status] of [
    ["2020-01-31T12:00:00Z", 200],
    ["2020-02-30T12:00:00Z", 400],
    ["2020-01-31T12:00:00", 400],
    ["Jan 1 2020", 400],
    ["2020", 400],
  ] as const) {
    const url = `http://127.0.0.1:${hub.port}/a2a/tasks?statusTimestampAfter=${encodeURIComponent(time)}`;
    const response = await fetch(url, { headers: { "X-Matrix-Secret": SECRET, "A2A-Version": "1.0" } });
    expect([time, response.status]).toEqual([time, status]);
  }
});

test("an answer that is no choice needs --force, also for a question that is named", async () => {
  const asked = async (): Promise<readonly [task: string, question: string]> => {
    const id = await claimed();
    const ask = ["task", "ask", id, "Which?", "--node", "n1", "--choice", "yes", "--choice", "no"];
    return [id, await out(ask)];
  };
  const [id, question] = await asked();
  for (const [args, code] of [
    [["task", "answer", id, "maybe"], 2],
    [["task", "answer", id, "maybe", "--question", question], 2],
    [["task", "answer", id, "yes", "--question", "none"], 3],
    [["task", "answer", id, "yes"], 0],
    [["task", "answer", (await asked())[0], "maybe", "--force"], 0],
  ] as const)
    expect([args, (await luxhub(args)).code]).toEqual([args, code]);
});

test("what a command says: commands, not endpoints; the fields of a 400; no raw message of the runtime", async () => {
  const one = await out(["task", "add", "t", "--description", "d"]);
  const after = await out(["task", "add", "t", "--description", "d", "--after", one]);
  for (const [args, code, says, not, more] of [
    [["task", "claim", "none", "--node", "n1"], 3, "luxhub task list", "GET "],
    [["file", "get", "none"], 3, "luxhub file list", "GET "],
    [["task", "add", "", "--description", "d"], 2, "title", "send it again"],
    [["task", "list", "--prio"], 2, "unknown flag", "\n\n"],
    [["task", "add", "t", "--prio", "p0", "--description", "d"], 2, "--priority", "\n\n"],
    [["task", "why", after], 0, "waits for a task", "1 tasks"],
    [["status"], 2, "LUXHUB_SECRET", "X-Matrix-Secret", { LUXHUB_SECRET: "s🎉" }],
    [["status", "--url", "http://127.0.0.1:1"], 2, "LUXHUB_SECRET", "Header", { LUXHUB_SECRET: "s🎉" }],
  ] as const) {
    const ended = await luxhub(args, "", more);
    const said = `${ended.stdout}${ended.stderr}`;
    expect([args, ended.code, said.includes(says), said.includes(not), said]).toEqual([
      args,
      code,
      true,
      false,
      said,
    ]);
  }
});

test("doctor says nothing of a reader that has gone, and its exit code is that of what it found", async () => {
  const piped = `"$0" "$@" 2>errors | head -1; echo "\${PIPESTATUS[0]}"`;
  const child = Bun.spawn(["bash", "-c", piped, ...PROGRAM, "doctor", "--data", dir.join("data")], {
    cwd: dir.path,
    env: { PATH: process.env["PATH"] ?? "" },
    stdout: "pipe",
  });
  expect((await child.stdout.text()).trim().split("\n").at(-1)).toBe("0");
  expect(readFileSync(dir.join("errors"), "utf8")).toBe("");
});

test("a checkout of somebody else's gets no secret: by no link in its data directory, and by no address", async () => {
  const seen: string[] = [];
  using stranger = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ method, url }) => {
      seen.push(`${method} ${url}`);
      return Response.json({ success: true, webhooks: [], page: 1, pages: 1, per_page: 50, total: 0 });
    },
  });
  const own = dir.join("own");
  await using running = await Hub.start({ data: own, ownSecrets: false });
  expect(running.port).toBeGreaterThan(0);
  const environment = {
    LUXHUB_DATA: "",
    LUXHUB_SECRET: "",
    LUXHUB_ADMIN_KEY: "",
    LUXHUB_JOINED: "/nonexistent",
  };
  const inDirectory = async (cwd: string, ...args: readonly string[]): Promise<number | null> =>
    (await luxhub(args, "", { ...environment, PWD: cwd }, cwd)).code;
  const evil = dir.join("evil");
  for (const links of [["lock", "secret", "admin-key"], ["lock"], ["secret"], ["admin-key"], ["luxhub.db"]]) {
    mkdirSync(`${evil}/luxhub-data`, { recursive: true });
    for (const name of links) symlinkSync(`${own}/${name}`, `${evil}/luxhub-data/${name}`);
    writeFileSync(`${evil}/luxhub-data/address`, `A http://127.0.0.1:${stranger.port}\n`);
    for (const args of [["webhook", "list"], ["keys", "list"], ["backup", "x.tar"], ["serve"]])
      expect([links, args, await inDirectory(evil, ...args)]).toEqual([links, args, 1]);
    rmSync(evil, { recursive: true });
  }
  const address = readFileSync(`${own}/address`, "utf8");
  for (const [url, code] of [
    [`http://198.51.100.7:${stranger.port}`, 6],
    [`http://127.0.0.1@198.51.100.7:${stranger.port}`, 6],
    [`http://hub.example.org:${stranger.port}`, 6],
    [`http://localhost:${running.port}`, 0],
    [address.trim().slice(2), 0],
  ] as const) {
    writeFileSync(`${own}/address`, `A ${url}\n`);
    expect([url, (await luxhub(["webhook", "list"], "", { ...environment, LUXHUB_DATA: own })).code]).toEqual(
      [url, code],
    );
  }
  expect(seen).toEqual([]);
});

test.skipIf(process.geteuid?.() !== 0)(
  "a file of the current directory must be its reader's, or root's",
  () => {
    const [own, foreign] = [dir.join("own.toml"), dir.join("foreign.toml")];
    for (const path of [own, foreign]) writeFileSync(path, "");
    chownSync(foreign, 1234, 1234);
    chmodSync(dir.path, 0o755);
    expect(() => refuseForeign(foreign, "the file")).not.toThrow(); // root trusts everybody's
    process.seteuid?.(65_534);
    try {
      expect(() => refuseForeign(own, "the file")).not.toThrow();
      expect(() => refuseForeign(foreign, "the file")).toThrow("another user");
    } finally {
      process.seteuid?.(0);
    }
  },
);

test("no proxy of the environment gets a request: not of a command, a join, a worker or the bridge of MCP", async () => {
  const seen: string[] = [];
  using proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ method, url }) => {
      seen.push(`${method} ${url}`);
      return new Response(null, { status: 502 });
    },
  });
  const names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"];
  const proxies = Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${proxy.port}`]));
  const url = `http://127.0.0.1:${hub.port}`;
  const joined = { LUXHUB_JOINED: dir.join("hub.json") };
  await out(["task", "add", "t", "--description", "d", "--type", "proxied"]);
  const [, line = ""] = /(http\S+)/.exec((await luxhub(["invite", "n2"])).stdout) ?? [];
  for (const [args, more, input] of [
    [["join", line], joined],
    [["task", "list"], { LUXHUB_DATA: "", ...joined }],
    [["task", "list"], {}],
    [["task", "list"], { LUXHUB_URL: url }],
    [["task", "list", "--url", url.replace("127.0.0.1", "localhost")], {}],
    [["mcp", "--node", "n1"], {}, `{"jsonrpc":"2.0","id":1,"method":"ping"}\n`],
    [["worker", "--once", "--node", "w1", "--capabilities", "proxied", "--", "cat"], {}],
  ] as const) {
    const { code, stderr, stdout } = await luxhub(args, input, { ...proxies, ...more });
    expect({ args, code, stderr: code === 0 ? "" : stderr }).toEqual({ args, code: 0, stderr: "" });
    if (args[0] === "join") expect(stderr).toContain(`LUXHUB_JOINED=${joined.LUXHUB_JOINED} luxhub worker`);
    if (args[0] === "mcp") expect(stdout).toContain(`"result"`);
  }
  expect(seen).toEqual([]);
});
