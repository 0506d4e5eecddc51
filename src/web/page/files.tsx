/** The files: upload with progress, download, and a preview of texts and pictures that executes nothing. */
import { Fragment, type JSX, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { FileRecord } from "../../client/luxhub.ts";
import { commandOf, countOf, sizeOf } from "./format.ts";
import {
  Age,
  Empty,
  Fault,
  Field,
  Form,
  Modal,
  Table,
  askToConfirm,
  runAction,
  showNotice,
  useEvents,
  useLoad,
  useTyped,
} from "./parts.tsx";
import { route, setQuery, to, wrongQuery } from "./route.ts";
import { describe, hub, mayAct, session } from "./session.ts";

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

const addressOf = ({ file_id }: FileRecord): string => `api/v1/file/download/${encodeURIComponent(file_id)}`;

/** Its name, with its address: that alone opens the file only where the hub asks for no secret. */
export function FileLink({ file }: { file: FileRecord }): JSX.Element {
  return (
    <a
      class="row"
      href={addressOf(file)}
      download={file.name}
      title={file.name}
      onClick={(event) => {
        event.preventDefault();
        void download(file);
      }}
    >
      {file.name}
    </a>
  );
}

export function FileActions({ file }: { file: FileRecord }): JSX.Element {
  const [isShown, setShown] = useState(false);
  const remove = async (): Promise<void> => {
    if (!(await askToConfirm(`Delete ${file.name} permanently?`, "Delete"))) return;
    await runAction("Deleted.", () => hub.value.call("file/delete", { file_id: file.file_id }));
  };
  return (
    <>
      {previewOf(file) !== null && (
        <button type="button" data-do="preview" onClick={() => setShown(true)}>
          Preview
        </button>
      )}
      <button type="button" data-do="download" onClick={() => void download(file)}>
        Download
      </button>
      {mayAct.value && (
        <button type="button" class="danger" data-do="delete-file" onClick={() => void remove()}>
          Delete
        </button>
      )}
      {isShown && (
        <Modal title={file.name} onClose={() => setShown(false)}>
          <Preview file={file} />
          <form method="dialog" class="buttons">
            <button>Close</button>
          </form>
        </Modal>
      )}
    </>
  );
}

// ---- Upload

/** Uploads a file, and resolves with its record. XMLHttpRequest: fetch does not tell how much was sent. */
export function upload(
  file: File,
  metadata: object,
  onProgress: (part: number) => void = () => {},
): Promise<FileRecord> {
  const { secret = "" } = session.value ?? {};
  const body = new FormData();
  body.append("metadata", JSON.stringify(metadata));
  body.append("file", file);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "api/v1/file/upload");
    request.setRequestHeader("X-Matrix-Secret", secret);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total);
    request.onerror = () => reject(new Error("The upload was interrupted."));
    request.onload = () =>
      request.status === 200
        ? resolve(JSON.parse(request.responseText))
        : reject(new Error(detailOf(request.responseText)));
    request.send(body);
  });
}

/** The sentence of a problem. */
function detailOf(text: string): string {
  try {
    const { detail }: { detail?: unknown } = Object(JSON.parse(text));
    return String(detail);
  } catch {
    return "The hub rejected the upload.";
  }
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

// ---- Download and preview

/** A larger file goes to the disk as it comes, where the browser can do that. */
const HELD_BYTES = 100 * 2 ** 20;

type SaveFile = (options: { suggestedName: string }) => Promise<FileSystemFileHandle>;
declare global {
  /** Not in every browser, and not on a page over plain HTTP. */
  var showSaveFilePicker: SaveFile | undefined;
}

/**
 * Only a link that needs no secret streams in every browser: none may stand in it. With a secret the tab fetches the file,
 * and writes a large one to the place that the user chooses, or else holds all of it in memory.
 */
async function download(file: FileRecord): Promise<void> {
  const { file_id, name, size } = file;
  const isLarge = size > HELD_BYTES;
  try {
    if (isLarge && (await isOpen(file))) return saveFrom(addressOf(file), name);
    if (isLarge && globalThis.showSaveFilePicker !== undefined) {
      const handle = await globalThis.showSaveFilePicker({ suggestedName: name });
      const { body } = await hub.value.download({ file_id });
      showNotice(`${name} is being saved.`);
      await body?.pipeTo(await handle.createWritable());
      return showNotice(`${name} is saved.`);
    }
    const warning = `This browser must hold all ${sizeOf(size)} in memory before it saves the file. \`luxhub file get\` does not.`;
    if (isLarge && !(await askToConfirm(warning, "Download"))) return;
    const response = await hub.value.download({ file_id });
    saveBlob(await response.blob(), name);
  } catch (error) {
    const isGivenUp = error instanceof DOMException && error.name === "AbortError";
    if (!isGivenUp) showNotice(describe(error), true);
  }
}

/** Whether the file is answered without a secret. */
async function isOpen(file: FileRecord): Promise<boolean> {
  return (await fetch(addressOf(file), { method: "HEAD" })).ok;
}

/** Saves what the page holds as a file. */
export function saveBlob(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  saveFrom(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function saveFrom(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

const TEXT_BYTES = 64 * 1_024;
const PICTURE_BYTES = 10 * 2 ** 20;

/** What programs upload without a type, by their names. */
const TEXT_NAME =
  /\.(?:md|txt|log|csv|tsv|jsonl?|ya?ml|toml|ini|xml|html?|css|[jt]sx?|py|sh|sql|diff|patch)$/i;

function previewOf({ name, content_type, size }: FileRecord): "text" | "picture" | null {
  const type = mediaTypeOf(content_type);
  if (type === "application/octet-stream" && TEXT_NAME.test(name)) return "text";
  if (/^text\/|^application\/(?:json|xml|x-ndjson|toml|yaml)$/.test(type)) return "text";
  return /^image\/(?:png|jpeg|gif|webp|avif)$/.test(type) && size <= PICTURE_BYTES ? "picture" : null;
}

/** Without its parameters. */
function mediaTypeOf(contentType: string): string {
  return contentType.replace(/;.*/s, "").trim().toLowerCase();
}

/** JSON on one line with line breaks, if that changes nothing else; any other text as it is. */
function indented(text: string): string {
  const bare = (one: string): string => one.replaceAll(/\s/g, "");
  try {
    const lines = JSON.stringify(JSON.parse(text), null, 2);
    return bare(lines) === bare(text) ? lines : text;
  } catch {
    return text;
  }
}

/** Text as text, never as a page; a picture from a blob of its own type, which is one of those above. */
function Preview({ file }: { file: FileRecord }): JSX.Element {
  const isPicture = previewOf(file) === "picture";
  const { file_id } = file;
  const range = !isPicture && file.size > TEXT_BYTES ? `bytes=0-${TEXT_BYTES - 1}` : undefined;
  const loaded = useLoad(file_id, async (from, signal) => {
    const response = await from.download({ file_id, range }, { signal });
    return isPicture
      ? URL.createObjectURL(new Blob([await response.blob()], { type: mediaTypeOf(file.content_type) }))
      : indented(await response.text());
  });
  const { value, error } = loaded;
  useEffect(() => () => void (isPicture && value !== null && URL.revokeObjectURL(value)), [value]);
  if (value === null) return <Fault text={error} />;
  return isPicture ? (
    <img src={value} alt={file.name} />
  ) : (
    <>
      <pre class="text" tabIndex={0}>
        {value}
      </pre>
      {range && <p class="quiet">The first {sizeOf(TEXT_BYTES)}.</p>}
    </>
  );
}
