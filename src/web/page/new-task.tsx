/** The form for a new task, empty or with the fields of an old one. */
import { Fragment, type VNode, h } from "preact";
import { LuxHubError } from "../../client/http.ts";
import type { FileRecord, RequestOf, Variant } from "../../client/luxhub.ts";
import { now } from "./clock.ts";
import { type AnyTask, numberOf, oneOf, sizeOf } from "./format.ts";
import { type Fields, Form, act } from "./action.tsx";
import { type FieldOf, nodeNames } from "./field.tsx";
import { pagesOf, useLoad } from "./load.ts";
import { Head, Link, NotLoaded } from "./parts.tsx";
import { go, to } from "./route.ts";
import { type Ask, call, hub } from "./session.ts";
import { upload } from "./upload.ts";

const FILES = 50;

const PRIORITIES = [
  ["", "normal"],
  ["high", "high"],
  ["low", "low"],
  ["p5", "background"],
] as const;

const number = (label: string) => ({ label, type: "number" }) as const;

const FIELDS = {
  title: { label: "Title", required: true },
  description: { label: "Description", required: true, rows: 8 },
  task_type: { label: "Type" },
  priority: { label: "Priority", options: PRIORITIES },
  group: { label: "Group" },
  tags: { label: "Tags, with commas" },
  creator_node: { label: "Creator (a node)", suggest: nodeNames },
  lux_reward: number("LUX reward"),
  max_attempts: number("Max. attempts"),
  backoff_s: number("Backoff (s)"),
  timeout_s: number("Timeout (s)"),
  max_run_s: number("Max. run (s)"),
  max_cost_usd: number("Max. cost (USD)"),
  retain_s: number("Kept after its end (s)"),
  delay_s: number("Delay (s)"),
  review: { label: "Checked by (creator, node:ID, capability:WORD)" },
  requires: { label: "Requires (gpu, vram 24)" },
  limit_key: { label: "Limit key" },
  depends_on: { label: "Starts after (ids of tasks)" },
  not_before: { label: "Not before", type: "time" },
  expires_at: { label: "Expires", type: "time" },
} as const satisfies Readonly<Record<string, Omit<FieldOf, "name">>>;

type FieldName = keyof typeof FIELDS;

const NUMBERS = [
  ...(["lux_reward", "max_attempts", "backoff_s", "timeout_s"] as const),
  ...(["max_run_s", "max_cost_usd", "retain_s"] as const),
];

/** The fields of a form with what a task has; without a task they are empty. */
export function fieldsWith(texts: Fields): (...names: readonly FieldName[]) => readonly FieldOf[] {
  return (...names) => names.map((name) => ({ name, value: texts[name], ...FIELDS[name] }));
}

/** What a task has, as a form sends it. */
export function textsOf(task: AnyTask): Fields {
  const { title, description, task_type, creator_node, depends_on, not_before, expires_at } = task;
  const { group = "", tags = [], review, requires, limit_key = "" } = task;
  return {
    ...Object.fromEntries(NUMBERS.map((name) => [name, String(task[name] ?? "")])),
    ...{ title: title.trim(), description: description.trim(), task_type: task_type ?? "", group, limit_key },
    ...{ priority: priorityWord(task), creator_node: creator_node ?? "", review: review?.by ?? "" },
    ...{
      tags: tags.join(", "),
      depends_on: depends_on.join(", "),
      requires: requires ? requirementsOf(requires) : "",
    },
    ...{ not_before: not_before ?? "", expires_at: expires_at ?? "" },
  };
}

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
  const field = fieldsWith(task === null ? {} : textsOf(task));
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
          ...field("title", "description"),
          field("task_type", "priority", "group", "tags", "creator_node", ...NUMBERS, "delay_s"),
          field("review", "requires", "limit_key", "depends_on"),
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

function priorityWord(task: AnyTask): string {
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
    ...Object.fromEntries(NUMBERS.map((name) => [name, numberOf(words[name])])),
    title: asItWas(title, before?.title),
    description: asItWas(description, before?.description),
    priority: priorityOf(priority),
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

export function priorityOf(word: string | undefined): "high" | "low" | "p5" | undefined {
  return oneOf(["high", "low", "p5"] as const, word);
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
