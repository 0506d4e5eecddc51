/**
 * `luxhub worker` with the real program against a real hub: the input of a command, the effect of its exit status, and
 * faults.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { PROGRAM } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { Hub, Program, SECRET, TempDir, listOf, objectOf, run, until } from "./program.ts";

type Fields = Readonly<Record<string, unknown>>;

const dir = new TempDir();
const data = dir.join("data");
let hub: Hub;

beforeAll(async () => {
  hub = await Hub.start({ data, host: OWN_HOST });
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

function environment(): Record<string, string> {
  return {
    LUXHUB_URL: `http://${OWN_HOST}:${hub.port}`,
    LUXHUB_SECRET: SECRET,
    XDG_STATE_HOME: dir.join("state"),
    DIR: dir.path,
  };
}

/** A worker that runs a shell script for the tasks whose type is its node's id. */
function worker(
  node: string,
  script: string,
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Program {
  const words = ["worker", "--node", node, "--capabilities", node, ...flags, "--", "sh", "-c", script];
  return new Program(words, { cwd: dir.path, env: { ...environment(), ...env } });
}

/** A task for the worker of that node; its id. */
async function create(node: string, fields: Fields = {}): Promise<string> {
  const { body } = await hub.post("/task/create", {
    title: "t",
    description: "d",
    task_type: node,
    backoff_s: 0,
    ...fields,
  });
  return String(body["task_id"]);
}

async function taskOf(taskId: string): Promise<Fields> {
  const { body } = await hub.get(`/task/${taskId}`);
  return objectOf(JSON.stringify(body["task"]));
}

/** The task when it is completed or has failed. */
async function ended(taskId: string): Promise<Fields> {
  for (;;) {
    const { body } = await hub.get(`/task/${taskId}?wait=60`);
    const task = objectOf(JSON.stringify(body["task"]));
    if (task["status"] === "completed" || task["status"] === "failed") return task;
  }
}

function stringsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

async function text(fileId: unknown): Promise<string> {
  return (await bytes(fileId)).toString();
}

async function bytes(fileId: unknown): Promise<Buffer> {
  return Buffer.from(await (await fetch(`${hub.api}/file/download/${String(fileId)}`)).arrayBuffer());
}

async function stop(program: Program): Promise<number | null> {
  program.child.kill("SIGTERM");
  return program.ended;
}

function logged(program: Program, pattern: RegExp): Promise<void> {
  return until(() => pattern.test(program.stderr));
}

/** What a script has written into a file, when it is there. */
async function written(name: string): Promise<string> {
  const path = dir.join(name);
  await until(() => existsSync(path) && readFileSync(path, "utf8").endsWith("\n"));
  return readFileSync(path, "utf8").trim();
}

function isRunning(pid: string): boolean {
  const { stdout } = Bun.spawnSync(["ps", "-o", "stat=", "-p", pid]);
  return /^[^Z]/.test(stdout.toString().trim());
}

describe("the end of the command", () => {
  test("0: completed; 75 and others: tried again; 65: failed permanently", async () => {
    const script = `
      again() { [ -e "$DIR/$LUXHUB_TASK_ID" ] || { : >"$DIR/$LUXHUB_TASK_ID"; echo "not yet" >&2; exit $1; }; }
      case $LUXHUB_TASK_TITLE in
        text) echo; echo "first line"; echo second ;;
        object) echo '{"problem":"p","improvement":"i","lesson":"l","n":12345678901234567890}' ;;
        other) echo '{"problem":"p"}' ;;
        data) echo '[{"n":1}]' ;;
        nothing) ;;
        later) again 75; echo done ;;
        broken) again 3; echo done ;;
        never) echo one >&2; printf two >&2; exit 65 ;;
        silent) exit 4 ;;
        killed) kill -9 $$ ;;
      esac`;
    await using program = worker("codes", script);
    const once = { max_attempts: 1 };
    const ids = Object.fromEntries(
      await Promise.all(
        ["text", "object", "other", "data", "nothing", "later", "broken", "never"].map(
          async (title) => [title, await create("codes", { title })] as const,
        ),
      ),
    );
    const silent = await create("codes", { title: "silent", ...once });
    const killed = await create("codes", { title: "killed", ...once });
    const resultOf = async (title: string): Promise<unknown> => (await ended(ids[title] ?? ""))["result"];
    const lesson = "none";

    expect(await resultOf("text")).toEqual({
      problem: "text",
      improvement: "first line",
      lesson,
      output: "\nfirst line\nsecond",
    });
    await resultOf("object");
    const raw = await (await fetch(`${hub.api}/task/${ids["object"]}`)).text();
    expect(raw).toContain(`"result":{"problem":"p","improvement":"i","lesson":"l","n":12345678901234567890}`);
    expect(await resultOf("other")).toEqual({ problem: "p", improvement: "done", lesson });
    expect(await resultOf("data")).toEqual({
      problem: "data",
      improvement: "done",
      lesson,
      output: [{ n: 1 }],
    });
    expect(await resultOf("nothing")).toEqual({
      problem: "nothing",
      improvement: "no output",
      lesson,
      output: "",
    });
    for (const title of ["later", "broken"])
      expect(await ended(ids[title] ?? "")).toMatchObject({
        status: "completed",
        attempts: 1,
        failure: { message: "not yet" },
      });
    expect(await ended(ids["never"] ?? "")).toMatchObject({
      status: "failed",
      attempts: 1,
      failure: { message: "one\ntwo" },
    });
    expect(await ended(silent)).toMatchObject({ failure: { message: "exit status 4" } });
    expect(await ended(killed)).toMatchObject({ failure: { message: "ended by SIGKILL" } });
    expect(await stop(program)).toBe(0);
    expect(program.stdout).toBe("");
    expect(program.stderr).toMatch(/^\S+Z info {2}codes takes tasks .*\n\S+Z info {2}codes registered/);
    expect(program.stderr).toMatch(/info {2}completed "text" task=\S+$/m);
    expect(program.stderr).toMatch(/warn {2}failed "never" task=\S+ error="one\\ntwo"$/m);
    expect(program.stderr).toMatch(/info {2}codes left\n$/);
  });

  test("a timeout ends all that the command has started, by force if need be", async () => {
    const script = `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $! >"$DIR/deaf"; wait; wait`;
    await using program = worker("slow", script, ["--timeout", "200ms", "--grace", "100ms", "--once"]);
    const taskId = await create("slow", { max_attempts: 1 });
    expect(await ended(taskId)).toMatchObject({ failure: { message: "timed out after 0.2 s" } });
    expect(await program.ended).toBe(1);
    const pid = await written("deaf");
    await until(() => !isRunning(pid));
  });

  test("processes that the command leaves running end with it", async () => {
    await using program = worker("leaves", `sleep 1000 & echo $! >"$DIR/left"; echo done`, ["--once"]);
    const taskId = await create("leaves");
    expect(await ended(taskId)).toMatchObject({ result: { output: "done" } });
    expect(await program.ended).toBe(0);
    expect(isRunning(await written("left"))).toBe(false);
  });

  test("a program that is not there is refused before a task is taken, and ends the worker later", async () => {
    const start = ["worker", "--node", "none", "--capabilities", "none", "--"];
    const missing = await run([...start, "no-such-program"], { env: environment() });
    expect(missing).toMatchObject({ code: 2, stdout: "" });
    expect(missing.stderr).toStartWith('luxhub: there is no program "no-such-program"');

    const path = dir.join("vanishes");
    writeFileSync(path, "#!/bin/sh\n");
    chmodSync(path, 0o755);
    await using program = new Program([...start, path], { cwd: dir.path, env: environment() });
    await logged(program, /registered/);
    rmSync(path);
    const taskId = await create("none");
    expect(await program.ended).toBe(1);
    expect(await taskOf(taskId)).toMatchObject({
      status: "open",
      attempts: 1,
      failure: { message: expect.stringContaining(`cannot run ${path}`) },
    });
  });
});

test("a program that cannot be started for another reason is a failed attempt, and the worker goes on", async () => {
  const path = dir.join("unstartable");
  const write = (interpreter: string): void => writeFileSync(path, `#!${interpreter}\necho done\n`);
  write("/bin/sh");
  chmodSync(path, 0o755);
  const words = ["worker", "--node", "broken", "--capabilities", "broken", "--", path];
  await using program = new Program(words, { cwd: dir.path, env: environment() });
  await logged(program, /registered/);
  write("/no/such/interpreter");
  const message = expect.stringContaining(`cannot run ${path}`);
  expect(await ended(await create("broken", { max_attempts: 1 }))).toMatchObject({ failure: { message } });
  write("/bin/sh");
  expect(await ended(await create("broken"))).toMatchObject({ result: { output: "done" } });
  expect(await stop(program)).toBe(0);
});

describe("the input of the command", () => {
  test("the task on standard input and in the environment, and no secret unless it is asked for", async () => {
    const script = `cat >"$DIR/$LUXHUB_NODE_ID.json"; env | grep ^LUXHUB_ | grep -v ^LUXHUB_WORKER_RUN= | sort`;
    const fields = { title: "Ünï 'title'", description: "two\nlines" };
    for (const [node, flags] of [
      ["given", []],
      ["trusted", ["--pass-secret"]],
    ] as const) {
      await using program = worker(node, script, ["--once", ...flags], { LUXHUB_ADMIN_KEY: "hidden" });
      const taskId = await create(node, fields);
      const task = await ended(taskId);
      expect(await program.ended).toBe(0);
      expect(objectOf(readFileSync(dir.join(`${node}.json`), "utf8"))).toMatchObject({
        task_id: taskId,
        status: "assigned",
        ...fields,
      });
      const { output } = objectOf(JSON.stringify(task["result"]));
      expect(String(output).split("\n")).toEqual([
        expect.stringMatching(/^LUXHUB_ANSWERS=\/.*\/answers.json$/),
        `LUXHUB_NODE_ID=${node}`,
        expect.stringMatching(/^LUXHUB_REPORT=\/.*\/report$/),
        ...(node === "trusted" ? ["LUXHUB_SECRET=***"] : []), // it has it; the hub does not see it
        "LUXHUB_TASK_DESCRIPTION=two",
        "LUXHUB_TASK_EPOCH=1",
        `LUXHUB_TASK_ID=${taskId}`,
        "LUXHUB_TASK_TITLE=Ünï 'title'",
        `LUXHUB_TASK_TYPE=${node}`,
        `LUXHUB_URL=${environment()["LUXHUB_URL"]}`,
      ]);
    }
  });

  test("the trace of the task, and never that of whoever started the worker", async () => {
    const trace = `00-${"4b".repeat(16)}-${"a1".repeat(8)}-01`;
    const starter = { TRACEPARENT: `00-${"5c".repeat(16)}-${"b2".repeat(8)}-01`, TRACESTATE: "starter=1" };
    const script = 'echo "$TRACEPARENT|$TRACESTATE"';
    for (const [fields, output] of [
      [{}, "|"],
      [{ traceparent: trace }, `${trace}|`],
      [{ traceparent: trace, tracestate: "vendor=1" }, `${trace}|vendor=1`],
    ] as const) {
      await using program = worker("traced", script, ["--once"], starter);
      expect(await ended(await create("traced", fields))).toMatchObject({ result: { output } });
      expect(await program.ended).toBe(0);
    }
  });

  const noProc = existsSync("/proc/self/environ") ? "" : " (skipped: there is no /proc)";
  test.skipIf(noProc !== "")(`the environment of the worker in /proc has no secret${noProc}`, async () => {
    const script = `
      cat /proc/$PPID/environ >"$DIR/parent"; tr '\\0' '\\n' <"$DIR/parent" | grep ^LUXHUB_SEC; echo end`;
    await using program = worker("hidden", script, ["--once"], { LUXHUB_ADMIN_KEY: "also-hidden" });
    const { result } = await ended(await create("hidden"));
    expect(await program.ended).toBe(0);
    expect(result).toMatchObject({ improvement: "LUXHUB_SECRET=" });
    const parent = readFileSync(dir.join("parent"), "utf8");
    expect(parent).toContain("XDG_STATE_HOME="); // it is the worker's
    expect(parent).not.toContain(SECRET);
    expect(parent).not.toContain("also-hidden");
  });

  test("never uploads through a symbolic link, nor anything but regular files", async () => {
    mkdirSync(dir.join("foreign"));
    writeFileSync(dir.join("foreign", "id_rsa"), "private");
    const script = `
      cd out; echo own >own.txt; mkdir -p sub/deep; echo deep >sub/deep/own.txt
      ln -s "$DIR/foreign/id_rsa" file; ln -s "$DIR/foreign" linkdir; ln -s "$DIR/foreign" sub/linkdir
      ln -s own.txt inside; ln -s nowhere dangling; ln -s . loop; mkfifo pipe`;
    await using program = worker("links", script, ["--workdir", "work", "--once"]);
    const { files } = await ended(await create("links"));
    expect(await program.ended).toBe(0);
    expect(await Promise.all(stringsOf(files).map(text))).toEqual(["own\n", "deep\n"]);
    expect(program.stderr).toMatch(/did not upload symbolic links .* skipped=7 first=dangling/);
  });

  test("an out/ that is a link itself is not followed", async () => {
    const script = `rmdir out; ln -s "$DIR" out`;
    await using program = worker("outlink", script, ["--workdir", "work", "--once"]);
    const { files } = await ended(await create("outlink"));
    expect(await program.ended).toBe(0);
    expect(files).toEqual([]);
    expect(program.stderr).toMatch(/did not upload symbolic links .* skipped=1 first=\./);
  });

  test("gets the files of the task in a separate directory, and files in out/ are uploaded", async () => {
    const script = `
      ls; cat *in.txt
      mkdir out/sub; echo one >out/a.txt; echo two >out/sub/b.txt; ln -s /etc/passwd out/link`;
    const taskId = await create("files");
    for (const [content, name] of [
      ["first ", "in.txt"],
      ["second", "in.txt"],
      ["", "out"],
    ] as const) {
      const form = new FormData();
      form.append("metadata", JSON.stringify({ task_id: taskId }));
      form.append("file", new Blob([content]), name);
      await hub.call("POST", "/file/upload", { body: form });
    }
    const [, second, third] = stringsOf((await taskOf(taskId))["files"]);
    await using program = worker("files", script, ["--workdir", "work", "--once"]);
    const { result, files } = await ended(taskId);
    expect(await program.ended).toBe(0);
    const { output } = objectOf(JSON.stringify(result));
    expect(String(output).split("\n").toSorted()).toEqual(
      [`${second}-in.txt`, `${third}-out`, "context", "in.txt", "out", "secondfirst"].toSorted(),
    );
    const uploaded = stringsOf(files).slice(3);
    expect(await Promise.all(uploaded.map(text))).toEqual(["one\n", "two\n"]);
    const { body } = await hub.get("/file/list?per_page=2");
    expect(listOf(body["files"]).map(({ name, node_id }) => [name, node_id])).toEqual([
      ["sub-b.txt", "files"],
      ["a.txt", "files"],
    ]);
    expect(readdirSync(dir.join("work", "node-files"))).toEqual(["lock"]);
  });

  test("the log has no character of a title or of standard error that a terminal obeys", async () => {
    const script = `printf 'said \\033[2J \\302\\233m \\342\\200\\256\\n' >&2; exit 65`;
    for (const format of ["pretty", "json"]) {
      await using program = worker("printed", script, ["--once", "--log", format]);
      await ended(await create("printed", { title: "t\u001b[2J\u009b31m\u202e evil" }));
      expect(await program.ended).toBe(1);
      expect(program.stderr).toMatch(/failed \\?"t\\\\?u001b\[2J/);
      expect(program.stderr).toMatch(/said /);
      expect(program.stderr.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
  });

  test("gets the inputs of the task, and not what an earlier attempt has uploaded", async () => {
    const upload = async (name: string, metadata: Fields): Promise<string> => {
      const form = new FormData();
      form.append("metadata", JSON.stringify(metadata));
      form.append("file", new Blob([name]), name);
      return String((await hub.call("POST", "/file/upload", { body: form })).body["file_id"]);
    };
    const given = await upload("given.txt", {});
    const taskId = await create("retried", { files: [given] });
    await hub.register("first-try");
    await hub.post("/task/claim", { task_id: taskId, node_id: "first-try" });
    const old = await upload("old.txt", { task_id: taskId, node: "first-try" });
    await hub.post("/task/fail", { task_id: taskId, node_id: "first-try", error: "e" });
    await using program = worker("retried", "ls; echo new >out/new.txt", ["--workdir", "work", "--once"]);
    const { result, inputs, outputs } = await ended(taskId);
    expect(await program.ended).toBe(0);
    expect(objectOf(JSON.stringify(result))["output"]).toBe("context\ngiven.txt\nout");
    expect(inputs).toEqual([given]);
    expect(stringsOf(outputs)[0]).toBe(old);
    expect(await text(stringsOf(outputs)[1])).toBe("new\n");
  });

  test("output files that are not UTF-8 in their names are uploaded under replaced names", async () => {
    const script = `
      printf x >"out/$(printf 'caf\\351.txt')"
      mkdir "out/$(printf 'd\\351')"; printf w >"out/$(printf 'd\\351')/in.txt"`;
    await using program = worker("latin1", script, ["--workdir", "work", "--once"]);
    const { outputs } = await ended(await create("latin1"));
    expect(await program.ended).toBe(0);
    expect(await Promise.all(stringsOf(outputs).map(text))).toEqual(["x", "w"]);
    const { body } = await hub.get("/file/list?per_page=2");
    expect(listOf(body["files"]).map(({ name }) => name)).toEqual(["d\ufffd-in.txt", "caf\ufffd.txt"]);
  });

  test("more output files than a task can have: it fails at once and for good, and none is uploaded", async () => {
    const script = `for i in $(seq 150); do echo $i >out/$i; done`;
    const given = await create("toomany");
    const form = new FormData();
    form.append("metadata", JSON.stringify({ task_id: given }));
    form.append("file", new Blob(["in"]), "in.txt");
    await hub.call("POST", "/file/upload", { body: form });
    await using program = worker("toomany", script, ["--workdir", "work", "--once"]);
    const task = await ended(given);
    expect(await program.ended).toBe(1);
    expect(task).toMatchObject({ status: "failed", attempts: 1, outputs: [] });
    expect(task["failure"]).toMatchObject({
      message: expect.stringMatching(/has more than 100 files.*room for 99.*at most 100.*archive/),
    });
  });

  test.each([
    ["this worker", "redone"],
    ["another worker", "redone-elsewhere"],
  ])("what %s uploaded in an attempt that was not completed is deleted by the next one", async (_, node) => {
    const taskId = await create("redone");
    await hub.register(node);
    await hub.post("/task/claim", { task_id: taskId, node_id: node });
    const form = new FormData();
    form.append("metadata", JSON.stringify({ task_id: taskId, node, worker_epoch: 1 }));
    form.append("file", new Blob(["old"]), "made.txt");
    await hub.call("POST", "/file/upload", { body: form });
    await hub.post("/task/fail", { task_id: taskId, node_id: node, error: "e" });
    await using program = worker("redone", "echo new >out/made.txt", ["--workdir", "work", "--once"]);
    const { outputs } = await ended(taskId);
    expect(await program.ended).toBe(0);
    expect(await Promise.all(stringsOf(outputs).map(text))).toEqual(["new\n"]);
  });

  test("all results of many large inputs arrive, and the files that they made", async () => {
    const parts = 100;
    await hub.register("parts");
    const done = async (i: number): Promise<string> => {
      const taskId = await create("part", { title: `part ${i}` });
      await hub.post("/task/claim", { task_id: taskId, node_id: "parts" });
      if (i < 2) {
        const form = new FormData();
        form.append("metadata", JSON.stringify({ task_id: taskId, node: "parts" }));
        form.append("file", new Blob([`file ${i} `]), "same.txt");
        await hub.call("POST", "/file/upload", { body: form });
      }
      const result = { problem: "p", improvement: "i", lesson: "l", output: `${i} ${"x".repeat(4_000)}` };
      await hub.post("/task/complete", { task_id: taskId, node_id: "parts", result });
      return taskId;
    };
    const depends_on: string[] = [];
    for (let i = 0; i < parts; i++) depends_on.push(await done(i));
    const script = `
      cat >"$DIR/whole.json"; cat context/files/1/same.txt context/files/2/same.txt; ls context/inputs | wc -l`;
    const taskId = await create("whole", { depends_on });
    const { body } = await hub.get(`/task/${taskId}?context=1`);
    expect(JSON.stringify(body)).toContain('"omitted":true');
    await using program = worker("whole", script, ["--workdir", "work", "--once"]);
    const { result } = await ended(taskId);
    expect(await program.ended).toBe(0);
    expect(objectOf(JSON.stringify(result))["output"]).toBe(`file 0 file 1 ${parts}`);
    const { inputs } = objectOf(
      JSON.stringify(objectOf(readFileSync(dir.join("whole.json"), "utf8"))["context"]),
    );
    const outputs = listOf(inputs).map((input) => objectOf(JSON.stringify(input["result"]))["output"]);
    expect(outputs.map((output) => Number.parseInt(String(output), 10))).toEqual(depends_on.map((_, i) => i));
  });

  test("the environment names the directory of the task, and not that of the worker", async () => {
    const stale = { PWD: "/", OLDPWD: "/usr", INIT_CWD: "/usr", GIT_DIR: "/usr/.git" };
    // Without a shell, which sets PWD by itself.
    const words = [
      "worker",
      "--node",
      "moved",
      "--capabilities",
      "moved",
      "--workdir",
      "work",
      "--once",
      "--",
    ];
    await using program = new Program([...words, "env"], {
      cwd: dir.path,
      env: { ...environment(), ...stale },
    });
    const { result } = await ended(await create("moved"));
    expect(await program.ended).toBe(0);
    const output = String(objectOf(JSON.stringify(result))["output"]);
    expect(output).toMatch(/^PWD=.*\/work\/node-moved\/task-\w+$/m);
    expect(output).not.toMatch(/^(OLDPWD|INIT_CWD|GIT_DIR)=/m);
  });

  test("gets the context of the task, on standard input and as files in context/", async () => {
    const steps: string[] = [];
    for (const title of ["one", "two"]) {
      const taskId = await create("step", { title });
      await using program = worker("step", `echo "result of $LUXHUB_TASK_TITLE"`, ["--once"]);
      await ended(taskId);
      expect(await program.ended).toBe(0);
      steps.push(taskId);
    }
    const taskId = await create("combined", { depends_on: steps, backoff_s: 0 });
    const taught = await create("combined", { title: "earlier" });
    await hub.register("first-try");
    await hub.post("/task/claim", { task_id: taught, node_id: "first-try" });
    const learned = { problem: "p", improvement: "i", lesson: "sort first" };
    await hub.post("/task/complete", { task_id: taught, node_id: "first-try", result: learned });
    await hub.post("/task/claim", { task_id: taskId, node_id: "first-try" });
    const holder = { task_id: taskId, node_id: "first-try" };
    await hub.post("/task/fail", { ...holder, error: "too slow", checkpoint: { page: 7 } });
    const script = `
      cat >"$DIR/combined.json"; cat context/inputs/1.json context/inputs/2.json >"$DIR/inputs.json"
      cat context/checkpoint.json context/lessons.json; ls context/inputs`;
    await using program = worker("combined", script, ["--workdir", "work", "--once"]);
    const { result } = await ended(taskId);
    expect(await program.ended).toBe(0);
    const output = String(objectOf(JSON.stringify(result))["output"]).split("\n");
    expect(output.map((line) => (line.startsWith("[") ? listOf(JSON.parse(line)) : line))).toMatchObject([
      '{"page":7}',
      [{ task_id: taught, title: "earlier", lesson: "sort first" }],
      "1.json",
      "2.json",
    ]);
    const inputs = readFileSync(dir.join("inputs.json"), "utf8").trim().split("\n").map(objectOf);
    expect(inputs).toMatchObject([
      { task_id: steps[0], title: "one", result: { improvement: "result of one" } },
      { task_id: steps[1], title: "two", result: { improvement: "result of two" } },
    ]);
    expect(objectOf(readFileSync(dir.join("combined.json"), "utf8"))["context"]).toMatchObject({
      inputs,
      checkpoint: { page: 7 },
      failures: [{ kind: "failed", message: "too slow", node_id: "first-try" }],
      lessons: [{ task_id: taught, lesson: "sort first" }],
    });
  });

  test("reports notes and checkpoints through LUXHUB_REPORT, without a secret", async () => {
    const script = `
      if [ "$LUXHUB_TASK_EPOCH" = 1 ]; then
        printf '%s\\n' 'no JSON' '{"other": 1}' '{"note": "old"}' '{"checkpoint": {"page": 1}}' >>"$LUXHUB_REPORT"
        printf '%s\\n' '{"note": "halfway", "checkpoint": {"page": 12}}' >>"$LUXHUB_REPORT"
        exit 1
      fi
      cat >"$DIR/second.json"`;
    for (const [node, flags] of [
      ["reporter", []],
      ["in-a-dir", ["--workdir", "work"]],
    ] as const) {
      await using program = worker(node, script, [...flags]);
      const taskId = await create(node, { backoff_s: 0 });
      await ended(taskId);
      expect(readFileSync(dir.join("second.json"), "utf8")).toContain('"checkpoint":{"page":12}');
      const { body } = await hub.get(`/events?task_id=${taskId}&since=0&kind=task.progress`);
      expect(listOf(body["events"]).map(({ data }) => data)).toEqual([{ note: "halfway" }]);
      await until(
        () =>
          program.stderr.split('no {"note"').length > 2 ||
          program.stderr.split("a report was not sent").length > 2,
      );
    }
  });

  test("reports usage through LUXHUB_REPORT and `luxhub task usage`, without a secret", async () => {
    const script = `
      echo '{"usage": {"model": "large", "input_tokens": 7, "output_tokens": 2, "cost_usd": 0.25}}' >>"$LUXHUB_REPORT"
      $PROGRAM task usage --model small --input-tokens 5 --output-tokens 1 && echo done`;
    await using program = worker("payer", script, [], { PROGRAM: PROGRAM.join(" ") });
    const taskId = await create("payer");
    const { status, usage } = await ended(taskId);
    expect(program.stderr).not.toContain("a report was not sent");
    expect(status).toBe("completed");
    expect(usage).toMatchObject({ input_tokens: 12, cost_usd: 0.25, reports: 2, without_cost: 1 });
  });

  test("an output that no result can have as it is becomes a file of the task", async () => {
    const script = `
      case $LUXHUB_TASK_TITLE in
        text) seq 1 30000 ;;
        object) printf '{"problem":"p","improvement":"i","lesson":"l","list":[0'; seq -s '' -f ',%g' 1 30000; echo ']}' ;;
        nul) printf 'a\\000b' ;;
        latin) printf 'caf\\351' ;;
      esac`;
    await using program = worker("large", script);
    const [long, object, nul, latin] = [
      await create("large", { title: "text" }),
      await create("large", { title: "object" }),
      await create("large", { title: "nul" }),
      await create("large", { title: "latin" }),
    ];
    const fileOf = async (taskId: string): Promise<{ result: Fields; whole: Buffer }> => {
      const { files, result } = await ended(taskId);
      const { output_file, ...fields } = objectOf(JSON.stringify(result));
      expect(files).toEqual([output_file]);
      return { result: fields, whole: await bytes(output_file) };
    };
    const printed = Array.from({ length: 30_000 }, (_, i) => `${i + 1}\n`).join("");
    const cut = await fileOf(long);
    expect(cut.whole.toString()).toBe(printed);
    expect(cut.result).toMatchObject({
      problem: "text",
      improvement: "1",
      output_note: expect.stringMatching(`has ${printed.length} bytes`),
    });
    const { output } = cut.result;
    expect(printed).toStartWith(String(output).slice(0, -1));
    expect(String(output).length).toBeGreaterThan(40_000);
    const list = await fileOf(object);
    expect(JSON.parse(list.whole.toString()).list.length).toBe(30_001);
    expect(list.result).toEqual({
      problem: "p",
      improvement: "i",
      lesson: "l",
      output_note: expect.any(String),
    });
    expect(await fileOf(nul)).toMatchObject({ result: { output: "a\ufffdb" }, whole: Buffer.from("a\0b") });
    const cafe = Buffer.from("café", "latin1");
    expect(await fileOf(latin)).toMatchObject({ result: { output: "caf\ufffd" }, whole: cafe });
    expect(await stop(program)).toBe(0);
  });
});

describe("faults and ends", () => {
  /** Goes on when its file is there. */
  const WAITS = `echo $$ >"$DIR/$LUXHUB_TASK_ID.$LUXHUB_TASK_EPOCH"; until [ -e "$DIR/$LUXHUB_TASK_ID.go" ]; do sleep 0.05; done; echo done`;
  /**
   * The worker extends a lease after each third of it, and then finds that the task is no longer its own. Only a machine
   * that stands still for the rest of it loses the task to the timeout.
   */
  const LEASE_S = 9;
  const letGo = (taskId: string): void => writeFileSync(dir.join(`${taskId}.go`), "");

  test("a second SIGTERM ends the commands and gives their tasks back", async () => {
    await using program = worker("releases", WAITS);
    const taskId = await create("releases");
    const pid = await written(`${taskId}.1`);
    // Two at once count as one, as from a terminal: repeated until one counts.
    const isGivenBack = (): boolean => {
      program.child.kill("SIGTERM");
      return / gave back "t"/.test(program.stderr);
    };
    await until(isGivenBack, HANG_MS, 100);
    expect(await program.ended).toBe(0);
    expect(isRunning(pid)).toBe(false);
    expect(await taskOf(taskId)).toMatchObject({ status: "open", attempts: 0 });
  });

  test.each([
    ["killed", ["--workdir", "work"]],
    ["killed-here", []],
  ])("after kill -9 the next worker continues the tasks, and ends what is left (%s)", async (node, flags) => {
    const TMPDIR = dir.join(`tmp-${node}`);
    mkdirSync(TMPDIR);
    const taskId = await create(node);
    let pid: string;
    {
      await using program = worker(node, WAITS, flags, { TMPDIR });
      pid = await written(`${taskId}.1`);
      program.child.kill("SIGKILL");
      await program.ended;
    }
    await using successor = worker(node, WAITS, flags, { TMPDIR });
    await logged(successor, /started "t"/);
    await until(() => !isRunning(pid));
    letGo(taskId);
    expect(await ended(taskId)).toMatchObject({ status: "completed", attempts: 0 });
    expect(await stop(successor)).toBe(0);
    expect(successor.stderr).toMatch(/ended the processes that a killed worker left running processes=\d/);
    const left = (path: string): readonly string[] =>
      readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => /run-|task-/.test(name));
    if (flags.length > 0) expect(left(dir.join("work", `node-${node}`))).toEqual([]);
    expect(left(dir.join("state/luxhub-workers"))).toEqual([]);
    expect(readdirSync(TMPDIR)).toEqual([]);
  });

  test("what the command prints is followed through a restart of the hub: nothing is missing or twice", async () => {
    const script = `
      echo "before ✓"; echo "an error" >&2
      touch "$DIR/$LUXHUB_TASK_ID.1"
      until [ -e "$DIR/$LUXHUB_TASK_ID.go" ]; do sleep 0.05; done
      seq 1 20000; echo "last" >&2`;
    await using program = worker("prints", script);
    const taskId = await create("prints");
    await using reader = new Program(["task", "logs", "-f", taskId], { cwd: dir.path, env: environment() });
    await until(() => /before ✓\n/.test(reader.stdout) && /an error\n/.test(reader.stdout));
    const { port } = hub;
    await hub.stop();
    letGo(taskId);
    await logged(program, /the hub does not answer/);
    hub = await Hub.start({ data, host: OWN_HOST, env: { LUXHUB_PORT: String(port) } });
    expect(await ended(taskId)).toMatchObject({ status: "completed" });
    expect(await reader.ended).toBe(0);
    const lines = reader.stdout.split("\n");
    const numbers = Array.from({ length: 20_000 }, (_, i) => String(i + 1));
    expect(lines.filter((line) => /^\d+$/.test(line))).toEqual(numbers);
    expect(lines.filter((line) => line !== "" && !/^\d+$/.test(line)).toSorted()).toEqual(
      ["an error", "before ✓", "last"].toSorted(),
    );
    expect(await stop(program)).toBe(0);
  });

  test("--no-output: the hub gets nothing of it", async () => {
    await using program = worker("quiet", "echo secret", ["--no-output"]);
    const taskId = await create("quiet");
    expect(await ended(taskId)).toMatchObject({ status: "completed" });
    expect((await hub.get(`/task/${taskId}/output`)).body).toMatchObject({ attempt: null, size: 0 });
    expect(await stop(program)).toBe(0);
  });

  test("a second worker of a node is refused on the same machine", async () => {
    await using program = worker("twice", WAITS);
    await logged(program, /registered/);
    await using second = worker("twice", WAITS);
    expect(await second.ended).toBe(5);
    expect(second.stderr).toBe(
      `luxhub: a worker for node twice runs on this machine already (process ${program.child.pid}): give each an id of its own\n`,
    );
    expect(await stop(program)).toBe(0);
  });

  test("one on another machine takes the tasks over, and the first one ends", async () => {
    await using first = worker("taken", WAITS);
    const taskId = await create("taken", { timeout_s: LEASE_S });
    const pid = await written(`${taskId}.1`);
    await using second = worker("taken", WAITS, [], { XDG_STATE_HOME: dir.join("elsewhere") });
    await logged(second, /started "t"/);
    expect(await first.ended).toBe(5);
    expect(first.stderr).toMatch(/lost "t" task=\S+ cause=stale_lease/);
    expect(first.stderr).toMatch(/luxhub: Another worker runs for node taken .*\(node_taken_over\)\n$/);
    expect(isRunning(pid)).toBe(false);
    letGo(taskId);
    expect(await ended(taskId)).toMatchObject({ status: "completed", attempts: 0 });
    expect(await stop(second)).toBe(0);
    expect(second.stderr).toMatch(/taken is online already/);
  });

  test("a task that is cancelled meanwhile is ended", async () => {
    await using program = worker("cancelled", WAITS);
    const taskId = await create("cancelled"); // without a timeout: no extend tells of it
    const pid = await written(`${taskId}.1`);
    await hub.post("/task/cancel", { task_id: taskId });
    await logged(program, /lost "t" task=\S+ cause=task_failed/); // the next heartbeat comes a minute later
    await until(() => !isRunning(pid));
    expect(await stop(program)).toBe(0);
  });

  test("a task that kills its worker is in the log, and fails after max_attempts", async () => {
    const taskId = await create("poison", { max_attempts: 2, title: "poison" });
    const start = (): Program => worker("poison", 'kill -9 "$PPID"; sleep 1');
    for (let runs = 1; runs <= 2; runs++) {
      await using program = start();
      await program.ended;
      expect(program.stderr).toMatch(new RegExp(`started "poison" task=${taskId} `));
      expect(await taskOf(taskId)).toMatchObject({
        status: "assigned",
        attempts: runs - 1,
        restarts: runs - 1,
      });
    }
    await using last = start();
    expect(await ended(taskId)).toMatchObject({
      status: "failed",
      attempts: 2,
      restarts: 2,
      failure: { kind: "offline", node_id: "poison" },
    });
    expect(await stop(last)).toBe(0);
    expect(last.stderr).not.toMatch(/started/);
  });

  test("its first line says which tasks it takes", async () => {
    const words = ["worker", "--node", "some", "--capabilities", "a,b", "--", "true"];
    await using some = new Program(words, { env: environment() });
    await logged(some, /registered/);
    expect(some.stderr.split("\n")[0]).toMatch(/ some takes tasks of the types a,b$/);
    await using all = new Program(["worker", "--node", "all", "--", "true"], { env: environment() });
    await logged(all, /registered/);
    expect(all.stderr.split("\n")[0]).toMatch(
      / all takes tasks of every type \(--capabilities limits them\)$/,
    );
    expect(await stop(all)).toBe(0);
    expect(await stop(some)).toBe(0);
  });

  test("a wrong secret, a wrong id and a wrong command line end it at once", async () => {
    const stranger = await run(["worker", "--node", "stranger", "--", "true"], {
      env: { ...environment(), LUXHUB_SECRET: "wrong" },
    });
    expect(stranger).toMatchObject({ code: 4, stdout: "" });
    expect(stranger.stderr).toEndWith("(unauthorized)\n");
    const named = await run(["worker", "--node", "not an id", "--", "true"], { env: environment() });
    expect(named).toMatchObject({ code: 2, stdout: "" });
    const early = await run(["worker", "--node", "n", "true", "--once"], { env: environment() });
    expect(early).toMatchObject({ code: 2, stdout: "" });
    expect(early.stderr).toStartWith('luxhub: unexpected "true": the command must follow after --');
    const several = ["worker", "--node", "n", "--once", "--concurrency", "2", "--", "true"];
    expect(await run(several, { env: environment() })).toMatchObject({ code: 2, stdout: "" });
  });
});
