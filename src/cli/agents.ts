/**
 * The AI agents that `luxhub worker --agent` can run: their command lines, and where in their output the session, the
 * answer and the usage of tokens are. worker.toml changes an agent or adds one (docs/agents.md).
 *
 * The table follows the documentation of the programs; `bun run torture --only agents` runs the programs themselves.
 * Must not: run anything.
 */
import { ConfigError } from "../config.ts";
import { assert } from "../lib/assert.ts";
import { reasonOf } from "../lib/reason.ts";
import { refuseForeign } from "../permissions.ts";
import { readTextFileIfThere } from "../text-file.ts";
import type { Around } from "./around.ts";
import { FIELDS, type Field, type Place, type Reads, TAKES } from "./agent-output.ts";
import { type Server, entryOf, formOfClient, isClient, tomlValue } from "./mcp-clients.ts";

export type Agent = {
  readonly name: string;
  /** Looked up in PATH. */
  readonly program: string;
  /** Of every run. `{prompt}` in an argument is the prompt; else it goes to standard input. */
  readonly args: readonly string[];
  /** After `args` when a session begins. */
  readonly start: readonly string[];
  /** When a session goes on; `{session}` is its id. Null: the program cannot do that. */
  readonly resume: readonly string[] | null;
  readonly env: Readonly<Record<string, string>>;
  /** The model, for a program that does not print it. */
  readonly model: string | null;
  readonly instructions: string;
  /** How a run gets the MCP server of the hub: `{config}` is its configuration. Null: not known. */
  readonly mcp: {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** A directory and a file in it, below that of the run, which has the configuration. */
    readonly file?: readonly [directory: string, name: string];
  } | null;
  /** Empty: the program prints its answer as text. */
  readonly reads: Reads;
};

/** The name of the MCP server of the hub. */
const HUB_SERVER = "luxhub";

const NO_MORE = { start: [], env: {}, model: null, instructions: "", mcp: null } as const;

const AGENTS: readonly Agent[] = [
  {
    ...NO_MORE,
    name: "claude",
    program: "claude",
    args: ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"],
    resume: ["--resume", "{session}"],
    mcp: { args: ["--mcp-config", "{config}", "--allowedTools", `mcp__${HUB_SERVER}`] },
    reads: {
      // Only in the first line: the error about an unknown session has the id too.
      session: at("session_id", { type: "system", subtype: "init" }),
      model: at("model", { type: "system", subtype: "init" }),
      say: at("message.content.0.text", { type: "assistant" }),
      answer: at("result", { type: "result" }),
      error: at("result", { type: "result", is_error: "true" }),
      denied: at("permission_denials", { type: "result" }),
      ...claudeTokens(),
      // Since 2.1.277 it includes what the session had cost before.
      cost_usd: { ...at("total_cost_usd", { type: "result" }), over: "session" },
    },
  },
  {
    ...NO_MORE,
    name: "codex",
    program: "codex",
    args: ["exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"],
    start: ["-"],
    resume: ["resume", "{session}", "-"],
    mcp: { args: ["-c", "{config}"] },
    reads: {
      session: at("thread_id", { type: "thread.started" }),
      answer: at("item.text", { type: "item.completed", "item.type": "agent_message" }),
      acted: at("item.text item.command", { type: "item.completed" }),
      error: at("error.message", { type: "turn.failed" }),
      input_tokens: { ...at("usage.input_tokens", { type: "turn.completed" }), over: "session" },
      output_tokens: { ...at("usage.output_tokens", { type: "turn.completed" }), over: "session" },
      cached_tokens: { ...at("usage.cached_input_tokens", { type: "turn.completed" }), over: "session" },
    },
  },
  {
    ...NO_MORE,
    name: "gemini",
    program: "gemini",
    args: ["--output-format", "stream-json", "--approval-mode", "auto_edit"],
    resume: ["--resume", "{session}"],
    env: { GEMINI_CLI_TRUST_WORKSPACE: "true" }, // the directory is the worker's own
    // Above the settings of the user, which may have a server of this name; those of the system must be of root.
    mcp: { file: [".gemini", "settings.json"] },
    reads: {
      session: at("session_id", { type: "init" }),
      model: at("stats.models model"), // "auto" until the end
      answer: { ...at("content", { type: "message", role: "assistant" }), take: "join" },
      error: at("error.message", { type: "result", status: "error" }),
      input_tokens: at("stats.input_tokens", { type: "result" }),
      output_tokens: at("stats.output_tokens", { type: "result" }),
      cached_tokens: at("stats.cached", { type: "result" }),
    },
  },
  {
    ...NO_MORE,
    name: "opencode",
    program: "opencode",
    args: ["run", "--format", "json"],
    resume: ["--session", "{session}"],
    mcp: { env: { OPENCODE_CONFIG_CONTENT: "{config}" } },
    reads: {
      session: at("sessionID"),
      answer: at("part.text", { type: "text" }),
      error: at("error.data.message error.name", { type: "error" }),
      input_tokens: {
        ...at("part.tokens.input part.tokens.cache.read part.tokens.cache.write", { type: "step_finish" }),
        take: "sum",
      },
      output_tokens: {
        ...at("part.tokens.output part.tokens.reasoning", { type: "step_finish" }),
        take: "sum",
      },
      cached_tokens: { ...at("part.tokens.cache.read", { type: "step_finish" }), take: "sum" },
      cost_usd: { ...at("part.cost", { type: "step_finish" }), take: "sum" },
    },
  },
];

