/** `luxhub schedule …`: saves, lists, runs and deletes schedules. */
import type { Environment } from "../config.ts";
import { writeLine } from "./standard-output.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type Run, collect, limitOf, recordOf, rowsOf, runGroup } from "./remote.ts";
import { printJson, printJsonList, printTable, timeText } from "./table.ts";
import { newTaskOf } from "./new-task.ts";

export function scheduleCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("schedule", RUNS, argv, env);
}

export const OVERLAP_WORDS = ["skip", "queue"] as const;
export const CATCH_UP_WORDS = ["one", "none"] as const;

const RUNS: Readonly<Record<string, Run>> = {
  "schedule put": put,
  "schedule list": list,
  "schedule run": async ({ hub, json, words: [name = ""] }) => {
    const answer = recordOf(await hub.schedules.run({ name }));
    if (json) printJson(answer);
    else await writeLine(answer.task_id);
    return EXIT.OK;
  },
  "schedule delete": async ({ hub, json, words: [name = ""] }) => {
    const answer = recordOf(await hub.schedules.delete({ name }));
    if (json) printJson(answer);
    else await writeLine(`${name}  deleted`);
    return EXIT.OK;
  },
};

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

async function list(remote: Remote): Promise<number> {
  const load = async (page: { readonly page: number; readonly per_page: number }) => {
    const { schedules, pages } = await remote.hub.schedules.list(page);
    return { rows: schedules, pages };
  };
  const schedules = rowsOf(load, ({ name }) => name, limitOf(remote));
  if (remote.json) {
    await printJsonList(schedules);
    return EXIT.OK;
  }
  const rows = (await collect(schedules)).map((schedule) => {
    const { name, cron, tz, every_s, paused, next_at, last_at, task } = schedule;
    const times = cron === null ? `every ${every_s} s` : `${cron} ${tz}`;
    const next = paused ? "paused" : next_at === null ? "ended" : timeText(next_at);
    return [name, times, next, last_at === null ? "" : timeText(last_at), task.title] as const;
  });
  printTable(["SCHEDULE", "TIMES", "NEXT", "LAST", "TITLE"], rows);
  return EXIT.OK;
}
