/**
 * The composition root: opens the store, the mail, the files and the listeners, connects them, and closes them in order
 * (graceful shutdown). The only file that names concrete engines. PostgreSQL and Redis are imported only when they are
 * configured.
 */
import { existsSync, readFileSync } from "node:fs";
import {
  CERTIFICATE_CHECK_MS,
  DRAIN_MS,
  KEYS_RELOAD_EVERY_MS,
  LOG_PATH_MAX_CHARS,
  LOG_WARNINGS_PER_SECOND,
  PRUNE_EVERY_MS,
  QUOTA_BYTES_ON_POSTGRES,
  QUOTA_BYTES_PARTS,
  START_CHECK_MAX_BYTES,
  SWEEP_EVERY_MS,
} from "./domain/limits.ts";
import { a2aEndpoints } from "./a2a/endpoint.ts";
import { type LoadServer, mcpEndpoint } from "./mcp/endpoint.ts";
import { DOCS, ENDPOINTS, PYTHON_CLIENT } from "./api/routes.ts";
import { dashboardEndpoints } from "./api/dashboard.ts";
import { fileEndpoints, uploadLimit } from "./api/files.ts";
import { monitoringEndpoints } from "./api/monitoring.ts";
import { Pipeline } from "./api/pipeline.ts";
import { ResponseBackpressure } from "./api/response-backpressure.ts";
import { problemOf } from "./api/error-table.ts";
import { EventStreams } from "./api/stream.ts";
import { openDiskBlobs } from "./blobs/disk.ts";
import { type Blobs, BlobsFull } from "./blobs/blobs.ts";
import { type Config, ConfigError, type ListenSpec } from "./config.ts";
import { type DataDir, type HasRoom, freeBytes, freeSpaceCheck, findTraceOfHub } from "./data-dir.ts";
import { accept } from "./domain/decision.ts";
import type { Quotas } from "./domain/quota.ts";
import { openAccessLog } from "./http/access-log.ts";
import { CertificateWatch, findCertificateFault } from "./http/certificate.ts";
import { CrossOrigin } from "./http/cross-origin.ts";
import { type Listener, openListener } from "./http/listener.ts";
import { RequestMetrics } from "./http/request-metrics.ts";
import { type Clock, notBefore } from "./lib/clock.ts";
import { blockListOf, isIP } from "./lib/ip.ts";
import { countingIds, newId } from "./lib/ids.ts";
import type { Log } from "./lib/log.ts";
import { codeOf, reasonOf } from "./lib/reason.ts";
import { TickQueue } from "./lib/semaphore.ts";
import { shellWord } from "./lib/shell.ts";
import { EmbeddedMail } from "./mail/embedded.ts";
import type { Mail } from "./mail/mail.ts";
import { A2aTasks } from "./service/a2a-tasks.ts";
import { ActivityLog } from "./service/activity-log.ts";
import { type ChoreParts, choresOf, renewLeases } from "./service/periodic-work.ts";
import { Feed } from "./service/feed.ts";
import { Takes } from "./service/blocked-calls.ts";
import { IdleWorkers } from "./service/idle-workers.ts";
import { FileService } from "./service/files.ts";
import { KeyRing, type PrimarySecrets } from "./service/keys.ts";
import { LuxService } from "./service/lux.ts";
import { MessageService } from "./service/messages.ts";
import { Metrics } from "./service/metrics.ts";
import { Minutes } from "./service/minutes.ts";
import { NextService } from "./service/next.ts";
import { NodeService } from "./service/nodes.ts";
import { QuotaService } from "./service/quotas.ts";
import { Readiness } from "./service/readiness.ts";
import { type Chore, Leadership, Scheduler } from "./service/scheduler.ts";
import { type ShareMarks, compareSecretsChore } from "./service/same-secrets.ts";
import { SystemService } from "./service/system.ts";
import { TypeMetrics } from "./service/type-metrics.ts";
import { TaskService } from "./service/tasks.ts";
import { inspectDatabase } from "./store/sqlite/integrity-check.ts";
import { isHeld, takeExclusiveLock } from "./store/sqlite/file-lock.ts";
import { databaseId } from "./store/sql/messages.ts";
import { newestEvents } from "./store/sql/events.ts";
import { fillBallast, releaseBallast } from "./store/sqlite/ballast.ts";
import { type SqliteStore, openSqlite } from "./store/sqlite/engine.ts";
import { type Store, StoreFull } from "./store/store.ts";
import { VARIANTS } from "./variant/by-name.ts";
import { SOFTWARE, VERSION } from "./version.ts";

