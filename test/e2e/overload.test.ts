/**
 * Overload in short: the parts of `bun run torture --only overload` at smaller counts, and the limits that an operator
 * sets. The tests run concurrently, because they mostly wait.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { countReached, killDuringBroadcast } from "../torture/broadcasts.ts";
import { forEach } from "../torture/crowd.ts";
import { measureLargeBroadcast } from "../torture/large-broadcast.ts";
import { STALLED_GROWTH_MIB_MAX, UNREAD_MIB_MAX, withHub } from "../torture/overload.ts";
import { measureSlow } from "../torture/slow.ts";
import { measureStalled } from "../torture/stalled.ts";
import { measureUnread } from "../torture/unread.ts";
import { Hub, SECRET, TempDir, memoryMib, until } from "./program.ts";
import { PROGRAM } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";
import { RawConnection, headOf, uploadOf } from "./raw.ts";

const LINUX = process.platform === "linux";
const STALLED_MESSAGES = 200;

describe.concurrent.skipIf(!LINUX)(`overload${LINUX ? "" : " (needs /proc)"}`, () => {
  test("the largest broadcasts reach more streams than can buffer them at once", async () => {
    const count = 300;
    const { reached, grewMib } = await withHub((hub) => measureLargeBroadcast(hub, count));
    expect(reached).toBe(count);
    expect(grewMib).toBeLessThan(count); // each has one MiB to get, twice
  });

  test("a hub that is killed during a broadcast: all nodes have it, or none, and an answered one has all", async () => {
    const nodes = 600;
    using dir = new TempDir();
    const data = dir.join("data");
    const answered = new Map<string, boolean>();
    for (const [round, afterMs] of [15, 40, 80, HANG_MS].entries()) {
      await using hub = await Hub.start({ data });
      if (round === 0) await forEach(nodes, (i) => hub.register(`node-${i}`));
      answered.set(`${round}`, await killDuringBroadcast(hub, `${round}`, afterMs));
    }
    await using hub = await Hub.start({ data });
    const counts = await countReached(hub, nodes);
    for (const [content, isAnswered] of answered) {
      const count = counts.get(content) ?? 0;
      expect([0, nodes]).toContain(count);
      if (isAnswered) expect(count).toBe(nodes);
    }
    expect(answered.get("3")).toBe(true);
    await until(() => {
      const db = new Database(join(data, "luxhub.db"), { readonly: true });
      const left = db.query("SELECT 1 FROM broadcasts WHERE write_until IS NOT NULL").values().length;
      db.close();
      return left === 0;
    });
    await hub.stop();
    const db = new Database(join(data, "luxhub.db"), { readonly: true });
    for (const { name, sql } of FACTS) expect([name, db.query(sql).values()]).toEqual([name, []]);
    db.close();
  });

  // Slow uploads are cut after 25 s; upload.test.ts tests what cuts them, and the torture waits for it. The torture also
  // measures how soon slow callers are cut, and what others notice of them.
  test("slow heads, bodies and chunks are cut off, and other callers are served meanwhile", async () => {
    const counts = { head: 100, body: 50, chunks: 50 };
    const { meanwhile, cut } = await withHub((hub) => measureSlow(hub, counts, 500));
    expect(meanwhile.count).toBeGreaterThan(0);
    for (const [kind, count] of Object.entries(counts)) {
      const report = cut[kind as keyof typeof counts]; // as it stands above
      expect([kind, report?.cut]).toEqual([kind, count]);
      expect(report?.statuses).toEqual(kind === "head" ? [""] : ["408"]);
    }
  });

  test("a stalled stream costs little memory and resumes without loss", async () => {
    const { grewMib, came } = await withHub((hub) => measureStalled(hub, STALLED_MESSAGES, false));
    expect(grewMib).toBeLessThan(STALLED_GROWTH_MIB_MAX);
    expect(came).toEqual(Array.from({ length: STALLED_MESSAGES }, (_, i) => i));
  });

  test("callers that ask for a large list and do not read cost little memory", async () => {
    const CALLERS = 60;
    const TASKS = 300;
    const description = "d".repeat(60_000);
    await withHub(
      async (hub) => {
        for (let i = 0; i < TASKS; i++) await hub.post("/task/create", { title: `${i}`, description });
        const before = memoryMib(hub.pid, "VmHWM");
        const sockets = await Promise.all(
          Array.from({ length: CALLERS }, () =>
            Bun.connect({ hostname: "127.0.0.1", port: hub.port, socket: { data: () => {} } }),
          ),
        );
        for (const socket of sockets) {
          socket.pause();
          socket.write(headOf({ path: "/task/list" }));
        }
        // Each is answered as far as it goes; others are answered beside them.
        for (let i = 0; i < 20; i++) expect((await hub.get("/status")).status).toBe(200);
        const whole = await hub.get("/task/list");
        expect(whole.body["total"]).toBe(TASKS);
        const pageMib = (TASKS * description.length) / 2 ** 20;
        expect(memoryMib(hub.pid, "VmHWM") - before).toBeLessThan((CALLERS * pageMib) / 2);
        for (const socket of sockets) socket.terminate();
      },
      ["--variant", "B"],
    );
  });
});

// Not beside the others: it is about how much is held at once. The torture has the other large answers.
test.skipIf(!LINUX)(
  `callers that ask for a large history and do not read cost little memory${LINUX ? "" : " (needs /proc)"}`,
  async () => {
    const { askedMib, grewMib } = await withHub((hub) => measureUnread(hub, "history", 192, 500, false));
    console.log(`${grewMib.toFixed(0)} MiB for ${askedMib} MiB of history`);
    expect(askedMib).toBeGreaterThan(1.5 * UNREAD_MIB_MAX);
    expect(grewMib).toBeLessThan(UNREAD_MIB_MAX);
  },
);

test.concurrent.skipIf(!LINUX)(
  `out of file descriptors: open connections are served, new ones wait, an upload is 503${LINUX ? "" : " (needs a shell's ulimit)"}`,
  async () => {
    using dir = new TempDir();
    const command = ["sh", "-c", 'ulimit -n 150; exec "$@"', "sh", ...PROGRAM];
    await using hub = await Hub.start({ data: dir.join("data"), command });
    await hub.register("n1");
    const early = await RawConnection.open(hub.port);
    early.send(headOf({ path: "/status" }));
    await early.got(/\}$/);
    const streams = await Promise.all(Array.from({ length: 300 }, () => RawConnection.open(hub.port)));
    for (const stream of streams) stream.send(headOf({ path: "/agent/sse?node_id=n1" }));
    const answered = (): number => streams.filter(({ received }) => received !== "").length;
    await until(() => answered() > 100);
    early.received = "";
    const { head, before, after } = uploadOf(5);
    early.send(`${head}${before}hello${after}`);
    await early.got(/\}$/);
    expect(early.received).toMatch(/^HTTP\/1\.1 503 /);
    expect(early.received).toMatch(/\r\nRetry-After: 1\r\n/i);
    expect(early.received).toContain('"error":"overloaded"');
    expect(answered()).toBeLessThan(150);
    for (const stream of streams.slice(0, 250)) stream.cut();
    await until(() => streams.slice(250).every(({ received }) => received.includes("retry: 3000")));
    const again = await RawConnection.open(hub.port);
    again.send(`${head}${before}hello${after}`);
    await again.got(/^HTTP\/1\.1 200 /);
    for (const one of [...streams, early, again]) one.cut();
    expect((await hub.stop()).code).toBe(0);
  },
);

test.concurrent("a busy store is 503 with Retry-After, and nothing is half done", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  await hub.register("n1");
  const holder = new Database(dir.join("data", "luxhub.db"));
  holder.run("BEGIN IMMEDIATE");
  const answers = await Promise.all(
    Array.from({ length: 5 }, () =>
      hub.post("/message/send", { from_node: "operator", to_node: "n1", content: "hello" }),
    ),
  );
  holder.run("ROLLBACK");
  holder.close();
  for (const { status, headers, body } of answers) {
    expect([status, body["error"], headers.get("retry-after")]).toEqual([503, "overloaded", "1"]);
  }
  const headers = { "X-Matrix-Secret": SECRET };
  expect((await hub.get("/message/history?node_id=n1", { headers })).body["count"]).toBe(0);
  const sent = await hub.post("/message/send", { from_node: "operator", to_node: "n1", content: "hello" });
  expect(sent.status).toBe(200);
});
