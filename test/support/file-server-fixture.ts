/**
 * A separate server process for memory measurements: POST / stores an upload, GET /<blob id> returns it. Prints its port.
 * With "slow" as second argument every disk write is delayed, so that the sender is faster than the disk.
 */
import { openDiskBlobs } from "../../src/blobs/disk.ts";
import { downloadResponse } from "../../src/http/download.ts";
import { Problem } from "../../src/http/problem.ts";
import { readUpload } from "../../src/http/upload.ts";

const MIB = 1024 * 1024;
const [dataDir = "", pace = ""] = process.argv.slice(2);
const SLOW_WRITE_MS = 1;

const blobs = await openDiskBlobs(dataDir, {
  async write(file, bytes) {
    if (pace === "slow") await Bun.sleep(SLOW_WRITE_MS);
    return (await file.write(bytes)).bytesWritten;
  },
  datasync: (file) => file.datasync(),
});

async function upload(request: Request): Promise<Response> {
  const { file } = await readUpload(request, {
    limits: {
      fileMaxBytes: 1024 * MIB,
      textMaxBytes: { metadata: 1024 },
      partsMax: 4,
      partHeadersMaxBytes: 4096,
      fileNameMaxChars: 255,
    },
    openSink: () => blobs.begin(),
    deadline: new AbortController().signal,
  });
  const finished = await file.sink.finish();
  return Response.json({ blobId: file.sink.blobId, ...finished });
}

function download(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const sizeBytes = Number(url.searchParams.get("size"));
  const file = { name: "f", sizeBytes, sha256: "0", contentType: "", modifiedAt: 0 };
  const open = (start: number, end: number) => blobs.open(url.pathname.slice(1), start, end);
  return downloadResponse(request, file, open, async (content) => content);
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  development: false,
  maxRequestBodySize: 2048 * MIB,
  fetch: (request) => (request.method === "POST" ? upload(request) : download(request)),
  error: (error) =>
    error instanceof Problem
      ? Response.json(error, { status: error.status, headers: { ...error.extras.headers } })
      : new Response(String(error), { status: 500 }),
});
console.log(server.port);
