/**
 * The four agents at work: `bun agents-scene.ts DIRECTORY NAME…` starts an imitated model, a hub, and for each name a
 * `luxhub worker --agent NAME` with the real program, which is installed in DIRECTORY. It prints each figure as a line of
 * JSON.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Hub, Program, SECRET, TempDir, listOf, objectOf, until } from "../../test/e2e/program.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { type Action, type Conversation, USED, serveModel } from "./agents-model.ts";
import { READ, SHELL, WRITE, makeHome, use } from "./agents-programs.ts";
import type { Figure } from "./section.ts";

type Fields = Readonly<Record<string, unknown>>;

const [directory = "", ...names] = process.argv.slice(2);
/** A program and its repeats of requests that fail. */
const CASE_MS = 3 * 60_000;
/** Of an attempt. */
const LIMIT = "60s";
const PAUSE_MS = 1_200;
const FOUND_MAX_CHARS = 160;

// ---- The model

/** Links in the places where the worker might write, to a file of its user. */
const ESCAPE = `for dir in . "$(dirname "$LUXHUB_ANSWERS")"; do ln -s "$HOME/victim" "$dir/answers.json.new"; done`;

/** The steps of the model for each title of a task. */
const SCRIPTS: Readonly<
  Record<string, (talk: Conversation, work: string, report: string) => readonly Action[]>
> = {
  work: (talk, work, report) => {
    const page = (n: number): string => `{"note": "page ${n} of 2"}\n`;
    return [
      { text: "I start now.", ...use(READ, talk, report) },
      use(WRITE, talk, report, page(1)),
      { ...use(WRITE, talk, report, page(2)), afterMs: PAUSE_MS },
      { ...use(SHELL, talk, "pwd"), afterMs: PAUSE_MS },
      use(WRITE, talk, join(work, "out/made.txt"), "made\n"),
      use(WRITE, talk, join(work, "result.json"), resultJson("worked", { where: talk.results[3] })),
      { text: "Done." },
    ];
  },
  continue: (talk, work, report) => {
    const isSecond = /context\/checkpoint\.json/.test(talk.prompts.at(-1) ?? "");
    const again = { failed: "not yet", retry: true };
    return isSecond
      ? [
          use(
            WRITE,
            talk,
            join(work, "result.json"),
            resultJson("continued", { prompts: talk.prompts.length }),
          ),
          { text: "Done." },
        ]
      : [
          use(READ, talk, report),
          use(WRITE, talk, report, `{"checkpoint": {"page": 3}}\n`),
          use(WRITE, talk, join(work, "result.json"), `${JSON.stringify(again)}\n`),
          { text: "Not yet." },
        ];
  },
  ask: (talk, work) => {
    const isAnswered = /- Which colour\?\n {2}"blue"/.test(talk.prompts.at(-1) ?? "");
    const content = isAnswered
      ? resultJson("painted blue", { prompts: talk.prompts.length })
      : `{"ask": "Which colour?", "choices": ["red", "blue"]}\n`;
    return [use(WRITE, talk, join(work, "result.json"), content), { text: "So far." }];
  },
  escape: (talk, work, report) => [
    use(SHELL, talk, ESCAPE),
    use(SHELL, talk, `echo '{"ask": {"question": "now?", "within_s": 1}}' >> '${report}'; sleep 4`),
    use(WRITE, talk, join(work, "result.json"), resultJson("tried", { said: talk.results })),
    { text: "Done." },
  ],
  refuse: () => [{ text: "I cannot do this, because I lack access to the repository." }],
  hang: (talk, work) => [use(WRITE, talk, join(work, "half.txt"), "half\n"), { hangs: true }],
  login: () => [{ status: 401 }],
};

function resultJson(improvement: string, output: Fields): string {
  return `${JSON.stringify({ problem: "p", improvement, lesson: "none", output })}\n`;
}

