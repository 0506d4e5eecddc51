/**
 * The scene of mcp-clients.ts: `bun mcp-clients-scene.ts DIRECTORY NAME…` starts an imitated model for each program, which
 * is installed in DIRECTORY, and a hub. It prints each figure as a line of JSON.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findAgent } from "../../src/cli/agents.ts";
import { INSTRUCTIONS } from "../../src/mcp/prompt.ts";
import { TOOL_LIST } from "../../src/mcp/tools.ts";
import {
  ADMIN_KEY,
  Hub,
  Program,
  SECRET,
  TempDir,
  listOf,
  objectOf,
  run,
  until,
} from "../../test/e2e/program.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { type Action, type Conversation, serveModel } from "./agents-model.ts";
import { WRITE, makeHome, use } from "./agents-programs.ts";
import type { Figure } from "./section.ts";

type Fields = Readonly<Record<string, unknown>>;

const [directory = "", ...names] = process.argv.slice(2);
const CASE_MS = 3 * 60_000;
const CHARS_OF_TOKEN = 4;
const FOUND_MAX_CHARS = 300;
/** Fewer characters of the instructions are there by chance. */
const SHORTEST_CHARS = 30;

/** How each runs once with a prompt, as the advice of mcp-config has it. Of a prompt on standard input: null. */
const COMMANDS: Readonly<Record<string, (prompt: string) => readonly string[]>> = {
  claude: (prompt) => ["claude", "-p", prompt, "--allowedTools", "mcp__luxhub"],
  codex: (prompt) => ["codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write", prompt],
  copilot: (prompt) => ["copilot", "-p", prompt, "--allow-tool", "luxhub"],
  gemini: (prompt) => ["gemini", "-p", prompt],
  opencode: (prompt) => ["opencode", "run", prompt],
  qwen: (prompt) => ["qwen", "-p", prompt],
};
const TRUSTED = ["gemini", "qwen"];

// ---- The model

/** A prompt has the name of its script, and the word by which the imitation knows prompts. */
const promptFor = (script: string): string => `SCRIPT=${script} (this is no result.json)`;

/** Calls a tool of the hub, under the name that the program gives it, or after a search. */
function call(talk: Conversation, name: string, input: Fields): Action {
  const isIts = (known: string): boolean => known === name || new RegExp(`[^a-z]_?${name}$`).test(known);
  const found = [...talk.results].reverse().join("\n");
  const shown = talk.tools.find(isIts) ?? new RegExp(`\\bmcp__luxhub__${name}\\b`).exec(found)?.[0];
  if (shown !== undefined) return { tool: { name: shown, input } };
  const search = talk.tools.find((known) => /^tool_?search$/i.test(known));
  if (search === undefined) return { text: `There is no ${name} among ${talk.tools.join(" ")}` };
  return { tool: { name: search, input: { query: `select:mcp__luxhub__${name}`, max_results: 5 } } };
}

function script(talk: Conversation): Action {
  const all = talk.prompts.join("\n");
  const name = /SCRIPT=(\w+)/.exec(all)?.[1] ?? "attempt";
  const isDone = talk.results.some((text) => text.includes("say") && !text.includes("mcp__luxhub__"));
  switch (name) {
    case "status":
      return isDone ? { text: "done" } : call(talk, "hub_status", {});
    case "edit": {
      const path = /PATH=(\S+)/.exec(all)?.[1] ?? "";
      return talk.turn === 0 ? use(WRITE, talk, path, "mine\n") : { text: "done" };
    }
    default: {
      const report = [...all.matchAll(/^- (\/\S+) reports your progress/gm)].at(-1)?.[1] ?? "";
      const result = `${JSON.stringify({ improvement: "i", output: talk.tools })}\n`;
      if (!isDone) return call(talk, "task_create", { title: `of ${talk.path}`, description: "d" });
      return talk.results.some((text) => text.includes("task_id")) && talk.turn < MOST_TURNS
        ? use(WRITE, talk, join(report, "../result.json"), result)
        : { text: "done" };
    }
  }
}

