/** `luxhub promote`: makes the standby of this machine the hub that accepts writes. */
import type { Environment } from "../config.ts";
import { isHeld } from "../store/sqlite/file-lock.ts";
import type { Arguments } from "./arguments.ts";
import { findHub } from "./config-file.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, runOn } from "./remote.ts";
import type { LocalRuns } from "./run.ts";
import { markPromoted } from "../standby/role.ts";
import { writeLine } from "./standard-output.ts";

export const LOCAL_RUNS: LocalRuns = { promote };

/** A large database is checked when it is opened. */
const OPENING_MAX_MS = 60_000;
const PAUSE_MS = 20;

function promote(args: Arguments, env: Environment): Promise<number> | number {
  const isHere = args.flags["url"] === undefined && !env["LUXHUB_URL"];
  const { dir } = findHub(args, env);
  if (isHere && !isHeld(dir.lock) && markPromoted(dir))
    return writeLine("the standby does not run: its next start, with luxhub serve, makes it the first hub");
  return runOn("promote", promoteRunning, args, env);
}

async function promoteRunning({ hub, json }: Remote): Promise<number> {
  const { entry, at, missing, lag_s } = await hub.promote();
  // It opens again in its new role: what comes after this command may write.
  const look = () => hub.status({}, { retry: { forMs: OPENING_MAX_MS } });
  let status = await look();
  for (; status.copy?.role === "standby"; status = await look()) await Bun.sleep(PAUSE_MS);
  if (json) return writeLine(JSON.stringify({ entry, at, missing, lag_s }, null, 2));
  const does =
    status.status === "ok"
      ? "this hub accepts writes"
      : "this hub cannot write yet; with --sync=strict not before a standby follows it";
  writeLine(`promoted: ${does}; its last entry is ${entry}, of ${at}`);
  const known = missing === null ? "" : `, at least ${missing} entries`;
  console.error(
    missing === 0
      ? "Nothing is missing: the first hub handed out all that it had, and refuses writes now."
      : `The first hub did not answer: what it wrote in the ${lag_s} s before may be missing here${known}.`,
  );
  return EXIT.OK;
}