function script(talk: Conversation): Action {
  const all = talk.prompts.join("\n");
  const title = [...all.matchAll(/^Title: \n<<<\w+\n(.*)\n\w+>>>/gm)].at(-1)?.[1] ?? "";
  const report = [...all.matchAll(/^- (\/\S+) reports your progress/gm)].at(-1)?.[1] ?? "";
  const steps = SCRIPTS[title]?.(talk, dirname(report), report) ?? [];
  return steps[Math.min(talk.turn, steps.length - 1)] ?? { text: `There is no script ${title}.` };
}

// ---- The checks

type Case = {
  readonly title: string;
  readonly what: string;
  readonly fields?: Fields;
  /** Returns what is wrong; "": nothing. */
  readonly check: (agent: Agent, taskId: string) => Promise<string>;
};

const CASES: readonly Case[] = [
  {
    title: "work",
    what: "works in the directory of its task; notes, output file, result and usage arrive",
    check: async (agent, taskId) => {
      const { status, result, outputs, usage, failure } = await agent.ended(taskId);
      const { improvement, output } = fieldsOf(result);
      const notes = (await agent.events(taskId, "task.progress")).map(({ data }) => fieldsOf(data)["note"]);
      const where = String(fieldsOf(output)["where"]);
      return faults({
        [`${String(status)} ${JSON.stringify(failure)}`]: improvement === "worked",
        [`notes ${notes.join()}`]: notes.join() === "page 1 of 2,page 2 of 2",
        [`worked in ${where}`]: where.includes(`agent-${taskId}/work`) || where.includes(".luxhub-report"),
        "no output file": Array.isArray(outputs) && outputs.length === 1,
        [`usage ${JSON.stringify(usage)}`]: Number(fieldsOf(usage)["output_tokens"]) >= 7 * USED.output,
      });
    },
  },
  {
    title: "continue",
    what: "an attempt that fails: the next one resumes the session, with the checkpoint",
    check: async (agent, taskId) => {
      const { attempts, result, failure } = await agent.ended(taskId);
      const { improvement, output } = fieldsOf(result);
      return faults({
        [`${String(improvement)} ${JSON.stringify(failure)}`]: improvement === "continued" && attempts === 1,
        "the session was not resumed": Number(fieldsOf(output)["prompts"]) > 1,
      });
    },
  },
  {
    title: "ask",
    what: "a question parks the task, and the answer resumes the session",
    check: async (agent, taskId) => {
      let question: Fields | undefined;
      await until(async () => (question = await agent.question(taskId)) !== undefined, CASE_MS, 100);
      const { status } = await agent.task(taskId);
      await agent.post("/task/answer", {
        task_id: taskId,
        question_id: question?.["question_id"],
        answer: "blue",
      });
      const { attempts, result } = await agent.ended(taskId);
      const { improvement, output } = fieldsOf(result);
      return faults({
        [`asked while ${String(status)}`]: status === "open",
        [String(improvement)]: improvement === "painted blue" && attempts === 0,
        "the session was not resumed": Number(fieldsOf(output)["prompts"]) > 1,
      });
    },
  },
  {
    title: "escape",
    what: "links that it makes where the worker writes lead to no file of the user",
    check: async (agent, taskId) => {
      writeFileSync(agent.victim, "untouched");
      const { status } = await agent.ended(taskId);
      const content = readFileSync(agent.victim, "utf8");
      return faults({ [String(status)]: status === "completed", [content]: content === "untouched" });
    },
  },
  {
    title: "refuse",
    what: "an agent that refuses does not complete the task",
    fields: { max_attempts: 1 },
    check: async (agent, taskId) => {
      const { status } = await agent.ended(taskId);
      return faults({ [String(status)]: status === "failed" });
    },
  },
  {
    title: "hang",
    what: "the usage of an attempt that timed out is reported",
    fields: { max_attempts: 1 },
    check: async (agent, taskId) => {
      const { failure, usage } = await agent.ended(taskId);
      return faults({
        [JSON.stringify(failure)]: /timed out/.test(String(fieldsOf(failure)["message"])),
        [`usage ${JSON.stringify(usage)}`]: Number(fieldsOf(usage)["reports"]) > 0,
      });
    },
  },
  {
    title: "login", // last, because the worker may pause afterwards
    what: "a broken login gives the task back without an attempt",
    fields: { max_attempts: 1 },
    check: async (agent, taskId) => {
      const isOver = async (): Promise<boolean> =>
        (await agent.events(taskId, "task.released")).length > 0 ||
        ["completed", "failed"].includes(String((await agent.task(taskId))["status"]));
      await until(isOver, CASE_MS, 200);
      const { status, attempts, failure } = await agent.task(taskId);
      return faults({
        [`${String(status)} ${JSON.stringify(failure)}`]: status !== "failed" && attempts === 0,
      });
    },
  },
];

