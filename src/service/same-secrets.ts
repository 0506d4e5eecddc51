/**
 * Compares this hub's secrets with those of the other hubs on its database. Each hub accepts only its own secrets, so
 * if they differ, some calls through a proxy in front of the hubs fail. Each hub stores a mark of each secret in its
 * row of the database: a slow hash, salted with the id of the database.
 *
 * Must not: store, send or log a secret, or refuse to serve; or import node:crypto, which loads all of Node's streams.
 */
import { SECRET_MARK_ROUNDS } from "../domain/limits.ts";
import type { Log } from "../lib/log.ts";
import { slowHash } from "../lib/slow-hash.ts";
import type { PrimarySecrets } from "./keys.ts";

const MARK_BYTES = 16;
const VARIABLES = ["LUXHUB_SECRET", "LUXHUB_ADMIN_KEY"] as const;

/** Returns the marks of the other running hubs. */
export type ShareMarks = (marks: string) => Promise<readonly string[]>;

/** It warns when another hub has different secrets, and logs when they are the same again. */
export function secretsComparison(
  share: ShareMarks,
  databaseId: () => Promise<string>,
  secrets: PrimarySecrets,
  log: Log,
): () => Promise<void> {
  let ours: string | null = null;
  let reported = "";
  return async () => {
    ours ??= await marksOf(await databaseId(), secrets);
    const differing = differences(ours, await share(ours)).join(" and ");
    if (differing === reported) return;
    reported = differing;
    if (differing === "") return log.info("all hubs on the database have the same secrets again");
    log.warn(`another hub on the database has a different ${differing}: each hub accepts only its own`);
  };
}

async function marksOf(databaseId: string, { secret, adminKey }: PrimarySecrets): Promise<string> {
  const mark = (word: string, role: string): Promise<string> =>
    slowHash(word, `luxhub ${role} ${databaseId}`, SECRET_MARK_ROUNDS, MARK_BYTES);
  return `${await mark(secret, "secret")} ${await mark(adminKey, "admin")}`;
}

function differences(ours: string, others: readonly string[]): readonly string[] {
  const own = ours.split(" ");
  return VARIABLES.filter((_, i) => others.some((marks) => marks.split(" ")[i] !== own[i]));
}
