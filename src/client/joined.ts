/**
 * The hub that this machine has joined (`luxhub join`): its file, and the options of the typed client for it. Its
 * connections trust the hub's own authority and nothing else. For Bun and Node 20 and later; a module of its own, because
 * browsers have no files.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/** What the file says, in JSON. Only its owner may read it. */
export type JoinedHub = {
  readonly url: string;
  readonly secret: string;
  readonly node_id: string;
  readonly key: string;
  /** The certificate of the hub's authority, in PEM; null: the hub's certificate is one that every program trusts. */
  readonly ca: string | null;
  /** The name that the hub's certificate has, whatever the URL is. */
  readonly server_name: string | null;
  /** The URLs of the hub and of its copies, as the programs of this machine have learnt them: the last in use first. */
  readonly hubs?: readonly string[];
};

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** LUXHUB_JOINED, or luxhub/hub.json in the directory of configuration. */
export function joinedFile(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { LUXHUB_JOINED: given, XDG_CONFIG_HOME: home = "" } = env;
  if (given) return given;
  return join(isAbsolute(home) ? home : join(homedir(), ".config"), "luxhub", "hub.json");
}

/** Null when there is no file. @throws {Error} one line, when it cannot be read, or is not of `luxhub join` */
export function readJoined(file: string = joinedFile()): JoinedHub | null {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new Error(`cannot read ${file}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
  const hub = joinedIn(bytes);
  if (hub === null) throw new Error(`${file} is not a file of luxhub join: delete it, and join again`);
  return hub;
}

/**
 * The options for `new LuxHub(…)`, and the node.
 * @throws {Error} one line, when this machine has joined no hub
 */
export function joinedHub(file: string = joinedFile()): {
  readonly url: string;
  readonly secret: string;
  readonly nodeId: string;
  readonly fetch: Fetch | undefined;
  readonly onHubs: (urls: readonly string[]) => void;
} {
  const hub = readJoined(file);
  if (hub === null) throw new Error(`this machine has joined no hub: ${file} is missing (luxhub join LINE)`);
  return {
    url: urlsOf(hub),
    secret: hub.secret,
    nodeId: hub.node_id,
    fetch: pinnedFetch(hub),
    onHubs: (urls) => rememberHubs(hub, urls, file),
  };
}

/** Separated by commas, as the typed client takes them. */
export function urlsOf({ url, hubs = [] }: JoinedHub): string {
  return [...new Set([...hubs, url])].join(",");
}

/**
 * Keeps the URLs of a hub and of its copies for the next program, which may start while the first of them is down. Does
 * nothing when the file is of another join by now, or cannot be written: it may be for reading only.
 */
export function rememberHubs(hub: JoinedHub, urls: readonly string[], file: string = joinedFile()): void {
  const partial = `${file}.${process.pid}.hubs`;
  try {
    const known = readJoined(file);
    if (known?.secret !== hub.secret || known.hubs?.join() === urls.join()) return;
    writeFileSync(partial, `${JSON.stringify({ ...known, hubs: urls }, null, 2)}\n`, { mode: 0o600 });
    renameSync(partial, file);
  } catch {
    // The URLs are known until the program ends.
  }
}

/**
 * A fetch that trusts an authority and no other, and sends nothing to a server without a certificate of it. Undefined
 * for a hub without an authority of its own.
 */
export function pinnedFetch({ ca, server_name }: Pick<JoinedHub, "ca" | "server_name">): Fetch | undefined {
  if (ca === null) return undefined;
  const serverName = server_name ?? undefined;
  // A fixed name instead of Bun's checkServerIdentity, with which no connection would be used twice.
  if ("Bun" in globalThis)
    return (url, init) =>
      fetch(url, { ...init, proxy: false, tls: { ca, ...(serverName && { serverName }) } });
  return (url, init) => fetchOnNode(url, init, { ca, servername: serverName });
}

type NodeTls = { readonly ca: string; readonly servername: string | undefined };

/** Node's fetch takes no certificate. */
async function fetchOnNode(url: string, init: RequestInit, tls: NodeTls): Promise<Response> {
  const [{ request }, { Readable }] = await Promise.all([import("node:https"), import("node:stream")]);
  const { method = "GET", signal, body } = init;
  const content = body == null || typeof body === "string" ? null : new Response(body);
  const headers = Object.fromEntries(new Headers(init.headers));
  const type = content?.headers.get("content-type"); // a form has the boundary of its parts in it
  if (type != null) headers["content-type"] ??= type;
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...tls, method, headers, ...(signal && { signal }) }, (answer) => {
      const { statusCode: status = 0, statusMessage: statusText = "" } = answer;
      const fields = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      );
      const hasBody = status !== 204 && status !== 304 && method !== "HEAD";
      // The stream is one of the web's, under the name that Node gives its type.
      const stream = hasBody ? (Readable.toWeb(answer) as unknown as ReadableStream) : null;
      resolve(new Response(stream, { status, statusText, headers: new Headers(fields) }));
    });
    sent.on("error", reject);
    if (content?.body == null) return void sent.end(body);
    const parts = Readable.fromWeb(content.body);
    parts.on("error", (error) => sent.destroy(error));
    parts.pipe(sent);
  });
}

function joinedIn(bytes: Buffer): JoinedHub | null {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
  const isWord = (one: unknown): one is string => typeof one === "string" && one !== "";
  const isWordOrNull = (one: unknown): one is string | null => one === null || isWord(one);
  if (typeof value !== "object" || value === null) return null;
  const {
    url,
    secret,
    node_id,
    key,
    ca = null,
    server_name = null,
    hubs = [],
  }: Partial<Record<string, unknown>> = {
    ...value,
  };
  if (!isWord(url) || !isWord(secret) || !isWord(node_id) || !isWord(key)) return null;
  if (!isWordOrNull(ca) || !isWordOrNull(server_name)) return null;
  if (!Array.isArray(hubs) || !hubs.every(isWord)) return null;
  return { url, secret, node_id, key, ca, server_name, ...(hubs.length > 0 && { hubs }) };
}