const MOST_TURNS = 6;

// ---- What the model was shown

type Request = { readonly text: string; readonly tools: readonly unknown[]; readonly json: string };

function requestsIn(log: string): readonly Request[] {
  if (!existsSync(log)) return [];
  return readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => objectOf(JSON.stringify(objectOf(line)["body"])))
    .map((body) => {
      const given = Array.isArray(body["tools"]) ? body["tools"] : [];
      const tools = given.flatMap((tool: unknown) => {
        const { functionDeclarations, type, tools: inner } = objectOf(JSON.stringify(tool));
        return type === "namespace"
          ? listOf(inner)
          : Array.isArray(functionDeclarations)
            ? functionDeclarations
            : [tool];
      });
      return { text: textOf(body), tools, json: JSON.stringify(body) };
    })
    .filter(({ tools }) => tools.length > 0);
}

/** All strings in a value. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? Object.values(value).map(textOf).join("\n") : "";
}

/** By the last request: the first one of Claude Code may be sent before the server is connected. */
function shownBy(log: string): string {
  const requests = requestsIn(log);
  const last = requests.at(-1);
  if (last === undefined) return "nothing";
  const nameOf = (tool: unknown): string => {
    const { name, function: inner } = objectOf(JSON.stringify(tool));
    return String(name ?? objectOf(JSON.stringify(inner ?? {}))["name"]);
  };
  const isShown = (tool: unknown): boolean =>
    objectOf(JSON.stringify(tool))["defer_loading"] !== true &&
    TOOL_LIST.some(({ name }) => nameOf(tool).endsWith(name));
  const ofHub = last.tools.filter(isShown);
  const tokens = Math.round(JSON.stringify(ofHub).length / CHARS_OF_TOKEN);
  const listed = ofHub.length;
  const named = TOOL_LIST.filter(({ name }) => last.text.includes(`luxhub__${name}`)).length;
  let instructions = 0;
  while (instructions < INSTRUCTIONS.length && last.text.includes(INSTRUCTIONS.slice(0, instructions + 1)))
    instructions++;
  const said = last.text.split(/["\\]say["\\]/).length - 1;
  return [
    `${listed} of ${TOOL_LIST.length} tools (${tokens} tokens)`,
    `${Math.max(named - listed, 0)} more by name`,
    `${instructions < SHORTEST_CHARS ? "none" : instructions} of the ${INSTRUCTIONS.length} characters of the instructions`,
    `a result ${said === 1 ? "once" : `${said} times`}`,
  ].join(", ");
}

// ---- The cases

function print(what: string, found: string, isTold = false): void {
  const value = found.replaceAll(/\s+/g, " ").slice(0, FOUND_MAX_CHARS);
  const figure: Figure = isTold
    ? { what, value, goal: "", held: true }
    : { what, value: value || "yes", goal: "yes", held: value === "" };
  console.log(JSON.stringify(figure));
}

/** Runs a program once; the last lines of what it printed, if it failed. */
async function runOnce(
  words: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const child = Bun.spawn([...words], {
    ...{ cwd, env: { ...env, PWD: cwd }, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: CASE_MS },
  });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return child.exitCode === 0
    ? ""
    : `${child.exitCode ?? child.signalCode}: ${(out + err).slice(-FOUND_MAX_CHARS)}`;
}

