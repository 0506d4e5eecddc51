/** `luxhub status`: prints the health of the hub, and counts. */
import { sizeText } from "../upkeep/upkeep.ts";
import { EXIT } from "./exit-codes.ts";
import { type ClientRuns, recordOf } from "./remote.ts";
import { printJson, printRecord, durationText } from "./table.ts";

export const RUNS: ClientRuns = {
  status: async ({ hub, url, json }) => {
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
};
