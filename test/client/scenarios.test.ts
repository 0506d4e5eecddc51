/**
 * The scenarios of scenarios.ts with each worker: `luxhub worker`, the TypeScript library and the Python library, each at
 * a hub of its own. What only one of them does is tested in worker.test.ts, worker.py and e2e/worker.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ChangeLog, promoteCopy } from "../../src/store/sqlite/change-log.ts";
import { Program, TempDir, until } from "../e2e/program.ts";
import { HANG_MS } from "../support/hang.ts";
import { SECRET, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { FOREIGN, FaultyProxy } from "./faulty-proxy.ts";
import { WORKERS } from "./scenario-workers.ts";
import { type Step, lines } from "./scenarios.ts";

type Names = Readonly<Record<string, unknown>>;
const FILLED = { problem: "Title", lesson: "none" };
const WHOLE = { problem: "p", improvement: "i", lesson: "l" };
/** What a handler gives, and the result of its task. */
const GIVEN: readonly (readonly [given: unknown, result: object])[] = [
  ["Hello,\nAda", { ...FILLED, improvement: "Hello,", output: "Hello,\nAda" }],
  [[1, 2], { ...FILLED, improvement: "done", output: [1, 2] }],
  [{ sha: "abc" }, { ...FILLED, improvement: "done", output: { sha: "abc" } }],
  [{ output: { n: 1 } }, { ...FILLED, improvement: "done", output: { n: 1 } }],
  [
    { problem: "x", output: 1 },
    { ...FILLED, problem: "x", improvement: "1", output: 1 },
  ],
  [
    { ...WHOLE, lesson: "", n: 1 },
    { ...WHOLE, lesson: "none", n: 1 },
  ],
  [{ problem: { is: "data" } }, { ...FILLED, improvement: "done", output: { problem: { is: "data" } } }],
];

const usage = (cost_usd?: number) => ({
  model: "m",
  input_tokens: 7,
  output_tokens: 2,
  ...(cost_usd !== undefined && { cost_usd }),
});
/** What the handlers of the scenarios do. */
const DOES: Readonly<Record<string, readonly (readonly Step[])[]>> = {
  ...Object.fromEntries(GIVEN.map(([gives], i) => [`gives${i}`, [[{ gives }]]])),
  works: [[{ gives: "done" }]],
  recovers: [[{ fail: "not yet" }], [{ gives: "done" }]],
  never: [[{ fatal: "cannot be done" }]],
  large: [[{ large: 100_000 }]],
  part: [[{ large: 30_000 }]],
  teaches: [[{ gives: { ...WHOLE, lesson: "go slowly" } }]],
  learns: [[{ note: "half" }, { checkpoint: { page: 2 } }, { fail: "half done" }], [{ see: true }]],
  sees: [[{ see: true }]],
  asks: [[{ ask: "Which?" }, { see: true }]],
  parks: [[{ ask: "Which?", park: true }, { see: true }]],
  pays: [[{ usage: usage(0.25) }, { usage: usage() }]],
  wastes: [[{ usage: usage(2) }, { hang: true }]],
  prints: [
    [{ prints: 3_000 }, { fail: "once more" }],
    [{ prints: 1 }, { ask: "Go?" }, { prints: 2, gives: "" }],
  ],
  hangs: [[{ hang: true }]],
  hangsOnce: [[{ hang: true }], [{ ask: "Go?" }]],
  lasts: [[{ sleepMs: 300 }]],
  outlasts: [
    [
      ...[{ prints: 3_000 }, { note: "before" }, { checkpoint: 1 }, { usage: usage(1) }, { ask: "Go?" }],
      ...[{ prints: 2 }, { note: "after" }, { checkpoint: 2 }, { usage: usage(2) }, { large: 100_000 }],
    ],
  ],
};
const names = Object.fromEntries(Object.entries(DOES).map(([name, runs]) => [name, JSON.stringify(runs)]));
const PRINTED = Buffer.byteLength(lines(3_000));
const parts = Array.from({ length: 25 }, (_, i) => `p${i}`);

