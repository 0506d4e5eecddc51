/**
 * The commands that are clients of a hub: one session over all of them with the real program, their output for people
 * and for programs, and their exit codes. The hub is that of a data directory, or one named by its URL.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { COMMANDS, FIRST_WORDS, commandNamed, commandsOf } from "../../src/cli/commands.ts";
import { commandHelp } from "../../src/cli/help.ts";
import { PROGRAM } from "../support/executable.ts";
import { OWN_HOST } from "../support/keeper.ts";
import {
  ADMIN_KEY,
  type Ended,
  Hub,
  Program,
  SECRET,
  TempDir,
  listOf,
  objectOf,
  run,
  until,
} from "./program.ts";

const dir = new TempDir();
const data = dir.join("data");
const SECRETS = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY };
/** What top writes before each picture. */
const HOME = "\u001b[H";
let hub: Hub;

beforeAll(async () => {
  hub = await Hub.start({ data });
  await Promise.all(["w1", "w2"].map((nodeId) => hub.register(nodeId)));
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

/** Runs a command on the hub of the data directory. */
function luxhub(...args: readonly string[]): Promise<Ended> {
  return run(args, { cwd: dir.path, env: { ...SECRETS, LUXHUB_DATA: data } });
}

/** What it prints on standard output, without the last line feed; it must succeed and say nothing else. */
async function out(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await luxhub(...args);
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  return stdout.trimEnd();
}

async function json(...args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  return objectOf(await out(...args, "--json"));
}

async function jsonList(...args: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const value: unknown = JSON.parse(await out(...args, "--json"));
  expect(value).toBeArray();
  return listOf(value);
}

function add(title: string, ...flags: readonly string[]): Promise<string> {
  return out("task", "add", title, "--description", "d", ...flags);
}

/** Runs a command as a shell would with this on its standard input. */
async function withInput(input: string, ...args: readonly string[]): Promise<string> {
  const child = Bun.spawn([...PROGRAM, ...args], {
    cwd: dir.path,
    env: { ...process.env, ...SECRETS, LUXHUB_DATA: data },
    stdin: new Blob([input]),
    stdout: "pipe",
  });
  const [text, code] = await Promise.all([child.stdout.text(), child.exited]);
  expect(code).toBe(0);
  return text.trimEnd();
}

describe("a session", () => {
  test("task logs: plain text, unchanged with --raw, JSON lines, an attempt, and what is no longer kept", async () => {
    const id = await add("Print");
    const claim = async (): Promise<number> => {
      const { lease } = (await hub.post("/task/claim", { task_id: id, node_id: "w1" })).body;
      return Number(objectOf(JSON.stringify(lease))["epoch"]);
    };
    const send = (offset: number, data: string) =>
      hub.post("/task/output", { task_id: id, node_id: "w1", offset, data });
    const first = await claim();
    expect(await out("task", "logs", id)).toBe("");
    await send(0, "\u001b[1mone\u001b[0m\r\n");
    expect(await out("task", "logs", id)).toBe("one");
    expect(await out("task", "logs", id, "--raw")).toBe("\u001b[1mone\u001b[0m");
    const part = {
      attempt: first,
      offset: 0,
      next_offset: 13,
      dropped: 0,
      data: "\u001b[1mone\u001b[0m\r\n",
    };
    expect(JSON.parse(await out("task", "logs", id, "--json"))).toEqual(part);
    await hub.post("/task/release", { task_id: id, node_id: "w1" });
    await claim();
    const line = "0123456789abcde\n".repeat(4_000);
    for (let n = 0; n < 6; n++) await send(n * line.length, line);
    const newest = await luxhub("task", "logs", id);
    expect(newest.stderr).toMatch(/attempt \d+ on w1\n.*: \d+ bytes here are no longer kept/);
    expect(newest.stdout.length).toBeLessThan(6 * line.length);
    expect((await luxhub("task", "logs", id, "--attempt", String(first))).stdout).toBe("one\n");
    await hub.post("/task/cancel", { task_id: id });
    expect(await luxhub("task", "logs", "-f", "none")).toMatchObject({ code: 3, stdout: "" });
  });

  test("status, and top once", async () => {
    const later = await add("Later", "--delay", "1h");
    const held = [{ code: "not_before", count: 1 }];
    expect(await json("status")).toMatchObject({ status: "ok", nodes_count: 2, held });
    const status = await out("status");
    expect(status).toMatch(/^url +http:\/\/127\.0\.0\.1:\d+\nstatus +ok\n/);
    expect(status).toMatch(/^1 +not_before +\d+s +\(any type\) 1$/m);
    expect(await jsonList("task", "list", "--held", "any")).toMatchObject([{ task_id: later }]);
    await out("task", "cancel", later);
    const [cancelled] = await jsonList("task", "list", "--status", "cancelled");
    expect(cancelled).toMatchObject({ task_id: later });
    expect(await out("top")).toMatch(/^nodes 2: online 2, offline 0$/m);
    expect(await json("top")).toMatchObject({ status: { status: "ok" }, stats: {}, nodes: [{}, {}] });
  });

  test("top in a terminal draws until q, and leaves the screen as it was", async () => {
    let screen = "";
    const drawn = Promise.withResolvers<void>();
    const child = Bun.spawn([...PROGRAM, "top", "--interval", "200ms", "--data", data], {
      env: { ...process.env, ...SECRETS, TERM: "xterm" },
      terminal: {
        cols: 40,
        rows: 10,
        data: (_, bytes) => {
          screen += new TextDecoder().decode(bytes);
          if (screen.split(HOME).length > 3) drawn.resolve();
        },
      },
    });
    await Promise.race([drawn.promise, child.exited]);
    child.terminal?.write("q");
    expect(await child.exited).toBe(0);
    expect(screen).toStartWith("\u001b[?1049h");
    await until(() => screen.endsWith("\u001b[?1049l"));
    const [, picture = ""] = screen.split(HOME);
    const lines = Bun.stripANSI(picture).split(/[\r\n]+/);
    expect(lines).toContain("nodes 2: online 2, offline 0");
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  });

  test("top shows running tasks first and online nodes only, however many have gone", async () => {
    for (let i = 0; i < 30; i++) {
      await hub.post("/node/register", { node_id: `gone-${i}`, name: "Gone" });
      await hub.post("/node/leave", { node_id: `gone-${i}` });
    }
    const task_id = await add("Seen at once", "--type", "top");
    await hub.post("/task/claim", { task_id, node_id: "w1" });
    const lines = (await out("top")).split("\n");
    expect(lines[2]).toBe("nodes 32: online 2, offline 30");
    expect(lines[4]).toStartWith("TASK ");
    expect(lines.slice(5).find((line) => line.includes("Seen at once"))).toStartWith(task_id);
    expect(lines.filter((line) => line.includes("gone-"))).toEqual([]);
    expect(lines.filter((line) => /^w[12] /.test(line))).toHaveLength(2);
    await hub.admin("/task/delete", { task_id });
    for (let i = 0; i < 30; i++) await hub.admin("/node/delete", { node_id: `gone-${i}` });
  });

  test("empty lists are [] in JSON, and a head for people", async () => {
    expect(await out("lux", "w1", "--json")).toBe("[]");
    expect(await out("file", "list", "--json")).toBe("[]");
    expect(await out("task", "list", "--type", "nothing", "--json")).toBe("[]");
    expect(await out("message", "history", "w2", "--json")).toBe("[]");
    expect(await out("file", "list")).toBe("FILE  SIZE  UPLOADED  NODE  TASK  NAME");
  });

  test("notes: put, get, list, search, delete", async () => {
    expect(await out("note", "put", "plan/a", "Begin here.", "--node", "w1", "--if-version", "0")).toBe(
      "version 1",
    );
    expect(await luxhub("note", "put", "plan/a", "Other", "--if-version", "0")).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/has version 1.*\(note_version_conflict\)/),
    });
    expect(await out("note", "get", "plan/a")).toBe("Begin here.");
    expect(await jsonList("note", "list", "--prefix", "plan/")).toMatchObject([
      { key: "plan/a", version: 1, node_id: "w1" },
    ]);
    expect(await out("note", "list")).toMatch(/^KEY +VERSION .*\nplan\/a +1 +17 +w1 /);
    expect(await out("note", "search", "beg", "her")).toMatch(/plan\/a +w1 +Begin here\.$/);
    await out("note", "put", "plan/a", "One line,\n\tand another\u001b[1m.");
    expect(await out("note", "get", "plan/a")).toBe("One line,\n\tand another\ufffd[1m.");
    expect(await out("note", "delete", "plan/a")).toBe("plan/a  deleted");
    expect((await luxhub("note", "get", "plan/a")).code).toBe(3);
    expect(await out("note", "list", "--json")).toBe("[]");
  });

  test("limits: a hold takes a duration", async () => {
    const before = Date.now();
    const [, until = ""] = (await out("limit", "hold", "model-api", "--for", "5m")).split(" held until ");
    expect(Date.parse(until)).toBeGreaterThanOrEqual(before + 300_000);
    expect(await out("limit", "delete", "model-api")).toBe("model-api  deleted");
  });

  test("leases: acquire, renew, list, release", async () => {
    for (const node of ["w1", "w2"]) await hub.post("/node/heartbeat", { node_id: node });
    const acquire = (node: string) => luxhub("lease", "acquire", "src/**", "--node", node, "--ttl", "5m");
    expect((await acquire("w1")).stdout).toMatch(/^fencing \d+, until 20\S+Z\n$/);
    expect(await acquire("w2")).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/leases of w1.*\(lease_conflict\)/),
    });
    expect(await out("lease", "list", "--node", "w1")).toMatch(/\nsrc\/\*\* +w1 +- +no +\d+ /);
    expect(await out("lease", "renew", "src/**", "--node", "w1", "--ttl", "1h")).toMatch(/^fencing /);
    expect(await jsonList("lease", "list")).toMatchObject([{ name: "src/**", ttl_s: 3_600 }]);
    expect(await out("lease", "release", "src/**", "--node", "w1")).toBe("src/**  released");
    expect(await out("lease", "release", "src/**", "--node", "w1")).toBe("src/**  was not held");
  });

  test("a task: add, list, show, claim, complete, wait, lux", async () => {
    const flags = [
      "--type",
      "x",
      "--priority",
      "p0",
      "--reward",
      "2.5",
      "--creator",
      "w2",
      "--timeout",
      "1h",
      "--max-run",
      "2d",
    ];
    const taskId = await add("Say hello", ...flags);
    expect(taskId).toMatch(/^[0-9a-f-]{36}$/);
    const shown = await json("task", "show", taskId);
    const lines = await out("task", "show", taskId);
    expect(lines).toContain(taskId);
    expect(lines).not.toMatch(/^\w+ +-$/m); // a field without a value is left out
    expect(shown).toMatchObject({ task_id: taskId, priority: 0, timeout_s: 3_600, creator_node: "w2" });
    expect(shown).toMatchObject({ max_run_s: 172_800, restarts: 0 });
    expect(await out("task", "list", "--status", "open", "--creator", "w2", "--type", "x")).toMatch(
      new RegExp(`^TASK .*\\n${taskId}  open +0 +x +- +\\d+s +Say hello$`),
    );
    const { unmet, ...listed } = shown;
    expect(unmet).toEqual({ count: 0, task_ids: [] });
    expect(await jsonList("task", "list", "--type", "x")).toEqual([listed]);
    for (const [given, priority] of [
      ["High", 0],
      ["2", 2],
    ] as const)
      expect(await json("task", "show", await add("Say it so", "--priority", given))).toMatchObject({
        priority,
      });
    expect(await out("task", "claim", taskId, "--node", "w1")).toBe(`${taskId}  assigned  w1`);
    const waiting = luxhub("task", "wait", taskId, "--timeout", "300");
    writeFileSync(dir.join("result.json"), '{"problem":"p","improvement":"i\\nj","lesson":"l","n":1}');
    expect(await out("task", "complete", taskId, "--node", "w1", "--result", "result.json")).toBe(
      `${taskId}  completed  2.5 LUX paid`,
    );
    expect(await waiting).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^ {2}j$/m) });
    expect(await json("task", "show", taskId)).toMatchObject({ result: { improvement: "i\nj", n: 1 } });
    expect(await out("lessons", "say l")).toMatch(/^Say .*\n  .* task \S+ by w1\n  l$/);
    expect(await jsonList("lessons")).toMatchObject([{ task_id: taskId, lesson: "l", node_id: "w1" }]);
    expect(await jsonList("lessons", "--type", "other")).toEqual([]);
    expect(await out("lux", "w1")).toMatch(/^w1 has 2\.5 LUX\nTIME +LUX +KIND +TASK\n.* 2\.5 +reward +\S+$/);
    expect(await jsonList("lux", "w1")).toMatchObject([{ amount: 2.5, task_id: taskId }]);
  });

  test("the ledger: export, head, verify", async () => {
    const exported = await out("lux", "export");
    const { hash } = await json("lux", "head");
    expect(await out("lux", "head")).toBe(`1  ${hash}`);
    writeFileSync(dir.join("ledger.jsonl"), `${exported}\n`);
    const verify = (...args: readonly string[]) =>
      run(["lux", "verify", ...args], { cwd: dir.path, env: { LUXHUB_DATA: dir.join("no-hub") } });
    const intact = `1 entries, 2.5 LUX paid, the noted hash is that of entry 1, head 1 ${hash}\n`;
    expect(await verify("ledger.jsonl", "--head", String(hash))).toMatchObject({ code: 0, stdout: intact });
    writeFileSync(dir.join("changed.jsonl"), exported.replace('"amount":2.5', '"amount":3.5'));
    expect(await verify("changed.jsonl")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^NOT INTACT: 1 entries, 3\.5 LUX paid/),
      stderr: "luxhub: line 1: entry 1 is not the one that its hash was made of\n",
    });
    expect(await verify("none.jsonl")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("none.jsonl cannot be read"),
    });
    expect(await verify("ledger.jsonl", "--head", "5")).toMatchObject({ code: 2 });
  });

  test("a question: ask, list, answer; and a checkpoint", async () => {
    const taskId = await add("Choose");
    await out("task", "claim", taskId, "--node", "w1");
    const of = ["--node", "w1", "--epoch", "1"];
    const choices = ["--choice", "red", "--choice", "blue"];
    const questionId = await out("task", "ask", taskId, "Which colour?", ...of, ...choices);
    expect(await out("questions")).toMatch(
      new RegExp(`^TASK .*\\n${taskId} +${questionId} +\\S.* w1 +Which colour\\? \\(red, blue\\)$`),
    );
    expect(await jsonList("questions")).toMatchObject([{ question_id: questionId, task_title: "Choose" }]);
    const asking = ["task", "ask", taskId, "Which colour?", ...of, ...choices, "--wait"];
    expect(await luxhub(...asking, "100ms")).toMatchObject({
      code: 124,
      stdout: "",
      stderr: "luxhub: there is no answer yet\n",
    });
    // It repeats the question that is open, or asks a new one after that is answered: each gets the answer.
    let isWaiting = true;
    const waiting = luxhub(...asking, "300").finally(() => (isWaiting = false));
    expect(await out("task", "answer", taskId, "blue")).toBe(`${questionId}  answered`);
    while (isWaiting) {
      if ((await jsonList("questions")).length > 0) await out("task", "answer", taskId, "blue");
    }
    expect(await waiting).toMatchObject({ code: 0, stdout: "blue\n" });
    expect((await luxhub("task", "answer", taskId, "red")).stderr).toContain("has no open question");
    const parked = await json("task", "ask", taskId, "How many?", "--park", "--within", "1h", ...of);
    expect(parked).toMatchObject({ state: "open" });
    expect(await json("task", "show", taskId)).toMatchObject({ status: "open", waiting_for: "answer" });
    expect(await json("task", "answer", taskId, '{"n":7}', "--parse", "--node", "w2")).toMatchObject({
      answer: { n: 7 },
      answered_by: "w2",
    });
    await out("task", "claim", taskId, "--node", "w1");
    const save = ["task", "checkpoint", taskId, "--node", "w1"];
    expect(await withInput('{"page": 3}', ...save)).toBe(`${taskId}  saved`);
    const { body } = await hub.get(`/task/${taskId}?context=1`);
    expect(body["context"]).toMatchObject({ checkpoint: { data: { page: 3 } } });
    await out("task", "cancel", taskId);
  });

  test("a review: what waits for one, its verdict; and a task for several nodes", async () => {
    const taskId = await add("Draw", "--reward", "2", "--review", "creator", "--review-within", "2d");
    await out("task", "claim", taskId, "--node", "w1");
    const result = JSON.stringify({ problem: "p", improvement: "i", lesson: "none" });
    await withInput(result, "task", "complete", taskId, "--node", "w1", "--result", "-");
    expect(await out("reviews")).toMatch(new RegExp(`^TASK .*\\n${taskId} +\\S.* creator +w1 +2 +Draw$`));
    expect(await jsonList("reviews")).toMatchObject([{ task_id: taskId, review: { within_s: 172_800 } }]);
    expect(await luxhub("task", "review", taskId, "maybe")).toMatchObject({ code: 2 });
    expect((await luxhub("task", "review", taskId, "pass", "--node", "w1")).stderr).toContain(
      "another one must review",
    );
    const rejected = await json("task", "review", taskId, "reject", "--note", "Too small.", "--epoch", "1");
    expect(rejected["task"]).toMatchObject({ review: { state: "rejected", note: "Too small." } });
    await out("task", "cancel", taskId);
    const many = await add("Count", "--quorum", "2/3", "--compare", "json:/output/n");
    expect(await json("task", "show", many)).toMatchObject({
      quorum: { results: 2, of: 3, compare: "json:/output/n" },
    });
    expect(await luxhub("task", "add", "x", "-d", "y", "--quorum", "two")).toMatchObject({ code: 2 });
    await out("task", "cancel", many);
  });

  test("a new task has the trace of the environment, if there is one", async () => {
    const trace = `00-${"4b".repeat(16)}-${"a1".repeat(8)}-01`;
    for (const [TRACEPARENT, TRACESTATE, kept] of [
      [trace, "vendor=1", { traceparent: trace, tracestate: "vendor=1" }],
      [trace, "x".repeat(600), { traceparent: trace }],
      [`cc-${trace.slice(3)}-later`, "vendor=1", {}],
      ["not a trace", "", {}],
    ] as const) {
      const env = { ...SECRETS, LUXHUB_DATA: data, TRACEPARENT, TRACESTATE };
      const { code, stdout } = await run(["task", "add", "Traced", "--json"], { cwd: dir.path, env });
      expect(code).toBe(0);
      const { task_id } = objectOf(stdout);
      const { traceparent, tracestate } = await json("task", "show", String(task_id));
      expect({ traceparent, tracestate }).toEqual({ traceparent: undefined, tracestate: undefined, ...kept });
      await out("task", "cancel", String(task_id));
    }
  });

  test("several tasks: for one node, and waited for together", async () => {
    await out("task", "claim", await add("keeps w1 online"), "--node", "w1");
    const ids = [await add("first", "--for", "w1"), await add("second", "--for", "w1")];
    expect(await json("task", "show", ids[0] ?? "")).toMatchObject({
      status: "assigned",
      assigned_node: "w1",
    });
    expect(await luxhub("task", "wait", ...ids, "--timeout", "100ms")).toMatchObject({
      code: 124,
      stderr: "luxhub: after 100ms not all of the tasks have ended\n",
    });
    writeFileSync(dir.join("result.json"), '{"problem":"p","improvement":"i","lesson":"l"}');
    const both = luxhub("task", "wait", ...ids, "--timeout", "300");
    await out("task", "complete", ids[0] ?? "", "--node", "w1", "--result", "result.json");
    expect((await luxhub("task", "wait", ...ids, "--any")).code).toBe(0);
    await out("task", "complete", ids[1] ?? "", "--node", "w1", "--result", "result.json");
    expect((await both).stdout).toMatch(/^TASK .*\n\S+ +completed +w1 +first\n\S+ +completed +w1 +second\n$/);
    const unique = ["--unique-key", "only", "--unique-for", "1h"];
    const cancelled = await add("third", ...unique);
    expect(await add("the same", ...unique)).toBe(cancelled);
    const last = await add("last", "--after", cancelled, "--on-dependency", "run");
    await out("task", "update", cancelled, last, "--priority", "p0", "--reward", "2", "--title", "new");
    await out("task", "update", last, "--limit-key", "openai");
    expect(await json("task", "show", last)).toMatchObject({
      limit_key: "openai",
      title: "new",
      priority: 0,
      lux_reward: 2,
      on_dependency: "run",
    });
    await out("task", "update", last, "--limit-key", "none");
    expect((await json("task", "show", last))["limit_key"]).toBeUndefined();
    await out("task", "cancel", last);
    await out("task", "cancel", cancelled);
    expect(await luxhub("task", "wait", ...ids, cancelled, "--json")).toMatchObject({
      code: 1,
      stderr: "luxhub: 1 of 3 tasks failed\n",
    });
    expect((await luxhub("task", "add", "t", "-d", "x", "--for", "nobody")).code).toBe(3);
  });

  test("a task: release, fail, retry, cancel, delete; exit codes of wait", async () => {
    const [taskId, later] = [
      await add("Fail"),
      await withInput("from standard input", "task", "add", "t", "-d", "-"),
    ];
    expect(await json("task", "show", later)).toMatchObject({ description: "from standard input" });
    await out("task", "claim", taskId, "--node", "w1");
    expect(await out("task", "release", taskId, "--node", "w1", "--reason", "no time")).toBe(
      `${taskId}  open`,
    );
    expect(await luxhub("task", "wait", taskId, "--timeout", "100ms")).toMatchObject({
      code: 124,
      stderr: "luxhub: after 100ms the task is still open\n",
    });
    await out("task", "claim", taskId, "--node", "w1");
    const failed = await json("task", "fail", taskId, "--node", "w1", "--error", "broken", "--no-retry");
    expect(failed).toMatchObject({ task_id: taskId, status: "failed" });
    expect(await luxhub("task", "wait", taskId)).toMatchObject({
      code: 1,
      stderr: "luxhub: the task failed: failed: broken\n",
    });
    expect(await out("task", "retry", taskId)).toBe(`${taskId}  open`);
    await out("task", "cancel", taskId, "--node", "w2");
    expect(await out("task", "show", taskId)).not.toMatch(/: -$/m);
    expect(await out("task", "retry", taskId)).toBe(`${taskId}  open`);
    const both = await out("task", "cancel", taskId, later, "--node", "w2", "--reason", "enough");
    expect(both).toBe(`${taskId}  failed\n${later}  failed`);
    const some = await luxhub("task", "delete", taskId, "nobody", later, "--json");
    expect(some).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/^luxhub: .*nobody.* \(task_not_found\)\n$/),
    });
    expect(some.stdout).toBe(`{"task_id":"${taskId}"}\n{"task_id":"${later}"}\n`);
  });

  test("JSON has what a terminal obeys as escapes", async () => {
    const title = "evil \u001b[2J \u009b31m \u202e \u{e0041}";
    const id = await add("harmless", "--type", "evil");
    const { body } = await hub.post("/task/create", { title, description: title, task_type: "evil" });
    for (const args of [
      ["task", "show", String(body["task_id"])],
      ["task", "list", "--type", "evil"],
      ["events", "--task", id],
    ]) {
      const text = await out(...args, "--json");
      expect(text.replaceAll("\n", "")).not.toMatch(/\p{C}/u);
      expect(JSON.stringify(JSON.parse(text)).includes(JSON.stringify(title))).toBe(args[0] === "task");
    }
  });

  test("a task with input files, which are uploaded first; a refused one leaves none", async () => {
    writeFileSync(dir.join("one.txt"), "1");
    writeFileSync(dir.join("two.md"), "2");
    const taskId = await add("Read", "--file", "one.txt", "--creator", "w1", "--file", "two.md");
    const { inputs } = await json("task", "show", taskId);
    const files = await jsonList("file", "list");
    expect(files.map(({ name, node_id, attached }) => [name, node_id, attached])).toEqual([
      ["two.md", "w1", "input"],
      ["one.txt", "w1", "input"],
    ]);
    expect(inputs).toEqual(files.map(({ file_id }) => file_id).toReversed());
    const refused = ["task", "add", "Read", "-d", "d", "--file", "one.txt", "--after", "nothing"];
    expect(await luxhub(...refused)).toMatchObject({ code: 2, stdout: "" });
    expect(
      await luxhub("task", "add", "Read", "-d", "d", "--file", "one.txt", "--file", "no.txt"),
    ).toMatchObject({
      stderr: expect.stringContaining("cannot read no.txt"),
    });
    expect((await jsonList("file", "list")).length).toBe(2);
    await out("task", "cancel", taskId);
    for (const { file_id } of files) await out("file", "rm", String(file_id));
  });

  test("a failed task with those that depend on it: retry --with-dependents", async () => {
    const leaf = await add("Leaf");
    const part = await add("Part", "--after", leaf);
    const all = await add("All", "--after", part);
    await out("task", "cancel", leaf);
    expect(await json("task", "show", all)).toMatchObject({ status: "failed" });
    expect(await luxhub("task", "retry", leaf, "--with-dependents")).toMatchObject({
      code: 0,
      stdout: `${leaf}  open\n`,
      stderr: "2 tasks that depend on it opened again\n",
    });
    expect(await json("task", "show", all)).toMatchObject({
      status: "open",
      unmet: { count: 1, task_ids: [part] },
    });
    await out("task", "cancel", leaf);
  });

  test("a budget, what a node reports, and voiding it", async () => {
    const taskId = await add("Costly");
    await out("task", "claim", taskId, "--node", "w1");
    const spent = ["--model", "m", "--input-tokens", "5", "--output-tokens", "1", "--cost-usd", "2.5"];
    await out("task", "usage", taskId, "--node", "w1", "--seq", "1", ...spent);
    expect(await out("budget", "set", "hub", "--per", "total", "--cost-usd", "2")).toBe(
      "hub per total  exceeded",
    );
    expect(await out("budget", "void", "w1", "--reason", "cents")).toMatch(
      /^w1 on \d{4}-\d\d-\d\d  1 report, 2\.5 USD voided$/,
    );
    expect(await jsonList("budget", "list")).toMatchObject([{ state: "open", spent: { cost_usd: null } }]);
    expect(await luxhub("budget", "void", "w1")).toMatchObject({ code: expect.any(Number), stdout: "" });
    expect(await luxhub("budget", "void")).toMatchObject({ code: 2, stdout: "" });
    await out("budget", "delete", "hub", "--per", "total");
    await out("task", "cancel", taskId);
  });

  test("a group: add, show, watch, cancel, retry, and the export of its tasks", async () => {
    const add = (title: string) =>
      out("task", "add", title, "-d", "d", "--group", "g", "--tag", "a", "--tag", "b");
    const ids = [await add("One"), await add("Two")];
    const [one = "", two = ""] = ids;
    expect(await json("group", "show", "g")).toMatchObject({ total: 2, unfinished: 2, done: false });
    await out("task", "add", "Other", "-d", "d", "--group", "h");
    expect((await jsonList("group", "list")).map(({ group }) => group)).toEqual(["g", "h"]);
    expect(await out("group", "list", "g")).toMatch(/^GROUP +TASKS [^]*\ng +2 +2 +0 +2\S+ \S+$/);
    expect((await out("group", "list", "--limit", "1")).split("\n")).toHaveLength(2);
    expect(await luxhub("group", "watch", "g", "--timeout", "10ms")).toMatchObject({
      code: 124,
      stdout: `[${".".repeat(30)}] 0/2 (0%), 0 running, 0 failed\n`,
      stderr: expect.stringContaining("2 of 2 tasks are unfinished"),
    });
    const watching = luxhub("group", "watch", "g");
    await out("task", "claim", one, "--node", "w1");
    writeFileSync(dir.join("group.json"), JSON.stringify({ problem: "p", improvement: "i", lesson: "l" }));
    await out("task", "complete", one, "--node", "w1", "--result", dir.join("group.json"));
    expect(await out("group", "cancel", "g", "--reason", "enough")).toBe("g  1 cancelled");
    const { code, stdout, stderr } = await watching;
    expect(stdout).toEndWith(`[${"#".repeat(30)}] 2/2 (100%), 0 running, 0 failed, 1 cancelled\n`);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "luxhub: 0 of 2 tasks failed, 1 were cancelled\n" });
    expect(await out("group", "show", "g")).toMatch(/cancelled +1\n(?![^]*FAILED TASK)/);
    const lines = (await out("task", "export", "--group", "g")).split("\n").map((line) => objectOf(line));
    expect(lines.map(({ task_id }) => task_id)).toEqual([two, one]);
    expect(lines[1]).toMatchObject({ status: "completed", result: { lesson: "l" }, tags: ["a", "b"] });
    expect(await json("group", "retry", "g")).toEqual({ group: "g", retried: 1 });
    expect(await jsonList("task", "list", "--tag", "b", "--status", "open")).toMatchObject([
      { task_id: two },
    ]);
    const events = await jsonList("events", "--group", "g", "--kind", "group.ended");
    expect(events).toMatchObject([{ data: { group: "g" } }]);
    await out("task", "update", two, "--tag", "c");
    expect(await jsonList("events", "--tag", "c")).toMatchObject([{ kind: "task.updated", task_id: two }]);
    await out("task", "update", two, "--tag", "none");
    expect(await json("task", "show", two)).not.toHaveProperty("tags");
    await out("task", "cancel", two);
    expect((await luxhub("group", "show", "none")).code).toBe(3);
  });

  test("more tasks than a page: a table of 50, JSON of all, and a reader that leaves early", async () => {
    const creates = Array.from({ length: 60 }, (_, i) =>
      hub.post("/task/create", { title: `many ${i} \u001b[31m`, description: "d", task_type: "many" }),
    );
    await Promise.all(creates);
    const table = await luxhub("task", "list", "--type", "many");
    expect(table.stdout.split("\n")).toHaveLength(52);
    expect(table.stderr).toBe("The newest 50; --limit shows more.\n");
    expect(table.stdout).not.toContain("\u001b"); // what others wrote is no command for the terminal
    const all = await jsonList("task", "list", "--type", "many");
    expect(new Set(all.map(({ task_id }) => task_id)).size).toBe(60);
    expect((await luxhub("task", "list", "--limit", "2")).stdout.split("\n")).toHaveLength(4);
    const command = [...PROGRAM, "task", "list", "--json", "--data", data];
    const shell = Bun.spawn(["bash", "-c", '"$@" | head -c 10; echo "${PIPESTATUS[0]}"', "-", ...command], {
      env: { ...process.env, ...SECRETS },
      stdout: "pipe",
      stderr: "pipe",
    });
    expect([await shell.stdout.text(), await shell.stderr.text()]).toEqual([
      expect.stringMatching(/^\[\n\{"task_i0\n$/),
      "",
    ]);
  });

  test("nodes: list, show, drain, delete", async () => {
    await hub.register("w3");
    expect(await out("node", "list")).toMatch(/^NODE +STATUS .*\n(?:.*\n)*w3 +online +0 +0 +0 /);
    expect((await jsonList("node", "list")).map(({ node_id }) => node_id)).toContain("w3");
    expect(await out("node", "drain", "w3")).toBe("w3 gets nothing new; it has 0 unfinished tasks");
    expect(await json("node", "show", "w3")).toMatchObject({ node_id: "w3", draining: true });
    expect(await json("node", "drain", "w3", "--off")).toMatchObject({ drain: false });
    expect(await out("node", "delete", "w3")).toBe("w3 is deleted");
    expect(await luxhub("node", "show", "w3")).toMatchObject({ code: 3, stdout: "" });
  });

  test("messages: send, receive, history, parked", async () => {
    const id = await out("message", "send", "--from", "op", "--to", "w1", "--ack", "two\nlines");
    const said = await withInput("from standard input", "message", "send", "-", "--from", "op", "--to", "w1");
    expect(await jsonList("message", "history", "w1")).toMatchObject([
      { id: said },
      { id, state: "waiting" },
    ]);
    expect(await out("message", "history", "w1", "--limit", "1")).toMatch(
      / op -> w1 {2}text {2}waiting {2}\S+\nfrom standard input$/,
    );
    const got = await out("message", "receive", "w1", "--ack");
    expect(got).toMatch(/op -> w1 {2}text {2}\S+\ntwo\nlines\n\n.* op -> w1 .*\nfrom standard input$/);
    expect(await jsonList("message", "history", "w1")).toMatchObject([
      { state: "delivered" },
      { state: "acked" },
    ]);
    const answer = ["--from", "w1", "--reply-to", id];
    await out("message", "send", ...answer, "--to", "w1", "an answer");
    await out("message", "send", ...answer, "--taking", "none", "to nobody");
    await out("message", "send", "--from", "op", "--all", "--thread", "noon", "to all");
    expect(await out("message", "history", "w1", "--thread", id, "--limit", "1")).toContain("to nobody");
    expect(await jsonList("message", "history", "w1", "--thread", id)).toMatchObject([
      { to_node: null, reply_to: id },
      { content: "an answer", reply_to: id, thread: id },
      { id },
    ]);
    expect(await jsonList("message", "history", "w1", "--thread", "noon")).toHaveLength(1);
    expect(await luxhub("message", "send", "--from", "op", "--all", "--to", "w1", "x")).toMatchObject({
      code: 2,
    });
    await out("message", "receive", "w1");
    expect(await out("message", "parked", "w1", "--json")).toBe("[]");
    const none = await luxhub("message", "receive", "w1", "--wait", "50ms", "--json");
    expect(none).toMatchObject({ code: 124, stdout: "[]\n" });
    expect(await out("message", "receive", "w1")).toBe("");
  });

  test("files: put, list, get, rm", async () => {
    const taskId = await add("With a file");
    const bytes = crypto.getRandomValues(new Uint8Array(300_000));
    writeFileSync(dir.join("data.bin"), bytes);
    const fileId = await out("file", "put", "data.bin", "--task", taskId, "--node", "w1");
    const [file] = await jsonList("file", "list");
    expect(file).toMatchObject({
      file_id: fileId,
      name: "data.bin",
      size: 300_000,
      task_id: taskId,
      node_id: "w1",
    });
    expect(await out("file", "list")).toMatch(new RegExp(`\\n${fileId} .* data\\.bin$`));
    mkdirSync(dir.join("got"), { recursive: true });
    const inGot = (...args: readonly string[]) =>
      run(["file", "get", fileId, ...args, "--data", data], { cwd: dir.join("got"), env: SECRETS });
    expect(await inGot()).toMatchObject({ code: 0, stdout: "", stderr: "data.bin: 293.0 KiB\n" });
    expect(readFileSync(dir.join("got", "data.bin")).equals(bytes)).toBeTrue();
    expect(await inGot()).toMatchObject({
      code: 1,
      stderr: "luxhub: data.bin exists: name another file with -o\n",
    });
    expect(await inGot("-o", "other")).toMatchObject({ code: 0 });
    expect(readFileSync(dir.join("got", "other")).equals(bytes)).toBeTrue();
    writeFileSync(dir.join("empty"), "");
    const empty = await json("file", "put", "empty", "--name", "nothing.txt");
    expect(await jsonList("file", "list", "--task", taskId)).toMatchObject([{ file_id: fileId }]);
    expect(await luxhub("file", "get", String(empty["file_id"]), "-o", "-")).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
    const url = await out("file", "url", fileId);
    expect((await (await fetch(url)).bytes()).length).toBe(300_000);
    const form = new FormData();
    form.set("file", new File(["by URL"], "by-url.txt"));
    const made = await json("file", "upload-url", "--node", "w1", "--task", taskId);
    const sent = await fetch(String(made["url"]), { method: "POST", body: form });
    const uploaded: { readonly file_id?: unknown } = Object(await sent.json());
    expect(uploaded).toMatchObject({ name: "by-url.txt", node_id: "w1", task_id: taskId });
    await out("file", "rm", String(uploaded.file_id));
    expect(await out("file", "rm", fileId, String(empty["file_id"]))).toMatch(
      /^\S+ {2}deleted\n\S+ {2}deleted$/,
    );
    const refused = await luxhub("file", "put", "empty", "--task", "nosuch");
    expect(refused).toMatchObject({ code: 3, stdout: "" });
    expect(refused.stderr).toMatch(/^luxhub: There is no task nosuch\. .* \(task_not_found\)\n$/);
    expect(await out("file", "list", "--json")).toBe("[]");
  });

  test("events: the newest, all, of one kind, and as they come", async () => {
    expect(await out("events", "--limit", "1")).toMatch(/^ID +TIME +KIND +NODE +TASK +DATA\n\d+ /);
    const all = await jsonList("events");
    expect(all[0]).toMatchObject({ id: 1, kind: "hub.started" });
    const [newest] = await jsonList("events", "--limit", "1");
    expect(Number(newest?.["id"])).toBeGreaterThanOrEqual(Number(all.at(-1)?.["id"]));
    const kinds = await jsonList("events", "--kind", "node.registered", "--kind", "node.deleted");
    expect(kinds.map(({ kind, node_id }) => `${kind} ${node_id}`)).toContain("node.deleted w3");
    const since = Number(all.at(-1)?.["id"]);
    const follow = ["events", "--follow", "--json", "--since", String(since), "--kind", "task.created"];
    await using following = new Program(follow, { cwd: dir.path, env: { ...SECRETS, LUXHUB_DATA: data } });
    const ids = [await add("one"), await add("two")];
    await following.printed(/(?:.*\n){2}/);
    const lines = following.stdout.trimEnd().split("\n").map(objectOf);
    expect(lines.map(({ task_id }) => task_id)).toEqual(ids);
  });
});

describe("which hub", () => {
  const first = () => hub.listeners[0]?.url ?? "";

  test("--url with a secret file, and LUXHUB_URL with LUXHUB_SECRET", async () => {
    writeFileSync(dir.join("secret"), `${SECRET}\n`);
    const byFlag = ["task", "add", "t", "-d", "d", "--url", first(), "--secret-file", dir.join("secret")];
    expect(await run(byFlag)).toMatchObject({ code: 0 });
    const env = { LUXHUB_URL: first(), LUXHUB_SECRET: SECRET };
    expect(await run(["node", "list"], { env })).toMatchObject({ code: 0 });
  });

  test("a listener of B, in its words", async () => {
    using other = new TempDir();
    await using b = await Hub.start({ data: other.join("d"), env: { LUXHUB_VARIANT: "B" } });
    const onB = (...args: readonly string[]) =>
      run([...args, "--url", b.listeners[0]?.url ?? ""], { env: SECRETS });
    const { stdout } = await onB("task", "add", "t", "-d", "d");
    expect(await onB("task", "list")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`\\n${stdout.trim()}  pending  medium `)),
    });
    expect((await onB("top")).stdout).toContain("pending 1");
  });

  test("a hub that is not there, or not any more, is exit code 6", async () => {
    using other = new TempDir();
    const away = await run(["status", "--data", other.join("none")]);
    expect(away).toMatchObject({
      code: 6,
      stderr: expect.stringMatching(/^luxhub: no hub runs on .*--url.*\n$/),
    });
    const killed = await Hub.start({ data: other.join("d") });
    const record = other.join("d", "address");
    expect(readFileSync(record, "utf8")).toBe(`A ${killed.listeners[0]?.url}\n`);
    killed.program.child.kill("SIGKILL");
    await killed.program.ended;
    expect(existsSync(record)).toBeTrue();
    expect(await run(["status", "--data", other.join("d")], { env: SECRETS })).toMatchObject({ code: 6 });
    const unheard = await run(["status", "--url", killed.listeners[0]?.url ?? ""]);
    expect(unheard).toMatchObject({
      code: 6,
      stderr: expect.stringMatching(
        /^luxhub: the hub at http:\/\/\S+ cannot be reached: nothing listens there; .*\n$/,
      ),
    });
    const again = await Hub.start({ data: other.join("d") });
    expect(await run(["status", "--data", other.join("d")], { env: SECRETS })).toMatchObject({ code: 0 });
    await again.stop();
    expect(existsSync(record)).toBeFalse();
  });

  test("follow goes on when the hub comes back", async () => {
    using other = new TempDir();
    const at = { data: other.join("d"), host: OWN_HOST };
    const before = await Hub.start(at);
    const port = String(before.port);
    const follow = ["events", "--follow", "--json", "--since", "0", "--kind", "hub.started", "--limit", "2"];
    await using following = new Program(follow, {
      env: { ...SECRETS, LUXHUB_URL: before.listeners[0]?.url ?? "" },
    });
    await following.printed(/hub\.started.*\n/);
    await before.stop();
    await using after = await Hub.start({ ...at, env: { LUXHUB_PORT: port } });
    expect(after.port).toBe(Number(port));
    expect(await following.ended).toBe(0);
    expect(following.stdout.trimEnd().split("\n")).toHaveLength(2);
  });
});

