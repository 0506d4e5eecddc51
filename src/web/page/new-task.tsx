/** The form for a new task, empty or with the fields of an old one. */
import { Fragment, type JSX, h } from "preact";
import { LuxHubError } from "../../client/http.ts";
import type { RequestOf, Variant } from "../../client/luxhub.ts";
import type { AnyTask } from "./format.ts";
import { NodeField } from "./node-field.tsx";
import { Field, type Fields, Form, Head, NotLoaded, Select, showNotice, useLoad } from "./parts.tsx";
import { go, route, to } from "./route.ts";
import { describe, hub } from "./session.ts";
import { upload } from "./upload.ts";

const PRIORITIES = [
  ["", "normal"],
  ["high", "high"],
  ["low", "low"],
  ["p5", "background"],
] as const;

/** @param from the id of the task to run again, with edits; empty for a new one */
export function NewTask({ from }: { from: string }): JSX.Element | null {
  const old = useLoad(from, async (hub, signal) =>
    from === "" ? null : (await hub.call("task/{task_id}", { task_id: from }, { signal })).task,
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
      const { task_id } = await hub.value.call("task/create", { ...requestOf(fields), files });
      showNotice("Created.");
      go(to("tasks", task_id));
    } catch (error) {
      showNotice(describe(error), true);
      // A refused task has no files: the next try uploads them again.
      if (error instanceof LuxHubError && error.status < 500)
        await Promise.allSettled(files.map((file_id) => hub.value.call("file/delete", { file_id })));
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
          <Field label="LUX reward" name="lux_reward" type="number" value={textOf(task?.lux_reward)} />
          <Field label="Max. attempts" name="max_attempts" type="number" value={textOf(task?.max_attempts)} />
          <Field label="Timeout (s)" name="timeout_s" type="number" value={textOf(task?.timeout_s)} />
          <Field label="Max. run (s)" name="max_run_s" type="number" value={textOf(task?.max_run_s)} />
          <Field
            label="Max. cost (USD)"
            name="max_cost_usd"
            type="number"
            value={textOf(task?.max_cost_usd)}
          />
          <Field label="Delay (s)" name="delay_s" type="number" />
        </div>
        <Field label="Input files" name="files" type="file" multiple />
        <p class="buttons">
          <button type="submit" class="primary" data-do="create">
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

function textOf(value: number | null | undefined): string {
  return value == null || value === 0 ? "" : String(value);
}

function priorityWord(task: AnyTask | null): string {
  if (task === null) return "";
  return { 0: "high", 1: "", 2: "low", high: "high", medium: "", low: "low", p5: "p5" }[task.priority];
}

function requestOf(fields: Fields): RequestOf<"task/create", Variant> {
  const number = (name: string): number | undefined => (fields[name] ? Number(fields[name]) : undefined);
  const priority = (["high", "low", "p5"] as const).find((word) => word === fields["priority"]);
  return {
    title: fields["title"] ?? "",
    description: fields["description"] ?? "",
    task_type: fields["task_type"] || undefined,
    priority,
    creator_node: fields["creator_node"] || undefined,
    group: fields["group"] || undefined,
    tags: fields["tags"] ? fields["tags"].split(",").map((tag) => tag.trim()) : undefined,
    lux_reward: number("lux_reward"),
    max_attempts: number("max_attempts"),
    timeout_s: number("timeout_s"),
    max_run_s: number("max_run_s"),
    max_cost_usd: number("max_cost_usd"),
    delay_s: number("delay_s"),
  };
}