export type OpenListener = Listener & { readonly spec: ListenSpec };

export type HubParts = {
  readonly config: Config;
  readonly dir: DataDir;
  readonly secrets: PrimarySecrets;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when opening fails, while the hub still holds the lock of the data directory. */
  readonly onFailure?: () => void;
  /** For tests: replaces the hub's MCP server. */
  readonly loadMcp?: LoadServer;
};

export type Hub = {
  readonly listeners: readonly OpenListener[];
  /** The reads that need no secret at listeners of A, as paths without `/api/v1/`. */
  readonly openReads: readonly string[];
  /** Of the keys that are bound to one node. */
  readonly quotas: Quotas;
  /** Runs the periodic work that is due now, as the hub does every second. */
  sweep(): Promise<void>;
  /**
   * Drains (accepts no new requests, answers waiting calls, lets running requests end), then closes everything.
   * Idempotent.
   */
  close(): Promise<void>;
};

/** The functions that close the parts opened so far; they run in reverse order. */
type Closing = (() => Promise<void> | void)[];

/**
 * Opens a hub; it is serving when this resolves.
 * @throws {Error} with one line for the operator: a directory or a port in use, an unreadable certificate
 */
export async function openHub(parts: HubParts): Promise<Hub> {
  const closing: Closing = [];
  try {
    return await assemble(parts, closing);
  } catch (error) {
    if (closing.length > 0) parts.onFailure?.(); // only if we hold the lock, which is taken first
    await closeAll(closing);
    if (error instanceof StoreFull || error instanceof BlobsFull) throw new DiskFullError(parts.dir, error);
    throw error;
  }
}

/** The disk is too full to start; the message is one line for the operator. */
class DiskFullError extends Error {
  override readonly name = "DiskFullError";

  constructor({ path }: DataDir, cause: Error) {
    super(`the disk of the data directory ${path} is full: make room there, then start again`, { cause });
  }
}

