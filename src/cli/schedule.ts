/** `luxhub schedule put`: saves a schedule. */
import { writeLine } from "./standard-output.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, recordOf } from "./remote.ts";
import { printJson } from "./table.ts";
import { descriptionOf, priorityOf, requiresOf, reviewOf } from "./task.ts";

export const RUNS: ClientRuns = { "schedule put": put };

export const OVERLAP_WORDS = ["skip", "queue"] as const;
export const CATCH_UP_WORDS = ["one", "none"] as const;

async function put({ hub, values, json, words: [name = "", title = ""] }: Remote): Promise<number> {
  const task = {
    title,
    description: await descriptionOf(values),
    task_type: values.text("type"),
    priority: priorityOf(values),
    creator_node: values.text("creator"),
    lux_reward: values.number("reward"),
    delay_s: values.seconds("delay"),
    timeout_s: values.seconds("timeout"),
    max_run_s: values.seconds("max-run"),
    max_cost_usd: values.number("max-cost"),
    ...reviewOf(values),
    retain_s: values.seconds("retain"),
    max_attempts: values.whole("max-attempts", 1),
    backoff_s: values.seconds("backoff"),
    group: values.text("group"),
    tags: values.has("tag") ? [...values.texts("tag")] : undefined,
    requires: requiresOf(values),
    limit_key: values.text("limit-key"),
  };
  const answer = recordOf(
    await hub.schedules.put({
      name,
      cron: values.text("cron"),
      every_s: values.seconds("every"),
      tz: values.text("tz"),
      task,
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
