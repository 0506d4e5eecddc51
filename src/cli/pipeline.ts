/**
 * `luxhub run FILE`: creates the tasks of a pipeline as one group, and follows them to their end. What does not fit into
 * one transaction is created in several, each task with a unique key: the same command with the same group goes on where
 * it was interrupted.
 */
import { statSync } from "node:fs";
import { basename } from "node:path";
import { type AnswerOf, type LuxHub, LuxHubError, type Task } from "../client/luxhub.ts";
import { BATCH_REQUESTS_MAX } from "../domain/limits.ts";
import { isoTime, systemClock } from "../lib/clock.ts";
import { must } from "../lib/assert.ts";
import { printableJson } from "../lib/printable.ts";
import { reasonOf } from "../lib/reason.ts";
import { readTextFile } from "../text-file.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import { uploadFrom } from "./file.ts";
import { exitCodeOfGroup, followGroup } from "./group.ts";
import { type Pipeline, FileError, type Step, readPipeline } from "./pipeline-file.ts";
import { type ClientRuns, type Remote, printError, readStandardInput, recordOf } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, print, printJson, printTable } from "./table.ts";

export const RUNS: ClientRuns = { run };

/** Dependencies that a batch reads and writes besides its tasks. */
const TOGETHER_MAX_DEPENDENCIES = 1_000;
const UPLOADS_AT_ONCE = 4;
/** How long the same command goes on with its group instead of creating tasks again. */
const RESUMABLE_S = 30 * 86_400;

async function run(remote: Remote): Promise<number> {
  const {
    hub,
    values,
    json,
    words: [path = ""],
  } = remote;
  const file = await readPipelineFile(path);
  if (file === null) return EXIT.USAGE;
  // One group for each run, unless one is named.
  const stamp = isoTime(systemClock().now()).replaceAll(/[^\dTZ]/g, "");
  const group = values.text("group") ?? `${file.group}-${stamp}`;
  const pipeline = { ...file, group };
  const { steps } = pipeline;
  const isOne =
    steps.length <= BATCH_REQUESTS_MAX &&
    steps.reduce((sum, { needs }) => sum + needs.length, 0) <= TOGETHER_MAX_DEPENDENCIES;
  const isThere = await hasTasks(hub, group);
  if (isThere && isOne)
    throw new Failure(EXIT.CONFLICT, `group ${group} has tasks already: name another one with --group`);
  const files = await uploadAll(hub, steps);
  const ids =
    (isOne && (await createTogether(hub, pipeline, files))) || (await createInLayers(hub, pipeline, files));
  if (values.has("detach")) return json ? printIds(group, ids) : writeLine(group);
  if (!json) print(`${group}  ${steps.length} tasks`);
  const state = await followGroup(hub, group, !json);
  await printResults(hub, pipeline, ids, state.failures, json);
  return exitCodeOfGroup(state);
}

export async function readPipelineFile(path: string): Promise<Pipeline | null> {
  const text = path === "-" ? await readStandardInput() : readTextFile(path);
  try {
    const pipeline = readPipeline(text, path === "-" ? "pipeline" : path);
    const faults = pipeline.steps.flatMap(({ name, files }) =>
      files.flatMap((file) =>
        statSync(file, { throwIfNoEntry: false })?.isFile()
          ? []
          : [`tasks.${name}.files: there is no file ${file}`],
      ),
    );
    if (faults.length > 0) throw new FileError([...new Set(faults)].join("\n"));
    return pipeline;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    for (const line of error.message.split("\n")) printError(line);
    return null;
  }
}

async function hasTasks(hub: LuxHub, group: string): Promise<boolean> {
  try {
    await hub.groups.get({ group });
    return true;
  } catch (error) {
    if (error instanceof LuxHubError && error.status === 404) return false;
    throw error;
  }
}

type Uploads = ReadonlyMap<string, readonly string[]>;

async function uploadAll(hub: LuxHub, steps: readonly Step[]): Promise<Uploads> {
  const ids = new Map<string, string[]>();
  const waiting = steps.flatMap(({ name, files }) => files.map((file) => ({ name, file })));
  const next = async (): Promise<void> => {
    for (let upload = waiting.shift(); upload; upload = waiting.shift()) {
      const { file_id } = await uploadFrom(hub, upload.file, { name: basename(upload.file) });
      ids.set(upload.name, [...(ids.get(upload.name) ?? []), file_id]);
    }
  };
  await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, next));
  return ids;
}

type Ids = ReadonlyMap<string, string>;
type Answer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