export const AGENT_NAMES: readonly string[] = AGENTS.map(({ name }) => name);

function at(paths: string, where: Place["where"] = {}): Place {
  return { where, at: paths.split(" "), take: "last", over: "run" };
}

/** Of the run at its end, until then of each message, whose lines repeat its usage. */
function claudeTokens(): Reads {
  const [input, output] = ["usage.input_tokens", "usage.output_tokens"];
  const [written, read] = ["usage.cache_creation_input_tokens", "usage.cache_read_input_tokens"];
  const of = (...paths: readonly string[]): Place => ({
    ...at(paths.join(" "), { type: "result" }),
    steps: { where: { type: "assistant" }, at: paths.map((path) => `message.${path}`), by: "message.id" },
  });
  return { input_tokens: of(input, written, read), output_tokens: of(output), cached_tokens: of(read) };
}

/** The agent with the MCP server of the hub, and the configuration for the file of `mcp`, if it has one. */
export function withHubServer(
  agent: Agent,
  server: Server,
): { readonly agent: Agent; readonly config: string } {
  const { mcp, name } = agent;
  assert(mcp !== null && isClient(name), "only an agent that can have the server gets it");
  const entry = entryOf(name, server, true);
  const { root, isToml } = formOfClient(name);
  const config = isToml
    ? `${root}.${HUB_SERVER}=${tomlValue(entry)}`
    : JSON.stringify({ [root]: { [HUB_SERVER]: entry } });
  const fill = (text: string): string => text.replace("{config}", () => config);
  const env = Object.entries(mcp.env ?? {}).map(([variable, text]) => [variable, fill(text)]);
  const args = [...agent.args, ...(mcp.args ?? []).map(fill)];
  return { agent: { ...agent, args, env: { ...agent.env, ...Object.fromEntries(env) } }, config };
}

export function argumentsOf(
  { args, start, resume }: Agent,
  prompt: string,
  session: string | null,
): readonly string[] {
  const sessionArgs = session === null || resume === null ? start : resume;
  return [...args, ...sessionArgs].map((arg) => {
    if (arg === "{prompt}") return prompt;
    return session === null ? arg : arg.replace("{session}", session);
  });
}

export function readsPromptFromInput({ args, start }: Agent): boolean {
  return ![...args, ...start].includes("{prompt}");
}

// ---- worker.toml

const PATH = "worker.toml";

/**
 * From the table, with the changes of worker.toml in the current directory, or from that file alone. Null: there is no
 * such agent. @throws {ConfigError} when the file is invalid; {Error} one line, when it cannot be read or is
 * world-writable
 */
export function findAgent(name: string): Agent | null {
  const known = AGENTS.find((agent) => agent.name === name);
  const fields = sectionOf(name);
  if (fields === null) return known ?? null;
  return changed(known ?? { ...NO_MORE, name, program: "", args: [], resume: null, reads: {} }, fields);
}

type Fields = Readonly<Record<string, unknown>>;

export function readAround(): Around {
  const file = readWorkerFile();
  const words = (name: keyof Around): readonly string[] =>
    file?.[name] === undefined ? [] : textsIn(file[name], name);
  return { before: words("before"), after: words("after"), wrap: words("wrap") };
}

function sectionOf(name: string): Fields | null {
  const file = readWorkerFile();
  if (file === null) return null;
  const agents = tableIn(file["agent"] ?? {}, "agent");
  return agents[name] === undefined ? null : tableIn(agents[name], `agent.${name}`);
}