/** The scenarios of one worker that goes on: what its handlers do, and what the hub shows. */
const SCENARIOS: Readonly<Record<string, string>> = {
  "whatever a handler gives is a result": GIVEN.map(
    ([, result], i) => `t = task/create {title: Title, task_type: w, description: $gives${i}}
      GET task/$t?wait=60 -> task {attempts: 0, result: ${JSON.stringify(result)}}`,
  ).join("\n"),
  "an error is tried again, a fatal one is not": `
    again = task/create {task_type: w, description: $recovers, backoff_s: 0}
    never = task/create {task_type: w, description: $never}
    GET task/$again?wait=60 -> task {status: completed, attempts: 1, failure: {kind: failed, message: "~not yet", node_id: w}}
    GET task/$never?wait=60 -> task {status: failed, attempts: 1, failure: {message: "cannot be done"}}`,
  "an output that is too large for a result becomes a file": `
    t = task/create {task_type: w, description: $large}
    done = GET task/$t?wait=60 -> task {status: completed, result: {output: ~éé, output_note: ~200000}}
    -> task.files [$done.task.result.output_file]
    GET file/list?task_id=$t -> files [{size: 200000, attached: output}]`,
  "the context, a note and a checkpoint reach the next attempt": `
    taught = task/create {task_type: w, description: $teaches}
    GET task/$taught?wait=60 -> task.status completed
    t = task/create {task_type: w, description: $learns, depends_on: [$taught], backoff_s: 0}
    GET task/$t?wait=60 -> task {status: completed, attempts: 1}
    -> task.result.output {inputs: [{task_id: $taught, result: {lesson: "go slowly"}}], checkpoint: {page: 2}}
    -> task.result.output {failures: [{message: "~half done"}], lessons: [{lesson: "go slowly"}]}
    GET events?since=0&task_id=$t&kind=task.progress -> events.data [{note: half}]`,
  "a handler sees all inputs, also those that its context leaves out": `
    ${parts} = task/create {task_type: w, description: $part}
    t = task/create {task_type: w, description: $sees, depends_on: [${parts.map((part) => `$${part}`)}]}
    done = GET task/$t?wait=60 -> task {status: completed, result: {output_file: *}}
    GET file/download/$done.task.result.output_file -> text !~omitted`,
  "a question waits for its answer, or gives the task back until then": `
    t = task/create {task_type: w, description: $asks}
    parked = task/create {task_type: w, description: $parks}
    q = until GET task/$t/questions -> questions [{question: Which?, choices: [a], asked_by: w}]
    p = until GET task/$parked/questions -> questions [{question: Which?, asked_by: w}]
    until task $parked -> {status: open, ready: false, attempts: 0}
    task/answer $t {question_id: $q.questions.0.question_id, answer: {is: a}}
    task/answer $parked {question_id: $p.questions.0.question_id, answer: {is: b}}
    GET task/$t?wait=60 -> task {status: completed, attempts: 0}
    GET task/$parked?wait=60 -> task {status: completed, attempts: 0, result: {output: {answers: [{question: Which?, answer: {is: b}}]}}}
    events $parked -> events.kind ~task.released`,
  "usage counts once; a task that costs too much is lost": `
    t = task/create {task_type: w, description: $pays}
    GET task/$t?wait=60 -> task.usage {reports: 2, without_cost: 1, cost_usd: 0.25, input_tokens: 14}
    t = task/create {task_type: w, description: $wastes, max_cost_usd: 1}
    GET task/$t?wait=60 -> task {status: failed, failure: {kind: budget}, usage: {cost_usd: 2}}`,
  "output can be read while a handler runs, and all of it before its result": `
    t = task/create {task_type: w, description: $prints, backoff_s: 0}
    until GET task/$t/output -> data "line 0 ✓\\n"
    q = GET task/$t/questions
    task/answer $t {question_id: $q.questions.0.question_id, answer: 1}
    GET task/$t?wait=60 -> task.status completed
    GET task/$t/output -> {data: "line 0 ✓\\nline 0 ✓\\nline 1 ✓\\n", dropped: 0, ended: true}
    GET task/$t/output?attempt=1&from=${PRINTED - 14} -> {dropped: 0, data: "~line 2999 ✓"}`,
};

const STANDBY = {
  status: 503,
  type: "application/json",
  body: JSON.stringify({ success: false, error: "standby", detail: "Call the hub." }),
};

function promote(dataDir: string): void {
  using db = new Database(join(dataDir, "luxhub.db"));
  promoteCopy(db, new ChangeLog(db), Date.now());
}

/** One task at a time: the next one shows that the worker is free. */
const LOSSES = `
  t = task/create {task_type: w, description: $hangs}; until task $t -> started_at *;
  next = task/create {task_type: w, description: $works};
  <task/cancel $t|admin task/revoke $t other|task/release $t w; task/cancel $t|admin task/delete $t>;
  GET task/$next?wait=60 -> task {status: completed, attempts: 0}`;

