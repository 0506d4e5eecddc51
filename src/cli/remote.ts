/**
 * The part that all clients of a hub share: finds the hub and its secret, runs a command with the typed client, and
 * reports a fault in one line with its exit code.
 */
import { hostname, networkInterfaces } from "node:os";
import type { Environment } from "../config.ts";
import { joinedFile, pinnedFetch, readJoined, rememberHubs, urlsOf } from "../client/joined.ts";
import { directFetch } from "../client/http.ts";
import { HubUnreachable, LuxHub, LuxHubError } from "../client/luxhub.ts";
import {
  type Address,
  checkedSecret,
  environmentSecrets,
  findSecrets,
  isThere,
  recordedAddresses,
} from "../data-dir.ts";
import { isLoopback } from "../hub/addresses.ts";
import { SERVER_NAME } from "../hub/own-certificate.ts";
import { must } from "../lib/assert.ts";
import { isoTime, systemClock } from "../lib/clock.ts";
import { parseExact } from "../lib/exact-json.ts";
import { canonicalIp } from "../lib/ip.ts";
import { printableLine } from "../lib/printable.ts";
import { codeOf } from "../lib/reason.ts";
import { isHeld } from "../store/sqlite/file-lock.ts";
import { readTextFile, strictText } from "../text-file.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { COMMANDS } from "./commands.ts";
import { findHub, readConfigFile } from "./config-file.ts";
import { EXIT, Failure, exitCodeOf } from "./exit-codes.ts";
import { BrokenPipe } from "./table.ts";
import { Values } from "./values.ts";

export type Remote = {
  readonly hub: LuxHub;
  /** The first URL: by it this machine knows the hub again. */
  readonly url: string;
  /** The URLs of the hub and of its copies, separated by commas. */
  readonly urls: string;
  /** Keeps what is learnt of them. */
  readonly onHubs: ((urls: readonly string[]) => void) | undefined;
  readonly secret: string | undefined;
  readonly adminKey: string | undefined;
  /** The node of this machine, if it has joined the hub. */
  readonly nodeId: string | undefined;
  readonly isNamed: boolean;
  /** Trusts only the hub's own authority, if the hub has one. */
  readonly fetch: typeof directFetch;
  readonly values: Values;
  readonly env: Environment;
  readonly words: readonly string[];
  readonly json: boolean;
};

export type Run = (remote: Remote) => Promise<number>;
export type ClientRuns = Readonly<Record<string, Run>>;

/** How long to retry a hub that cannot be reached: short, because a person waits. */
export const RETRY_FOR_MS = 3_000;

export async function runOn(name: string, run: Run, args: Arguments, env: Environment): Promise<number> {
  const values = new Values(args, name);
  let calledUrls: string | undefined;
  try {
    const place = placeOf(values, args, env, name);
    const { urls, secret, adminKey, onHubs } = place;
    calledUrls = urls;
    const hub = new LuxHub({
      url: urls,
      secret,
      adminKey,
      onHubs,
      fetch: place.fetch,
      parseJson: parseExact,
      retry: { forMs: RETRY_FOR_MS },
      onIgnored: (fields) =>
        printError(`the hub ignored ${fields.join(", ")}: it may be older than this luxhub`),
    });
    return await run({ ...place, hub, values, env, words: args.words, json: values.has("json") });
  } catch (error) {
    return reportFault(error, calledUrls);
  }
}

/** Rethrows what is no fault of the hub or of the connection. */
export function reportFault(error: unknown, urls = ""): number {
  if (error instanceof BrokenPipe) return EXIT.OK;
  if (error instanceof LuxHubError) {
    const errors = error.errors.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
    const detail = errors.length > 0 ? errors.join("; ") : inCommands(error.detail);
    printError(`${ADVICE[error.code] ?? detail} (${error.code})`);
    return exitCodeOf(error.status);
  }
  if (error instanceof HubUnreachable) {
    const code = codeOf(error.cause);
    const reason = NETWORK_REASONS[code];
    if (UNTRUSTED_CERTIFICATE.test(code)) printError(`${error.message}; ${TRUST_IT}`);
    else if (WRONG_TIME.test(code))
      printError(
        `${error.message}; the clock of this machine says ${isoTime(systemClock().now())}: if that is wrong, set it, else set that of the hub`,
      );
    else if (reason === undefined) printError(error.message);
    else
      printError(
        `the hub ${urls && `at ${originsOf(urls)} `}cannot be reached: ${reason}; is the URL right, and does the hub run?`,
      );
    return EXIT.UNREACHABLE;
  }
  throw error;
}

