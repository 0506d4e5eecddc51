/**
 * The MCP clients: in which file and form each has its servers, what lets it use the tools without a person, and how a
 * server or a hook is added to a file. A file that cannot be changed safely (JSON with comments) is refused. Must not:
 * read or write a file.
 */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { joinedFile } from "../client/joined.ts";
import type { Environment } from "../config.ts";
import { parseExact } from "../lib/exact-json.ts";

export type Server =
  | { readonly url: string; readonly secret: string }
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
    };

type Bridge = Extract<Server, { readonly command: string }>;

/**
 * A command of luxhub for a client. @param joinedIn the environment that says where the file of the join is, which has the
 * authority of the hub; null: there is none. The client may lack its variables.
 */
export function ownCall(
  name: "mcp" | "mcp-hook",
  words: readonly string[],
  joinedIn: Environment | null,
): Bridge {
  const [command, ...args] = ownCommand();
  const env = joinedIn && { LUXHUB_JOINED: resolve(joinedFile(joinedIn)) };
  return { command, args: [...args, name, ...words], ...(env && { env }) };
}

/** This program, as a client starts it. */
function ownCommand(): readonly [string, ...string[]] {
  if (Bun.isStandaloneExecutable) return [process.execPath];
  // Without the files of the directory in which the client starts it.
  return [process.execPath, "--no-env-file", "--config=/dev/null", Bun.main];
}

type Fields = Readonly<Record<string, unknown>>;

type Form = {
  readonly root: string;
  readonly isToml?: boolean;
  /** The file is in the project, which others may see. */
  readonly isShared?: boolean;
  readonly file: (env: Environment) => string;
  readonly server: (server: Server) => Fields;
  /** In the entry of a server whose tools need no confirmation. */
  readonly trusted?: Fields;
  /** What a client without a person needs to use the tools. */
  readonly headless?: (name: string) => string;
};

function home(...names: readonly string[]): string {
  return join(homedir(), ...names);
}

function configHome({ XDG_CONFIG_HOME: given = "" }: Environment): string {
  return isAbsolute(given) ? given : home(".config");
}

/** Where the secret of a key is, also for the next run. Each hub has its own, because another must not get it. */
export function secretFileOf(keyName: string, url: string, env: Environment): string {
  const hub = new URL(url).host.replaceAll(/[^\w.-]/g, "_");
  return join(configHome(env), "luxhub", `${keyName}@${hub}.secret`);
}

function headersOf(secret: string): Fields {
  return { Authorization: `Bearer ${secret}` };
}

/** The form of most clients. `http` names the field of the URL; the types are those of a server, if it has one. */
function jsonServer(http: string, [ofUrl, ofProgram]: readonly string[] = []): Form["server"] {
  return (server) =>
    "url" in server
      ? { ...(ofUrl && { type: ofUrl }), [http]: server.url, headers: headersOf(server.secret) }
      : { ...(ofProgram && { type: ofProgram }), ...server };
}

const TYPES = ["http", "stdio"];

/** Gemini CLI, and what came from it. */
const GEMINI = {
  root: "mcpServers",
  server: jsonServer("httpUrl"),
  trusted: { trust: true },
  headless: () => `"trust": true in the entry of the server (--trust), and a directory that it trusts`,
} as const;

const FORMS = {
  claude: {
    root: "mcpServers",
    isShared: true,
    file: () => ".mcp.json",
    server: jsonServer("url", TYPES),
    headless: (name) => `claude -p --allowedTools mcp__${name}`,
  },
  cline: {
    root: "mcpServers",
    file: () => home(".cline", "data", "settings", "cline_mcp_settings.json"),
    server: (server) => ({ transport: jsonServer("url", ["streamableHttp", "stdio"])(server) }),
  },
  codex: {
    root: "mcp_servers",
    isToml: true,
    file: ({ CODEX_HOME }) => (CODEX_HOME ? join(CODEX_HOME, "config.toml") : home(".codex", "config.toml")),
    server: (server) =>
      "url" in server ? { url: server.url, http_headers: headersOf(server.secret) } : server,
  },
  copilot: {
    root: "mcpServers",
    file: ({ COPILOT_HOME }) => join(COPILOT_HOME || home(".copilot"), "mcp-config.json"),
    server: (server) => ({ tools: ["*"], ...jsonServer("url", ["http", "local"])(server) }),
    headless: (name) => `copilot -p … --allow-tool ${name}`,
  },
  cursor: { root: "mcpServers", file: () => home(".cursor", "mcp.json"), server: jsonServer("url") },
  gemini: { ...GEMINI, file: () => home(".gemini", "settings.json") },
  opencode: {
    root: "mcp",
    file: (env) => join(configHome(env), "opencode", "opencode.json"),
    server: (server) =>
      "url" in server
        ? { type: "remote", url: server.url, headers: headersOf(server.secret), enabled: true }
        : {
            type: "local",
            command: [server.command, ...server.args],
            environment: server.env,
            enabled: true,
          },
  },
  qwen: { ...GEMINI, file: () => home(".qwen", "settings.json") },
  vscode: {
    root: "servers",
    isShared: true,
    file: () => join(".vscode", "mcp.json"),
    server: jsonServer("url", TYPES),
  },
  zed: {
    root: "context_servers",
    file: (env) => join(configHome(env), "zed", "settings.json"),
    server: jsonServer("url"),
  },
} as const satisfies Readonly<Record<string, Form>>;

