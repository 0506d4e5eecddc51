/**
 * Preloaded before every test file: clears the user's settings from the environment, sets the temporary folder, and lets
 * every broken invariant fail its test.
 */
import "./invariants.ts";
import { runFolder } from "./run-folder.ts";

// fetch() would ask a proxy for hubs on the loopback.
for (const name of Object.keys(process.env))
  if (/^(?:http|https|all)_proxy$/i.test(name)) delete process.env[name];

process.env["TMPDIR"] = runFolder();

// Each hub collects garbage and sets the JIT of its process as it becomes quiet or busy (src/service/memory-saver.ts). The
// many hubs of one test process would slow each other down.
Bun.gc = () => 0;
Bun.unsafe.setJITPolicy = () => {};