function originsOf(urls: string): string {
  return urls
    .split(",")
    .map((url) => new URL(url).origin)
    .join(", or at ");
}

/** Advice for the command line, by error code, where the hub's own advice is about HTTP headers. */
const ADVICE: Readonly<Record<string, string>> = {
  unauthorized:
    "The secret is missing, wrong, expired or revoked: give a valid one in LUXHUB_SECRET or by --secret-file.",
  admin_key_required: "The administrator key is missing or wrong: give it in LUXHUB_ADMIN_KEY.",
};

/** The hub's advice names endpoints, for which people here have commands. */
function inCommands(advice: string): string {
  return advice.replaceAll(
    /GET \/api\/v1\/(task\/([\w-]+)\/(explain|questions)|[\w/]+)/g,
    (call, path, id, what) => {
      if (what !== undefined) return what === "explain" ? `luxhub task why ${id}` : "luxhub questions";
      if (path === "task/pull") return "luxhub task list --status open";
      const command = COMMANDS.find(({ resource }) => resource?.call === path);
      return command === undefined ? call : `luxhub ${command.name} ${command.words}`.trimEnd();
    },
  );
}

const NETWORK_REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ConnectionRefused: "nothing listens there",
  ECONNRESET: "it cut the connection",
  ConnectionClosed: "it cut the connection",
  ENOTFOUND: "there is no host of that name",
  ETIMEDOUT: "it does not answer",
};

const UNTRUSTED_CERTIFICATE = /SELF_SIGNED_CERT|ISSUER_CERT|LEAF_SIGNATURE/;
const WRONG_TIME = /CERT_NOT_YET_VALID|CERT_HAS_EXPIRED/;
const TRUST_IT = "name a file with the certificate to trust in NODE_EXTRA_CA_CERTS";

export function printError(text: string): void {
  console.error(`luxhub: ${printableLine(text)}`);
}

type Place = Pick<Remote, "url" | "urls" | "onHubs" | "secret" | "adminKey" | "nodeId" | "isNamed" | "fetch">;

/**
 * Finds the hub: --url or --data, else LUXHUB_URL, else the hub that runs on the data directory, else the one that this
 * machine has joined. The secrets in that directory, and that of the join, are sent to no other hub.
 */
