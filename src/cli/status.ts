/** `luxhub status`: prints the health of the hub and of its second copy, counts, and what holds tasks back. */
import type { AnswerOf, Variant } from "../client/luxhub.ts";
import { sizeText } from "../upkeep/upkeep.ts";
import { EXIT } from "./exit-codes.ts";
import { type ClientRuns, recordOf } from "./remote.ts";
import { copyLines, isCopySound } from "./rows.ts";
import { ageOf, durationText, print, printJson, printRecord, printTable } from "./table.ts";

export const RUNS: ClientRuns = {
  status: async ({ hub, json }) => {
    const status = recordOf(await hub.status());
    const { held } = await hub.tasks.byType();
    if (json) printJson({ ...status, held });
    else {
      const { storage, copy, ...others } = status;
      const { database_bytes, files_bytes, finished_tasks } = storage;
      const size = `${sizeText(database_bytes)} database, ${sizeText(files_bytes)} files`;
      const uptime = durationText(status.uptime * 1_000);
      printRecord({ url: hub.url, ...others, uptime, finished_tasks, storage: storage.warning ?? size });
      for (const line of copyLines(copy)) print(line);
      if (held.length > 0) print("");
      if (held.length > 0) printTable(["HELD BACK", "BY", "OLDEST", "CAUSES"], held.map(rowOf));
    }
    return status.status === "ok" && isCopySound(status.copy) ? EXIT.OK : EXIT.FAILED;
  },
};

type Held = AnswerOf<"stats/types", Variant>["held"][number];

function rowOf({ code, count, exact, oldest_at, causes }: Held): readonly string[] {
  const types = causes.map(({ task_type, count: of }) => `${task_type ?? "(any type)"} ${of}`).join(", ");
  const [{ detail } = { detail: null }] = causes;
  return [
    `${count}${exact ? "" : "+"}`,
    code,
    oldest_at === null ? "-" : ageOf(oldest_at),
    detail === null ? types : `${types}: ${detail}`,
  ];
}