async function assemble(hubParts: HubParts, closing: Closing): Promise<Hub> {
  const { config, dir, secrets, log } = hubParts;
  const lock = takeExclusiveLock(dir.lock);
  if (!lock) throw new Error(`another luxhub runs on the data directory ${dir.path}`);
  closing.push(() => lock.release());
  takeExclusiveLock(dir.pin)?.release(); // creates the file as the hub's user, because another user may run the first backup
  const onFault = (error: unknown): void => log.error("a commit listener failed", { cause: String(error) });
  const { store, clock: storeClock, shareMarks } = await openStore(hubParts, onFault);
  if (config.database === null) closing.push(() => fillBallast(dir.ballast)); // runs after the store is closed, which frees the -shm file
  closing.push(() => store.close());
  if (config.database === null) fillBallast(dir.ballast);
  const activity = new ActivityLog(store, log);
  closing.push(() => activity.flush());
  const [newest] = await store.read(newestEvents([], 1));
  const clock = notBefore(storeClock, newest?.at ?? 0);
  const blobs = await openBlobs(config, dir);
  closing.push(() => blobs.close());
  await blobs.sweepUnfinished();
  const types = new TypeMetrics();
  const minutes = new Minutes(store, clock, newId(), types);
  closing.push(() => minutes.close());
  const metrics = new Metrics({ store, blobs, clock, log, version: VERSION, types });
  const requestMetrics = new RequestMetrics();
  const readiness = new Readiness(store, clock);

  const keys = new KeyRing(store, clock, secrets, onFault);
  await keys.refresh();
  const feed = new Feed(store, clock);
  const idle = new IdleWorkers(store);
  const backpressure = new ResponseBackpressure();
  const mail = await openMail({ config, clock, log }, store, feed, closing);
  const quotas = {
    tasks: config.quotaTasks,
    bytes: config.quotaBytes ?? defaultQuotaBytes(config, dir),
  };
  const services = joinServices({
    store,
    quotas,
    mail,
    feed,
    idle,
    blobs,
    clock,
    keys,
    minutes,
    pinned: () => isHeld(dir.pin),
    maxNodes: config.maxNodes,
  });
  const choreParts: ChoreParts = {
    ...services,
    store,
    blobs,
    clock,
    log,
    requeueOffline: config.offlineTasks === "requeue",
    retainMs: config.retainMs,
    retainNodesMs: config.retainNodesMs,
    maxAnswersBytes: config.maxAnswersBytes,
  };
  const leadership = new Leadership(store, () => renewLeases(choreParts));
  await leadership.isLeader().catch(ignoreFull); // before requests and chores: renews the leases if no hub ran

  const streams = new EventStreams(feed, log);
  const schedulers: Scheduler[] = [];
  const readMetrics = (): Promise<string> =>
    metrics.text({
      waiting: () => pipeline.waiting,
      streams: () => streams.size,
      isLeading: () => leadership.isLeading,
      chores: () => schedulers.flatMap((one) => one.runs()),
      diagnose: () => services.system.diagnose(),
      writeRequests: (text) => requestMetrics.writeTo(text),
    });
  const listeners: OpenListener[] = [];
  const crossOrigin = new CrossOrigin({ origins: config.cors, hosts: config.allowedHosts });
  const publicUrl = (): string => publicUrlOf(config, listeners);
  const openStream: EventStreams["open"] = (call, opening) => streams.open(call, opening);
  const uploads = uploadLimit();
  const endpoints = [
    ...ENDPOINTS,
    ...fileEndpoints(config.maxFileBytes, uploads),
    ...streams.endpoints,
    DOCS,
    ...(config.ui ? dashboardEndpoints(async () => (await import("./web/dashboard.ts")).dashboard()) : []),
    PYTHON_CLIENT,
    ...monitoringEndpoints(readiness, readMetrics),
    ...(config.mcp ? [mcpEndpoint({ publicUrl, crossOrigin, loadServer: hubParts.loadMcp })] : []),
    ...(config.a2a
      ? a2aEndpoints({ publicUrl, maxFileBytes: config.maxFileBytes, uploads, openStream })
      : []),
  ];
  const pipeline = new Pipeline({
    services,
    store,
    keys,
    clock,
    log,
    trustedProxies: config.trustProxy,
    isPrivate: config.isPrivate,
    isStrict: config.isStrict,
    maxAnswersBytes: config.maxAnswersBytes,
    backpressure,
  });
  closing.push(() => services.takes.retryPutBacks());
  closing.push(async () => {
    feed.drain();
    idle.drain();
    backpressure.close(); // a receive that waits for memory must not take messages that can no longer be sent
    streams.close();
    await stopListeners(listeners);
  });
  const tls = readTls(config);
  const routesOf = (variant: ListenSpec["variant"]) => pipeline.routes(endpoints, VARIANTS[variant]);
  await listen(hubParts, tls, { routesOf, metrics: requestMetrics, crossOrigin }, listeners);
  watchCertificate(hubParts, tls, listeners, closing);
  const started = startChore(store, clock);
  await started.run(new AbortController().signal, () => 0); // after listen(), which fails if a port is in use

  const chores = [...choresOf(choreParts), uploadsChore(blobs), started];
  if (shareMarks) {
    chores.push(compareSecretsChore(shareMarks, () => store.read(databaseId()), secrets, log));
  }
  const scheduler = new Scheduler({
    clock,
    log,
    leadership,
    chores,
    pauseMs: SWEEP_EVERY_MS,
    onTick: (lateMs) => metrics.noteLag(lateMs),
  });
  // A scheduler of its own, so that a long sweep does not delay a revocation.
  const keyChores = [keysChore(keys)];
  const keyScheduler = new Scheduler({
    clock,
    log,
    leadership,
    chores: keyChores,
    pauseMs: KEYS_RELOAD_EVERY_MS,
  });
  schedulers.push(scheduler, keyScheduler);
  for (const one of schedulers) one.start();
  void scheduler.sweep(); // not awaited: the chores may have much to do at first, and the hub serves meanwhile
  closing.push(() => scheduler.stop());
  closing.push(() => keyScheduler.stop());
  closing.push(() => readiness.drain()); // closing begins with this
  readiness.start();
  const sweep = async (): Promise<void> => {
    await keyScheduler.sweep();
    await scheduler.sweep();
  };
  let closed: Promise<void> | null = null;
  const openReads = config.isPrivate ? [] : endpoints.filter(({ auth }) => auth === "public").map(shortPath);
  return {
    listeners,
    openReads,
    quotas,
    sweep,
    close: () => (closed ??= closeAll(closing)),
  };
}

