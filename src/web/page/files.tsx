/** The list of files, with the form for an upload. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import { commandOf, countOf, sizeOf } from "./format.ts";
import {
  Age,
  Empty,
  Fault,
  Field,
  Filters,
  Form,
  Head,
  NodeLink,
  Pager,
  Table,
  TaskId,
  runAction,
  useFilters,
  useList,
} from "./parts.tsx";
import { FileActions, FileLink, mediaTypeOf } from "./file-actions.tsx";
import { here, route, to } from "./route.ts";
import { mayAct } from "./session.ts";
import { upload } from "./upload.ts";

const PAGE = 50;

export function Files(): VNode {
  const { task, q, page: asked, cursor } = route.value.query;
  const page = Number(asked ?? 1);
  const loaded = useList(
    { task: null, q: null, page: null, cursor: null },
    (ask) => {
      const place = q ? { q, cursor } : { page };
      return ask("file/list", { task_id: task, per_page: PAGE, ...place });
    },
    /^file\./,
  );
  const filter = useFilters();
  const { value, error } = loaded;
  const at = (page: number): string => here({ page: String(page) });
  const isEmpty = value?.files.length === 0;
  return (
    <>
      <Head>Files {value?.total != null && <small>{countOf(value.total)}</small>}</Head>
      {task && (
        <p>
          Files of <a href={to("tasks", task)}>one task</a>. <a href={to("files")}>All files</a>
        </p>
      )}
      <Filters>
        <Field label="Name" type="search" {...filter("q")} />
      </Filters>
      <Fault text={error} />
      {mayAct() && <Upload />}
      {isEmpty &&
        (q ? (
          <Empty text={value.next_cursor === null ? "No file matches." : "No match so far."} />
        ) : (
          <Empty
            text="No files yet. Upload one here, or from a shell:"
            line={commandOf("file put report.pdf")}
          />
        ))}
      {value && !isEmpty && (
        <Table
          label="Files"
          rows={value.files}
          keyOf={(file) => file.file_id}
          columns={[
            ["Name", (file) => <FileLink file={file} />, "wide"],
            ["Size", (file) => sizeOf(file.size), "number"],
            ["Type", (file) => mediaTypeOf(file.content_type), "names"],
            ["Node", (file) => <NodeLink id={file.node_id} />],
            ["Task", (file) => <TaskId id={file.task_id} />],
            ["Attached as", (file) => file.attached],
            ["Uploaded", (file) => <Age at={file.uploaded_at} />],
            ["Actions", (file) => <FileActions file={file} />, "buttons"],
          ]}
        />
      )}
      {q ? (
        <Pager
          back={cursor && ["Newest", here({ cursor: undefined })]}
          next={
            value?.next_cursor && [isEmpty ? "Look further" : "Older", here({ cursor: value.next_cursor })]
          }
        />
      ) : (
        <Pager
          back={page > 1 && ["Newer", at(page - 1)]}
          next={page < (value?.pages ?? 0) && ["Older", at(page + 1)]}
        />
      )}
    </>
  );
}

function Upload(): VNode {
  const [part, setPart] = useState<number | null>(null);
  return (
    <Form
      class="filters"
      onSend={async (fields, form) => {
        const input = form.elements.namedItem("file");
        const file = input instanceof HTMLInputElement ? input.files?.[0] : undefined;
        if (file === undefined) return false;
        const metadata = fields["task_id"] ? { task_id: fields["task_id"] } : {};
        try {
          return await runAction("Uploaded.", () => upload(file, metadata, setPart));
        } finally {
          setPart(null);
        }
      }}
    >
      <Field label="File" name="file" type="file" required />
      <Field label="Task (its id)" name="task_id" />
      <button class="primary" data-do="upload">
        Upload
      </button>
      {part !== null && <progress aria-label="Upload" max={1} value={part} />}
    </Form>
  );
}
