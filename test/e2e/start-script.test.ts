/**
 * The start script: a signal to the process that started the hub ends the hub, and leaves no process behind; under npx
 * also SIGKILL.
 */
import { expect, test } from "bun:test";
import { HANG_MS } from "../support/hang.ts";
import { PROJECT } from "../support/executable.ts";
import { Program, TempDir, until } from "./program.ts";

/** As npx does it, without the network. */
const NPX = ["npm", "exec", "-c", `${process.execPath} run start`];
const STARTERS: readonly (readonly [signal: "SIGTERM" | "SIGKILL", command: readonly string[]])[] = [
  ["SIGTERM", [process.execPath, "run", "start"]],
  ["SIGTERM", ["npm", "start"]],
  ["SIGTERM", NPX],
  ["SIGKILL", NPX],
];

for (const [signal, command] of STARTERS) {
  const [program = "", ...words] = command;
  const missing = Bun.which(program) === null ? ` (skipped: there is no ${program})` : "";
  test.skipIf(missing !== "")(
    `${signal} to ${program.split("/").at(-1)} ${words.join(" ")} ends the hub in order${missing}`,
    async () => {
      using dir = new TempDir();
      const env = { LUXHUB_PORT: "0", LUXHUB_HOST: "127.0.0.1", LUXHUB_DATA: dir.join("data") };
      await using starter = new Program([], { command, cwd: PROJECT, env });
      const [, url = ""] = await starter.printed(/(http:\S+) {2}variant A/);
      expect((await fetch(`${url}/api/v1/status`)).status).toBe(200);
      starter.child.kill(signal);
      const isGone = (): Promise<boolean> =>
        fetch(`${url}/api/v1/status`).then(
          () => false,
          () => true,
        );
      await until(isGone);
      await until(() => starter.child.exitCode !== null || starter.child.signalCode !== null);
      await starter.printed(/ ended\n/);
    },
    3 * HANG_MS,
  );
}
