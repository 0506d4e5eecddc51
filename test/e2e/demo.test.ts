/**
 * `luxhub demo`: it prints its URL first, its nodes work within seconds, and it leaves nothing behind. A separate file,
 * because each demo is a separate hub, in a temporary directory that the test inspects.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { LuxHub } from "../../src/client/luxhub.ts";
import { Program, TempDir, run, until } from "./program.ts";

const dir = new TempDir();
afterAll(() => dir[Symbol.dispose]());

type Demo = {
  readonly program: Program;
  readonly url: string;
  readonly secret: string;
  readonly data: string;
};

async function start(...args: readonly string[]): Promise<Demo> {
  const program = new Program(["demo", ...args], {
    cwd: dir.path,
    // What a hub would read is not read.
    env: { TMPDIR: dir.path, LUXHUB_HOST: "0.0.0.0", LUXHUB_DATA: dir.join("other"), LUXHUB_SECRET: "other" },
  });
  await program.printed(/--data .*\n/);
  const [, url = ""] = /^(http:\/\/127\.0\.0\.1:\d+\/)\n/.exec(program.stdout) ?? [];
  const [, secret = ""] = /secret {5}(\S+)/.exec(program.stdout) ?? [];
  const [, data = ""] = /data {7}(\S+)/.exec(program.stdout) ?? [];
  return { program, url, secret, data };
}

function end({ program }: Demo, signal: NodeJS.Signals): Promise<number | null> {
  program.child.kill(signal);
  return program.ended;
}

test("is alive within seconds, and removes its data and that of a killed one, but not that of another", async () => {
  const killed = await start("--port", "0");
  expect(await end(killed, "SIGKILL")).toBeNull();
  expect(readdirSync(dir.path)).toHaveLength(1);

  const demo = await start();
  await using _ = demo.program;
  expect(existsSync(killed.data)).toBeFalse();
  const page = await fetch(demo.url);
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const hub = new LuxHub({ url: demo.url, secret: demo.secret });
  const seen = new Set<string>();
  await until(async () => {
    const { by_status } = await hub.tasks.stats();
    for (const [status, count] of Object.entries(by_status)) if (count > 0) seen.add(status);
    return ["open", "assigned", "completed"].every((status) => seen.has(status));
  });
  const { nodes } = await hub.nodes.list();
  expect(nodes.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => "online"));

  const other = await start(); // on another port
  expect(existsSync(demo.data)).toBeTrue();
  expect(await end(other, "SIGINT")).toBe(0);
  expect(await end(demo, "SIGTERM")).toBe(0);
  expect([demo.program.stderr, other.program.stderr]).toEqual(["", ""]);
  expect(readdirSync(dir.path)).toEqual([]);
});

test("a second signal ends it while a request is running, and it still leaves nothing behind", async () => {
  const demo = await start("--port", "0");
  await using _ = demo.program;
  const { hostname, port } = new URL(demo.url);
  const unfinished = await Bun.connect({ hostname, port: Number(port), socket: { data: () => {} } });
  const head = `POST /api/v1/node/heartbeat HTTP/1.1\r\nHost: a\r\nX-Matrix-Secret: ${demo.secret}\r\n`;
  unfinished.write(`${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`);
  await until(() => {
    demo.program.child.kill("SIGTERM");
    return demo.program.child.exitCode !== null;
  });
  expect(await demo.program.ended).toBe(1);
  unfinished.terminate();
  expect(readdirSync(dir.path)).toEqual([]);
});

test("a wrong port is refused before anything is made", async () => {
  const wrong = await run(["demo", "--port", "http"], { env: { TMPDIR: dir.path } });
  expect(wrong).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("--port") });
  expect(readdirSync(dir.path)).toEqual([]);
});
