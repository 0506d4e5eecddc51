/**
 * Large files for the tests of the program: generated while they are sent, hashed while they are read, never held in
 * memory.
 */
import { expect } from "bun:test";
import type { Hub } from "./program.ts";
import { uploadOf } from "./raw.ts";

export const MIB = 2 ** 20;

/** So many MiB of bytes that repeat nowhere, made as they are read; `hash` sees all of them. */
function bytesOf(mib: number, hash: Bun.CryptoHasher): ReadableStream<Uint8Array> {
  const block = new Uint8Array(MIB);
  for (let at = 0; at < MIB; at += 65_536) crypto.getRandomValues(block.subarray(at, at + 65_536));
  let made = 0;
  return new ReadableStream(
    {
      pull(controller) {
        if (made === mib) return controller.close();
        const piece = block.slice();
        new DataView(piece.buffer).setUint32(0, made++);
        hash.update(piece);
        controller.enqueue(piece);
      },
    },
    { highWaterMark: 2 },
  );
}

/** The body of an upload around a stream of bytes. */
async function* multipart(bytes: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { before, after } = uploadOf(0);
  yield Buffer.from(before);
  yield* bytes;
  yield Buffer.from(after);
}

/** Uploads so many MiB and answers the id and the hash, which the hub's must equal. */
export async function upload(hub: Hub, mib: number): Promise<{ fileId: string; sha256: string }> {
  const hash = new Bun.CryptoHasher("sha256");
  const { head } = uploadOf(0);
  const contentType = /Content-Type: ([^\r]+)/.exec(head)?.[1] ?? "";
  const answer = await hub.call("POST", "/file/upload", {
    body: multipart(bytesOf(mib, hash)),
    headers: { "Content-Type": contentType },
  });
  const sha256 = hash.digest("hex");
  expect(answer.body).toMatchObject({ success: true, size: mib * MIB, sha256 });
  return { fileId: String(answer.body["file_id"]), sha256 };
}

/** Downloads a file: its size and its hash. */
export async function download(hub: Hub, fileId: string): Promise<{ size: number; sha256: string }> {
  const response = await fetch(`${hub.api}/file/download/${fileId}`);
  const hash = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const piece of response.body ?? []) {
    hash.update(piece);
    size += piece.length;
  }
  return { size, sha256: hash.digest("hex") };
}
