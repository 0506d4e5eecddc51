/** Files that the hub serves compressed: each form is made once, and a form that could not be made is tried again. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { sendFile } from "../../src/http/coded-file.ts";

test("a file whose forms could not be made is made at the next request", async () => {
  const directory = mkdtempSync(join(tmpdir(), "luxhub-test-"));
  try {
    const path = join(directory, "late.txt");
    const text = "Not there yet. ".repeat(100);
    const file = { content: Bun.file(path), type: "text/plain", etag: '"1"' };
    const ask = (): Promise<Response> =>
      sendFile(new Request("http://hub/", { headers: { "Accept-Encoding": "gzip" } }), file, {});
    await expect(ask()).rejects.toThrow("ENOENT");
    await Bun.write(path, text);
    const response = await ask();
    expect(response.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(await response.bytes()).toString()).toBe(text);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
