/** The list of files, with the form for an upload. */
import { Fragment, type JSX, h } from "preact";
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
  useEvents,
  useList,
  useTyped,
} from "./parts.tsx";
import { FileActions, FileLink, mediaTypeOf } from "./file-actions.tsx";
import { route, setQuery, to } from "./route.ts";
import { mayAct } from "./session.ts";
import { upload } from "./upload.ts";

const PAGE = 50;

export function Files(): JSX.Element {
  const { task, q, page: asked, cursor } = route.value.query;
  const page = Number(asked ?? 1);
  const loaded = useList({ task: null, q: null, page: null, cursor: null }, (from, signal) => {
    const place = q ? { q, cursor } : { page };
    return from.call("file/list", { task_id: task, per_page: PAGE, ...place }, { signal });
  });
  useEvents(({ kind }) => kind.startsWith("file."), loaded);
  const set = useTyped((changed) => setQuery({ ...changed, page: undefined, cursor: undefined }));
  const { value, error } = loaded;
  const at = (page: number): string => to("files", "", { task, page: String(page) });
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
        <Field label="Name" name="q" type="search" value={q} onInput={set("q")} />
      </Filters>
      <Fault text={error} />
      {mayAct() && <Upload />}
      {isEmpty &&
        (q ? (
          <Empty text={value.next_cursor === null ? "No file matches." : "No match so far."} />
        ) : (
          <Empty
            text="No files yet. Upload one here, or from a shell:"
            line={commandOf("file", "put", "report.pdf")}
          />
        ))}
      {value && !isEmpty && (
        <Table
          label="Files"
          head={["Name", "Size", "Type", "Node", "Task", "Attached as", "Uploaded", "Actions"]}
        >
          {value.files.map((file) => (
            <tr key={file.file_id}>
              <td class="wide">
                <FileLink file={file} />
              </td>
              <td class="number">{sizeOf(file.size)}</td>
              <td class="names">{mediaTypeOf(file.content_type)}</td>
              <td>
                <NodeLink id={file.node_id} />
              </td>
              <td>
                <TaskId id={file.task_id} />
              </td>
              <td>{file.attached}</td>
              <td>
                <Age at={file.uploaded_at} />
              </td>
              <td class="buttons">
                <FileActions file={file} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {q ? (
        <Pager
          back={cursor && ["Newest", to("files", "", { task, q })]}
          next={
            value?.next_cursor && [
              isEmpty ? "Look further" : "Older",
              to("files", "", { task, q, cursor: value.next_cursor }),
            ]
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

function Upload(): JSX.Element {
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
      <button type="submit" class="primary" data-do="upload">
        Upload
      </button>
      {part !== null && <progress aria-label="Upload" max={1} value={part} />}
    </Form>
  );
}
