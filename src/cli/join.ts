/**
 * `luxhub join`: stores the hub's URL and a secret that it has made where every client command finds them; the hub gets
 * the hash.
 *
 * Invariant: the token goes only to a server whose authority has the public key of the line. The TLS connection that
 * reads the authority's certificate carries no request.
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Environment } from "../config.ts";
import { LuxHub } from "../client/luxhub.ts";
import { type JoinedHub, joinedFile, pinnedFetch, readJoined } from "../client/joined.ts";
import { isThere, makeDataDir } from "../data-dir.ts";
import { SERVER_NAME } from "../hub/own-certificate.ts";
import { makeSecret, newId } from "../lib/ids.ts";
import { codeOf, reasonOf } from "../lib/reason.ts";
import { shellWord } from "../lib/shell.ts";
import { hashSecret } from "../service/keys.ts";
import type { Superseder } from "../service/copies.ts";
import { BaseNeeded } from "../service/following.ts";
import { isHeld } from "../store/sqlite/file-lock.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import { findHub } from "./config-file.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import { RETRY_FOR_MS, reportFault } from "./remote.ts";
import type { LocalRuns } from "./run.ts";
import { HttpOriginal, type StandbyFile } from "../standby/original.ts";
import { readSuperseded, setDatabaseAside, writeJson } from "../standby/role.ts";
import { writeLine } from "./standard-output.ts";

const NAME = "join";
const LINE = /^(https?:\/\/[^#\s]+?)\/?#(join|standby)\.([\w-]{32})(?:\.([\w-]{43}))?$/;
/** How long a TLS handshake may take. */
const HANDSHAKE_MS = 10_000;

/** `token`: of an invitation; of a standby the secret of its key. */
type Line = {
  readonly url: string;
  readonly as: string;
  readonly token: string;
  readonly pin: string | null;
};

export const LOCAL_RUNS: LocalRuns = { join };

async function join(args: Arguments, env: Environment): Promise<number> {
  const { dir } = findHub(args, env);
  const superseded = readSuperseded(dir);
  const given = args.words[0] ?? superseded?.line;
  if (given === undefined && isThere(dir.database))
    throw new Failure(
      EXIT.CONFLICT,
      `the hub of ${dir.path} does not know of a promotion: start it once with luxhub serve, so that it hears of it, or give the line of luxhub invite`,
    );
  if (given === "" && superseded !== null)
    throw new Failure(
      EXIT.CONFLICT,
      `the promoted hub has not told this one yet how to join: run luxhub invite --standby there, and join with its line`,
    );
  const line = parseLine(given ?? "");
  if (line.as === "standby") return joinAsStandby(line, dir.path, superseded);
  const file = joinedFile(env);
  const known = existsSync(file) && args.flags["replace"] === undefined ? readJoined(file) : null;
  if (known !== null) {
    throw new Failure(
      EXIT.CONFLICT,
      `this machine has already joined ${known.url} as ${known.node_id} (${file}): give --replace to leave that hub, or another file in LUXHUB_JOINED`,
    );
  }
  const partial = prepare(file);
  try {
    const authority = line.pin === null ? null : await authorityOf(line, line.pin);
    const secret = makeSecret();
    const trust = { ca: authority, server_name: authority === null ? null : SERVER_NAME };
    const hub = new LuxHub({ url: line.url, fetch: pinnedFetch(trust), retry: { forMs: RETRY_FOR_MS } });
    const { node_id, key } = await hub.join({ token: line.token, key_hash: hashSecret(secret) });
    const joined: JoinedHub = { url: line.url, secret, node_id, key, ...trust };
    writeFileSync(partial, `${JSON.stringify(joined, null, 2)}\n`, { flush: true });
    renameSync(partial, file);
    writeLine(`joined ${line.url} as ${node_id}; the key is in ${file}`);
    const variable = env["LUXHUB_JOINED"] ? `LUXHUB_JOINED=${shellWord(file)} ` : "";
    console.error(`Start a worker: ${variable}luxhub worker -- COMMAND`);
    return EXIT.OK;
  } catch (error) {
    return reportFault(error, line.url);
  } finally {
    rmSync(partial, { force: true });
  }
}

function parseLine(text: string): Line {
  const [, url, as, token, pin] = LINE.exec(text.trim()) ?? [];
  if (url === undefined || as === undefined || token === undefined || !URL.canParse(url))
    throw new UsageError(
      "join needs the whole line that luxhub invite has printed: URL/#join.TOKEN, or URL/#join.TOKEN.HASH",
      NAME,
    );
  if (pin !== undefined && !url.startsWith("https:"))
    throw new UsageError("the line has a hash, but its URL is not https: it was changed", NAME);
  return { url, as, token, pin: pin ?? null };
}

