/**
 * The real programs of the four agents that `luxhub worker --agent` knows, against an imitated model: their versions are
 * those of .ci/agents/package.json, which npm installs into a temporary directory. No real model is called.
 */
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PROJECT } from "../../test/support/executable.ts";
import { AGENT_NAMES } from "../../src/cli/agents.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const WHAT = "the programs of four AI agents";
const PACKAGES = join(PROJECT, ".ci/agents/package.json");

export const agentsSection: Section = {
  name: "agents",
  title: "AI agents as workers",
  limitMs: 20 * 60_000,
  run: async (_scale, _seed, progress) => {
    const missing = ["npm", "node", "unshare", "ip"].filter((name) => Bun.which(name) === null);
    if (missing.length > 0) return [notRun(WHAT, `needs ${missing.join(", ")}`)];
    const space = await emptyNetwork();
    if (space === null) return [notRun(WHAT, "needs a network namespace (root, or user namespaces)")];
    const directory = await install(progress);
    if (directory === null) return [notRun(WHAT, "npm could not install them")];
    const words = [...space, process.execPath, join(PROJECT, "tools/torture/agents-scene.ts"), directory];
    const child = Bun.spawn([...words, ...AGENT_NAMES], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    for (const line of err.split("\n").filter((text) => text !== "")) progress(line);
    if (code !== 0) throw new Error(`the scene ended with ${code}`);
    return out.trim().split("\n").toSorted().map(figureOf);
  },
};

/** The beginning of a command that runs in a network with nothing but loopback; null: there is none here. */
async function emptyNetwork(): Promise<readonly string[] | null> {
  for (const flags of [["-n"], ["-r", "-n"]]) {
    const words = ["unshare", ...flags, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];
    if ((await Bun.spawn([...words, "true"], { stdout: "ignore", stderr: "ignore" }).exited) === 0)
      return words;
  }
  return null;
}

/** The directory of the programs, which stays for the next run; null: they cannot be installed. */
async function install(progress: (line: string) => void): Promise<string | null> {
  const versions = Bun.hash(await Bun.file(PACKAGES).text()).toString(36);
  const directory = join(tmpdir(), `luxhub-agents-${process.getuid?.() ?? 0}-${versions}`);
  if (existsSync(join(directory, "package-lock.json"))) return directory;
  progress("npm installs the programs");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  copyFileSync(PACKAGES, join(directory, "package.json"));
  const words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", directory];
  const child = Bun.spawn(words, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [err, code] = await Promise.all([child.stderr.text(), child.exited]);
  if (code === 0) return directory;
  progress(err.slice(-500));
  return null;
}

function figureOf(line: string): Figure {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null) throw new Error(`no figure: ${line}`);
  const { what, value: found, goal, held }: Record<string, unknown> = { ...value };
  return { what: String(what), value: String(found), goal: String(goal), held: held === true };
}
