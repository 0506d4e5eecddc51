/**
 * The composition root: opens the engines (hub/engines.ts) and the listeners (hub/listeners.ts), connects them with the
 * services, and closes all in order (graceful shutdown).
 *
 * Invariant: each part is pushed to `closing` after what it needs, and closed before it. The lock of the data directory
 * is last.
 */
import { a2aEndpoints } from "./a2a/endpoint.ts";
import { SignInCode, dashboardEndpoints } from "./api/dashboard.ts";
import type { Endpoint } from "./api/endpoint.ts";
import { fileEndpoints, uploadLimit } from "./api/files.ts";
import { copyEndpoints } from "./api/copies.ts";
import { type PlaceFor, invitationEndpoints } from "./api/invitations.ts";
import { MANUAL_ENDPOINTS } from "./api/manual.ts";
import { monitoringEndpoints } from "./api/monitoring.ts";
import { outputStreamEndpoint } from "./api/output.ts";
import { Pipeline } from "./api/pipeline.ts";
import { encodeLuxhub, encoderOf, ntfyEncoder } from "./api/webhook-formats.ts";
import { ResponseBackpressure } from "./api/response-backpressure.ts";
import { ENDPOINTS, PYTHON_CLIENT } from "./api/routes.ts";
import { EventStreams } from "./api/stream.ts";
import { BlobsFull } from "./blobs/blobs.ts";
import type { Config, ListenSpec } from "./config.ts";
import { type DataDir, freeBytes } from "./data-dir.ts";
import {
  CERTIFICATE_CHECK_MS,
  KEYS_RELOAD_EVERY_MS,
  MICRO_PER_LUX,
  QUOTA_BYTES_ON_POSTGRES,
  QUOTA_BYTES_PARTS,
  SWEEP_EVERY_MS,
} from "./domain/limits.ts";
import type { Quotas } from "./domain/quota.ts";
import { type AddressChecks, type Post, outbound, urlRefusal } from "./http/outbound.ts";
import { nameResolver } from "./http/names.ts";
import { CrossOrigin } from "./http/cross-origin.ts";
import { RequestMetrics } from "./http/request-metrics.ts";
import {
  type Closing,
  DiskFullError,
  isPinned,
  lockDataDir,
  openBlobs,
  openMail,
  openStore,
} from "./hub/engines.ts";
import {
  type OpenListener,
  listen,
  publicUrlOf,
  openTls,
  stopListeners,
  watchCertificate,
} from "./hub/listeners.ts";
import { joinPlaceOf, machineAddresses } from "./hub/addresses.ts";
import { type CopyParts, openCopies } from "./hub/copies.ts";
import { addressCheck } from "./lib/address-policy.ts";
import { InvariantBroken, must, onInvariantBroken } from "./lib/assert.ts";
import { type Clock, notBefore } from "./lib/clock.ts";
import { newId } from "./lib/ids.ts";
import { type Log, causeOf } from "./lib/log.ts";
import { type LoadServer, mcpEndpoints } from "./mcp/endpoint.ts";
import { ActivityLog } from "./service/activity-log.ts";
import { Feed } from "./service/feed.ts";
import type { Turn } from "./service/following.ts";
import { IdleWorkers } from "./service/idle-workers.ts";
import { KnownLanes } from "./service/known-lanes.ts";
import { KeyRing, type PrimarySecrets } from "./service/keys.ts";
import { Metrics } from "./service/metrics.ts";
import { Minutes } from "./service/minutes.ts";
import {
  type ChoreParts,
  choresOf,
  ignoreRefused,
  keyChoresOf,
  renewLeases,
  startNote,
} from "./service/periodic-work.ts";
import type { LuxPolicy } from "./service/mints.ts";
import { joinServices } from "./service/services.ts";
import { Readiness } from "./service/readiness.ts";
import { secretsComparison } from "./service/same-secrets.ts";
import { type ChoreRuns, Leadership, Scheduler } from "./service/scheduler.ts";
import { Retention } from "./service/retention.ts";
import { StuckTasks } from "./service/stuck-tasks.ts";
import { newestEvents } from "./store/sql/events.ts";
import { databaseId } from "./store/sql/messages.ts";
import { questionOf } from "./store/sql/questions.ts";
import { taskById } from "./store/sql/tasks.ts";
import { StoreFull } from "./store/store.ts";
import { VARIANTS } from "./variant/by-name.ts";
import { SOFTWARE, VERSION } from "./version.ts";

/** Why a hub must be closed, and opened again in another role. */
export type HubTurn = Turn | "superseded";