function placeOf(values: Values, args: Arguments, env: Environment, name: string): Place {
  const [urlFlag, dataFlag] = [values.text("url"), values.text("data")];
  if (urlFlag !== undefined && dataFlag !== undefined)
    throw new UsageError("--url and --data name two hubs: give one of them", name);
  const secretFile = values.text("secret-file");
  const given =
    secretFile === undefined ? undefined : checkedSecret(readTextFile(secretFile).trim(), secretFile);
  const urls = urlFlag ?? (dataFlag === undefined ? env["LUXHUB_URL"] || undefined : undefined);
  if (urls !== undefined) {
    const listed = urls.split(",").map((url) => url.trim().replace(/\/+$/, ""));
    for (const url of listed)
      if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url))
        throw new UsageError(
          `the URL is ${JSON.stringify(url)}; it must look like http://127.0.0.1:19104`,
          name,
        );
    const { secret, adminKey } = environmentSecrets(env);
    const joined = readJoined(joinedFile(env));
    const isJoined =
      joined !== null &&
      urlsOf(joined)
        .split(",")
        .some((url) => listed.includes(url));
    const fetch = (isJoined ? pinnedFetch(joined) : undefined) ?? directFetch;
    return {
      ...{ url: must(listed[0], "a list has a first part"), urls: listed.join(","), onHubs: undefined },
      ...{ secret: given ?? secret, adminKey, nodeId: undefined, isNamed: true, fetch },
    };
  }
  const { dir } = findHub(args, env);
  const recorded = recordedAddresses(dir);
  const addresses = recorded.filter(isHere);
  // Prefers plain HTTP, because TLS needs a certificate that this machine trusts; then variant A.
  const [address] = addresses.toSorted((a, b) => rank(a.variant, a.url) - rank(b.variant, b.url));
  if (!address && recorded.length > 0)
    throw new Failure(
      EXIT.UNREACHABLE,
      `${dir.addressFile} names no address of this machine: name the hub with --url or LUXHUB_URL`,
    );
  if (!address || !isHeld(dir.lock)) {
    const file = joinedFile(env);
    const joined = isDataNamed(args, env) ? null : readJoined(file);
    if (joined === null)
      throw new Failure(
        EXIT.UNREACHABLE,
        `no hub runs on ${dir.path}: start one with luxhub serve, name one with --url or LUXHUB_URL, or join one with luxhub join`,
      );
    const { url, node_id: nodeId } = joined;
    const { adminKey } = environmentSecrets(env);
    return {
      url,
      urls: urlsOf(joined),
      onHubs: (known) => rememberHubs(joined, known, file),
      secret: given ?? joined.secret,
      adminKey,
      nodeId,
      isNamed: false,
      fetch: pinnedFetch(joined) ?? directFetch,
    };
  }
  const { secret, adminKey } = findSecrets(dir, env);
  const { url: local } = address;
  const ca =
    local.startsWith("https:") && isThere(dir.authorityFile) ? readTextFile(dir.authorityFile) : null;
  const fetch = pinnedFetch({ ca, server_name: SERVER_NAME }) ?? directFetch;
  return {
    ...{ url: local, urls: local, onHubs: undefined },
    ...{ secret: given ?? secret, adminKey, nodeId: undefined, isNamed: false, fetch },
  };
}

function isDataNamed({ flags }: Arguments, env: Environment): boolean {
  return (
    flags["data"] !== undefined || Boolean(env["LUXHUB_DATA"]) || readConfigFile()?.["data"] !== undefined
  );
}

/** Whether an address is one of this machine: the file may have come with a checkout of somebody else's. */
function isHere({ url }: Address): boolean {
  const host = new URL(url).hostname.replaceAll(/[[\]]/g, "");
  const addresses = Object.values(networkInterfaces()).flatMap(
    (interfaceAddresses = []) => interfaceAddresses,
  );
  return (
    isLoopback(host) ||
    host === hostname().toLowerCase() ||
    addresses.some(({ address }) => canonicalIp(address) === (canonicalIp(host) ?? host))
  );
}

function rank(variant: string, url: string): number {
  return (url.startsWith("http:") ? 0 : 2) + (variant === "A" ? 0 : 1);
}

export function recordOf<T extends object>(answer: T): Omit<T, "success"> {
  const { success: _, ...record }: T & { readonly success?: unknown } = answer;
  return record;
}

/** Rows of a table without --limit. JSON without --limit has all rows. */
const TABLE_ROWS = 50;

export function limitOf({ values, json }: Pick<Remote, "values" | "json">): number {
  return values.whole("limit", 1) ?? (json ? Number.POSITIVE_INFINITY : TABLE_ROWS);
}

/** Also after a refusal. Returns the exit code of the first refusal. */
export async function forEach(ids: readonly string[], act: (id: string) => Promise<void>): Promise<number> {
  let code: number = EXIT.OK;
  for (const id of ids) {
    try {
      await act(id);
    } catch (error) {
      if (!(error instanceof LuxHubError)) throw error;
      const refused = reportFault(error);
      if (code === EXIT.OK) code = refused;
    }
  }
  return code;
}

export async function readStandardInput(): Promise<string> {
  return strictText(await Bun.stdin.bytes(), "standard input");
}
