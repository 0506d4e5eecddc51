/** `luxhub schedule put`: saves a schedule. */
import { writeLine } from "./standard-output.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, recordOf } from "./remote.ts";
import { printJson } from "./table.ts";
import { newTaskOf } from "./new-task.ts";

export const RUNS: ClientRuns = { "schedule put": put };

export const OVERLAP_WORDS = ["skip", "queue"] as const;
export const CATCH_UP_WORDS = ["one", "none"] as const;

async function put({ hub, values, json, words: [name = "", title = ""] }: Remote): Promise<number> {
  const answer = recordOf(
    await hub.schedules.put({
      name,
      cron: values.text("cron"),
      every_s: values.seconds("every"),
      tz: values.text("tz"),
      task: await newTaskOf(title, values),
      overlap: values.choice("overlap", OVERLAP_WORDS),
      catch_up: values.choice("catch-up", CATCH_UP_WORDS),
      jitter_s: values.seconds("jitter"),
      until: values.moment("until"),
      paused: values.has("paused"),
    }),
  );
  if (json) printJson(answer);
  else await writeLine(answer.schedule.next_at ?? "paused");
  return EXIT.OK;
}
