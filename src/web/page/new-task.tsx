/** The form for a new task, empty or with the fields of an old one. */
import { Fragment, type VNode, h } from "preact";
import { LuxHubError } from "../../client/http.ts";
import type { FileRecord, RequestOf, Variant } from "../../client/luxhub.ts";
import { now } from "./clock.ts";
import { type AnyTask, numberOf, oneOf, sizeOf } from "./format.ts";
import { type Fields, Form, act } from "./action.tsx";
import { nodeNames } from "./field.tsx";
import { pagesOf, useLoad } from "./load.ts";
import { Head, Link, NotLoaded } from "./parts.tsx";
import { go, to } from "./route.ts";
import { type Ask, call, hub } from "./session.ts";
import { upload } from "./upload.ts";

const FILES = 50;

export const PRIORITIES = [
  ["", "normal"],
  ["high", "high"],
  ["low", "low"],
  ["p5", "background"],
] as const;

const NUMBERS = [
  ["LUX reward", "lux_reward"],
  ["Max. attempts", "max_attempts"],
  ["Backoff (s)", "backoff_s"],
  ["Timeout (s)", "timeout_s"],
  ["Max. run (s)", "max_run_s"],
  ["Max. cost (USD)", "max_cost_usd"],
  ["Kept after its end (s)", "retain_s"],
] as const;

async function loadOld(ask: Ask, task_id: string) {
  const { task } = await ask("task/{task_id}", { task_id });
  const files: FileRecord[] = [];
  if (task.inputs.length > 0)
    for await (const page of pagesOf((cursor) => ask("file/list", { task_id, per_page: FILES, cursor })))
      files.push(...page.files.filter(({ attached }) => attached === "input"));
  return { task, files };
}

/** @param from the id of the task to run again, with edits; empty for a new one */
export function NewTask({ from }: { from: string }): VNode | null {
  const { value: old, error } = useLoad(from, async (ask) => (from === "" ? null : loadOld(ask, from)));
  if (from !== "" && old === null)
    return <NotLoaded title="Run again" error={error} back={[to("tasks"), "All tasks"]} />;
  const { task = null, files = [] } = old ?? {};
  return (
    <>
      <Head>{task === null ? "New task" : "Run again"}</Head>
      {task !== null && <p class="quiet">{leftOut(task)}</p>}
      <Form
        key={from}
        class="form"
        action={act("create", "Create", (fields, form) => create(fields, form, task, files), undefined, {
          look: "primary",
        })}
        fields={[
          { name: "title", label: "Title", required: true, value: task?.title },
          { name: "description", label: "Description", required: true, rows: 8, value: task?.description },
          [
            { name: "task_type", label: "Type", value: task?.task_type ?? "" },
            { name: "priority", label: "Priority", value: priorityWord(task), options: PRIORITIES },
            { name: "group", label: "Group", value: task?.group ?? "" },
            { name: "tags", label: "Tags, with commas", value: task?.tags?.join(", ") ?? "" },
            {
              name: "creator_node",
              label: "Creator (a node)",
              suggest: nodeNames,
              value: task?.creator_node ?? "",
            },
            ...NUMBERS.map(
              ([label, name]) =>
                ({ name, label, type: "number", value: task ? String(task[name] ?? "") : "" }) as const,
            ),
            { name: "delay_s", label: "Delay (s)", type: "number" },
          ],
          [
            {
              name: "review",
              label: "Checked by (creator, node:ID, capability:WORD)",
              value: task?.review?.by,
            },
            {
              name: "requires",
              label: "Requires (gpu, vram 24)",
              value: task?.requires && requirementsOf(task.requires),
            },
            { name: "limit_key", label: "Limit key", value: task?.limit_key },
            { name: "depends_on", label: "Starts after (ids of tasks)", value: task?.depends_on.join(", ") },
          ],
          <>
            {task?.quorum && (
              <p class="quiet">
                {task.quorum.results} of {task.quorum.of} results must agree, as before.
              </p>
            )}
            {files.map(({ file_id, name, size }) => (
              <label key={file_id} class="check">
                <input type="checkbox" name="copied" value={file_id} defaultChecked /> {name}{" "}
                <small>{sizeOf(size)}</small>
              </label>
            ))}
          </>,
          { name: "files", label: "Input files", type: "file", multiple: true },
        ]}
      >
        <Link class="button" href={task === null ? to("tasks") : to("tasks", task.task_id)} text="Back" />
      </Form>
    </>
  );
}