test("fields that the hub ignored are a warning on standard error", async () => {
  await using older = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ success: true, task_id: "t1", ignored: ["depends_on", "delay_s"] }),
  });
  const args = ["task", "add", "t", "-d", "d", "--url", `http://127.0.0.1:${older.port}`];
  expect(await run(args, { cwd: dir.path, env: SECRETS })).toMatchObject({
    code: 0,
    stdout: "t1\n",
    stderr: "luxhub: the hub ignored depends_on, delay_s: it may be older than this luxhub\n",
  });
});

describe("refusals", () => {
  const rows: readonly (readonly [args: string, code: number, says: RegExp])[] = [
    ["tsk list", 2, /unknown command "tsk" \(did you mean task\?\); see luxhub help/],
    ["task lst", 2, /unknown command task lst \(did you mean list\?\); see luxhub task --help/],
    [
      "task list --staus open",
      2,
      /unknown flag --staus \(did you mean --status\?\); see luxhub task list --help/,
    ],
    ["task list --status opn", 2, /--status is "opn"; it must be open, .* \(did you mean open\?\)/],
    ["task list --limit 0", 2, /--limit is "0"; it must be a whole number from 1/],
    ["task add", 2, /task add needs TITLE/],
    ["task wait x --timeout soon", 2, /--timeout is "soon"; it must be a time such as/],
    ["task claim x", 2, /task claim needs --node NODE/],
    ["task complete x --node w1 --result /dev/null", 2, /the result in \/dev\/null must be a JSON object/],
    ["task complete x --node w1 --result /nowhere", 1, /cannot read \/nowhere/],
    ["status --url ftp://x", 2, /the URL is "ftp:\/\/x"; it must look like http/],
    ["status --url http://x --data y", 2, /--url and --data name two hubs/],
    ["status --secret-file /nowhere", 1, /cannot read \/nowhere/],
    ["file put /nowhere", 1, /cannot read \/nowhere/],
    ["message send x --from op --to nobody", 3, /\(node_not_found\)/],
    ["task show nobody", 3, /\(task_not_found\)/],
    ["completions tcsh", 2, /"tcsh" is not a shell that luxhub knows: bash, zsh, fish/],
    ["help task add x", 2, /unexpected "x"/],
  ];
  test.concurrent.each(rows)("luxhub %s: %d", async (args, code, says) => {
    const ended = await luxhub(...args.split(" "));
    expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code, stdout: "" });
    expect(ended.stderr).toMatch(says);
    expect(ended.stderr).toMatch(/^luxhub: .*\n$/); // one line, and no stack
  });

  test("a wrong secret and a missing administrator key are 4, a conflict is 5", async () => {
    const taskId = await add("conflict");
    const at = ["--url", hub.listeners[0]?.url ?? ""];
    const wrong = await run(["task", "retry", taskId, ...at], { env: { LUXHUB_SECRET: "wrong" } });
    expect(wrong).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/LUXHUB_SECRET or by --secret-file.*\(unauthorized\)/),
    });
    const noAdmin = await run(["task", "delete", taskId, ...at], { env: { LUXHUB_SECRET: SECRET } });
    expect(noAdmin).toMatchObject({ code: 4, stderr: expect.stringMatching(/LUXHUB_ADMIN_KEY/) });
    expect(await luxhub("task", "retry", taskId)).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/\(task_not_failed\)/),
    });
  });
});

