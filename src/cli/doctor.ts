/** `luxhub doctor`: checks everything in a data directory, while a hub runs on it or not. */
import { examine } from "../upkeep/doctor.ts";
import { SOFTWARE } from "../version.ts";
import { type Form, readArguments } from "./arguments.ts";
import { findDataDir } from "./config-file.ts";
import { withProgress } from "./progress.ts";
import { DOCTOR_HELP, say } from "./usage.ts";

const FORM: Form = { name: "doctor", words: "", flags: { data: { type: "string" } } };
const ABOUT_CHARS = 11;

export async function doctorCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const args = readArguments(argv, FORM);
  if (args.help) return say(DOCTOR_HELP);
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
