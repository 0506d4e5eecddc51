/** `luxhub status`: prints the health of the hub, and counts. */
import type { Environment } from "../config.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { EXIT } from "./exit-codes.ts";
import { recordOf, runRemote } from "./remote.ts";
import { printJson, printRecord, durationText } from "./table.ts";

export function statusCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote(
    "status",
    async ({ hub, url, json }) => {
      const status = recordOf(await hub.status());
      if (json) printJson(status);
      else {
        const { storage, ...others } = status;
        const { database_bytes, files_bytes, finished_tasks } = storage;
        const size = `${sizeText(database_bytes)} database, ${sizeText(files_bytes)} files`;
        const uptime = durationText(status.uptime * 1_000);
        printRecord({ url, ...others, uptime, finished_tasks, storage: storage.warning ?? size });
      }
      return status.status === "ok" ? EXIT.OK : EXIT.FAILED;
    },
    argv,
    env,
  );
}
