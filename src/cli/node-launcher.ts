/**
 * The program of the npm package, run by Node: starts the hub with the Bun that npm installed for this platform, and
 * passes on signals and the exit code. Must not: use Bun, or import anything of the hub.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x64", arm64: "aarch64" };

/** The hub must not read `.env` or `bunfig.toml` of the directory where it is started. */
const BUN_FLAGS = ["--no-env-file", "--config=/dev/null"];

function findBun(): string | null {
  const require = createRequire(import.meta.url);
  const name = `@oven/bun-${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  const names = usesMusl() ? [`${name}-musl`, name] : [name, `${name}-musl`];
  for (const build of names) {
    try {
      return require.resolve(`${build}/bin/bun`);
    } catch {
      // npm has installed the other build, or none.
    }
  }
  return null;
}

/** Whether Node runs on musl: its report then names no version of glibc. */
function usesMusl(): boolean {
  return (
    process.platform === "linux" && !/"glibcVersionRuntime"/.test(JSON.stringify(process.report.getReport()))
  );
}

const bun = findBun();
if (bun === null) {
  console.error(
    `luxhub: npm has not installed Bun for ${process.platform} ${process.arch}; install again without --omit=optional`,
  );
  process.exit(1);
}
const main = fileURLToPath(new URL("lib/main.js", import.meta.url));
const hub = spawn(bun, [...BUN_FLAGS, main, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, LUXHUB_LAUNCHER: String(process.pid) }, // the hub ends with it (signals.ts)
});
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
  process.on(signal, () => void hub.kill(signal));
hub.on("error", (error) => {
  console.error(`luxhub: cannot start Bun: ${error.message}`);
  process.exit(1);
});
hub.on("exit", (code, signal) => {
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.removeAllListeners(name);
  if (signal !== null) process.kill(process.pid, signal);
  else process.exitCode = code ?? 1;
});