describe.each(Object.entries(WORKERS))("%s", (_, start) => {
  let hub: TestHub;
  const dir = new TempDir();
  beforeAll(async () => {
    hub = await startHub({ dataDir: join(dir.path, "hub") });
    const client = await fetch(`${hub.base()}/client/luxhub.py`);
    await Bun.write(dir.join("luxhub.py"), await client.text());
  });
  afterAll(async () => {
    await hub.close();
    dir[Symbol.dispose]();
  });

  function begin(node: string, concurrency = 1, timeoutS?: number, url = hub.base()): Program {
    const [program = "", ...args] = start(node, concurrency, timeoutS);
    const env = {
      LUXHUB_URL: url,
      LUXHUB_SECRET: SECRET,
      PYTHONPATH: dir.path,
      XDG_STATE_HOME: dir.join("state"),
    };
    return new Program(args, { command: [program], cwd: dir.path, env });
  }

  /** A worker, when it has registered; its node has the name w in a transcript. */
  async function worker(...words: Parameters<typeof begin>): Promise<Program> {
    const program = begin(...words);
    await until(() => /registered/.test(program.stdout + program.stderr));
    return program;
  }

  /** Plays a transcript about the node; the answers in it and in the transcripts before it. */
  async function transcript(node: string, text: string, seen: Names = names): Promise<Names> {
    return Object.fromEntries(await play(hub, text.replaceAll(/\bw\b/g, node), seen));
  }

  /** In order, and with the status 0. */
  async function stops(program: Program): Promise<void> {
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  }

  describe("with several tasks at once", () => {
    let program: Program;
    beforeAll(async () => void (program = await worker("many", 4)));
    afterAll(() => program[Symbol.asyncDispose]());

    test.each(Object.entries(SCENARIOS))("%s", async (_, text) => void (await transcript("many", text)));

    test("it leaves", async () => {
      await stops(program);
      await transcript("many", "node w -> {status: offline, max_tasks: 4, auto_assign: false}");
    });
  });

  test("a handler hears at once that its task is lost, is not extended again, and the next one follows", async () => {
    const before = await heartbeats();
    await using program = await worker("loses");
    await transcript("loses", `nodes other {auto_assign: false}\n${LOSSES}`);
    expect(await heartbeats()).toBe(before); // by a heartbeat it would be a minute later
    await stops(program);
  });

  async function heartbeats(): Promise<string | undefined> {
    const { text } = (await play(hub, "m = metrics")).get("m") as { readonly text: string };
    return /node\/heartbeat",status="200"\} (\d+)/.exec(text)?.[1];
  }

  test("its time limit ends a handler, and stands still while a question waits", async () => {
    await using program = await worker("limited", 3, 1);
    await transcript(
      "limited",
      `late = task/create {task_type: w, description: $hangs, max_attempts: 1}
      asks = task/create {task_type: w, description: $asks}
      GET task/$late?wait=60 -> task {status: failed, failure: {kind: failed, message: "~timed out after 1 s"}}
      late = task/create {task_type: w, description: $hangs, max_attempts: 1}
      GET task/$late?wait=60 -> task.status failed
      q = until GET task/$asks/questions -> questions #1
      task/answer $asks {question_id: $q.questions.0.question_id, answer: 1}
      GET task/$asks?wait=60 -> task {status: completed, attempts: 0}`,
    );
    await stops(program);
  });

  test("a handler has as long as max_run_s by default", async () => {
    await using program = await worker("max-run");
    await transcript(
      "max-run",
      `t = task/create {task_type: w, description: $hangs, max_run_s: 1, max_attempts: 1, timeout_s: 600}
      GET task/$t?wait=60 -> task {status: failed, attempts: 1}
      t = task/create {task_type: w, description: $works}
      GET task/$t?wait=60 -> task.status completed`,
    );
    await stops(program);
  });

  test("a signal stops it in order; a second one gives its task back", async () => {
    await using first = await worker("stops");
    const begun = await transcript(
      "stops",
      `t = task/create {task_type: w, description: $asks}
      q = until GET task/$t/questions -> questions #1
      given, open = task/create {task_type: w, description: $works}
      task/assign $given w`,
    );
    first.child.kill("SIGTERM");
    await transcript(
      "stops",
      `# What it was given and has not begun goes back before the other is done.
      until task $given -> status open
      task/answer $t {question_id: $q.questions.0.question_id, answer: 1}
      GET task/$t?wait=60 -> task {status: completed, attempts: 0}
      task $<given|open> -> {status: open, attempts: 0}; admin task/delete $<given|open>`,
      begun,
    );
    expect(await first.ended).toBe(0);
    await using second = await worker("stops");
    const seen = await transcript(
      "stops",
      "t = task/create {task_type: w, description: $hangs}; until task $t -> started_at *",
    );
    const { task_id } = Object(seen["t"]);
    const isOpen = async (): Promise<boolean> => {
      const { body } = await hub.get(`/task/${task_id}`);
      if (Object(body["task"]).status === "open") return true;
      second.child.kill("SIGTERM"); // two at once may count as one
      return false;
    };
    await until(isOpen, HANG_MS, 400);
    expect(await second.ended).toBe(0);
    await transcript("stops", "task $t -> {status: open, attempts: 0}; node w -> status offline", seen);
  });

  test("the successor of a killed worker goes on with its tasks, up to its concurrency", async () => {
    const made = await transcript(
      "killed",
      `a, b = task/create {task_type: w, description: $hangsOnce, max_attempts: 2}
      c = task/create {task_type: w, description: $works}`,
    );
    {
      await using program = await worker("killed", 2);
      await transcript("killed", "until task $<a|b> -> started_at *", made);
      program.child.kill("SIGKILL");
      await program.ended;
      await transcript("killed", "task $<a|b> -> status assigned; task/claim $c w", made);
    }
    await using program = await worker("killed", 2);
    await transcript(
      "killed",
      `<qa|qb> = until GET task/$<a|b>/questions -> questions #1
      until task $c -> {status: open, attempts: 0}
      task/answer $<a|b> {question_id: $<qa|qb>.questions.0.question_id, answer: 1}
      GET task/$<a|b>?wait=60 -> task {status: completed, restarts: 1, attempts: 1}
      GET task/$c?wait=60 -> task.status completed`,
      made,
    );
    await stops(program);
  });

  test("it waits for a hub that restarts, and reports what it did meanwhile", async () => {
    const dataDir = newDataDir();
    let own = await startHub({ dataDir });
    using proxy = new FaultyProxy(own.port());
    try {
      await using program = await worker("waits", 1, undefined, proxy.url);
      const create = "t = task/create {task_type: waits, description: $lasts}; until task $t -> started_at *";
      const { t } = Object.fromEntries(await play(own, create, names));
      await own.close();
      proxy.cut();
      own = await startHub({ dataDir });
      proxy.port = own.port();
      await play(
        own,
        `GET task/$t?wait=60 -> task {status: completed, attempts: 0}
        t = task/create {task_type: waits, description: $works}
        GET task/$t?wait=60 -> task.status completed`,
        { ...names, t },
      );
      await stops(program);
    } finally {
      await own.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("it goes on with its task at the copy that takes over, and loses nothing", async () => {
    const dataDir = newDataDir();
    let own = await startHub({ dataDir });
    const first = own.base();
    using copy = new FaultyProxy(own.port());
    copy.foreign = STANDBY;
    try {
      await using program = await worker("moves", 2, undefined, `${first},${copy.url}`);
      const before = Object.fromEntries(
        await play(
          own,
          `a, b = task/create {task_type: moves, description: $outlasts, max_attempts: 1, lux_reward: 1, timeout_s: 600}
          <qa|qb> = until GET task/$<a|b>/questions -> questions #1
          until task $<a|b> -> {progress: before, usage: {cost_usd: 1}}
          until GET task/$<a|b>/output -> next_offset ${PRINTED}`,
          names,
        ),
      );
      await own.close();
      promote(dataDir);
      own = await startHub({ dataDir });
      copy.port = own.port();
      copy.foreign = null;
      const after = `
        task/answer $<a|b> {question_id: $<qa|qb>.questions.0.question_id, answer: 1}
        <da|db> = GET task/$<a|b>?wait=60 -> task {status: completed, attempts: 0, restarts: 0, assigned_node: moves, progress: after, usage: {cost_usd: 3, reports: 2}}
        GET file/list?task_id=$<a|b> -> files [{file_id: $<da|db>.task.result.output_file, size: 200000, attached: output}]
        GET task/$<a|b>/output?from=${PRINTED} -> {data: "~line 0 ✓\\nline 1 ✓", dropped: 0, ended: true}
        node moves -> {lux_balance: 2, tasks_completed: 2}
        t = task/create {task_type: moves, description: $works}
        GET task/$t?wait=60 -> task.status completed`;
      await play(own, after, before);
      await stops(program);
      expect(program.stdout + program.stderr).not.toMatch(/\blost\b/);
    } finally {
      await own.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("it and its result outlast responses that no hub has sent; a first call fails at once", async () => {
    using proxy = new FaultyProxy(hub.port());
    await using program = await worker("hidden", 1, undefined, proxy.url);
    for (const foreign of FOREIGN) {
      const seen = await transcript(
        "hidden",
        "t = task/create {task_type: w, description: $lasts}; until task $t -> started_at *",
      );
      const before = proxy.faults;
      proxy.foreign = foreign;
      proxy.cut();
      await Bun.sleep(350); // longer than the handler
      await until(() => proxy.faults > before + 1);
      proxy.foreign = null;
      await transcript("hidden", "GET task/$t?wait=60 -> task {status: completed, attempts: 0}", seen);
    }
    await stops(program);
    proxy.foreign = FOREIGN[0] ?? null; // the URL may be wrong
    await using stranger = begin("stranger", 1, undefined, proxy.url);
    expect(await stranger.ended).not.toBe(0);
  });
});
