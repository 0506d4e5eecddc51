/** `luxhub doctor`: checks everything of a hub, also while it runs. */
import type { Environment } from "../config.ts";
import { type Finding, examine, examineSecrets } from "../upkeep/doctor.ts";
import { SOFTWARE } from "../version.ts";
import type { Arguments } from "./arguments.ts";
import { findStore } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import type { LocalRuns } from "./run.ts";
import { writeLineUnlessClosed } from "./standard-output.ts";

const ABOUT_CHARS = "dependencies".length;

export const LOCAL_RUNS: LocalRuns = { doctor };

async function doctor(args: Arguments, env: Environment): Promise<number> {
  const hub = findStore(args, env);
  process.umask(0o077); // of a hub on PostgreSQL it copies the rows
  const counts = { ok: 0, note: 0, warn: 0, bad: 0 };
  const report = ({ grade, about, text }: Finding): void => {
    counts[grade]++;
    writeLineUnlessClosed(
      `${(grade === "bad" ? "BAD" : grade).padEnd(5)} ${about.padEnd(ABOUT_CHARS)} ${text}`,
    );
  };
  await withProgress(async (tools) => {
    for await (const finding of examine(hub, tools)) report(finding);
    for (const finding of examineSecrets(hub.dir, env)) report(finding);
  });
  const { bad: problems, warn: warnings } = counts;
  const summary = problems === 0 ? "all is well" : problems === 1 ? "1 problem" : `${problems} problems`;
  const risks = warnings === 0 ? "" : warnings === 1 ? ", 1 warning" : `, ${warnings} warnings`;
  writeLineUnlessClosed(`${SOFTWARE}, ${hub.dir.path}: ${summary}${risks}`);
  return problems === 0 ? 0 : 1;
}
