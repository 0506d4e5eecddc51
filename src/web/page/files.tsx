/** The list of files, with the form for an upload. */
import { type VNode, h } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import type { FileRecord } from "../../client/luxhub.ts";
import { type Fields, FormButton, type FormOf, act } from "./action.tsx";
import { FileLink, fileActions, mediaTypeOf } from "./file-actions.tsx";
import { commandOf, countOf, sizeOf } from "./format.ts";
import { ListPage } from "./list-page.tsx";
import type { ListOf, TableOf } from "./list.tsx";
import { Age, NodeLink, TaskId } from "./parts.tsx";
import { route } from "./route.ts";
import { mayAct } from "./session.ts";
import { Shared } from "./shared.ts";
import { upload } from "./upload.ts";

const PAGE = 50;

/** @param without the columns that a page has no use for */
export function filesOf(without: readonly string[] = []): ListOf<FileRecord> {
  const columns: TableOf<FileRecord>["columns"] = [
    ["Name", (file) => <FileLink file={file} />, "wide"],
    ["Size", (file) => sizeOf(file.size), "number"],
    ["Type", (file) => mediaTypeOf(file.content_type), "names"],
    ["Node", (file) => <NodeLink id={file.node_id} />],
    ["Task", (file) => <TaskId id={file.task_id} />],
    ["Attached as", (file) => file.attached],
    ["Uploaded", (file) => <Age at={file.uploaded_at} />],
  ];
  return {
    label: "Files",
    keyOf: ({ file_id }) => file_id,
    columns: columns.filter(([head]) => !without.includes(head)),
    actions: fileActions,
  };
}

const FILES = filesOf();

const NO_FILES = [
  "No files yet. Upload one here, or from a shell:",
  commandOf("file put report.pdf"),
] as const;

export function Files(): VNode {
  const { task, q } = route.value.query;
  return (
    <ListPage
      title="Files"
      more={
        mayAct() && <FormButton label="Upload a file" name="open-upload" look="primary" form={uploading} />
      }
      filters={[
        { name: "q", label: "Name", type: "search" },
        { name: "task", label: "Task", place: "address" },
      ]}
      load={(ask, { page, cursor }) => {
        const place = q ? { q, cursor } : { page: Number(page ?? 1) };
        return ask("file/list", { task_id: task, per_page: PAGE, ...place });
      }}
      count={({ total }) => total != null && countOf(total)}
      concerns={/^file\./}
      rows={({ files }) => files}
      list={FILES}
      empty={NO_FILES}
      noMatch={q ? "No file matches." : NO_FILES}
    />
  );
}

/** How much of the file is there; null: none is uploaded. */
const uploaded = new Shared<number | null>(null);

function Uploaded(): VNode | null {
  const [part, setPart] = useState(uploaded.value);
  useLayoutEffect(() => uploaded.follow(() => setPart(uploaded.value)), []);
  return part === null ? null : <progress aria-label="Upload" max={1} value={part} />;
}

async function send({ task_id }: Fields, form: HTMLFormElement): Promise<void> {
  const input = form.elements.namedItem("file");
  const file = input instanceof HTMLInputElement ? input.files?.[0] : undefined;
  if (file === undefined) return;
  try {
    await upload(file, task_id ? { task_id } : {}, (part) => (uploaded.value = part));
  } finally {
    uploaded.value = null;
  }
}

function uploading(): FormOf {
  return {
    action: act("upload", "Upload", send, "Uploaded.", { look: "primary" }),
    fields: [
      { name: "file", label: "File", type: "file", required: true },
      { name: "task_id", label: "Task (its id)" },
    ],
    beside: <Uploaded />,
  };
}
