/** Workers of each kind through kill -9 of their hub and `luxhub promote` (the short form of torture/failover.ts). */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { failOver } from "../../tools/torture/failover.ts";
import { Hub, Program, TempDir, run, until } from "./program.ts";

test("workers go on with their tasks at the copy that is promoted, without a restart", async () => {
  const report = await failOver({ ofEach: 1, shortTasks: 0, death: "SIGKILL" }, () => {});
  expect(report.faults).toEqual([]);
  expect(report.workers).toBeGreaterThanOrEqual(2);
});

test("a machine that has joined by TLS trusts the copy too, and remembers it for the next program", async () => {
  using dir = new TempDir();
  const args = ["--tls", "auto", "--listen", "A+tls:127.0.0.1:0"];
  const start = (name: string) => Hub.start({ data: dir.join(name), args, ownSecrets: false });
  const urlOf = ({ listeners }: Hub) =>
    `https://127.0.0.1:${listeners.find(({ url }) => url.startsWith("https:"))?.port}`;
  const env = { HOME: dir.path, LUXHUB_JOINED: dir.join("hub.json"), DIR: dir.path };
  const command = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(words, { env });
    expect({ words, code, stderr: code === 0 ? "" : stderr }).toEqual({ words, code: 0, stderr: "" });
    return stdout.trim();
  };
  const known = () => JSON.parse(readFileSync(env.LUXHUB_JOINED, "utf8")).hubs;

  await using first = await start("first");
  const invite = async (...words: readonly string[]) => {
    const line = await command("invite", ...words, "--join-url", urlOf(first), "--data", dir.join("first"));
    return line.replace("luxhub join ", "");
  };
  await command("join", await invite("copy", "--standby"), "--data", dir.join("second"));
  await using second = await start("second");
  await command("join", await invite("w"));
  const script = 'while [ ! -e "$DIR/go" ]; do sleep 0.05; done';
  await using worker = new Program(["worker", "--", "sh", "-c", script], { env });
  await until(() => worker.stderr.includes("registered"));
  expect(known()).toEqual([urlOf(first), urlOf(second)]);
  const taskId = await command("task", "add", "t", "-d", "d");
  const isCopied = async () => {
    const { stdout } = await run(["task", "show", taskId, "--json", "--data", dir.join("second")], { env });
    return /"started_at": *"/.test(stdout);
  };
  await until(isCopied);

  first.program.child.kill("SIGKILL");
  await command("promote", "--data", dir.join("second"));
  writeFileSync(dir.join("go"), "");
  await until(() => worker.stderr.includes("completed"));
  expect(worker.stderr).not.toContain("lost");
  expect(known()).toEqual([urlOf(second), urlOf(first)]);
  expect(await command("task", "show", taskId)).toMatch(/status +completed/);
});
