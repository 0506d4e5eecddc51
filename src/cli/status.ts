/** `luxhub status`: prints the health of the hub, and counts. */
import type { Environment } from "../config.ts";
import { EXIT } from "./exit-codes.ts";
import { recordOf, runRemote } from "./remote.ts";
import { printJson, printRecord, durationText } from "./table.ts";

export function statusCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote(
    "status",
    async ({ hub, url, json }) => {
      const status = recordOf(await hub.status());
      if (json) printJson(status);
      else printRecord({ url, ...status, uptime: durationText(status.uptime * 1_000) });
      return status.status === "ok" ? EXIT.OK : EXIT.FAILED;
    },
    argv,
    env,
  );
}