/** The start of links to this hub. Never uses the Host of a request, which its caller can choose. */
function publicUrlOf({ publicUrl }: Config, [first]: readonly OpenListener[]): string {
  if (publicUrl !== null || first === undefined) return publicUrl ?? "";
  const isAny = first.host === "0.0.0.0" || first.host === "::";
  const host = isAny ? "127.0.0.1" : first.host.includes(":") ? `[${first.host}]` : first.host;
  return `${first.tls ? "https" : "http"}://${host}:${first.port}`;
}

/** Shortens a path for people: `node/<node_id>`. */
function shortPath({ path }: { readonly path: string }): string {
  return path.replace("/api/v1/", "").replaceAll(/:(\w+)/g, "<$1>");
}

/** Puts a changed certificate to use without a restart. */
function watchCertificate(
  { config, log }: HubParts,
  inUse: Tls,
  listeners: readonly Listener[],
  closing: Closing,
): void {
  const { tlsCert: certPath, tlsKey: keyPath } = config;
  const secured = listeners.filter(({ tls }) => tls);
  if (certPath === null || keyPath === null || inUse === null || secured.length === 0) return;
  const onChange: Listener["renewTls"] = (tls) => secured.forEach((listener) => listener.renewTls(tls));
  const watch = new CertificateWatch({ certPath, keyPath, inUse, onChange }, log);
  watch.start(CERTIFICATE_CHECK_MS);
  closing.push(() => watch.stop());
}

/** Opens the configured listeners. If one fails, the caller closes those already in `listeners`. */
async function listen(
  { config, log }: HubParts,
  tls: Tls,
  {
    routesOf,
    metrics,
    crossOrigin,
  }: {
    routesOf: (variant: ListenSpec["variant"]) => Common["routes"];
    metrics: RequestMetrics;
    crossOrigin: CrossOrigin;
  },
  listeners: OpenListener[],
): Promise<void> {
  const accessLog = openAccessLog(log, {
    targetMaxChars: LOG_PATH_MAX_CHARS,
    warningsPerSecond: LOG_WARNINGS_PER_SECOND,
  });
  const trustedProxies = blockListOf(config.trustProxy);
  const common = {
    problemOf,
    newRequestId: countingIds(),
    log,
    accessLog,
    metrics,
    trustedProxies,
    crossOrigin,
  };
  for (const spec of config.listen) {
    const listener = await openSpec(spec, tls, { ...common, routes: routesOf(spec.variant) });
    listeners.push({ ...listener, spec });
  }
}

/** Opens the configured store. Returns its clock too: hubs on one PostgreSQL share the clock of the database. */
async function openStore(
  { config, dir, clock, log }: HubParts,
  onFault: (error: unknown) => void,
): Promise<{ readonly store: Store; readonly clock: Clock; readonly shareMarks: ShareMarks | null }> {
  if (config.database === null) {
    const hasRoom = freeSpaceCheck(dir, config.minFreeBytes);
    const open = (): SqliteStore => openFile(dir, log, onFault, () => hasRoom(0));
    return { store: openOnFullDisk(dir, log, open), clock, shareMarks: null };
  }
  const { openPostgres } = await import("./store/postgres/engine.ts");
  const warn: Log["warn"] = (message, fields) => log.warn(message, fields);
  const store = await openPostgres(config.database, clock, onFault, warn);
  return { store, clock: store.clock, shareMarks: (marks) => store.shareMarks(marks) };
}

