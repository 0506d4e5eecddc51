/** The form for a new task, empty or with the fields of an old one. */
import { Fragment, type VNode, h } from "preact";
import { LuxHubError } from "../../client/http.ts";
import type { RequestOf, Variant } from "../../client/luxhub.ts";
import { type AnyTask, numberOf, oneOf } from "./format.ts";
import { NodeField } from "./suggest-field.tsx";
import { Field, type Fields, Form, Head, NotLoaded, Select, showNotice, useLoad } from "./parts.tsx";
import { go, route, to } from "./route.ts";
import { call, describe } from "./session.ts";
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
  const old = useLoad(from, async (ask) =>
    from === "" ? null : (await ask("task/{task_id}", { task_id: from })).task,
  );
  if (from !== "" && old.value === null)
    return <NotLoaded title="Run again" error={old.error} back={[to("tasks"), "All tasks"]} />;
  const task = old.value;
  const send = async (fields: Fields, form: HTMLFormElement): Promise<void> => {
    const input = form.elements.namedItem("files");
    const chosen = input instanceof HTMLInputElement ? [...(input.files ?? [])] : [];
    const files: string[] = [];
    try {
      for (const file of chosen) files.push((await upload(file, {})).file_id);
      const { task_id } = await call("task/create", { ...requestOf(fields), files });
      showNotice("Created.");
      go(to("tasks", task_id));
    } catch (error) {
      showNotice(describe(error), true);
      // A refused task has no files: the next try uploads them again.
      if (error instanceof LuxHubError && error.status < 500)
        await Promise.allSettled(files.map((file_id) => call("file/delete", { file_id })));
    }
  };
  return (
    <>
      <Head>{task === null ? "New task" : "Run again"}</Head>
      <Form class="form" onSend={send} key={route.value.id}>
        <Field label="Title" name="title" required value={task?.title} />
        <Field label="Description" name="description" required rows={8} value={task?.description} />
        <div class="row-of-fields">
          <Field label="Type" name="task_type" value={task?.task_type ?? ""} />
          <Select label="Priority" name="priority" value={priorityWord(task)} options={PRIORITIES} />
          <Field label="Group" name="group" value={task?.group ?? ""} />
          <Field label="Tags, with commas" name="tags" value={task?.tags?.join(", ") ?? ""} />
          <NodeField label="Creator (a node)" name="creator_node" value={task?.creator_node ?? ""} />
          {NUMBERS.map(([label, name]) => (
            <Field label={label} name={name} type="number" value={String(task?.[name] || "")} />
          ))}
          <Field label="Delay (s)" name="delay_s" type="number" />
        </div>
        <Field label="Input files" name="files" type="file" multiple />
        <p class="buttons">
          <button class="primary" data-do="create">
            Create
          </button>
          <a class="button" href={task === null ? to("tasks") : to("tasks", task.task_id)}>
            Back
          </a>
        </p>
      </Form>
    </>
  );
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
