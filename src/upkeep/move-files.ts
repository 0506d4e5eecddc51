/**
 * Copies the bytes of files from one blob store to another. A file that the target already has, byte for byte, is skipped,
 * so that an interrupted move continues where it stopped.
 *
 * Invariant: a file becomes visible in the target only when its bytes match the checksum in its record.
 */
import type { BlobContent, Blobs } from "../blobs/blobs.ts";
import { type Tools, sizeText } from "./upkeep.ts";
import { codeOf } from "../lib/reason.ts";

export type FileRecord = { readonly fileId: string; readonly size: number; readonly sha256: string };

export type FilesCopied = { readonly files: number; readonly bytes: number; readonly found: number };

/** Files copied concurrently: one waits for a flush while another is read. */
const AT_ONCE = 3;
/** How many files an error names. */
const SHOWN = 5;

/**
 * Copies every file that `records` names.
 * @throws {Error} one line that names the files whose bytes are missing or damaged, after all others have been copied
 */
export async function copyFiles(
  from: Blobs,
  to: Blobs,
  records: AsyncGenerator<FileRecord>,
  all: { readonly files: number; readonly bytes: number },
  tools: Tools,
): Promise<FilesCopied> {
  const damaged: string[] = [];
  const done = { files: 0, bytes: 0, found: 0 };
  const onBytes = (bytes: number): void => {
    tools.signal.throwIfAborted();
    done.bytes += bytes;
    tools.onProgress(`copying ${all.files} files: ${sizeText(done.bytes)} of ${sizeText(all.bytes)}`);
  };
  const work = async (): Promise<void> => {
    for (let next = await records.next(); !next.done; next = await records.next()) {
      const outcome = await copyFile(from, to, next.value, onBytes);
      done.files++;
      if (outcome === "found") done.found++;
      if (outcome === "damaged") damaged.push(next.value.fileId);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  if (damaged.length === 0) return done;
  const more = damaged.length > SHOWN ? ` and ${damaged.length - SHOWN} more` : "";
  throw new Error(
    `the bytes of ${damaged.slice(0, SHOWN).join(", ")}${more} are gone or not what was uploaded: ` +
      `restore them from a backup, or start the hub, delete these files and stop it; then move again`,
  );
}

async function copyFile(
  from: Blobs,
  to: Blobs,
  record: FileRecord,
  onBytes: (bytes: number) => void,
): Promise<"copied" | "found" | "damaged"> {
  if (await isThere(to, record, onBytes)) return "found";
  await to.remove(record.fileId); // an existing blob of this id has other bytes
  const content = await from.open(record.fileId, 0, record.size);
  if (content === null) return "damaged";
  const writer = await to.begin(record.fileId);
  try {
    const sha256 = await hashOf(content, async (chunk) => {
      onBytes(chunk.byteLength);
      await writer.write(chunk);
    }).catch((error: unknown) => gone(error));
    if (sha256 !== record.sha256 || writer.size !== record.size) return "damaged";
    await writer.finish();
    return "copied";
  } finally {
    await writer.discard(); // has no effect after finish()
  }
}

async function isThere(place: Blobs, record: FileRecord, onBytes: (bytes: number) => void): Promise<boolean> {
  const content = await place.open(record.fileId, 0, record.size);
  if (content === null || (await place.open(record.fileId, 0, record.size + 1)) !== null) return false;
  let bytes = 0;
  const sha256 = await hashOf(content, (chunk) => {
    bytes += chunk.byteLength;
    onBytes(chunk.byteLength);
  }).catch((error: unknown) => gone(error));
  if (sha256 === record.sha256) return true;
  onBytes(-bytes); // copying counts them again
  return false;
}

async function hashOf(
  content: BlobContent,
  take: (chunk: Uint8Array) => Promise<void> | void,
): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const stream = content instanceof ReadableStream ? content : content.stream();
  for await (const chunk of stream) {
    hash.update(chunk);
    await take(chunk);
  }
  return hash.digest("hex");
}

/** Bytes that the disk cannot read count as missing. */
function gone(error: unknown): null {
  if (codeOf(error) === "EIO") return null;
  throw error;
}
