/**
 * Secrets do not leak: every secret of these hubs is a unique word. The test makes every call with right and wrong
 * secrets, and then searches all answers, logs and stored data for these words.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { fileEndpoints } from "../../src/api/files.ts";
import { Hub, Program, TempDir, objectOf, listOf, run, until } from "./program.ts";
import { RawConnection } from "./raw.ts";

const CONTENT = "what-the-message-says";

type Target = { readonly port: number };

/** All that callers were told, heads and bodies. */
class Heard {
  text = "";

  async call(
    hub: Target,
    method: string,
    path: string,
    headers: NonNullable<RequestInit["headers"]>,
    body?: string | FormData,
  ): Promise<number> {
    const init = { method, headers, keepalive: false, ...(body === undefined ? {} : { body }) };
    const response = await fetch(`http://127.0.0.1:${hub.port}${path}`, init);
    this.text += `${[...response.headers].join("\n")}\n${await response.text()}\n`;
    return response.status;
  }
}

/** Calls every endpoint with every pair of these secrets and admin keys, and bodies that are good for none. */
async function callEverything(hub: Target, heard: Heard, words: readonly (string | null)[]): Promise<void> {
  const paths = [...ENDPOINTS, ...fileEndpoints(1)].map(({ method, path }) => [method, path] as const);
  const others = [
    ["GET", "/nope"],
    ["PUT", "/api/v1/status"],
  ] as const;
  for (const secret of words)
    await Promise.all(
      [...paths, ...others].flatMap(([method, path]) =>
        words.map((adminKey) => {
          const headers = new Headers();
          if (secret !== null) headers.set("X-Matrix-Secret", secret);
          if (adminKey !== null) headers.set("X-Admin-Key", adminKey);
          const body =
            method === "POST" ? JSON.stringify({ node_id: "none", secret, task_id: 5 }) : undefined;
          return heard.call(hub, method, `${path.replaceAll(/:\w+/g, "none")}?timeout=0`, headers, body);
        }),
      ),
    );
}

/** Work that succeeds, with answers that are stored for a repeat. */
async function work(hub: Target, heard: Heard, secret: string, adminKey: string): Promise<void> {
  let count = 0;
  const post = (path: string, body: object): Promise<number> =>
    heard.call(
      hub,
      "POST",
      `/api/v1${path}`,
      { "X-Matrix-Secret": secret, "X-Admin-Key": adminKey, "Idempotency-Key": `work-${count++}` },
      JSON.stringify(body),
    );
  const statuses = [
    await post("/node/register", { node_id: "w", name: "w" }),
    await post("/signin", { node_id: "w" }),
    await post("/task/create", { title: "t", description: "d", lux_reward: 1 }),
    await post("/message/send", { from_node: "w", to_node: "w", content: CONTENT, require_ack: true }),
    await post("/message/broadcast", { from_node: "operator", content: CONTENT }),
    await post("/message/receive", { node_id: "w" }),
    await post("/task/delete", { task_id: "none" }),
  ];
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 404]);
  const form = new FormData();
  form.set("file", new Blob(["content"]), "a.txt");
  expect(await heard.call(hub, "POST", "/api/v1/file/upload", { "X-Matrix-Secret": secret }, form)).toBe(200);
}

/** Faults of the hub itself: a file whose bytes are gone, a table that is gone. */
async function breakIt(hub: Hub, heard: Heard, secret: string, data: string): Promise<void> {
  const headers = { "X-Matrix-Secret": secret };
  const list = await fetch(`${hub.api}/file/list`, { headers, keepalive: false });
  const fileId = String(listOf(objectOf(await list.text())["files"])[0]?.["file_id"]);
  for (const path of filesIn(join(data, "files"))) rmSync(path);
  expect(await heard.call(hub, "GET", `/api/v1/file/download/${fileId}`, headers)).toBe(500);
  const db = new Database(join(data, "luxhub.db"));
  db.run("DROP TABLE ledger");
  db.close();
  expect(await heard.call(hub, "POST", "/api/v1/signin", headers, '{"node_id":"w"}')).toBe(500);
  expect(await heard.call(hub, "GET", "/api/v1/lux/ledger?node_id=w", headers)).toBe(500);
}

function filesIn(directory: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** What is on disk, but for the two files that are there to hold a secret. */
function stored(data: string): string {
  const paths = filesIn(data).filter((path) => !/\/(?:secret|admin-key)$/.test(path));
  return paths.map((path) => readFileSync(path, "latin1")).join("\n");
}

/** Makes a key by the command line; its secret. */
async function addKey(
  data: string,
  env: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<string> {
  const { code, stdout, stderr } = await run(["keys", "add", ...args, "--data", data], { env });
  const secret = /^([\w-]{32})\n$/.exec(stdout)?.[1] ?? "";
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^This is the secret of /)]);
  expect(stderr).not.toContain(secret);
  return secret;
}