/** Writes standby.json; `luxhub serve` then takes the base. The database of a superseded hub is kept beside it. */
async function joinAsStandby(line: Line, data: string, superseded: Superseder | null): Promise<number> {
  const dir = makeDataDir(data);
  if (isHeld(dir.lock)) throw new Failure(EXIT.CONFLICT, `a hub runs on ${dir.path}: stop it first`);
  if (isThere(dir.database) && superseded === null)
    throw new Failure(
      EXIT.CONFLICT,
      `${dir.path} has a hub already: name another directory for the standby with --data`,
    );
  const ca = line.pin === null ? null : await authorityOf(line, line.pin);
  const file: StandbyFile = {
    ...{ urls: [line.url], secret: line.token, ca, pin: line.pin, promoted: false },
    server_name: ca === null ? null : SERVER_NAME,
  };
  await new HttpOriginal(file)
    .entriesAfter({ after: 0, at: 0, term: 0, urls: {} }, AbortSignal.timeout(RETRY_FOR_MS))
    .catch((error: unknown) => {
      if (error instanceof BaseNeeded) return; // it has accepted the key
      throw new Failure(EXIT.UNREACHABLE, `${line.url} cannot be followed: ${reasonOf(error)}`);
    });
  const aside = superseded === null ? null : setDatabaseAside(dir, `term-${superseded.term - 1}`);
  writeJson(dir.standbyFile, file);
  for (const old of [dir.supersededFile, dir.standbysFile]) rmSync(old, { force: true });
  writeLine(`joined ${line.url} as its standby; its data will be in ${dir.path}`);
  if (aside !== null) console.error(`What this hub had is kept in ${aside}`);
  console.error(`Start it, with the settings of the first hub: luxhub serve --data ${shellWord(dir.path)}`);
  return EXIT.OK;
}

/** Creates the file under another name: if that is impossible, the invitation is not used up. Returns the name. */
function prepare(file: string): string {
  const partial = `${file}.${newId()}.partial`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(partial, "", { mode: 0o600, flag: "wx" });
    chmodSync(partial, 0o600);
  } catch (error) {
    throw new Error(`cannot write ${file}: ${reasonOf(error)}`, { cause: error });
  }
  return partial;
}

/** @throws {Failure} when the server shows another authority, or none answers */
async function authorityOf({ url }: Line, pin: string): Promise<string> {
  const { X509Certificate, createHash } = await import("node:crypto");
  const shown = (await certificatesOf(url)).map((raw) => new X509Certificate(raw));
  const hashOf = ({ publicKey }: InstanceType<typeof X509Certificate>): string =>
    createHash("sha256")
      .update(publicKey.export({ type: "spki", format: "der" }))
      .digest("base64url");
  const authority = shown.find((certificate) => hashOf(certificate) === pin);
  if (authority) return authority.toString();
  const [last] = shown.slice(-1);
  throw new Failure(
    EXIT.NOT_ALLOWED,
    `${new URL(url).host} is not the hub that made this line: its key is ${last ? hashOf(last) : "missing"}, not ${pin}. Nothing was sent to it. Ask for a new line, by a way that nobody can change`,
  );
}

/** Sends nothing but the handshake. */
async function certificatesOf(url: string): Promise<readonly Buffer[]> {
  const { connect } = await import("node:tls");
  const { hostname, port } = new URL(url);
  const host = hostname.replaceAll(/[[\]]/g, "");
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(
        new Failure(
          EXIT.UNREACHABLE,
          `the hub at ${new URL(url).origin} cannot be reached: ${codeOf(error) || error.message}; is the address right from here, and does the hub run?`,
        ),
      );
    const options = { host, port: Number(port || 443), servername: SERVER_NAME, rejectUnauthorized: false };
    const socket = connect(options, () => {
      const chain: Buffer[] = [];
      let certificate: ReturnType<typeof socket.getPeerCertificate> | undefined =
        socket.getPeerCertificate(true);
      while (certificate?.raw && !chain.some((raw) => raw.equals(certificate?.raw ?? raw))) {
        chain.push(certificate.raw);
        certificate = "issuerCertificate" in certificate ? certificate.issuerCertificate : undefined;
      }
      socket.destroy();
      resolve(chain);
    });
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy(new Error("it does not answer")));
    socket.on("error", fail);
  });
}
