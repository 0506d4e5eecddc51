/** A backup of the real program under load, restored elsewhere (the short form of torture/backup.ts), and its messages. */
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { backUpUnderLoad } from "../../tools/torture/backup.ts";
import { Hub, TempDir, run, withoutProgress } from "./program.ts";

test("a backup is one snapshot with everything that was acknowledged before it began", async () => {
  const options = { files: 16, fileBytes: 1024 * 1024, warmUpMs: 300, pauseMs: 10 };
  const report = await backUpUnderLoad(options, () => {});
  console.log(`backup under load: ${JSON.stringify(report)}`);
  expect(report.faults).toEqual([]);
  // It was under load: writers that stand still prove nothing.
  expect(report.writes.before).toBeGreaterThan(100);
  expect(report.writes.during).toBeGreaterThan(50);
  expect(report.deletedMeanwhile).toBeGreaterThan(0);
  expect(report.memoryMib).toBeLessThan(128);
});

test("the commands report the result, and where the secrets are", async () => {
  using dir = new TempDir();
  const data = dir.join("data");
  const to = dir.join("hub.tar");
  await using hub = await Hub.start({ data, ownSecrets: false });
  await hub.register("worker-1");
  const made = await run(["backup", to, "--data", data]);
  expect([made.code, withoutProgress(made.stderr)]).toEqual([0, ""]);
  expect(made.stdout).toMatch(/^\S+hub\.tar: [\d.]+ KiB, 0 files, as of 2\S+Z\nIt contains the secrets: /);
  expect((statSync(to).mode & 0o777).toString(8)).toBe("600");
  const restored = await run(["restore", to, "--data", dir.join("again")]);
  expect([restored.code, withoutProgress(restored.stderr)]).toEqual([0, ""]);
  expect(restored.stdout).toMatch(/again: the hub as of 2\S+Z, 0 files\. Start it with: luxhub serve --data/);
  await using again = await Hub.start({ data: dir.join("again"), ownSecrets: false });
  again.secret = hub.secret; // it came along
  expect((await again.get("/node/worker-1")).status).toBe(200);
  expect((await again.get("/lux/ledger?node_id=worker-1")).status).toBe(200);

  await using other = await Hub.start({ data: dir.join("other") }); // its secrets are in its environment
  expect((await other.get("/status")).status).toBe(200);
  const without = await run(["backup", dir.join("other.tar"), "--data", dir.join("other")]);
  expect(without.stdout).toContain(
    "It does not contain the secrets, because they are not in the data directory",
  );
  const twice = await run(["backup", to, "--data", data]);
  expect(twice).toMatchObject({
    code: 1,
    stdout: "",
    stderr: `luxhub: ${to} already exists; choose another name\n`,
  });
  const full = await run(["restore", to, "--data", data]);
  expect([full.code, full.stdout]).toEqual([1, ""]);
  expect(full.stderr).toMatch(/^luxhub: \S+data is not empty; [^\n]+\n$/);
});