async function play(name: string, hub: Hub, temp: TempDir): Promise<void> {
  const log = temp.join(`${name}.log`);
  const model = serveModel(script, log);
  const home = temp.join(name);
  const found = makeHome(name, home, directory, `http://127.0.0.1:${model.port}`);
  // As its user would trust the directory.
  const programs = { ...found, GEMINI_CLI_TRUST_WORKSPACE: "true" };
  const project = join(home, "project");
  mkdirSync(project);
  const place = { LUXHUB_URL: `http://${OWN_HOST}:${hub.port}`, LUXHUB_SECRET: SECRET };
  const trust = TRUSTED.includes(name) ? ["--trust"] : [];
  const configure = (...more: readonly string[]) =>
    run(["mcp-config", name, "--node", name, "--write", ...more], {
      ...{ cwd: project, env: { HOME: home, ...place, LUXHUB_ADMIN_KEY: ADMIN_KEY } },
    });
  const { code, stderr } = await configure(...trust);
  if (code !== 0) throw new Error(stderr);

  const command = COMMANDS[name]?.(promptFor("status")) ?? [];
  const failed = await runOnce(command, project, programs);
  const isThere = (await hub.get(`/node/${name}`)).status === 200;
  const results = requestsIn(log).at(-1)?.text ?? "";
  const isAnswered = results.includes(`You are the node ${name}`);
  print(`${name}: shows its model`, shownBy(log), true);
  const reason = failed || `the hub ${isThere ? "was" : "was not"} called: ${results.slice(-200)}`;
  print(`${name}: calls the hub without a person, as mcp-config leaves it`, isAnswered ? "" : reason);
  if (name === "claude") await playHooks(name, hub, project, programs, configure);
  if (findAgent(name)?.mcp != null) await playWorker(name, hub, home, { ...programs, ...place });
  await model.stop(true);
}

/** A worker with --mcp: the agent creates a task as the node of the worker, and cannot take one. */
async function playWorker(
  name: string,
  hub: Hub,
  home: string,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const node = `${name}-worker`;
  const words = ["worker", "--agent", name, "--mcp", "--once", "--node", node, "--capabilities", node];
  await using worker = new Program([...words, "--workdir", join(home, "work")], { cwd: home, env });
  const { body } = await hub.post("/task/create", { title: "t", description: "d", task_type: node });
  let task: Fields = {};
  const isOver = async (): Promise<boolean> => {
    task = objectOf(JSON.stringify((await hub.get(`/task/${String(body["task_id"])}`)).body["task"]));
    return task["status"] === "completed" || task["status"] === "failed";
  };
  await until(isOver, CASE_MS, 200).catch(() => {});
  const created = listOf((await hub.get(`/task/list?creator_node=${node}`)).body["tasks"]).length;
  const tools = JSON.stringify(objectOf(JSON.stringify(task["result"] ?? {}))["output"] ?? "");
  const faults = [
    task["status"] === "completed" ? "" : `${String(task["status"])} ${JSON.stringify(task["failure"])}`,
    created === 1 ? "" : `created ${created} tasks`,
    tools.includes("task_next") ? "has task_next" : "",
  ].filter((fault) => fault !== "");
  if (faults.length > 0) console.error(worker.stderr.split("\n").slice(-12).join("\n"));
  print(`${name}: creates a task in an attempt of worker --mcp, as the same node`, faults.join(", "));
}

/** The hooks of `mcp-config claude --hooks` in the real program. */
async function playHooks(
  name: string,
  hub: Hub,
  project: string,
  env: Readonly<Record<string, string>>,
  configure: (...more: readonly string[]) => Promise<{ readonly stderr: string }>,
): Promise<void> {
  await configure("--hooks");
  await hub.post("/node/register", { node_id: "other", name: "other" });
  await hub.post("/lease/acquire", { name: "src/**", node_id: "other", ttl_s: 3_600 });
  const found: string[] = [];
  for (const [path, isAllowed] of [
    ["src/a.ts", false],
    ["docs/a.md", true],
  ] as const) {
    const file = join(project, path);
    const prompt = `${promptFor("edit")} PATH=${file}`;
    const words = ["claude", "-p", prompt, "--allowedTools", "mcp__luxhub", "Write"];
    const failed = await runOnce(words, project, env);
    if (failed !== "") found.push(failed);
    if (existsSync(file) !== isAllowed) found.push(`${path} was ${isAllowed ? "not " : ""}written`);
  }
  print(`${name}: a hook refuses an edit where another node has a lease`, found.join(", "));
}

using temp = new TempDir();
await using hub = await Hub.start({ data: temp.join("data"), host: OWN_HOST });
await Promise.all(names.map((name) => play(name, hub, temp)));