/** Null: they do not fit into one transaction. */
async function createTogether(hub: LuxHub, { group, steps }: Pipeline, files: Uploads): Promise<Ids | null> {
  const refOf = new Map(steps.map(({ name }, i) => [name, `t${i + 1}`]));
  const requests = steps.map(({ name, task, needs }) => ({
    ref: refOf.get(name),
    path: "task/create",
    body: {
      ...task,
      group,
      depends_on: needs.map((needed) => ({ $ref: refOf.get(needed) })),
      files: files.get(name),
    },
  }));
  try {
    return await created(hub, group, steps, requests);
  } catch (error) {
    if (error instanceof LuxHubError && error.code === "graph_too_large") return null;
    throw error;
  }
}

/** Several transactions: first the tasks that need no other. */
async function createInLayers(hub: LuxHub, { group, steps }: Pipeline, files: Uploads): Promise<Ids> {
  const ids = new Map<string, string>();
  for (let waitingSteps = steps; waitingSteps.length > 0;) {
    const layer = waitingSteps
      .filter(({ needs }) => needs.every((needed) => ids.has(needed)))
      .slice(0, BATCH_REQUESTS_MAX);
    const requests = layer.map(({ name, task, needs }) => ({
      path: "task/create",
      body: {
        ...task,
        group,
        unique_key: `run:${group}:${name}`,
        unique_for_s: RESUMABLE_S, // some may have ended when the rest is created
        depends_on: needs.map((needed) => ids.get(needed)),
        files: files.get(name),
      },
    }));
    for (const [name, id] of await created(hub, group, layer, requests)) ids.set(name, id);
    waitingSteps = waitingSteps.filter(({ name }) => !ids.has(name));
  }
  return ids;
}

/** @throws {Failure} when the hub refuses a task; what there is of the group is then cancelled */
async function created(
  hub: LuxHub,
  group: string,
  steps: readonly Step[],
  requests: readonly object[],
): Promise<Ids> {
  const answers: (Answer | undefined)[] = [];
  for (let unanswered = requests.map((request, index) => ({ request, index })); unanswered.length > 0;) {
    const before = unanswered.length;
    const answer = await hub.call("batch", { requests: unanswered.map(({ request }) => request) } as never);
    for (const [i, { status, body }] of (answer as { answers: readonly Answer[] }).answers.entries())
      answers[must(unanswered[i], "the batch answers each request").index] = { status, body };
    unanswered = unanswered.filter(({ index }) => answers[index]?.body["error"] === "batch_full");
    if (unanswered.length === before) break;
  }
  const refused = steps.flatMap(({ name }, i) => {
    const { status, body } = must(answers[i], "the batch answers each request");
    return status === 200 || body["error"] === "ref_refused"
      ? []
      : [`tasks.${name}: ${String(body["detail"])}`];
  });
  if (refused.length === 0)
    return new Map(steps.map(({ name }, i) => [name, String(answers[i]?.body["task_id"])]));
  await cancelAll(hub, group);
  for (const line of refused) printError(line);
  throw new Failure(
    EXIT.FAILED,
    `the hub refused ${refused.length} of ${steps.length} tasks, and the others are cancelled`,
  );
}

async function cancelAll(hub: LuxHub, group: string): Promise<void> {
  try {
    for (let remaining = 1; remaining > 0;)
      ({ left: remaining } = await hub.groups.cancel({ group, reason: "the pipeline was refused" }));
  } catch (error) {
    if (!(error instanceof LuxHubError) || error.status !== 404)
      printError(`group ${group}: ${reasonOf(error)}`);
  }
}

function printIds(group: string, ids: Ids): number {
  printJson({ group, tasks: Object.fromEntries(ids) });
  return EXIT.OK;
}

/** Of the tasks that no other needs, and why others failed; as JSON all of them. */
async function printResults(
  hub: LuxHub,
  { steps, group }: Pipeline,
  ids: Ids,
  failures: AnswerOf<"group/{group}">["failures"],
  json: boolean,
): Promise<void> {
  const needed = new Set(steps.flatMap(({ needs }) => needs));
  const shown: { readonly name: string; readonly task: Task }[] = [];
  for (const { name } of steps.filter((step) => json || !needed.has(step.name)))
    shown.push({
      name,
      ...(await hub.tasks.get({ task_id: must(ids.get(name), "each task was created") })),
    });
  if (json) {
    const tasks = shown.map(({ name, task }) => {
      const { task_id, status, result, failure } = recordOf(task);
      return { name, task_id, status, result, failure };
    });
    return printJson({ group, tasks });
  }
  const nameOf = new Map([...ids].map(([name, id]) => [id, name]));
  if (failures.length > 0)
    printTable(
      ["FAILED", "KIND", "MESSAGE"],
      failures.map(({ task_id, failure }) => [
        nameOf.get(task_id),
        failure?.kind,
        plain(failure?.message ?? ""),
      ]),
    );
  for (const { name, task } of shown.filter(({ task }) => task.status === "completed")) {
    const { improvement, output } = { ...task.result };
    const text =
      output === undefined ? improvement : typeof output === "string" ? output : printableJson(output, 2);
    print(`\n${name}: ${plain(String(text ?? ""))}`);
  }
}
