// Puts the other queues into a temporary folder: npm packages with Bun, programs of Debian unpacked from their packages
// unless they are on the path. Invariant: nothing outside the folder is changed, each step is bounded in time, and a
// missing program is one line that says how to get it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { keepChild } from "../children.ts";

const STEP_LIMIT_MS = 90_000;
/** The versions this was written against. */
export const QUEUES = { bunqueue: "2.9.5", bullmq: "6.7.0", ioredis: "6.0.0" } as const;
export const LIBRARIES = { "pg-boss": "12.38.0", "graphile-worker": "0.18.0" } as const;
/** Dependencies that the registry may not have; the bench does not run them. */
const OVERRIDES = { "rrule-temporal": "2.2.7" } as const;

/** A program, with what it needs to find its libraries. */
export type Program = {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  readonly version: string;
};

export class Missing extends Error {
  override readonly name = "Missing";
}

export async function installPackages(
  folder: string,
  versions: Readonly<Record<string, string>>,
): Promise<void> {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ overrides: OVERRIDES }));
  const wanted = Object.entries(versions).map(([name, version]) => `${name}@${version}`);
  const { code, output } = await run([process.execPath, "add", "--exact", ...wanted], folder);
  if (code !== 0) throw new Missing(`bun add ${wanted.join(" ")} failed: ${lastLine(output)}`);
}

/** Finds a program on the path, or unpacks it from `packages` of Debian. @throws {Missing} */
export async function findProgram(
  name: string,
  packages: readonly string[],
  folder: string,
  versionFlag: string,
): Promise<Program> {
  const onPath = Bun.which(name);
  const program = onPath === null ? await unpack(name, packages, folder) : { path: onPath, env: {} };
  const { code, output } = await run([program.path, versionFlag], folder, program.env);
  const version = /\d+\.\d+(?:\.\d+)?/.exec(output)?.[0];
  if (code !== 0 || version === undefined) throw new Missing(`${name} does not run: ${lastLine(output)}`);
  return { ...program, version };
}

export function findRedis(folder: string): Promise<Program> {
  const packages = ["redis-server", "redis-tools", "liblzf1", "libjemalloc2", "libatomic1"];
  return findProgram("redis-server", packages, folder, "--version");
}

async function unpack(
  name: string,
  packages: readonly string[],
  folder: string,
): Promise<Pick<Program, "path" | "env">> {
  const hint = `install it with: apt-get install ${packages[0]}`;
  if (Bun.which("apt-get") === null || Bun.which("dpkg") === null) throw new Missing(hint);
  const place = join(folder, name);
  mkdirSync(place);
  const { code, output } = await run(["apt-get", "download", ...packages], place);
  if (code !== 0) throw new Missing(`${hint} (${lastLine(output)})`);
  for (const file of new Bun.Glob("*.deb").scanSync(place)) {
    const unpacked = await run(["dpkg", "-x", file, "root"], place);
    if (unpacked.code !== 0) throw new Missing(`${hint} (${lastLine(unpacked.output)})`);
  }
  const [path] = new Bun.Glob(`root/usr/{bin,sbin}/${name}`).scanSync({
    cwd: place,
    absolute: true,
    onlyFiles: false,
  });
  if (path === undefined) throw new Missing(hint);
  const libraries = new Bun.Glob("root/usr/lib/*-linux-*").scanSync({
    cwd: place,
    absolute: true,
    onlyFiles: false,
  });
  return { path, env: { LD_LIBRARY_PATH: [...libraries].join(":") } };
}

async function run(
  command: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; output: string }> {
  const child = keepChild(
    Bun.spawn([...command], {
      cwd,
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: STEP_LIMIT_MS,
    }),
  );
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, output: `${out}\n${error}` };
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1)?.trim() ?? "";
}