export type HubParts = {
  readonly config: Config;
  readonly dir: DataDir;
  readonly secrets: PrimarySecrets;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when opening fails, while the hub still holds the lock of the data directory. */
  readonly onFailure?: () => void;
  /** Its part in a pair of hubs; a first without standbys if left out. */
  readonly copies?: CopyParts;
  /** Called once: the hub must be closed, and opened again in another role. */
  readonly onTurn?: (turn: HubTurn) => void;
  /** The archive of a backup of this hub, for a standby. */
  readonly openBase?: (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
  /** For the metrics. */
  readonly otherChores?: () => readonly ChoreRuns[];
  /** For tests: replaces what sends webhooks to their receivers. */
  readonly post?: Post;
  /** For tests: replaces the hub's MCP server. */
  readonly loadMcp?: LoadServer;
};

export type Hub = {
  readonly listeners: readonly OpenListener[];
  /** At listeners of A, as paths without `/api/v1/`. */
  readonly openReads: readonly string[];
  /** Signs a browser in, once; null without a dashboard. */
  readonly signInCode: string | null;
  readonly quotas: Quotas;
  /** The archive of entries has all up to this one. */
  archived(entry: number): void;
  /** As the hub does every second. */
  sweep(): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
};

/**
 * The hub is serving when this resolves.
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

async function assemble(parts: HubParts, closing: Closing): Promise<Hub> {
  const { config, log } = parts;
  const core = await openCore(parts, closing);
  const { store, clock, services, readiness, copies } = core;
  const choreParts: ChoreParts = {
    ...services,
    store,
    blobs: core.blobs,
    clock,
    log,
    noteStart: startNote(store, clock, SOFTWARE),
    compareSecrets: core.compareSecrets,
    requeueOffline: config.offlineTasks === "requeue",
    retainMs: config.retainMs,
    retainNodesMs: config.retainNodesMs,
    stuck: new StuckTasks(store, clock, config.stuckAfterMs),
    retention: new Retention(store, services.files, {
      tasksMs: config.retainTasksMs,
      filesMs: config.retainFilesMs,
      usageMs: config.retainUsageMs,
    }),
    maxAnswersBytes: config.maxAnswersBytes,
  };
  const leadership = new Leadership(store, () => renewLeases(choreParts));
  // Before requests and chores: renews the leases if no hub ran.
  if (copies.isWriting) await leadership.isLeader().catch(ignoreRefused);

  const schedulers: Scheduler[] = [];
  const { listeners, endpoints, signInCode } = await serve(parts, core, { leadership, schedulers }, closing);
  if (copies.isWriting) await choreParts.noteStart(); // after listen(), which fails if a port is in use

  // A copy has no leases to renew, and its chores write no row.
  const common = { clock, log, leadership: copies.isWriting ? leadership : { isLeader: async () => true } };
  const scheduler = new Scheduler({
    ...common,
    chores: choresOf(choreParts).filter(({ onCopies = false }) => copies.isWriting || onCopies),
    pauseMs: SWEEP_EVERY_MS,
    onTick: (lateMs) => core.metrics.noteLag(lateMs),
  });
  // A scheduler of its own, so that a long sweep does not delay a revocation.
  const keyScheduler = new Scheduler({
    ...common,
    chores: [...keyChoresOf(core.keys), { name: "standbys", everyMs: 0, run: async () => copies.check() }],
    pauseMs: KEYS_RELOAD_EVERY_MS,
  });
  // Another one, which every hub runs: deliveries must not wait for a long sweep, and must end when the leadership does.
  const { courier } = services;
  const webhookScheduler = new Scheduler({
    ...common,
    chores: [
      { name: "webhooks", everyMs: 0, onEveryHub: true, run: () => courier.tick(leadership.isLeading) },
    ],
    pauseMs: SWEEP_EVERY_MS,
  });
  schedulers.push(scheduler, keyScheduler, ...(copies.isWriting ? [webhookScheduler] : []));
  for (const one of schedulers) one.start();
  void scheduler.sweep(); // not awaited: the chores may have much to do at first, and the hub serves meanwhile
  closing.push(() => scheduler.stop());
  closing.push(() => keyScheduler.stop());
  closing.push(async () => {
    await webhookScheduler.stop();
    void courier.stop(); // while the listeners drain, which end by awaiting it
  });
  closing.push(() => readiness.drain()); // closing begins with this
  readiness.start();
  copies.start();
  let closed: Promise<void> | null = null;
  return {
    listeners,
    openReads: config.isPrivate ? [] : endpoints.filter(({ auth }) => auth === "public").map(shortPath),
    signInCode,
    quotas: core.quotas,
    archived: (entry) => copies.archived(entry),
    sweep: async () => {
      await keyScheduler.sweep();
      await scheduler.sweep();
      await webhookScheduler.sweep();
    },
    close: () => (closed ??= closeAll(closing)),
  };
}

type Core = Awaited<ReturnType<typeof openCore>>;

async function openCore(parts: HubParts, closing: Closing) {
  const { config, dir, secrets, log } = parts;
  lockDataDir(dir, closing);
  closing.push(logBrokenInvariants(log));
  const onFault = (error: unknown): void => {
    if (!(error instanceof InvariantBroken))
      log.error("a listener of the store failed", { cause: String(error) });
  };
  const {
    store,
    clock: storeClock,
    shareMarks,
  } = await openStore({ ...parts, isCopy: parts.copies?.role === "standby" }, onFault, closing);
  const activity = new ActivityLog(store, log);
  closing.push(() => activity.flush());
  const [newest] = await store.read(newestEvents([], 1));
  const clock = notBefore(storeClock, newest?.at ?? 0);
  const blobs = await openBlobs(config, dir);
  closing.push(() => blobs.close());
  await blobs.sweepUnfinished();
  const minutes = new Minutes(store, clock, newId());
  const { counts } = minutes;
  const metrics = new Metrics({ store, blobs, clock, log, version: VERSION, name: config.name, counts });
  const readiness = new Readiness(store, clock);

  const keys = new KeyRing(store, clock, secrets, onFault);
  await keys.refresh();
  const listeners: OpenListener[] = [];
  const copies = openCopies(parts, { store, blobs, clock, keys, listeners });
  if (copies.isWriting) closing.push(() => minutes.close());
  closing.push(() => copies.stop());
  const feed = new Feed(store, clock);
  const knownLanes = new KnownLanes(config.fair === "creator");
  const idle = new IdleWorkers(store, knownLanes);
  const mail = await openMail({ config, clock, log }, store, feed, closing);
  const quotas = {
    tasks: config.quotaTasks,
    bytes: config.quotaBytes ?? defaultQuotaBytes(config, dir),
  };
  const luxPolicy: LuxPolicy = {
    paysOwn: config.selfReward,
    signinMicro: config.signinLux * MICRO_PER_LUX,
    signinBound: config.signinBound,
    isStrict: config.isStrict,
  };
  const publicUrl = (): string => publicUrlOf(config, listeners);
  const taskOf = (taskId: string) => store.read(taskById(taskId));
  const own = machineAddresses(clock);
  const checks: AddressChecks = {
    webhook: addressCheck("--webhook-allow", config.webhookAllow, own),
    push: addressCheck("--push-allow", config.pushAllow, own),
  };
  const services = joinServices({
    store,
    clock,
    copies: copies.port,
    log,
    newId,
    keys,
    feed,
    idle,
    minutes,
    knownLanes,
    mail,
    blobs,
    quotas,
    luxPolicy,
    post: parts.post ?? outbound(checks, nameResolver(clock)),
    refusalOf: (url, sender) => (parts.post ? null : urlRefusal(url, checks[sender])),
    reportMaxUsd: config.reportMaxUsd,
    maxNodes: config.maxNodes,
    outputWindow: { headBytes: config.outputHeadBytes, tailBytes: config.outputTailBytes },
    pinned: () => isPinned(dir),
    diskFree: () => freeBytes(dir),
    software: SOFTWARE,
    name: config.name,
    encoding: ({ answerTokens, ...sources }) =>
      encoderOf(
        {
          luxhub: encodeLuxhub,
          ntfy: ntfyEncoder(
            {
              task: taskOf,
              question: (taskId, questionId) => store.read(questionOf(taskId, questionId)),
            },
            answerTokens,
            publicUrl,
          ),
          // Loaded at the first message: an idle hub does not hold the protocol.
          a2a: async (webhook, happened) =>
            (await import("./a2a/push.ts")).encodePush(webhook, happened, { ...sources, publicUrl }),
        },
        taskOf,
      ),
  });
  const compareSecrets =
    shareMarks && secretsComparison(shareMarks, () => store.read(databaseId()), secrets, log);
  const core = {
    store,
    blobs,
    clock,
    keys,
    feed,
    idle,
    quotas,
    services,
    metrics,
    readiness,
    compareSecrets,
    copies,
  };
  return { ...core, listeners, publicUrl };
}

type Periodic = { readonly leadership: Leadership; readonly schedulers: readonly Scheduler[] };

async function serve(parts: HubParts, core: Core, { leadership, schedulers }: Periodic, closing: Closing) {
  const { config, log } = parts;
  const { store, clock, keys, feed, idle, services, listeners, publicUrl } = core;
  const backpressure = new ResponseBackpressure();
  const streams = new EventStreams(feed, log);
  const metrics = new RequestMetrics();
  const readMetrics = (): Promise<string> =>
    core.metrics.text({
      waiting: () => pipeline.waiting,
      streams: () => streams.size,
      isLeading: () => leadership.isLeading,
      chores: () => [...schedulers.flatMap((one) => one.runs()), ...(parts.otherChores?.() ?? [])],
      diskFree: () => freeBytes(parts.dir),
      diagnose: () => services.system.diagnose(),
      writeRequests: (text) => metrics.writeTo(text),
      webhooks: () => services.courier.counts(),
      copies: () => core.copies.port.report()?.copies ?? [],
    });
  const tls = await openTls(parts);
  const crossOrigin = new CrossOrigin({ origins: config.cors, hosts: config.allowedHosts });
  const openStream: EventStreams["open"] = (call, opening) => streams.open(call, opening);
  const uploads = uploadLimit();
  const placeFor: PlaceFor = (named) => joinPlaceOf(config, listeners, tls?.pin ?? null, named);
  const signIn = new SignInCode(parts.secrets);
  const endpoints: readonly Endpoint[] = [
    ...ENDPOINTS,
    ...fileEndpoints(config.maxFileBytes, uploads),
    ...invitationEndpoints(placeFor),
    ...copyEndpoints(placeFor, (signal) => must(parts.openBase, "serve opens bases")(signal)),
    ...streams.endpoints,
    outputStreamEndpoint(streams),
    ...MANUAL_ENDPOINTS,
    ...(config.ui
      ? dashboardEndpoints(async () => (await import("./web/dashboard.ts")).dashboard(config.name), signIn)
      : []),
    PYTHON_CLIENT,
    ...monitoringEndpoints(core.readiness, readMetrics, core.copies.port),
    ...(config.mcp ? mcpEndpoints({ publicUrl, crossOrigin, loadServer: parts.loadMcp }) : []),
    ...(config.a2a
      ? a2aEndpoints({
          publicUrl,
          maxFileBytes: config.maxFileBytes,
          uploads,
          openStream,
          isPrivate: config.isPrivate,
          sentCards: new Map(),
        })
      : []),
  ];
  const pipeline = new Pipeline({
    services,
    store,
    keys,
    clock,
    log,
    trustedProxies: config.trustProxy,
    userHeader: config.userHeader,
    isPrivate: config.isPrivate,
    isStrict: config.isStrict,
    maxAnswersBytes: config.maxAnswersBytes,
    backpressure,
  });
  closing.push(() => services.takes.retryPutBacks());
  closing.push(async () => {
    feed.drain();
    core.copies.drain();
    services.outputs.drain();
    idle.drain();
    backpressure.close(); // a receive that waits for memory must not take messages that can no longer be sent
    streams.close();
    await Promise.all([stopListeners(listeners), services.courier.stop()]);
  });
  const routesOf = (variant: ListenSpec["variant"]) => pipeline.routes(endpoints, VARIANTS[variant]);
  const { lagSeconds } = core.copies;
  await listen(parts, tls, { routesOf, metrics, crossOrigin, lagSeconds }, listeners);
  const watch = watchCertificate(parts, tls, listeners);
  watch?.start(CERTIFICATE_CHECK_MS);
  if (watch) closing.push(() => watch.stop());
  return { listeners, endpoints, signInCode: config.ui ? signIn.code : null };
}

/** It may break again at every request. Returns the end of that. */
function logBrokenInvariants(log: Log): () => void {
  const known = new Set<string>();
  return onInvariantBroken((error) => {
    if (known.has(error.message)) return;
    known.add(error.message);
    log.error("an invariant of the program is broken", { invariant: error.message, cause: causeOf(error) });
  });
}

/** For people: `node/<node_id>`. */
function shortPath({ path }: { readonly path: string }): string {
  return path.replace("/api/v1/", "").replaceAll(/:(\w+)/g, "<$1>");
}

/** With PostgreSQL the disk is another machine's. */
function defaultQuotaBytes({ database }: Config, dir: DataDir): number {
  const free = database === null ? freeBytes(dir) : null;
  return free === null ? QUOTA_BYTES_ON_POSTGRES : Math.floor(free / QUOTA_BYTES_PARTS);
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