function readWorkerFile(): Fields | null {
  const text = readTextFileIfThere(PATH);
  if (text === null) return null;
  refuseForeign(PATH, "the configuration file");
  let file: Fields;
  try {
    file = { ...Bun.TOML.parse(text) };
  } catch (error) {
    throw new ConfigError(`${PATH} is not TOML: ${reasonOf(error)}`);
  }
  refuseOthers(file, ["agent", "before", "after", "wrap"], "");
  return file;
}

function changed(agent: Agent, fields: Fields): Agent {
  const section = `agent.${agent.name}`;
  refuseOthers(
    fields,
    ["program", "args", "start", "resume", "env", "model", "instructions", "reads"],
    `${section}.`,
  );
  const { program, args, start, resume, env, model, instructions, reads } = fields;
  const made: Agent = {
    name: agent.name,
    program: program === undefined ? agent.program : textIn(program, `${section}.program`),
    args: args === undefined ? agent.args : textsIn(args, `${section}.args`),
    start: start === undefined ? agent.start : textsIn(start, `${section}.start`),
    resume: resume === undefined ? agent.resume : resumeIn(resume, `${section}.resume`),
    env: env === undefined ? agent.env : { ...agent.env, ...envIn(env, `${section}.env`) },
    model: model === undefined ? agent.model : textIn(model, `${section}.model`),
    instructions:
      instructions === undefined ? agent.instructions : textIn(instructions, `${section}.instructions`),
    mcp: agent.mcp,
    reads: reads === undefined ? agent.reads : { ...agent.reads, ...readsIn(reads, `${section}.reads`) },
  };
  if (made.program === "") throw new ConfigError(`${PATH}: ${section} needs program, the program to run`);
  return made;
}

/** Empty: the program cannot go on with a session. */
function resumeIn(value: unknown, name: string): readonly string[] | null {
  const args = textsIn(value, name);
  if (args.length === 0) return null;
  if (args.some((arg) => arg.includes("{session}"))) return args;
  throw new ConfigError(`${PATH}: ${name} must have {session} in one of its arguments`);
}

function envIn(value: unknown, name: string): Readonly<Record<string, string>> {
  const entries = Object.entries(tableIn(value, name));
  return Object.fromEntries(entries.map(([key, text]) => [key, textIn(text, `${name}.${key}`)]));
}

function readsIn(value: unknown, name: string): Reads {
  const table = tableIn(value, name);
  refuseOthers(table, FIELDS, `${name}.`);
  const reads: Partial<Record<Field, Place>> = {};
  for (const field of FIELDS)
    if (table[field] !== undefined) reads[field] = placeIn(table[field], `${name}.${field}`);
  return reads;
}

function placeIn(value: unknown, name: string): Place {
  const table = tableIn(value, name);
  refuseOthers(table, ["where", "at", "take", "over"], `${name}.`);
  const { where = {}, at: paths, take = "last", over = "run" } = table;
  const knownTake = TAKES.find((word) => word === take);
  if (knownTake === undefined) throw new ConfigError(`${PATH}: ${name}.take must be ${TAKES.join(", ")}`);
  if (over !== "run" && over !== "session")
    throw new ConfigError(`${PATH}: ${name}.over must be run or session`);
  const conditions = Object.entries(tableIn(where, `${name}.where`));
  return {
    where: Object.fromEntries(conditions.map(([path, value]) => [path, String(value)])),
    at: typeof paths === "string" ? [paths] : textsIn(paths, `${name}.at`),
    take: knownTake,
    over,
  };
}

function refuseOthers(table: Fields, names: readonly string[], prefix: string): void {
  const other = Object.keys(table).find((name) => !names.includes(name));
  if (other !== undefined)
    throw new ConfigError(`${PATH}: ${prefix}${other} is unknown; it must be ${names.join(", ")}`);
}

function tableIn(value: unknown, name: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new ConfigError(`${PATH}: ${name} must be a table`);
}

function textIn(value: unknown, name: string): string {
  if (typeof value === "string") return value;
  throw new ConfigError(`${PATH}: ${name} must be a string`);
}

function textsIn(value: unknown, name: string): readonly string[] {
  if (Array.isArray(value)) return value.map((item: unknown, i) => textIn(item, `${name}[${i}]`));
  throw new ConfigError(`${PATH}: ${name} must be a list of strings`);
}