/** The names of what does not hold. */
function faults(held: Readonly<Record<string, boolean>>): string {
  return Object.keys(held)
    .filter((name) => !held[name])
    .join("; ");
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

class Agent {
  readonly name: string;
  /** A file of the user. */
  readonly victim: string;
  readonly #hub: Hub;

  constructor(name: string, home: string, hub: Hub) {
    this.name = name;
    this.victim = join(home, "victim");
    this.#hub = hub;
  }

  async post(path: string, body: Fields): Promise<Fields> {
    return (await this.#hub.post(path, body)).body;
  }

  async task(taskId: string): Promise<Fields> {
    const { body } = await this.#hub.get(`/task/${taskId}`);
    return objectOf(JSON.stringify(body["task"]));
  }

  async ended(taskId: string): Promise<Fields> {
    let task: Fields = {};
    await until(
      async () => ["completed", "failed"].includes(String((task = await this.task(taskId))["status"])),
      CASE_MS,
      100,
    );
    return task;
  }

  async events(taskId: string, kind: string): Promise<readonly Fields[]> {
    return listOf((await this.#hub.get(`/events?since=0&task_id=${taskId}&kind=${kind}`)).body["events"]);
  }

  async question(taskId: string): Promise<Fields | undefined> {
    const { body } = await this.#hub.get("/questions?state=open");
    return listOf(body["questions"]).find((question) => question["task_id"] === taskId);
  }
}

async function play(name: string, hub: Hub, model: string, temp: TempDir): Promise<void> {
  const home = temp.join(name);
  const words = ["worker", "--agent", name, "--node", name, "--capabilities", name];
  await using worker = new Program([...words, "--workdir", temp.join("work"), "--timeout", LIMIT], {
    cwd: home,
    env: {
      ...makeHome(name, home, directory, model),
      ...{ LUXHUB_URL: `http://${OWN_HOST}:${hub.port}`, LUXHUB_SECRET: SECRET },
    },
  });
  const agent = new Agent(name, home, hub);
  for (const { title, what, fields, check } of CASES) {
    const task = { title, description: "As the title says.", task_type: name, backoff_s: 0, ...fields };
    const { task_id } = await agent.post("/task/create", task);
    let found: string;
    try {
      found = await check(agent, String(task_id));
    } catch (error) {
      found = error instanceof Error ? error.message : String(error);
    }
    if (found !== "") console.error(worker.stderr.split("\n").slice(-12).join("\n"));
    const figure: Figure = {
      what: `${name}: ${what}`,
      value: found.replaceAll(/\s+/g, " ").slice(0, FOUND_MAX_CHARS) || "yes",
      goal: "yes",
      held: found === "",
    };
    console.log(JSON.stringify(figure));
  }
}

using temp = new TempDir();
const model = serveModel(script);
await using hub = await Hub.start({ data: temp.join("data"), host: OWN_HOST });
await Promise.all(names.map((name) => play(name, hub, `http://127.0.0.1:${model.port}`, temp)));
await model.stop(true);