/** What is of the old task alone. */
function leftOut({ not_before, expires_at, unique_key }: AnyTask): string {
  const names = [
    not_before !== null && Date.parse(not_before) > now.value && "its earliest start",
    expires_at !== null && "its expiry",
    unique_key !== undefined && "its unique key",
  ].filter((name) => name !== false);
  return `Everything is copied${names.length === 0 ? "" : `, but ${names.join(", ")}`}.`;
}

async function create(
  fields: Fields,
  form: HTMLFormElement,
  before: AnyTask | null,
  old: readonly FileRecord[],
): Promise<string> {
  const input = form.elements.namedItem("files");
  const chosen = input instanceof HTMLInputElement ? [...(input.files ?? [])] : [];
  const copied = new Set(new FormData(form).getAll("copied"));
  const files: string[] = [];
  try {
    for (const file of old) if (copied.has(file.file_id)) files.push(await copyOf(file));
    for (const file of chosen) files.push((await upload(file, {})).file_id);
    const { task_id } = await call("task/create", { ...requestOf(fields, before), files });
    go(to("tasks", task_id));
    return "Created.";
  } catch (error) {
    // A refused task has no files: the next try uploads them again.
    if (error instanceof LuxHubError && error.status < 500)
      await Promise.allSettled(files.map((file_id) => call("file/delete", { file_id })));
    throw error;
  }
}

/** A file belongs to one task. */
async function copyOf({ file_id, name, content_type: type, metadata }: FileRecord): Promise<string> {
  const response = await hub.value.download({ file_id });
  const { task_id: _, node: __, ...said } = metadata; // they would attach it
  return (await upload(new File([await response.blob()], name, { type }), said)).file_id;
}

export function priorityWord(task: AnyTask | null): string {
  if (task === null) return "";
  if (task.background) return "p5"; // for which A has no word
  return { 0: "high", 1: "", 2: "low", high: "high", medium: "", low: "low", p5: "p5" }[task.priority];
}

type Request = RequestOf<"task/create", Variant>;

/** @param before what the form does not show stays as it was */
function requestOf(given: Fields, before: AnyTask | null): Request {
  const { title = "", description = "", priority, tags, delay_s, depends_on, requires, ...words } = given;
  const { files: _, copied: __, ...texts } = words;
  const { review, quorum, traceparent, tracestate } = before ?? {};
  return {
    ...texts,
    ...Object.fromEntries(NUMBERS.map(([, name]) => [name, numberOf(words[name])])),
    title: asItWas(title, before?.title),
    description: asItWas(description, before?.description),
    priority: oneOf(["high", "low", "p5"] as const, priority),
    tags: tags === undefined ? undefined : tagsOf(tags),
    delay_s: numberOf(delay_s),
    ...(depends_on && { depends_on: tagsOf(depends_on), on_dependency: before?.on_dependency }),
    requires: requires === undefined ? undefined : requirementsIn(requires),
    ...(words["review"] &&
      review && { review_within_s: review.within_s, on_review_timeout: review.on_timeout }),
    ...{ traceparent, tracestate },
    quorum: quorum && { results: quorum.results, of: quorum.of, compare: quorum.compare },
  };
}

/** The fields of a form are trimmed. */
function asItWas(text: string, before: string | undefined): string {
  return before?.trim() === text ? before : text;
}

export function tagsOf(text: string): readonly string[] {
  return text.split(",").flatMap((tag) => tag.trim() || []);
}

/** `gpu, vram 24`: words, and amounts of what a node has. */
export function requirementsOf({ capabilities, resources }: NonNullable<AnyTask["requires"]>): string {
  const amounts = Object.entries(resources).map(([name, amount]) => `${name} ${amount}`);
  return [...capabilities, ...amounts].join(", ");
}

function requirementsIn(text: string): NonNullable<Request["requires"]> {
  const parts = tagsOf(text).map((part) => /^(\S+)(?:\s+(\d+(?:\.\d+)?))?$/.exec(part) ?? [part, part]);
  return {
    capabilities: parts.flatMap(([, name = "", amount]) => (amount === undefined ? [name] : [])),
    resources: Object.fromEntries(
      parts.flatMap(([, name = "", amount]) => (amount === undefined ? [] : [[name, Number(amount)]])),
    ),
  };
}