/** A part of the free space. With PostgreSQL the disk is another machine's. */
function defaultQuotaBytes({ database }: Config, dir: DataDir): number {
  const free = database === null ? freeBytes(dir) : null;
  return free === null ? QUOTA_BYTES_ON_POSTGRES : Math.floor(free / QUOTA_BYTES_PARTS);
}

async function openBlobs({ database, minFreeBytes }: Config, dir: DataDir): Promise<Blobs> {
  if (database === null) return openFiles(dir, freeSpaceCheck(dir, minFreeBytes));
  const { openPostgresBlobs } = await import("./blobs/postgres.ts");
  return openPostgresBlobs(database);
}

async function openFiles({ path }: DataDir, hasRoom: HasRoom): Promise<Blobs> {
  try {
    return await openDiskBlobs(path, undefined, hasRoom);
  } catch (error) {
    if (error instanceof BlobsFull) throw error;
    throw new Error(`cannot create directories in ${path}/files: ${reasonOf(error)}`, { cause: error });
  }
}

/** Opens the database; on a full disk it deletes the ballast first, so that SQLite has room to open it. */
function openOnFullDisk(dir: DataDir, log: Log, open: () => SqliteStore): SqliteStore {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof StoreFull) || !releaseBallast(dir.ballast)) throw error;
    log.error("the disk is full: the ballast file was deleted to open the database", {
      ballast: dir.ballast,
    });
    return open();
  }
}

/**
 * Opens the database, or creates it if there never was one. Refuses a damaged or a lost database, and changes nothing.
 */
function openFile(
  dir: DataDir,
  log: Log,
  onFault: (error: unknown) => void,
  hasRoom: () => boolean,
): SqliteStore {
  const found = inspectDatabase(dir.database, { wholeMaxBytes: START_CHECK_MAX_BYTES, live: false });
  if (found.kind === "damaged") {
    throw new Error(`the database ${dir.database} is damaged: ${found.what}. ${whatToDo(dir)}`);
  }
  if (found.kind === "none" && existsSync(dir.unfinishedMove)) {
    throw new Error(`a move into ${dir.path} was not finished: run luxhub move --from again`);
  }
  const trace = found.kind === "none" ? findTraceOfHub(dir) : null;
  if (trace !== null) {
    throw new Error(`${dir.path} has no database, but ${trace} shows that there was one. ${whatToDo(dir)}`);
  }
  if (found.kind === "intact" && !found.whole) {
    log.info("the database is too large for a full check at each start", { check_with: "luxhub doctor" });
  }
  const store = openSqlite(dir.database, onFault, undefined, hasRoom);
  if (store.migration) log.info("the database was migrated", store.migration);
  return store;
}

function whatToDo({ path }: DataDir): string {
  return (
    `Nothing was changed. See more with: luxhub doctor --data ${shellWord(path)}. ` +
    `Restore a backup into an empty directory with: luxhub restore FILE --data DIR`
  );
}

type MailParts = Pick<HubParts, "config" | "clock" | "log">;

async function openMail(parts: MailParts, store: Store, feed: Feed, closing: Closing): Promise<Mail> {
  const { config, clock, log } = parts;
  if (config.redis === null) return new EmbeddedMail(store);
  const onWakeUp = (nodeId: string): void => feed.receivers.wakeOne(nodeId);
  const { RedisMail } = await import("./mail/redis.ts");
  const mail = await RedisMail.open(store, { url: config.redis, clock, log, onWakeUp });
  closing.push(() => mail.close());
  return mail;
}

type Joined = {
  readonly store: Store;
  readonly quotas: Quotas;
  readonly mail: Mail;
  readonly feed: Feed;
  readonly idle: IdleWorkers;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly minutes: Minutes;
  readonly pinned: () => boolean;
  readonly maxNodes: number;
};

