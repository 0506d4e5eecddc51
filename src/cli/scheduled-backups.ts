/**
 * The backups that `luxhub serve --backup-to` makes by itself. Each runs as `luxhub backup` in a process of its own with
 * a low priority, because copying the database would block the hub's event loop. Of several hubs on one PostgreSQL one
 * makes each: the one that gets a lock.
 *
 * When the next one is due follows from the date of the newest backup in its place: nothing is stored, and a hub that is
 * restarted often still makes them in time. Must not end the hub: a backup that fails is logged and tried again.
 */
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { MINUTE_MS, SECOND_MS } from "../lib/clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { CopyParts } from "../hub/copies.ts";
import type { Log } from "../lib/log.ts";
import { reasonOf } from "../lib/reason.ts";
import { EntryMissing } from "../store/store.ts";
import type { HubPlace } from "../upkeep/upkeep.ts";

export type BackupPlan = {
  /** A directory or `s3://BUCKET/PREFIX`. */
  readonly to: string;
  readonly everyMs: number;
  readonly keep: number;
  /** How often new entries of the change log are written to the place; null: never. */
  readonly changesMs: number | null;
};

/** A changed wall clock, or a backup that somebody else made or deleted, is noticed after this time. */
const LOOK_EVERY_MS = 60 * MINUTE_MS;
const RETRY_MS = 10 * MINUTE_MS;
/** Of the end of a hub. */
const LAST_MAX_MS = SECOND_MS;

/** `succeededAt`: epoch milliseconds. `failures`: in this process. */
type Runs = { succeededAt: number | null; failures: number };

export type BackupContext = {
  readonly now: () => number;
  readonly log: Log;
  /** When the newest backup was made. */
  readonly runs: Runs;
  /** When the place had each entry. */
  readonly changeRuns: Runs;
  /** The place has each entry up to this one. */
  readonly onArchived: (entry: number) => void;
  /** A superseded hub adds nothing to the place: its history has ended. */
  readonly role: () => CopyParts["role"];
};

/** Returns the function that stops them, and waits until the hub has `ended`, to archive what it wrote last. */
export function startBackups(
  plan: BackupPlan,
  hub: HubPlace,
  context: BackupContext,
): (ended: Promise<void>) => Promise<void> {
  const stopping = new AbortController();
  const to = plan.to.replace(/\/*$/, "/"); // a place for many
  const parts: Context = { ...context, to, signal: stopping.signal };
  let running: Promise<boolean> | null = null;
  const make = (): Promise<boolean> =>
    (running ??= makeBackup(plan.keep, hub, parts).finally(() => (running = null)));
  const { changesMs } = plan;
  const backups = makeBackups(plan, hub, parts, make);
  const archive = changesMs === null ? null : archiveChanges({ ...plan, changesMs }, hub.dir, parts, make);
  return async (ended) => {
    stopping.abort();
    await Promise.all([backups, ended]);
    const end = await Promise.race([archive, sleep(LAST_MAX_MS, null, { ref: false })]); // a storage may not respond
    if (end === null) return;
    const rest = archiveAfter(end, hub.dir, { ...parts, signal: AbortSignal.timeout(LAST_MAX_MS) });
    const late = sleep(LAST_MAX_MS, undefined, { ref: false }).then(() => {
      throw new Error("it took too long");
    });
    await Promise.race([rest, late]).catch((error: unknown) =>
      context.log.warn("the last changes are not archived: the next start does that", {
        cause: reasonOf(error),
      }),
    );
  };
}

type Context = BackupContext & { readonly to: string; readonly signal: AbortSignal };

/** Backups do not overlap: a second call waits for the first. False: it has failed. */
type Make = () => Promise<boolean>;

async function makeBackups(plan: BackupPlan, hub: HubPlace, context: Context, make: Make): Promise<void> {
  const { now, log, role, runs, to, signal } = context;
  const { backupsIn, placeOf } = await import("../upkeep/backup-target.ts");
  const dueInMs = async (): Promise<number> => {
    runs.succeededAt = (await backupsIn(placeOf(to))).at(-1)?.at ?? null;
    const age = runs.succeededAt === null ? plan.everyMs : now() - runs.succeededAt;
    return plan.everyMs - Math.max(0, age);
  };
  /** Null while another hub on the same database makes one. */
  const makeAlone = async (): Promise<boolean | null> => {
    if (hub.url === null) return make();
    const { withBackupLock } = await import("../upkeep/postgres-rows.ts");
    return withBackupLock(hub.url, async () => (await dueInMs()) > 0 || make());
  };
  while (!signal.aborted) {
    let waitMs = Math.min(plan.everyMs, RETRY_MS);
    try {
      const dueMs = await dueInMs();
      const made = dueMs > 0 || role() === "superseded" ? null : await makeAlone();
      if (made) continue;
      if (dueMs > 0) waitMs = Math.min(dueMs, LOOK_EVERY_MS);
    } catch (error) {
      runs.failures++;
      log.error("backup failed", { cause: reasonOf(error) });
    }
    await sleep(waitMs, undefined, { signal }).catch(() => {}); // stopped
  }
}

/**
 * The reason of a failure is logged once, until it succeeds again. Resolves with the last entry in the place when it is
 * stopped; null: not known.
 */
async function archiveChanges(
  { everyMs, changesMs }: BackupPlan & { readonly changesMs: number },
  dir: DataDir,
  context: Context,
  make: Make,
): Promise<number | null> {
  const { now, log, changeRuns, onArchived, to, signal } = context;
  const { placeOf } = await import("../upkeep/backup-target.ts");
  const { endOfArchive, entryOfBackup } = await import("../upkeep/change-archive.ts");
  const place = placeOf(to);
  /** Null: to be found. */
  let end: number | null = null;
  let role = context.role();
  let waitMs = changesMs;
  let failure: string | null = null;
  const noteEnd = (entry: number): void => onArchived((end = entry));
  const sleepFor = (ms: number): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {}); // stopped
  for (; !signal.aborted; await sleepFor(waitMs)) {
    waitMs = changesMs;
    if (role !== context.role()) end = null; // its former first may have archived what this hub lacks
    role = context.role();
    if (role === "superseded") continue;
    try {
      end ??= await endOfArchive(place, dir);
      if (end === null && role === "standby") continue; // it has not yet what its first has archived
      if (end === null) {
        log.info("the archive of changes begins with a new backup", { place: place.name });
        waitMs = Math.min(everyMs, RETRY_MS);
        if (!(await make())) throw new Error("no backup could be made");
        end = await entryOfBackup(place, dir);
        if (end === null) throw new Error("the hub keeps no change log");
        waitMs = changesMs;
      }
      onArchived(end);
      await archiveAfter(end, dir, { ...context, onArchived: noteEnd });
      changeRuns.succeededAt = now();
      if (failure !== null) log.info("changes are archived again");
      failure = null;
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof EntryMissing) end = null; // a new backup has what the log no longer has
      changeRuns.failures++;
      const cause = reasonOf(error);
      if (cause !== failure) log.error("changes are not archived", { cause });
      failure = cause;
    }
  }
  return end;
}

