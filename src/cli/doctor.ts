/** `luxhub doctor`: a look at everything in a data directory, while a hub runs on it or not. */
import { examine } from "../upkeep/doctor.ts";
import { SOFTWARE } from "../version.ts";
import { findDataDir } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import { DOCTOR_HELP, noWords, readArguments, say } from "./usage.ts";

const HELP_AT = "luxhub doctor --help";
const ABOUT_CHARS = 11;

export async function doctorCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const args = readArguments(argv, ["data"], [], HELP_AT);
  if (args.help) return say(DOCTOR_HELP);
  noWords(args.words, HELP_AT);
  const dir = findDataDir(args, env);
  const problems = await withProgress(async (tools) => {
    let bad = 0;
    for await (const { grade, about, text } of examine(dir, tools)) {
      if (grade === "bad") bad++;
      say(`${(grade === "bad" ? "BAD" : grade).padEnd(5)} ${about.padEnd(ABOUT_CHARS)} ${text}`);
    }
    return bad;
  });
  const found = problems === 0 ? "all is well" : problems === 1 ? "1 problem" : `${problems} problems`;
  say(`${SOFTWARE}, ${dir.path}: ${found}`);
  return problems === 0 ? 0 : 1;
}
