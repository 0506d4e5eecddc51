/** Output of the real program that nobody takes: the disk is full, its reader stands still, the terminal is closed. */
import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { LOG_BACKLOG_MAX_CHARS } from "../../src/domain/limits.ts";
import { FROM_SOURCE, Hub, TempDir } from "./program.ts";

const SECRET = "log-secret";

/** A hub whose standard output is this file; ended at the latest with its `using` block. */
function startOn(stdout: number, data: string) {
  const command = [...FROM_SOURCE, "serve", "--data", data, "--log", "json"];
  const { PATH = "", HOME = "" } = process.env;
  const secrets = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: "log-admin-key" };
  const env = { PATH, HOME, LUXHUB_PORT: "0", LUXHUB_HOST: "127.0.0.1", ...secrets };
  const child = Bun.spawn(command, { env, stdin: "ignore", stdout, stderr: "pipe" });
  return {
    child,
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill("SIGKILL");
      await child.exited;
      closeSync(stdout);
    },
  };
}

test("an unwritable log is one line on standard error, and the hub continues", async () => {
  using dir = new TempDir();
  await using hub = startOn(openSync("/dev/full", "w"), dir.join("data"));
  const stderr = hub.child.stderr.getReader();
  const said = new TextDecoder().decode((await stderr.read()).value);
  hub.child.kill("SIGTERM");
  expect(await hub.child.exited).toBe(0);
  expect(said).toBe("luxhub: the log cannot be written: ENOSPC\n");
  expect((await stderr.read()).done).toBeTrue();
});

test("a stalled log reader delays neither requests nor the shutdown", async () => {
  using dir = new TempDir();
  const pipe = dir.join("pipe");
  execFileSync("mkfifo", [pipe]);
  const ours = openSync(pipe, constants.O_RDWR);
  await using hub = startOn(ours, dir.join("data"));
  const bytes = new Uint8Array(4096);
  const decoder = new TextDecoder();
  let [said, url] = ["", ""];
  while (url === "") {
    said += decoder.decode(bytes.subarray(0, readSync(ours, bytes)), { stream: true });
    url = /"url":"([^"]+)"/.exec(said)?.[1] ?? "";
  }
  // Nobody reads from here on; this is several times as much as a pipe holds.
  for (let i = 0; i < 2_000; i++) {
    const answer = await fetch(`${url}/api/v1/status`, { headers: { "X-Matrix-Secret": SECRET } });
    expect(answer.status).toBe(200);
  }
  hub.child.kill("SIGTERM");
  expect(await hub.child.exited).toBe(0);
});

test("a command that cannot write its output says so and fails", async () => {
  const full = openSync("/dev/full", "w");
  const child = Bun.spawn([...FROM_SOURCE, "help"], { stdin: "ignore", stdout: full, stderr: "pipe" });
  expect(await child.stderr.text()).toBe("luxhub: cannot write to standard output: ENOSPC\n");
  expect(await child.exited).toBe(1);
  closeSync(full);
});

test("a closed terminal shuts the hub down in order, but not under nohup", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  hub.program.child.kill("SIGHUP");
  expect(await hub.program.ended).toBe(0);
  expect(hub.program.stdout).toMatch(/ending signal=SIGHUP[^]*ended\n$/);

  await using kept = await Hub.start({ data: dir.join("data"), command: ["nohup", ...FROM_SOURCE] });
  kept.program.child.kill("SIGHUP");
  expect((await kept.get("/status")).status).toBe(200);
  expect((await kept.stop()).code).toBe(0);
  expect(kept.program.stdout).toContain("ending signal=SIGTERM");
});

const PAD = "x".repeat(12_000);
/** Together they are twice what is held. */
const REQUESTS = Math.ceil((2 * LOG_BACKLOG_MAX_CHARS) / PAD.length);
const AT_ONCE = 8;

/** A hub whose standard output is read when it is asked for. */
async function startUnread(data: string) {
  const args = ["serve", "--port", "0", "--host", "127.0.0.1", "--data", data, "--log", "json"];
  const child = Bun.spawn([...FROM_SOURCE, ...args], { stdout: "pipe", stderr: "inherit" });
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  /** Reads on until it says something. */
  const readTo = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(text)) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`ended without ${pattern}`);
      text += decoder.decode(value, { stream: true });
    }
    return text;
  };
  const url = /"url":"([^"]+)"/.exec(await readTo(/"url":"[^"]+".*\n/))?.[1] ?? "";
  const ask = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await (await fetch(`${url}/${PAD}`)).text();
  };
  const askAll = () => Promise.all(Array.from({ length: AT_ONCE }, () => ask(Math.ceil(REQUESTS / AT_ONCE))));
  return { child, readTo, askAll };
}

test("of an unread log a bounded part is held, and the rest is counted", async () => {
  using dir = new TempDir();
  const { child, readTo, askAll } = await startUnread(dir.join("data"));
  try {
    await askAll();
    const text = await readTo(/"lines of the log could not be written.*\n/);
    const shown = text.match(/"message":"request"/g)?.length ?? 0;
    const lost = Number(/could not be written[^\n]*"lost":(\d+)/.exec(text)?.[1]);
    expect(shown + lost).toBe(AT_ONCE * Math.ceil(REQUESTS / AT_ONCE));
    expect(shown * PAD.length).toBeGreaterThan(LOG_BACKLOG_MAX_CHARS / 2);
    expect(text.length).toBeLessThan(1.2 * LOG_BACKLOG_MAX_CHARS);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});
