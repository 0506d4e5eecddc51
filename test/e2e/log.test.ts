/** Blocked output of the real program: the disk is full, the reader stands still, the terminal is closed. */
import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { LOG_BACKLOG_MAX_CHARS, LOG_PATH_MAX_CHARS } from "../../src/domain/limits.ts";
import {
  activityMaxLines,
  measureActivity,
  measureStrangers,
  strangersMaxChars,
} from "../../tools/torture/log-flood.ts";
import { PROGRAM } from "../support/executable.ts";
import { Hub, TempDir, until } from "./program.ts";

const SECRET = "log-secret";

/** A hub whose standard output is this file; ended at the latest with its `using` block. */
function startOn(stdout: number, data: string) {
  const command = [...PROGRAM, "serve", "--data", data, "--log", "json", "--log-level", "debug"];
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
  for (let i = 0; i < 400; i++) {
    const answer = await fetch(`${url}/${PAD}`);
    expect(answer.status).toBe(404);
  }
  hub.child.kill("SIGTERM");
  expect(await hub.child.exited).toBe(0);
});

test("a command that cannot write its output says so and fails", async () => {
  const full = openSync("/dev/full", "w");
  const child = Bun.spawn([...PROGRAM, "help"], { stdin: "ignore", stdout: full, stderr: "pipe" });
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

  await using kept = await Hub.start({ data: dir.join("data"), command: ["nohup", ...PROGRAM] });
  kept.program.child.kill("SIGHUP");
  expect((await kept.get("/status")).status).toBe(200);
  expect((await kept.stop()).code).toBe(0);
  expect(kept.program.stdout).toContain("ending signal=SIGTERM");
});

const PAD = "x".repeat(2_000);
/** Together their lines, of a path that is cut, are twice what is held. */
const REQUESTS = Math.ceil((2 * LOG_BACKLOG_MAX_CHARS) / LOG_PATH_MAX_CHARS);
const AT_ONCE = 8;

/** A hub whose standard output is read when it is asked for. */
async function startUnread(data: string) {
  const args = ["serve", "--port", "0", "--host", "127.0.0.1", "--data", data];
  args.push("--log", "json", "--log-level", "debug");
  const child = Bun.spawn([...PROGRAM, ...args], { stdout: "pipe", stderr: "inherit" });
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
    expect(shown * LOG_PATH_MAX_CHARS).toBeGreaterThan(LOG_BACKLOG_MAX_CHARS / 2);
    expect(text.length).toBeLessThan(1.2 * LOG_BACKLOG_MAX_CHARS);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

test("at info the log has changes and no requests, at debug both", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  await hub.register("worker-1");
  const { body } = await hub.post("/task/create", { title: "Say hello", description: "d" });
  await hub.post("/task/claim", { task_id: body["task_id"], node_id: "worker-1" });
  await hub.program.printed(/ info {2}worker-1 claimed "Say hello" \(task [\w-]+\)\n/);
  expect(hub.program.stdout).not.toContain("POST");
  expect(hub.program.stdout).not.toContain("\x1b["); // no terminal
  await hub.stop();
  await using talkative = await Hub.start({ data: dir.join("data"), args: ["--log-level=debug"] });
  await talkative.get("/status");
  await talkative.program.printed(/ debug GET \/api\/v1\/status 200 [\d.]+ms from=127\.0\.0\.1 request_id=/);
});

test("on a terminal levels have colours, but not with NO_COLOR", async () => {
  using dir = new TempDir();
  const { PATH = "", HOME = "" } = process.env;
  const secrets = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: "log-admin-key" };
  for (const [NO_COLOR, head] of [
    ["", "\x1b[2mdebug\x1b[0m GET"],
    ["1", " debug GET"],
  ] as const) {
    let text = "";
    const child = Bun.spawn([...PROGRAM, "serve", "--data", dir.join("data"), "--log-level", "debug"], {
      env: { PATH, HOME, ...secrets, NO_COLOR, LUXHUB_PORT: "0", LUXHUB_HOST: "127.0.0.1" },
      terminal: { data: (_, bytes) => void (text += new TextDecoder().decode(bytes)) },
    });
    try {
      await until(() => / {2}variant/.test(text));
      await fetch(`${/(http:\S+) {2}variant/.exec(text)?.[1]}/api/v1/status`);
      await until(() => text.includes("GET"));
      expect(text).toContain(head);
    } finally {
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
      child.terminal?.close();
    }
  }
});

test("strangers cannot flood the log, and much at once is few lines", async () => {
  using dir = new TempDir();
  for (const level of ["info", "debug"] as const) {
    await using hub = await Hub.start({ data: dir.join(level), args: ["--log-level", level] });
    const report = await measureStrangers(hub, 200);
    expect(report.loggedChars).toBeLessThan(strangersMaxChars(level, report));
    expect(report.loggedChars).toBeGreaterThan(0); // the guesses were 429
    if (level === "debug") continue;
    const activity = await measureActivity(hub, 100, 300);
    expect(activity.events).toBe(501);
    expect(activity.lines).toBeLessThan(activityMaxLines(activity));
  }
});
