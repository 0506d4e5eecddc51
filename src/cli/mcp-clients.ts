/**
 * The configuration of MCP clients: in which file and form each has its servers. A file that cannot be changed safely
 * (JSON with comments) is refused. Must not: read or write a file.
 */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Environment } from "../config.ts";
import { parseExact } from "../lib/exact-json.ts";
import type { MCP_CLIENTS } from "./commands.ts";

export type Client = Exclude<(typeof MCP_CLIENTS)[number], "agents-md">;

export type Server =
  | { readonly url: string; readonly secret: string }
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
    };

type Fields = Readonly<Record<string, unknown>>;

type Form = {
  readonly root: string;
  readonly isToml?: boolean;
  /** The file is in the project, which others may see. */
  readonly isShared: boolean;
  readonly file: (env: Environment) => string;
  readonly server: (server: Server) => Fields;
};

function home(...names: readonly string[]): string {
  return join(homedir(), ...names);
}

function configHome({ XDG_CONFIG_HOME: given = "" }: Environment): string {
  return isAbsolute(given) ? given : home(".config");
}

/** Where the secret of a key is, for --stdio and for the next run. Each hub has its own, because another must not get it. */
export function secretFileOf(keyName: string, url: string, env: Environment): string {
  const hub = new URL(url).host.replaceAll(/[^\w.-]/g, "_");
  return join(configHome(env), "luxhub", `${keyName}@${hub}.secret`);
}

function headersOf(secret: string): Fields {
  return { Authorization: `Bearer ${secret}` };
}

/** The form of most clients. `http` names the field of the URL, `types` whether a server has a type. */
function jsonServer(http: string, types: boolean): Form["server"] {
  return (server) =>
    "url" in server
      ? { ...(types && { type: "http" }), [http]: server.url, headers: headersOf(server.secret) }
      : { ...(types && { type: "stdio" }), ...server };
}

const FORMS: Readonly<Record<Client, Form>> = {
  claude: {
    root: "mcpServers",
    isShared: true,
    file: () => ".mcp.json",
    server: jsonServer("url", true),
  },
  codex: {
    root: "mcp_servers",
    isToml: true,
    isShared: false,
    file: ({ CODEX_HOME }) => (CODEX_HOME ? join(CODEX_HOME, "config.toml") : home(".codex", "config.toml")),
    server: (server) =>
      "url" in server ? { url: server.url, http_headers: headersOf(server.secret) } : server,
  },
  cursor: {
    root: "mcpServers",
    isShared: false,
    file: () => home(".cursor", "mcp.json"),
    server: jsonServer("url", false),
  },
  gemini: {
    root: "mcpServers",
    isShared: false,
    file: () => home(".gemini", "settings.json"),
    server: jsonServer("httpUrl", false),
  },
  vscode: {
    root: "servers",
    isShared: true,
    file: () => join(".vscode", "mcp.json"),
    server: jsonServer("url", true),
  },
  zed: {
    root: "context_servers",
    isShared: false,
    file: (env) => join(configHome(env), "zed", "settings.json"),
    server: jsonServer("url", false),
  },
};

export function fileOfClient(client: Client, env: Environment): string {
  return FORMS[client].file(env);
}

export function isShared(client: Client): boolean {
  return FORMS[client].isShared;
}

export function configurationOf(client: Client, name: string, server: Server): string {
  const { root, isToml, server: form } = FORMS[client];
  if (isToml) return tomlTable(`${root}.${name}`, form(server));
  return `${JSON.stringify({ [root]: { [name]: form(server) } }, null, 2)}\n`;
}

/** The message is for a sentence that begins with the path. */
export class NotMergeable extends Error {
  override readonly name = "NotMergeable";
}

/** @param text of the file; "" if there is none */
export function withServer(text: string, client: Client, name: string, server: Server): string {
  if (text.trim() === "") return configurationOf(client, name, server);
  return FORMS[client].isToml
    ? tomlWith(text, client, name, server)
    : jsonWith(text, FORMS[client], name, server);
}

function jsonWith(text: string, { root, server: form }: Form, name: string, server: Server): string {
  let file: unknown;
  try {
    file = parseExact(text);
  } catch {
    throw new NotMergeable("has comments, or is not JSON");
  }
  if (!isFields(file)) throw new NotMergeable("is not a JSON object");
  const servers = file[root] ?? {};
  if (!isFields(servers)) throw new NotMergeable(`has ${root}, but not as an object`);
  if (Object.hasOwn(servers, name)) throw new NotMergeable(`has a server ${name} already`);
  const merged = { ...file, [root]: { ...servers, [name]: form(server) } };
  const [, indent = "  "] = /^\s*\{\r?\n([ \t]+)"/.exec(text) ?? [];
  return `${JSON.stringify(merged, null, indent)}\n`;
}

function tomlWith(text: string, client: Client, name: string, server: Server): string {
  const { root } = FORMS[client];
  const before = parseToml(text);
  if (before === null) throw new NotMergeable("is not TOML as luxhub reads it");
  const servers = before[root] ?? {};
  if (!isFields(servers) || new RegExp(`^\\s*["']?${root}["']?\\s*=`, "m").test(text))
    throw new NotMergeable(`has ${root}, but not as tables`);
  if (Object.hasOwn(servers, name)) throw new NotMergeable(`has a server ${name} already`);
  const merged = `${text.trimEnd()}\n\n${configurationOf(client, name, server)}`;
  const after = parseToml(merged);
  const expected = { ...before, [root]: { ...servers, [name]: FORMS[client].server(server) } };
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

function tomlValue(value: unknown): string {
  if (!isFields(value)) return JSON.stringify(value);
  const inner = Object.entries(value).map(([name, one]) => `${name} = ${tomlValue(one)}`);
  return `{ ${inner.join(", ")} }`;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
