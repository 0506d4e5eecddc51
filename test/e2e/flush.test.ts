/**
 * A 200 means on disk: no answer to a write leaves the hub before the flush of its commit has returned, as strace sees
 * it. Then the same for a flush that fails. Skipped, with the reason, where nothing can be traced.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  type Asked,
  earlyAnswers,
  parseTrace,
  traceWrites,
  traced,
  whyNoTrace,
} from "../../tools/torture/flush-trace.ts";
import { FROM_SOURCE, PROGRAM } from "../support/executable.ts";
import { Hub, TempDir } from "./program.ts";

const reason = whyNoTrace();
if (reason !== null) console.log(`parts of e2e/flush.test.ts are skipped: ${reason}`);
const onLinux = reason === null ? test : test.skip;
const skipped = reason === null ? "" : ` (skipped: ${reason})`;

/** Writes at once, after one of each kind. */
const AT_ONCE = 32;

onLinux(`no answer to a write leaves before the flush of its commit has returned${skipped}`, async () => {
  const { asks, early } = await traceWrites(PROGRAM, AT_ONCE);
  expect(early).toEqual([]);
  expect(asks).toBe(10 + AT_ONCE);
});

onLinux(`the same program without the flush is found out, at every write${skipped}`, async () => {
  const [bun = "", ...words] = FROM_SOURCE;
  const { asks, early } = await traceWrites(
    [bun, "--preload", join(import.meta.dir, "sync-off.ts"), ...words],
    AT_ONCE,
  );
  expect(early.filter((fault) => fault.endsWith("the log was not flushed before the answer"))).toHaveLength(
    asks,
  );
});

onLinux(
  `a failed flush is logged and 500 for its own commit only, and the hub continues${skipped}`,
  async () => {
    using dir = new TempDir();
    const inject = ["-e", "inject=fsync,fdatasync:error=EIO:when=40..42"];
    const command = traced(dir.join("trace"), PROGRAM, inject);
    await using hub = await Hub.start({ command, data: dir.join("data") });
    const statuses = new Map<string, number>();
    for (let i = 0; i < 60; i++) {
      const { status, body } = await hub.post("/task/create", { title: `task ${i}`, description: "d" });
      statuses.set(`task ${i}`, status);
      if (status === 200) continue;
      expect([status, body["error"]]).toEqual([500, "outcome_unknown"]);
    }
    const taken = [...statuses].filter(([, status]) => status === 200).map(([title]) => title);
    // Three flushes fail, each with a commit. Two of these commits may be the hub's own tries.
    expect(statuses.size - taken.length).toBeGreaterThanOrEqual(1);
    expect(statuses.size - taken.length).toBeLessThanOrEqual(3);
    expect((await hub.get("/status")).body["status"]).toBe("ok");
    const titles = new Set<unknown>();
    for (const page of [1, 2]) {
      const { body } = await hub.get(`/task/list?per_page=50&page=${page}`);
      for (const { title } of JSON.parse(JSON.stringify(body["tasks"]))) titles.add(title);
    }
    expect([...titles].toSorted()).toEqual(taken.toSorted());
    await hub.stop();
    const logged = hub.program.stdout.split("\n").filter((line) => line.includes("request failed"));
    expect(logged).toHaveLength(statuses.size - taken.length);
    for (const line of logged) expect(line).toContain("disk I/O error");
  },
);

describe("the reader of the trace", () => {
  const ask = '7 recvfrom(9<socket:[1]>, "POST / HTTP/1.1\\r\\nX-Request-Id: a\\r\\n", 99, 0) = 60';
  const write = '7 pwrite64(5</d/luxhub.db-wal>, "page with a mark-1 in it", 24, 0) = 24';
  const flush = "7 fsync(5</d/luxhub.db-wal>) = 0";
  const answer = '7 sendto(9<socket:[1]>, "HTTP/1.1 200 OK\\r\\nX-Request-Id: a\\r\\n", 99, 0) = 60';
  const blob = '8 write(6</d/files/.partial/x>, "bytes", 5) = 5';
  const rows: readonly (readonly [string, Asked, readonly string[], readonly string[]])[] = [
    ["in order", { id: "a", mark: "mark-1" }, [ask, write, flush, answer], []],
    ["fdatasync", { id: "a" }, [ask, write, flush.replace("fsync", "fdatasync"), answer], []],
    [
      "a flush that returns in time",
      { id: "a" },
      [ask, write, "8 fsync(5</d/luxhub.db-wal> <unfinished ...>", "8 <... fsync resumed>) = 0", answer],
      [],
    ],
    [
      "a flush that returns too late",
      { id: "a" },
      [ask, write, "8 fsync(5</d/luxhub.db-wal> <unfinished ...>", answer, "8 <... fsync resumed>) = 0"],
      ["a: the log was not flushed before the answer"],
    ],
    [
      "a flush that began before the write",
      { id: "a" },
      [ask, "8 fsync(5</d/luxhub.db-wal> <unfinished ...>", write, "8 <... fsync resumed>) = 0", answer],
      ["a: the log was not flushed before the answer"],
    ],
    [
      "a flush that failed",
      { id: "a" },
      [ask, write, "7 fsync(5</d/luxhub.db-wal>) = -1 EIO (Input/output error) (INJECTED)", answer],
      ["a: the log was not flushed before the answer"],
    ],
    [
      "a flush of another file",
      { id: "a" },
      [ask, write, "7 fsync(6</d/luxhub.db>) = 0", answer],
      ["a: the log was not flushed before the answer"],
    ],
    [
      "a write after the flush",
      { id: "a" },
      [ask, write, flush, write, answer],
      ["a: the log was not flushed before the answer"],
    ],
    [
      "an answer before anything is written",
      { id: "a", mark: "mark-1" },
      [ask, answer, write, flush],
      ["a: the log was not written before the answer", 'a: "mark-1" was not written before the answer'],
    ],
    [
      "another's write",
      { id: "a", mark: "mark-2" },
      [ask, write, flush, answer],
      ['a: "mark-2" was not written before the answer'],
    ],
    [
      "a file that is not flushed",
      { id: "a", upload: true },
      [ask, blob, write, flush, answer],
      ["a: the file was not flushed before the answer"],
    ],
    ["an answer that is not there", { id: "a" }, [ask, write, flush], ["a: not in the trace"]],
  ];
  for (const [name, asked, lines, faults] of rows)
    test(name, () => expect(earlyAnswers(parseTrace(lines.join("\n")), [asked])).toEqual(faults));
});
