/**
 * The composition root: opens the store, the mail, the files and the listeners, joins them, and closes them again.
 * The only file that names concrete engines.
 */
import { readFileSync } from "node:fs";
import { DRAIN_MS, SWEEP_EVERY_MS } from "./domain/limits.ts";
import { ENDPOINTS } from "./api/endpoints.ts";
import { fileEndpoints } from "./api/files.ts";
import { Pipeline } from "./api/pipeline.ts";
import { problemOf } from "./api/problems.ts";
import { StreamRoom } from "./api/stream.ts";
import { openDiskBlobs } from "./blobs/disk.ts";
import type { Blobs } from "./blobs/blobs.ts";
import { type Config, ConfigError, type ListenSpec } from "./config.ts";
import type { DataDir } from "./data-dir.ts";
import { accept } from "./domain/decision.ts";
import { openAccessLog } from "./http/access-log.ts";
import { type Listener, openListener } from "./http/listener.ts";
import type { Clock } from "./lib/clock.ts";
import { countingIds, newId } from "./lib/ids.ts";
import type { Log } from "./lib/log.ts";
import { EmbeddedMail } from "./mail/embedded.ts";
import { FallbackMail } from "./mail/fallback.ts";
import type { Mail } from "./mail/mail.ts";
import { RedisMail } from "./mail/redis.ts";
import { type ChoreParts, choresOf, renewLeases, settle } from "./service/chores.ts";
import { Feed } from "./service/feed.ts";
import { FileService } from "./service/files.ts";
import { KeyRing, type PrimarySecrets } from "./service/keys.ts";
import { LuxService } from "./service/lux.ts";
import { MessageService } from "./service/messages.ts";
import { NodeService } from "./service/nodes.ts";
import { Sweeper } from "./service/sweeper.ts";
import { SystemService } from "./service/system.ts";
import { TaskService } from "./service/tasks.ts";
import { takeLock } from "./store/lock.ts";
import { openSqlite } from "./store/sqlite.ts";
import type { Store } from "./store/store.ts";
import { VARIANTS } from "./variant/variants.ts";
import { SOFTWARE } from "./version.ts";

export type OpenListener = Listener & { readonly spec: ListenSpec };

export type HubParts = {
  readonly config: Config;
  readonly dir: DataDir;
  readonly secrets: PrimarySecrets;
  readonly clock: Clock;
  readonly log: Log;
};

/** A running hub. */
export type Hub = {
  readonly listeners: readonly OpenListener[];
  /** Takes no new work, answers who waits, lets running requests end, then closes everything. Idempotent. */
  close(): Promise<void>;
};

/** What has been opened so far and must be closed, last first. */
type Closing = (() => Promise<void> | void)[];

/**
 * Opens a hub; it is serving when this resolves.
 * @throws {Error} with one line for the operator: the directory in use, a port taken, a certificate unreadable
 */
export async function openHub(parts: HubParts): Promise<Hub> {
  const closing: Closing = [];
  try {
    return await assemble(parts, closing);
  } catch (error) {
    await closeAll(closing);
    throw error;
  }
}

async function assemble({ config, dir, secrets, clock, log }: HubParts, closing: Closing): Promise<Hub> {
  const lock = takeLock(dir.lock);
  if (!lock) throw new Error(`another luxhub runs on the data directory ${dir.path}`);
  closing.push(() => lock.release());
  const store = openSqlite(dir.database, (error) =>
    log.error("a commit's news failed", { cause: String(error) }),
  );
  closing.push(() => store.close());
  const blobs = await openDiskBlobs(dir.path);
  closing.push(() => blobs.close());
  await blobs.sweepUnfinished();

  const keys = new KeyRing(store, clock, secrets);
  await keys.refresh();
  const feed = new Feed(store, clock);
  const mail = await openMail({ config, clock, log }, store, feed, closing);
  const services = joinServices(store, mail, feed, blobs, clock);
  const chores: ChoreParts = {
    ...services,
    store,
    clock,
    log,
    keys,
    requeueOffline: config.offlineTasks === "requeue",
    retainMs: config.retainMs,
  };
  await renewLeases(chores);
  await settle(chores);
  await logStart(store, clock);

  const streams = new StreamRoom(feed, log);
  const endpoints = [...ENDPOINTS, ...fileEndpoints(config.maxFileBytes), streams.endpoint];
  const pipeline = new Pipeline(services, store, keys, clock);
  const tls = readTls(config);
  const accessLog = openAccessLog(log);
  const newRequestId = countingIds();
  const listeners: OpenListener[] = [];
  closing.push(async () => {
    feed.drain();
    streams.close();
    await stopListeners(listeners);
  });
  for (const spec of config.listen) {
    const listener = await openSpec(spec, tls, {
      routes: pipeline.routes(endpoints, VARIANTS[spec.variant]),
      problemOf,
      newRequestId,
      log,
      accessLog,
    });
    listeners.push({ ...listener, spec });
  }

  const sweeper = new Sweeper(clock, log, SWEEP_EVERY_MS, choresOf(chores));
  sweeper.start();
  closing.push(() => sweeper.stop());
  let closed: Promise<void> | null = null;
  return { listeners, close: () => (closed ??= closeAll(closing)) };
}