function joinServices({
  store,
  quotas,
  mail,
  feed,
  idle,
  blobs,
  clock,
  keys,
  minutes,
  pinned,
  maxNodes,
}: Joined) {
  const tasks = new TaskService(store, clock, newId);
  const nodes = new NodeService(store, clock, tasks, maxNodes);
  const takes = new Takes(store, clock);
  return {
    takes,
    feed,
    keys,
    quotas: new QuotaService(store, quotas),
    minutes,
    tasks,
    a2a: new A2aTasks(store),
    nodes,
    next: new NextService(store, clock, nodes, tasks, idle, takes),
    messages: new MessageService(store, mail, clock, newId, feed.receivers, takes),
    lux: new LuxService(store, clock, newId),
    files: new FileService(store, clock, blobs, pinned),
    system: new SystemService(store, mail, blobs, clock, SOFTWARE),
    batches: new TickQueue(),
  };
}

/** Removes unfinished uploads of a crashed hub, while other hubs run. */
function uploadsChore(blobs: Blobs): Chore {
  const run = async (): Promise<void> => void (await blobs.sweepUnfinished());
  return { name: "uploads", everyMs: PRUNE_EVERY_MS, onEveryHub: true, run };
}

/**
 * Reloads the keys, which another process may have changed, and ends the open calls and streams of keys that are no
 * longer valid.
 */
function keysChore(keys: KeyRing): Chore {
  return { name: "keys", everyMs: 0, onEveryHub: true, run: () => keys.refresh() };
}

/** Logs the event hub.started once: at the start or, on a full disk, as soon as there is room. */
function startChore(store: Store, clock: Clock): Chore {
  const event = { kind: "hub.started", at: clock.now(), nodeId: null, taskId: null } as const;
  const data = { software: SOFTWARE };
  let isLogged = false;
  const run = async (): Promise<void> => {
    if (isLogged || !store.writable) return;
    isLogged = true;
    await store
      .transact({}, () => accept(null, [{ kind: "event.logged", event: { ...event, data } }]))
      .catch((error: unknown) => {
        isLogged = false;
        ignoreFull(error);
      });
  };
  return { name: "started", everyMs: 0, onEveryHub: true, run };
}

/** A hub on a full disk serves reads. The periodic work retries the write. */
function ignoreFull(error: unknown): void {
  if (!(error instanceof StoreFull)) throw error;
}

/** Certificate and key in PEM, and their names in messages to the operator. */
type Tls = {
  readonly cert: string;
  readonly key: string;
  readonly names: Readonly<Record<"cert" | "key" | "both", string>>;
} | null;

function readTls({ tlsCert, tlsKey }: Config): Tls {
  if (tlsCert === null || tlsKey === null) return null;
  const cert = `${tlsCert} (--tls-cert)`;
  const key = `${tlsKey} (--tls-key)`;
  const names = { cert, key, both: `${cert} with ${key}` };
  return { cert: readPem(tlsCert, cert), key: readPem(tlsKey, key), names };
}

function readPem(path: string, name: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`cannot read ${name}: ${reasonOf(error)}`, { cause: error });
  }
}

type Common = Omit<Parameters<typeof openListener>[0], "address">;

async function openSpec(spec: ListenSpec, tls: Tls, common: Common): Promise<Listener> {
  const { host, port } = spec;
  const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  // Resolves a host name first: for an unknown name, the socket would report a port in use. (Bun 1.4.5's own resolver
  // would keep the process alive for a second.)
  if (isIP(host) === 0)
    await Bun.dns.lookup(host, { backend: "system" }).catch(() => {
      throw new ListenError(`cannot listen on ${where}: there is no such address`);
    });
  try {
    return await openListener({ ...common, address: { host, port, tls: spec.tls ? tls : null } });
  } catch (error) {
    const fault = spec.tls && tls !== null ? await findCertificateFault(tls) : null;
    if (fault !== null) throw new ConfigError(`cannot use ${tls?.names[fault.of]}: ${fault.what}`);
    const reason = LISTEN_REASONS[codeOf(error)] ?? reasonOf(error);
    throw new ListenError(`cannot listen on ${where}: ${reason}`, { cause: error });
  }
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "permission denied; a port below 1024 needs root or the capability CAP_NET_BIND_SERVICE",
};

/** The hub cannot listen on an address; the message is one line for the operator. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** Waits for running requests to end, for DRAIN_MS at most. */
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
      failures.push(error); // the others must still be closed
    }
  }
  if (failures.length > 0) throw failures[0];
}
