/** The form for a new task, empty or with the fields of an old one. */
import { Fragment, type VNode, h } from "preact";
import { LuxHubError } from "../../client/http.ts";
import type { RequestOf, Variant } from "../../client/luxhub.ts";
import { type AnyTask, numberOf, oneOf } from "./format.ts";
import { type Fields, Form, act } from "./action.tsx";
import { nodeNames } from "./field.tsx";
import { useLoad } from "./load.ts";
import { Head, Link, NotLoaded } from "./parts.tsx";
import { go, to } from "./route.ts";
import { call } from "./session.ts";
import { upload } from "./upload.ts";

export const PRIORITIES = [
  ["", "normal"],
  ["high", "high"],
  ["low", "low"],
  ["p5", "background"],
] as const;

const NUMBERS = [
  ["LUX reward", "lux_reward"],
  ["Max. attempts", "max_attempts"],
  ["Timeout (s)", "timeout_s"],
  ["Max. run (s)", "max_run_s"],
  ["Max. cost (USD)", "max_cost_usd"],
  ["Kept after its end (s)", "retain_s"],
] as const;

/** @param from the id of the task to run again, with edits; empty for a new one */
export function NewTask({ from }: { from: string }): VNode | null {
  const { value: task, error } = useLoad(from, async (ask) =>
    from === "" ? null : (await ask("task/{task_id}", { task_id: from })).task,
  );
  if (from !== "" && task === null)
    return <NotLoaded title="Run again" error={error} back={[to("tasks"), "All tasks"]} />;
  return (
    <>
      <Head>{task === null ? "New task" : "Run again"}</Head>
      <Form
        key={from}
        class="form"
        action={act("create", "Create", (fields, form) => create(fields, form, task), undefined, {
          look: "primary",
        })}
        fields={[
          { name: "title", label: "Title", required: true, value: task?.title },
          { name: "description", label: "Description", required: true, rows: 8, value: task?.description },
          [
            { name: "task_type", label: "Type", value: task?.task_type ?? "" },
            {
              name: "priority",
              // Variant A has no word for background work.
              label: task?.priority === 2 ? "Priority (was low or background)" : "Priority",
              value: priorityWord(task),
              options: PRIORITIES,
            },
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
                ({ name, label, type: "number", value: String(task?.[name] || "") }) as const,
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
          ],
          <>
            {task?.quorum && (
              <p class="quiet">
                {task.quorum.results} of {task.quorum.of} results must agree, as before.
              </p>
            )}
          </>,
          { name: "files", label: "Input files", type: "file", multiple: true },
        ]}
      >
        <Link class="button" href={task === null ? to("tasks") : to("tasks", task.task_id)} text="Back" />
      </Form>
    </>
  );
}

async function create(fields: Fields, form: HTMLFormElement, before: AnyTask | null): Promise<string> {
  const input = form.elements.namedItem("files");
  const chosen = input instanceof HTMLInputElement ? [...(input.files ?? [])] : [];
  const files: string[] = [];
  try {
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

export function priorityWord(task: AnyTask | null): string {
  if (task === null) return "";
  return { 0: "high", 1: "", 2: "low", high: "high", medium: "", low: "low", p5: "p5" }[task.priority];
}

type Request = RequestOf<"task/create", Variant>;

/** @param before what the form does not show stays as it was */
function requestOf(given: Fields, before: AnyTask | null): Request {
  const { title = "", description = "", priority, tags, delay_s, files, requires, ...words } = given;
  const { review, quorum } = before ?? {};
  return {
    ...words,
    ...Object.fromEntries(NUMBERS.map(([, name]) => [name, numberOf(words[name])])),
    ...{ title, description },
    priority: oneOf(["high", "low", "p5"] as const, priority),
    tags: tags === undefined ? undefined : tagsOf(tags),
    delay_s: numberOf(delay_s),
    requires: requires === undefined ? undefined : requirementsIn(requires),
    ...(words["review"] &&
      review && { review_within_s: review.within_s, on_review_timeout: review.on_timeout }),
    quorum: quorum && { results: quorum.results, of: quorum.of, compare: quorum.compare },
  };
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
