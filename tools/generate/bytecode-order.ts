/**
 * `bun run bytecode-order`: writes tools/recorded/serve.order, the profile by which `bun run build` lays the bytecode
 * out. It starts the executable, leaves it idle, ends it, and keeps what the engine recorded: hashes of the functions
 * that ran. Their bytecode then lies together, so that an idle hub has fewer pages of it in memory. A profile of older
 * code still works, but covers less of it; `bun run bench --only memory` shows when it is time to record again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHub } from "../bench/server-under-test.ts";
import { EXECUTABLE, PROJECT } from "../../test/support/executable.ts";

const PROFILE = join(PROJECT, "tools/recorded/serve.order");
/** Some chores of an idle hub run every ten seconds. */
const IDLE_MS = 15_000;
/** Hashes of strings and keys: nine tenths of the record, for 0.1 MiB. */
const LEFT_OUT = /^[KS] /;

const place = mkdtempSync(join(tmpdir(), "luxhub-order-"));
try {
  const record = join(place, "record");
  const hub = await startHub([EXECUTABLE], place, { BUN_BYTECODE_ORDER_OUT: record });
  await Bun.sleep(IDLE_MS);
  await hub.stop();
  const lines = (await Bun.file(record).text()).split("\n").filter((line) => !LEFT_OUT.test(line));
  await Bun.write(PROFILE, lines.join("\n"));
} finally {
  rmSync(place, { recursive: true, force: true });
}
