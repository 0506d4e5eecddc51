/** Output of the real program that nobody takes: the disk is full, its reader stands still, the terminal is closed. */
import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { FROM_SOURCE, Hub, TempDir } from "./program.ts";

const SECRET = "log-secret";
const LIMIT_MS = 5_000;

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

test("a log that cannot be written is one line on standard error, and no fault of the hub", async () => {
  using dir = new TempDir();
  await using hub = startOn(openSync("/dev/full", "w"), dir.join("data"));
  const stderr = hub.child.stderr.getReader();
  const said = new TextDecoder().decode((await stderr.read()).value);
  hub.child.kill("SIGTERM");
  expect(await hub.child.exited).toBe(0);
  expect(said).toBe("luxhub: the log cannot be written: ENOSPC\n");
  expect((await stderr.read()).done).toBeTrue();
});

test("a reader of the log that stands still holds up no request, and not the end of the hub", async () => {
  using dir = new TempDir();
  const pipe = dir.join("pipe");
  execFileSync("mkfifo", [pipe]);
  const ours = openSync(pipe, constants.O_RDWR);
  await using hub = startOn(ours, dir.join("data"));
  const bytes = new Uint8Array(4096);
  const [, url] =
    /"url":"([^"]+)"/.exec(new TextDecoder().decode(bytes.subarray(0, readSync(ours, bytes)))) ?? [];
  // Nobody reads from here on; this is several times as much as a pipe holds.
  for (let i = 0; i < 2_000; i++) {
    const answer = await fetch(`${url}/api/v1/status`, { headers: { "X-Matrix-Secret": SECRET } });
    expect(answer.status).toBe(200);
  }
  const endingAt = performance.now();
  hub.child.kill("SIGTERM");
  expect(await hub.child.exited).toBe(0);
  expect(performance.now() - endingAt).toBeLessThan(LIMIT_MS);
}, 30_000);

test("a command whose answer cannot be written says so and fails", async () => {
  const full = openSync("/dev/full", "w");
  const child = Bun.spawn([...FROM_SOURCE, "help"], { stdin: "ignore", stdout: full, stderr: "pipe" });
  expect(await child.stderr.text()).toBe("luxhub: cannot write to standard output: ENOSPC\n");
  expect(await child.exited).toBe(1);
  closeSync(full);
});

test("a terminal that is closed ends the hub in order, but not under nohup", async () => {
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
