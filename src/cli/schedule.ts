/** `luxhub schedule put`: saves a schedule. */
import { writeLine } from "./standard-output.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, recordOf } from "./remote.ts";
import { printJson } from "./table.ts";
import type { RequestOf } from "../client/luxhub.ts";
import { UsageError } from "./arguments.ts";
import { newTaskOf } from "./new-task.ts";

export const RUNS: ClientRuns = { "schedule put": put };

/** The tasks of a pipeline as a schedule takes them; null: what is wrong with the file has been printed. */
async function stepsIn(path: string): Promise<RequestOf<"schedule/put">["tasks"] | null> {
  const { readPipelineFile } = await import("./pipeline.ts");
  const pipeline = await readPipelineFile(path);
  if (pipeline === null) return null;
  const [withFiles] = pipeline.steps.filter(({ files }) => files.length > 0);
  if (withFiles)
    throw new UsageError(`tasks.${withFiles.name}.files: a schedule has no files`, "schedule put");
  return pipeline.steps.map(({ name, needs, task: { on_dependency, ...task } }) => ({
    ref: name,
    needs: [...needs],
    on_dependency,
    task: { ...task, group: pipeline.group },
  }));
}

export const OVERLAP_WORDS = ["skip", "queue"] as const;
export const CATCH_UP_WORDS = ["one", "none"] as const;

async function put({ hub, values, json, words: [name = "", title] }: Remote): Promise<number> {
  const file = values.text("run");
  if ((file === undefined) === (title === undefined))
    throw new UsageError("schedule put needs the TITLE of a task, or --run FILE", "schedule put");
  const tasks = file === undefined ? undefined : await stepsIn(file);
  if (tasks === null) return EXIT.USAGE;
  const answer = recordOf(
    await hub.schedules.put({
      name,
      cron: values.text("cron"),
      every_s: values.seconds("every"),
      tz: values.text("tz"),
      task: title === undefined ? undefined : await newTaskOf(title, values),
      tasks,
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