describe("output generated from the declarations", () => {
  test("help for the program, a group and a command; each names every flag", async () => {
    const [all, group, command] = await Promise.all(
      [["help"], ["task"], ["help", "task", "add"]].map(async (args) => (await run(args)).stdout),
    );
    for (const word of FIRST_WORDS) expect(all).toContain(`luxhub ${word}`);
    for (const { name } of commandsOf("task")) expect(group).toContain(`luxhub ${name}`);
    expect(command).toBe(`${commandHelp(commandNamed("task add"))}\n`);
    for (const one of COMMANDS) {
      const text = commandHelp(one);
      const missing = Object.keys(one.flags).filter((flag) => !text.includes(`--${flag}`));
      expect([one.name, missing]).toEqual([one.name, []]);
    }
  });

  test("bash completes commands, flags, words of flags and files", async () => {
    const { stdout: script } = await run(["completions", "bash"]);
    writeFileSync(dir.join("completions.bash"), script);
    writeFileSync(dir.join("a file"), "");
    const complete = async (...words: readonly string[]): Promise<string> => {
      const ask =
        'source completions.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _luxhub; printf "%s\\n" "${COMPREPLY[@]}"';
      const child = Bun.spawn(["bash", "-c", ask, "-", "luxhub", ...words], {
        cwd: dir.path,
        stdout: "pipe",
        stderr: "pipe",
      });
      expect(await child.stderr.text()).toBe("");
      return (await child.stdout.text()).trimEnd().replaceAll("\n", " ");
    };
    expect(await complete("ta")).toBe("task");
    expect(await complete("task", "c")).toBe("claim complete checkpoint cancel");
    expect(await complete("task", "list", "--st")).toBe("--status");
    expect(await complete("task", "list", "--status", "c")).toBe("completed cancelled");
    expect(await complete("--url", "x", "nod")).toBe("");
    expect(await complete("file", "put", "a")).toBe("a file");
    expect(await complete("completions", "")).toBe("--help bash zsh fish");
    for (const word of FIRST_WORDS.filter((one) => commandsOf(one).length > 0))
      expect(await complete(word, "")).toContain(commandsOf(word)[0]?.name.slice(word.length + 1) ?? "-");
  });

  test("zsh and fish get scripts that name every command", async () => {
    for (const shell of ["zsh", "fish"]) {
      const { stdout } = await run(["completions", shell]);
      for (const { name } of COMMANDS) for (const word of name.split(" ")) expect(stdout).toContain(word);
      const path = Bun.which(shell);
      if (path === null) {
        console.log(`The completions of ${shell} are not parsed: there is no ${shell} on the path.`);
        continue;
      }
      writeFileSync(dir.join(`completions.${shell}`), stdout);
      expect(Bun.spawnSync([path, "-n", dir.join(`completions.${shell}`)]).exitCode).toBe(0);
    }
  });

  test("the manual page names every command and exit code, and groff finds no fault in it", async () => {
    const { stdout } = await run(["man"]);
    for (const { name } of COMMANDS) expect(stdout).toContain(`.SS luxhub ${name.replaceAll("-", "\\-")}`);
    for (const code of [0, 1, 2, 3, 4, 5, 6, 124]) expect(stdout).toContain(`.B ${code}\n`);
    const groff = Bun.which("groff");
    if (groff === null)
      return console.log("The manual page is not formatted: there is no groff on the path.");
    writeFileSync(dir.join("luxhub.1"), stdout);
    const { stderr, exitCode } = Bun.spawnSync([groff, "-man", "-ww", "-z", dir.join("luxhub.1")]);
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  });
});
