/** Download, deletion, and a preview of texts and pictures that executes nothing. */
import { Fragment, type VNode, h } from "preact";
import { useEffect } from "preact/hooks";
import type { FileRecord } from "../../client/luxhub.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { sizeOf } from "./format.ts";
import { type ActionItem, act, deletion, isConfirmed } from "./action.tsx";
import { showDialog } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { showNotice } from "./notice.tsx";
import { Fault } from "./parts.tsx";
import { call, describe, hub, mayActFor } from "./session.ts";

const addressOf = ({ file_id }: FileRecord): string => `api/v1/file/download/${encodeURIComponent(file_id)}`;

/**
 * Its name, which shows the file, or else downloads it. Its address alone opens the file only where the hub asks for no
 * secret.
 */
export function FileLink({ file }: { file: FileRecord }): VNode {
  const isShown = previewOf(file) !== null;
  return (
    <a
      class="row"
      href={addressOf(file)}
      download={file.name}
      title={file.name}
      data-do={isShown ? "preview" : "download"}
      onClick={(event) => {
        event.preventDefault();
        if (isShown) show(file);
        else void download(file);
      }}
    >
      {file.name}
    </a>
  );
}

export function fileActions(file: FileRecord): readonly ActionItem[] {
  return [
    act("download", "Download", () => download(file)),
    mayActFor(file.node_id) &&
      deletion("delete-file", `Delete ${file.name} permanently?`, () =>
        call("file/delete", { file_id: file.file_id }),
      ),
  ];
}

function show(file: FileRecord): void {
  showDialog({ title: file.name, body: <Preview file={file} />, close: "Close" });
}

// ---- Download and preview

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
    const text = `This browser must hold all ${sizeOf(size)} in memory before it saves the file. \`luxhub file get\` does not.`;
    if (isLarge && !(await isConfirmed({ text, yes: "Download" }))) return;
    const response = await hub.value.download({ file_id });
    saveBlob(await response.blob(), name);
  } catch (error) {
    const isGivenUp = error instanceof DOMException && error.name === "AbortError";
    if (!isGivenUp) showNotice(describe(error), true);
  }
}

async function isOpen(file: FileRecord): Promise<boolean> {
  return (await fetch(addressOf(file), { method: "HEAD" })).ok;
}

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
const DRAWING_BYTES = 2 ** 20;
const DRAWING = "image/svg+xml";

const TEXT_NAME =
  /\.(?:md|txt|log|csv|tsv|jsonl?|ya?ml|toml|ini|xml|html?|css|[jt]sx?|py|sh|sql|diff|patch)$/i;

function previewOf({ name, content_type, size }: FileRecord): "text" | "picture" | "drawing" | null {
  const type = mediaTypeOf(content_type);
  if (type === DRAWING && size <= DRAWING_BYTES) return "drawing";
  if (type === "application/octet-stream" && TEXT_NAME.test(name)) return "text";
  if (/^text\/|^application\/(?:json|xml|x-ndjson|toml|yaml)$/.test(type)) return "text";
  return /^image\/(?:png|jpeg|gif|webp|avif)$/.test(type) && size <= PICTURE_BYTES ? "picture" : null;
}

export function mediaTypeOf(contentType: string): string {
  return contentType.replace(/;.*/s, "").trim().toLowerCase();
}

/** JSON on one line with line breaks, if that changes nothing else; any other text as it is. */
function indented(text: string): string {
  const bare = (spaced: string): string => spaced.replaceAll(/\s/g, "");
  try {
    const lines = JSON.stringify(parseExact(text), null, 2);
    return bare(lines) === bare(text) ? lines : text;
  } catch {
    return text;
  }
}

/**
 * Text as text, never as a page; a picture from a blob of its own type, which is one of those above. A drawing has an
 * address of another origin (data:), so that no script in it is one of the page, also if the user opens it in a tab.
 */
function Preview({ file }: { file: FileRecord }): VNode {
  const form = previewOf(file);
  const { file_id } = file;
  const range = form === "text" && file.size > TEXT_BYTES ? `bytes=0-${TEXT_BYTES - 1}` : undefined;
  const { value, error } = useLoad(file_id, async (_, signal) => {
    const response = await hub.value.download({ file_id, range }, { signal });
    if (form === "picture")
      return URL.createObjectURL(new Blob([await response.blob()], { type: mediaTypeOf(file.content_type) }));
    const text = await response.text();
    return form === "drawing" ? `data:${DRAWING},${encodeURIComponent(text)}` : indented(text);
  });
  useEffect(() => () => void (form === "picture" && value !== null && URL.revokeObjectURL(value)), [value]);
  if (value === null) return <Fault text={error} />;
  return form !== "text" ? (
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