async function archiveAfter(
  n: number,
  dir: DataDir,
  { to, onArchived, signal }: Pick<Context, "to" | "onArchived" | "signal">,
): Promise<void> {
  const { placeOf } = await import("../upkeep/backup-target.ts");
  const { archivePiece } = await import("../upkeep/change-archive.ts");
  for (let last = n; ; onArchived(last)) {
    const end = await archivePiece(last, dir, placeOf(to), signal);
    if (end === last) return;
    last = end;
  }
}

async function makeBackup(
  keep: number,
  { dir, url }: HubPlace,
  { log, runs, to, signal }: Context,
): Promise<boolean> {
  const child = Bun.spawn([...ownCommand(), "backup", to, "--keep", `${keep}`, "--data", dir.path], {
    // Not as a flag: everyone on the machine can read a command line.
    env: { ...process.env, ...(url !== null && { LUXHUB_DATABASE: url }) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const end = (): void => {
    child.kill("SIGTERM"); // it removes what is unfinished
    setTimeout(() => child.kill("SIGKILL"), LAST_MAX_MS).unref(); // its storage may not respond
  };
  signal.addEventListener("abort", end);
  try {
    const [code, printed, errors] = await Promise.all([
      child.exited,
      child.stdout.text(),
      child.stderr.text(),
    ]);
    if (signal.aborted) return false;
    if (code === 0) log.info("backup made", { backup: printed.split("\n", 1)[0] ?? "" });
    else {
      runs.failures++;
      log.error("backup failed", { cause: lastLine(errors) });
    }
    return code === 0;
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** The archive of a backup as `luxhub backup` makes it, in a process of its own. Cut short when that fails. */
export function backupStream(dir: DataDir, log: Log, signal: AbortSignal): ReadableStream<Uint8Array> {
  const child = Bun.spawn([...ownCommand(), "backup", "-", "--data", dir.path], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    signal,
  });
  setPriority(child.pid, constants.priority.PRIORITY_LOW); // a large base takes minutes of a core
  void Promise.all([child.exited, child.stderr.text()]).then(([code, errors]) => {
    if (code !== 0 && !signal.aborted)
      log.error("the base for a standby failed", { cause: lastLine(errors) });
  });
  return child.stdout;
}

const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? "";

function ownCommand(): readonly string[] {
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, Bun.main];
}