/** That none of the words, which are no empty ones, stands in any of the places. */
function expectNowhere(words: readonly string[], places: Readonly<Record<string, string>>): void {
  expect(words.filter((word) => word.length < 10)).toEqual([]);
  const found = Object.entries(places).flatMap(([place, text]) =>
    words.filter((word) => text.includes(word)).map((word) => `${word} in ${place}`),
  );
  expect(found).toEqual([]);
}

const WRONG = "marker-wrong-secret-0123456789";

test("from the environment and from luxhub keys", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  const env = { LUXHUB_SECRET: "marker-of-the-environment", LUXHUB_ADMIN_KEY: "marker-of-the-administrator" };
  await using hub = await Hub.start({ data, env, ownSecrets: false, args: ["--log-level=debug"] });
  const { LUXHUB_SECRET: secret, LUXHUB_ADMIN_KEY: adminKey } = env;
  const bound = await addKey(data, env, "bound", "--node", "w", "--variant", "B");
  const added = [bound, await addKey(data, env, "fleet"), await addKey(data, env, "other", "--admin")];
  expect((await run(["keys", "revoke", "other", "--data", data], { env })).code).toBe(0);

  const heard = new Heard();
  await work(hub, heard, secret, adminKey);
  const mine = { "X-Matrix-Secret": bound };
  await until(async () => (await heard.call(hub, "GET", "/api/v1/agent/messages?node_id=w", mine)) === 200);
  await callEverything(hub, heard, [null, WRONG, secret, adminKey, bound]);
  const stream = await RawConnection.open(hub.port);
  const head = `GET /api/v1/agent/sse?node_id=w HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${secret}\r\n`;
  stream.send(`${head}Last-Event-ID: 0\r\n\r\n`);
  await stream.got(new RegExp(CONTENT));
  // Where they should not be put, but are: a browser's EventSource sends no headers of its own.
  await heard.call(hub, "GET", `/api/v1/agent/sse?node_id=w&secret=${secret}&X-Admin-Key=${adminKey}`, {});
  await heard.call(hub, "GET", `/api/v1/nope?access_token=${WRONG}`, { Authorization: `Bearer ${WRONG}` });
  await breakIt(hub, heard, secret, data);

  const commandLine = readFileSync(`/proc/${hub.pid}/cmdline`, "latin1");
  const whileOpen = stored(data);
  expect((await hub.stop()).code).toBe(0);
  const { stdout, stderr } = hub.program;
  expectNowhere([secret, adminKey, WRONG, ...added], {
    answers: heard.text,
    stream: stream.received,
    "standard output": stdout,
    "standard error": stderr,
    "the command line": commandLine,
    "the data directory": whileOpen,
    "the data directory afterwards": stored(data),
  });
  expectNowhere([CONTENT], { "standard output": stdout, "standard error": stderr });
  // The places were looked at: what has to be in them is there.
  expect(whileOpen).toContain(Bun.SHA256.hash(bound, "hex"));
  expect(whileOpen).toContain(CONTENT);
  expect(heard.text).toContain('"error":"internal_error"');
  expect(stdout).toContain("request failed");
  expect(stdout).toContain("GET /api/v1/agent/sse?node_id=w&secret=*&X-Admin-Key=* 401 ");
  expect(commandLine).toContain("serve");
});

test("from the first start: printed once on a terminal, never in a JSON log", async () => {
  using dir = new TempDir();
  const args = ["serve", "--port", "0", "--host", "127.0.0.1", "--data", dir.join("data")];
  const heard = new Heard();
  const start = async (form: string): Promise<{ stdout: string; words: string[]; onDisk: string }> => {
    await using program = new Program([...args, "--log", form, "--log-level", "debug"]);
    const [, port] = await program.printed(/http:\/\/127\.0\.0\.1:(\d+)[\s\S]*\n/);
    const words = ["secret", "admin-key"].map((name) => readFileSync(dir.join("data", name), "utf8").trim());
    await callEverything({ port: Number(port) }, heard, [null, WRONG, ...words]);
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
    expect(program.stderr).toBe("");
    return { stdout: program.stdout, words, onDisk: stored(dir.join("data")) };
  };
  const first = await start("json");
  const second = await start("pretty");
  expect(second.words).toEqual(first.words);
  expect(first.words.map((word) => word.length)).toEqual([32, 32]);
  expectNowhere([...first.words, WRONG], {
    answers: heard.text,
    "the first output": first.stdout,
    "the second output": second.stdout,
    "the data directory": first.onDisk + second.onDisk,
  });
  expect(first.stdout).toContain('"message":"secrets created"');
});

test("are not in errors about unusable settings", async () => {
  using dir = new TempDir();
  const secret = "marker of two words";
  writeFileSync(dir.join("luxhub.toml"), `secret = "${secret}"\n`);
  const ended = [
    await run(["serve", "--data", dir.join("data")], { env: { LUXHUB_SECRET: secret } }),
    await run(["serve", "--data", dir.join("data")], { cwd: dir.path }),
  ];
  expect(ended.map(({ code }) => code)).toEqual([2, 2]);
  expectNowhere([secret], { output: ended.map(({ stdout, stderr }) => stdout + stderr).join("\n") });
});
