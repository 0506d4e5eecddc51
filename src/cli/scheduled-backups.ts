/**
 * The backups that `luxhub serve --backup-to` makes by itself. Each runs as `luxhub backup` in a process of its own with
 * a low priority, because copying the database would block the hub's event loop. Of several hubs on one PostgreSQL one
 * makes each: the one that gets a lock.
 *
 * When the next one is due follows from the date of the newest backup in its place: nothing is stored, and a hub that is
 * restarted often still makes them in time. Must not end the hub: a backup that fails is logged and tried again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { MINUTE_MS } from "../lib/clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { Log } from "../lib/log.ts";
import type { HubPlace } from "../upkeep/upkeep.ts";

export type BackupPlan = {
  /** A directory or `s3://BUCKET/PREFIX`. */
  readonly to: string;
  readonly everyMs: number;
  readonly keep: number;
};

/** A changed wall clock, or a backup that somebody else made or deleted, is noticed after this time. */
const LOOK_EVERY_MS = 60 * MINUTE_MS;
const RETRY_MS = 10 * MINUTE_MS;

export type BackupContext = {
  readonly now: () => number;
  readonly log: Log;
  /** When the newest backup was made, epoch milliseconds; and how many failed in this process. */
  readonly runs: { succeededAt: number | null; failures: number };
};

export function startBackups(plan: BackupPlan, hub: HubPlace, context: BackupContext): () => Promise<void> {
  const stopping = new AbortController();
  const running = makeBackups(plan, hub, { ...context, signal: stopping.signal });
  return async () => {
    stopping.abort();
    await running;
  };
}

type Context = BackupContext & { readonly signal: AbortSignal };

async function makeBackups(plan: BackupPlan, hub: HubPlace, context: Context): Promise<void> {
  const { now, log, runs, signal } = context;
  const to = plan.to.replace(/\/*$/, "/"); // a place for many
  const { placeOf, dateOf } = await import("../upkeep/backup-target.ts");
  const dueInMs = async (): Promise<number> => {
    const newest = (await placeOf(to).list()).at(-1) ?? null;
    runs.succeededAt = newest === null ? null : dateOf(newest);
    const age = runs.succeededAt === null ? plan.everyMs : now() - runs.succeededAt;
    return plan.everyMs - Math.max(0, age);
  };
  const make = (): Promise<boolean> => makeBackup(to, plan.keep, hub, context);
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
      const made = dueMs > 0 ? null : await makeAlone();
      if (made) continue;
      if (made === false) runs.failures++;
      if (dueMs > 0) waitMs = Math.min(dueMs, LOOK_EVERY_MS);
    } catch (error) {
      runs.failures++;
      log.error("backup failed", { cause: error instanceof Error ? error.message : String(error) });
    }
    await sleep(waitMs, undefined, { signal }).catch(() => {}); // stopped
  }
}

async function makeBackup(
  to: string,
  keep: number,
  { dir, url }: HubPlace,
  { log, signal }: Context,
): Promise<boolean> {
  const child = Bun.spawn([...ownCommand(), "backup", to, "--keep", `${keep}`, "--data", dir.path], {
    // Not as a flag: everyone on the machine can read a command line.
    env: { ...process.env, ...(url !== null && { LUXHUB_DATABASE: url }) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const end = (): void => child.kill("SIGTERM"); // it removes what is unfinished
  signal.addEventListener("abort", end);
  try {
    const [code, printed, errors] = await Promise.all([
      child.exited,
      child.stdout.text(),
      child.stderr.text(),
    ]);
    if (signal.aborted) return false;
    if (code === 0) log.info("backup made", { backup: printed.split("\n", 1)[0] ?? "" });
    else log.error("backup failed", { cause: errors.trimEnd().split("\n").at(-1) ?? "" });
    return code === 0;
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** The archive of a backup as `luxhub backup` makes it, in a process of its own. Cut short when that fails. */
export function backupStream(dir: DataDir, signal: AbortSignal): ReadableStream<Uint8Array> {
  const child = Bun.spawn([...ownCommand(), "backup", "-", "--data", dir.path], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    signal,
  });
  return child.stdout;
}

function ownCommand(): readonly string[] {
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, Bun.main];
}
