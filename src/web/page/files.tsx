/** The list of files, with the form for an upload. */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import { commandOf, countOf, sizeOf } from "./format.ts";
import { Age, Empty, Fault, Field, Form, Table, showNotice, useEvents, useLoad, useTyped } from "./parts.tsx";
import { FileActions, FileLink, mediaTypeOf } from "./file-actions.tsx";
import { route, setQuery, to, wrongQuery } from "./route.ts";
import { mayAct } from "./session.ts";
import { upload } from "./upload.ts";

const PAGE = 50;

export function Files(): JSX.Element {
  const { task, q, page: asked, cursor } = route.value.query;
  const page = Number(asked ?? 1);
  const wrong = wrongQuery({ task: null, q: null, page: null, cursor: null });
  const loaded = useLoad(`${task} ${q} ${page} ${cursor} ${wrong}`, (from, signal) => {
    if (wrong !== null) return Promise.reject(new Error(wrong));
    const place = q ? { q, cursor } : { page };
    return from.call("file/list", { task_id: task, per_page: PAGE, ...place }, { signal });
  });
  useEvents(({ kind }) => kind.startsWith("file."), loaded);
  const set = useTyped((changed) => setQuery({ ...changed, page: undefined, cursor: undefined }));
  const { error } = loaded;
  const value = wrong === null ? loaded.value : null;
  const at = (page: number): string => to("files", "", { task, page: String(page) });
  const isEmpty = value?.files.length === 0;
  return (
    <>
      <header class="head">
        <h1>Files {value?.total != null && <small>{countOf(value.total)}</small>}</h1>
      </header>
      {task && (
        <p>
          Files of <a href={to("tasks", task)}>one task</a>. <a href={to("files")}>All files</a>
        </p>
      )}
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Field label="Name" name="q" type="search" value={q} onInput={set("q")} />
      </form>
      <Fault text={error} />
      {mayAct.value && <Upload onDone={loaded.reload} />}
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
              <td>{file.node_id !== null && <a href={to("nodes", file.node_id)}>{file.node_id}</a>}</td>
              <td>
                {file.task_id !== null && (
                  <a href={to("tasks", file.task_id)} title={file.task_id}>
                    <code>…{file.task_id.slice(-8)}</code>
                  </a>
                )}
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
      <nav class="pager" aria-label="Pages">
        {page > 1 && !q && <a href={at(page - 1)}>Newer</a>}
        {cursor && <a href={to("files", "", { task, q })}>Newest</a>}
        {value?.pages != null && page < value.pages && (
          <a rel="next" href={at(page + 1)}>
            Older
          </a>
        )}
        {q && value?.next_cursor != null && (
          <a rel="next" href={to("files", "", { task, q, cursor: value.next_cursor })}>
            {isEmpty ? "Look further" : "Older"}
          </a>
        )}
      </nav>
    </>
  );
}

function Upload({ onDone }: { onDone: () => void }): JSX.Element {
  const [part, setPart] = useState<number | null>(null);
  return (
    <Form
      class="filters"
      onSend={async (fields, form) => {
        const input = form.elements.namedItem("file");
        const file = input instanceof HTMLInputElement ? input.files?.[0] : undefined;
        if (file === undefined) return;
        const metadata = fields["task_id"] ? { task_id: fields["task_id"] } : {};
        try {
          await upload(file, metadata, setPart);
          showNotice("Uploaded.");
          form.reset();
        } catch (error) {
          showNotice(error instanceof Error ? error.message : String(error), true);
        }
        setPart(null);
        onDone();
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
