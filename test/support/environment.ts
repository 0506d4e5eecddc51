/** Preloaded before every test file: clears the user's settings from the environment, and sets the temporary folder. */
import { runFolder } from "./run-folder.ts";

// fetch() would ask a proxy for hubs on the loopback.
for (const name of Object.keys(process.env))
  if (/^(?:http|https|all)_proxy$/i.test(name)) delete process.env[name];

process.env["TMPDIR"] = runFolder();
