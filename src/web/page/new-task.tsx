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

const PRIORITIES = [
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
        action={act("create", "Create", create, undefined, { look: "primary" })}
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
                ({ name, label, type: "number", value: String(task?.[name] || "") }) as const,
            ),
            { name: "delay_s", label: "Delay (s)", type: "number" },
          ],
          { name: "files", label: "Input files", type: "file", multiple: true },
        ]}
      >
        <Link class="button" href={task === null ? to("tasks") : to("tasks", task.task_id)} text="Back" />
      </Form>
    </>
  );
}

async function create(fields: Fields, form: HTMLFormElement): Promise<string> {
  const input = form.elements.namedItem("files");
  const chosen = input instanceof HTMLInputElement ? [...(input.files ?? [])] : [];
  const files: string[] = [];
  try {
    for (const file of chosen) files.push((await upload(file, {})).file_id);
    const { task_id } = await call("task/create", { ...requestOf(fields), files });
    go(to("tasks", task_id));
    return "Created.";
  } catch (error) {
    // A refused task has no files: the next try uploads them again.
    if (error instanceof LuxHubError && error.status < 500)
      await Promise.allSettled(files.map((file_id) => call("file/delete", { file_id })));
    throw error;
  }
}

function priorityWord(task: AnyTask | null): string {
  if (task === null) return "";
  return { 0: "high", 1: "", 2: "low", high: "high", medium: "", low: "low", p5: "p5" }[task.priority];
}

function requestOf(fields: Fields): RequestOf<"task/create", Variant> {
  const { title = "", description = "", priority, tags, delay_s, files, ...given } = fields;
  return {
    ...given,
    ...Object.fromEntries(NUMBERS.map(([, name]) => [name, numberOf(given[name])])),
    ...{ title, description },
    priority: oneOf(["high", "low", "p5"] as const, priority),
    tags: tags?.split(",").map((tag) => tag.trim()),
    delay_s: numberOf(delay_s),
  };
}