export type Client = keyof typeof FORMS;

export const CLIENTS: readonly string[] = Object.keys(FORMS);

export function isClient(word: string): word is Client {
  return Object.hasOwn(FORMS, word);
}

export function formOfClient(client: Client): Form {
  return FORMS[client];
}

/** The entry of a server in the file of a client. */
export function entryOf(client: Client, server: Server, isTrusted: boolean): Fields {
  const { server: form, trusted } = formOfClient(client);
  return { ...form(server), ...(isTrusted && trusted) };
}

export function configurationOf(client: Client, name: string, entry: Fields): string {
  const { root, isToml } = formOfClient(client);
  if (isToml) return tomlTable(`${root}.${name}`, entry);
  return `${JSON.stringify({ [root]: { [name]: entry } }, null, 2)}\n`;
}

/** The message is for a sentence that begins with the path. */
export class NotMergeable extends Error {
  override readonly name = "NotMergeable";
}

/** @param text of the file; "" if there is none */
export function withServer(text: string, client: Client, name: string, entry: Fields): string {
  if (text.trim() === "") return configurationOf(client, name, entry);
  const { root, isToml } = formOfClient(client);
  if (isToml) return tomlWith(text, client, name, entry);
  return jsonWith(text, root, (servers) => {
    if (Object.hasOwn(servers, name)) throw new NotMergeable(`has a server ${name} already`);
    return { ...servers, [name]: entry };
  });
}

/** The events of Claude Code at which `luxhub mcp-hook` runs, and the tools that it is for. */
const HOOKS = {
  SessionStart: {},
  PreToolUse: { matcher: "Edit|MultiEdit|Write|NotebookEdit" },
  Stop: {},
} as const;

/** The user's own, which version control ignores. */
export const HOOKS_FILE = join(".claude", "settings.local.json");

const HOOK_MAX_SECONDS = 15;

/** The text of Claude Code's settings with a command at each of these events, once. */
export function withHooks(text: string, command: string): string {
  return jsonWith(text.trim() === "" ? "{}" : text, "hooks", (events) => {
    const added = Object.entries(HOOKS).map(([event, tools]): [string, unknown] => {
      const before: unknown = events[event] ?? [];
      if (!Array.isArray(before)) throw new NotMergeable(`has ${event}, but not as a list`);
      const hook = { ...tools, hooks: [{ type: "command", command, timeout: HOOK_MAX_SECONDS }] };
      return [event, before.some((other) => Bun.deepEquals(other, hook)) ? before : [...before, hook]];
    });
    return { ...events, ...Object.fromEntries(added) };
  });
}

function jsonWith(text: string, root: string, change: (fields: Fields) => Fields): string {
  let file: unknown;
  try {
    file = parseExact(text);
  } catch {
    throw new NotMergeable("has comments, or is not JSON");
  }
  if (!isFields(file)) throw new NotMergeable("is not a JSON object");
  const fields = file[root] ?? {};
  if (!isFields(fields)) throw new NotMergeable(`has ${root}, but not as an object`);
  const [, indent = "  "] = /^\s*\{\r?\n([ \t]+)"/.exec(text) ?? [];
  return `${JSON.stringify({ ...file, [root]: change(fields) }, null, indent)}\n`;
}

function tomlWith(text: string, client: Client, name: string, entry: Fields): string {
  const { root } = formOfClient(client);
  const before = parseToml(text);
  if (before === null) throw new NotMergeable("is not TOML as luxhub reads it");
  const servers = before[root] ?? {};
  if (!isFields(servers) || new RegExp(`^\\s*["']?${root}["']?\\s*=`, "m").test(text))
    throw new NotMergeable(`has ${root}, but not as tables`);
  if (Object.hasOwn(servers, name)) throw new NotMergeable(`has a server ${name} already`);
  const merged = `${text.trimEnd()}\n\n${configurationOf(client, name, entry)}`;
  const after = parseToml(merged);
  const expected = { ...before, [root]: { ...servers, [name]: entry } };
  if (!Bun.deepEquals(after, expected)) throw new NotMergeable("cannot be continued with a table");
  return merged;
}

function parseToml(text: string): Fields | null {
  try {
    return { ...Bun.TOML.parse(text) };
  } catch {
    return null;
  }
}

/** The strings of JSON are strings of TOML too. */
function tomlTable(path: string, fields: Fields): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name} = ${tomlValue(value)}`);
  return `[${path}]\n${lines.join("\n")}\n`;
}

export function tomlValue(value: unknown): string {
  if (!isFields(value)) return JSON.stringify(value);
  const inner = Object.entries(value).map(([name, one]) => `${name} = ${tomlValue(one)}`);
  return `{ ${inner.join(", ")} }`;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
