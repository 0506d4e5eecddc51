/**
 * Large files through the real program: memory stays flat, a download returns the same bytes, and an interrupted upload
 * leaves nothing.
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { GREW_MAX_MIB, measureLargeFile } from "../../tools/torture/large-files.ts";
import { MIB } from "./large-file.ts";
import { Hub, TempDir, objectOf, until } from "./program.ts";
import { RawConnection, uploadOf } from "./raw.ts";

/** More than the memory may grow by; the torture sends 1 GiB. */
const FILE_MIB = 160;

test.skipIf(process.platform !== "linux")(
  `${FILE_MIB} MiB up and down leave the memory where it was${process.platform === "linux" ? "" : " (needs /proc)"}`,
  async () => {
    using dir = new TempDir();
    await using hub = await Hub.start({ data: dir.join("data") });
    const { isSame, grewMib } = await measureLargeFile([hub, hub], FILE_MIB);
    console.log(`${FILE_MIB} MiB up and down: ${grewMib.toFixed(0)} MiB`);
    expect(isSame).toBe(true);
    expect(grewMib).toBeLessThan(GREW_MAX_MIB);
  },
);

/** The names of files in the data directory, without the folders they lie in. */
function filesIn(data: string): readonly string[] {
  return readdirSync(`${data}/files`, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

test("an upload that is cut off leaves nothing", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  const { head, before } = uploadOf(8 * MIB);
  for (const sent of [0, 1, MIB, 5 * MIB]) {
    const connection = await RawConnection.open(hub.port);
    connection.send(head + before + "x".repeat(sent));
    if (sent > 0) await until(() => filesIn(data).length === 1);
    connection.cut();
    await until(() => filesIn(data).length === 0);
  }
  expect((await hub.get("/file/list")).body).toMatchObject({ total: 0, files: [] });
  expect((await hub.get("/status")).status).toBe(200);
});

test("an upload over the limit is refused midway and leaves nothing", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data, args: ["--max-file", "64KiB"] });
  const { head, before, after } = uploadOf(70_000);
  const connection = await RawConnection.open(hub.port);
  connection.send(head + before + "x".repeat(70_000) + after);
  await connection.got(/^HTTP\/1\.1 413 [\s\S]*\r\n\r\n\{[\s\S]*\}$/);
  const body = objectOf(connection.received.slice(connection.received.indexOf("{")));
  expect(body).toMatchObject({ success: false, error: "body_too_large", status: 413 });
  await until(() => filesIn(data).length === 0);
});

test("an upload that a kill interrupts is swept at the next start", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data });
  const { head, before } = uploadOf(8 * MIB);
  const connection = await RawConnection.open(hub.port);
  connection.send(head + before + "x".repeat(MIB));
  await until(() => filesIn(data).length === 1);
  hub.program.child.kill("SIGKILL");
  await hub.program.ended;
  expect(filesIn(data)).toHaveLength(1);
  await using next = await Hub.start({ data });
  expect(filesIn(data)).toEqual([]);
  expect((await next.get("/file/list")).body).toMatchObject({ total: 0 });
});