type MailParts = Pick<HubParts, "config" | "clock" | "log">;

async function openMail(parts: MailParts, store: Store, feed: Feed, closing: Closing): Promise<Mail> {
  const { config, clock, log } = parts;
  const embedded = new EmbeddedMail(store);
  if (config.redis === null) return embedded;
  const onBell = (nodeId: string): void => feed.mail.wakeOne(nodeId);
  const redis = await RedisMail.over(store, { url: config.redis, clock, onBell });
  const mail = new FallbackMail(redis, embedded, store, clock, log);
  closing.push(() => mail.close());
  await mail.start();
  return mail;
}

function joinServices(store: Store, mail: Mail, feed: Feed, blobs: Blobs, clock: Clock) {
  const tasks = new TaskService(store, clock, newId);
  return {
    feed,
    tasks,
    nodes: new NodeService(store, clock, tasks),
    messages: new MessageService(store, mail, clock, newId, feed.mail),
    lux: new LuxService(store, clock, newId),
    files: new FileService(store, clock, blobs),
    system: new SystemService(store, mail, clock, SOFTWARE),
  };
}

async function logStart(store: Store, clock: Clock): Promise<void> {
  const event = { kind: "hub.started", at: clock.now(), nodeId: null, taskId: null } as const;
  const data = { software: SOFTWARE };
  await store.transact({}, () => accept(null, [{ kind: "event.logged", event: { ...event, data } }]));
}

type Tls = { readonly cert: string; readonly key: string } | null;

function readTls({ tlsCert, tlsKey }: Config): Tls {
  if (tlsCert === null || tlsKey === null) return null;
  return { cert: readPem(tlsCert), key: readPem(tlsKey) };
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(`cannot read ${path}: ${error instanceof Error ? error.message : error}`);
  }
}

type Common = Omit<Parameters<typeof openListener>[0], "address">;

async function openSpec(spec: ListenSpec, tls: Tls, common: Common): Promise<Listener> {
  const { host, port } = spec;
  // Asked first: of an address that there is not, the socket says that it is in use.
  await Bun.dns.lookup(host).catch(() => {
    throw new ListenError(`cannot listen on ${host}:${port}: there is no such address`);
  });
  try {
    return openListener({ ...common, address: { host, port, tls: spec.tls ? tls : null } });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const reason =
      code === "EADDRINUSE" ? "the port is in use" : error instanceof Error ? error.message : error;
    throw new ListenError(`cannot listen on ${host}:${port}: ${reason}`, { cause: error });
  }
}

/** An address that cannot be listened on; the message is one line for the operator. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** Lets running answers end, for a bounded time. */
async function stopListeners(listeners: readonly Listener[]): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), DRAIN_MS);
  });
  const stopped = Promise.all(listeners.map((listener) => listener.stop(false)));
  const outcome = await Promise.race([stopped, late]);
  clearTimeout(timer);
  if (outcome === "late") await Promise.all(listeners.map((listener) => listener.stop(true)));
}

async function closeAll(closing: Closing): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closing.splice(0).toReversed()) {
    try {
      await close();
    } catch (error) {
      failures.push(error); // what is left must be closed all the same
    }
  }
  if (failures.length > 0) throw failures[0];
}
