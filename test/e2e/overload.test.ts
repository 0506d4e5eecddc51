/**
 * Overload in short: the parts of `bun run torture --only overload` at smaller counts, and the limits that an operator
 * sets. The tests run concurrently, because they mostly wait.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type TLSSocket, connect } from "node:tls";
import { FACTS } from "../../src/store/sql/consistency.ts";
import { countReached, killDuringBroadcast } from "../../tools/torture/broadcasts.ts";
import { forEach } from "../../tools/torture/crowd.ts";
import { measureLargeBroadcast } from "../../tools/torture/large-broadcast.ts";
import { UNREAD_MIB_MAX, withHub } from "../../tools/torture/overload.ts";
import { measureSlow } from "../../tools/torture/slow.ts";
import { measureStalled } from "../../tools/torture/stalled.ts";
import { measureUnread } from "../../tools/torture/unread.ts";
import { Hub, SECRET, TempDir, memoryMib, until } from "./program.ts";
import { PROGRAM } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";
import { longTest } from "../support/long.ts";
import { RawConnection, headOf, postOf, uploadOf } from "./raw.ts";

const LINUX = process.platform === "linux";
const STALLED_MESSAGES = 700; // 107 MiB while it does not read

describe.concurrent.skipIf(!LINUX)(`overload${LINUX ? "" : " (needs /proc)"}`, () => {
  test("the largest broadcasts reach more streams than can buffer them at once", async () => {
    const count = 150;
    const { reached, grewMib } = await withHub((hub) => measureLargeBroadcast(hub, count));
    console.log(`${count} streams: ${grewMib.toFixed(0)} MiB`);
    expect(reached).toBe(count);
    expect(grewMib).toBeLessThan(count); // each has one MiB to get, twice
  });

  test("a hub that is killed during a broadcast: all nodes have it, or none, and an answered one has all", async () => {
    const nodes = 400;
    using dir = new TempDir();
    const data = dir.join("data");
    const answered = new Map<string, boolean>();
    for (const [round, afterMs] of [15, 40, HANG_MS].entries()) {
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
    expect(answered.get("2")).toBe(true);
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
  longTest("slow heads, bodies and chunks are cut off, and other callers are served meanwhile", async () => {
    const counts = { head: 100, body: 50, chunks: 50 };
    const { meanwhile, cut } = await withHub((hub) => measureSlow(hub, counts, 500));
    expect(meanwhile.count).toBeGreaterThan(0);
    for (const [kind, count] of Object.entries(counts)) {
      const report = cut[kind as keyof typeof counts]; // as it stands above
      expect([kind, report?.cut]).toEqual([kind, count]);
      expect(report?.statuses).toEqual(kind === "head" ? [""] : ["408"]);
    }
  });

  longTest("a stalled stream costs little memory and resumes without loss", async () => {
    const { grewMib, unreadMib, came } = await withHub((hub) => measureStalled(hub, STALLED_MESSAGES, false));
    console.log(`${grewMib.toFixed(0)} MiB beside a stream that does not read ${unreadMib.toFixed(0)} MiB`);
    expect(grewMib).toBeLessThan(unreadMib * (2 / 3)); // 17 to 31 were measured; the torture allows 48
    expect(came).toEqual(Array.from({ length: STALLED_MESSAGES }, (_, i) => i));
  });

  longTest("callers that ask for a large list and do not read cost little memory", async () => {
    const CALLERS = 60;
    const TASKS = 150;
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
        const grewMib = memoryMib(hub.pid, "VmHWM") - before;
        console.log(`${grewMib.toFixed(0)} MiB for ${CALLERS} pages of ${pageMib.toFixed(0)} MiB`);
        expect(grewMib).toBeLessThan(CALLERS * pageMib * (3 / 4)); // a quarter was measured
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
    const { askedMib, grewMib } = await withHub((hub) => measureUnread(hub, "history", 192, 300, false));
    console.log(`${grewMib.toFixed(0)} MiB for ${askedMib} MiB of history`);
    expect(askedMib).toBeGreaterThan(1.5 * UNREAD_MIB_MAX);
    expect(grewMib).toBeLessThan(UNREAD_MIB_MAX);
  },
);

describe.concurrent.skipIf(!LINUX)(`few file descriptors${LINUX ? "" : " (needs a shell's ulimit)"}`, () => {
  const withFew = (data: string, descriptors: number, args: readonly string[] = []): Promise<Hub> => {
    const command = ["sh", "-c", `ulimit -n ${descriptors}; exec "$@"`, "sh", ...PROGRAM];
    return Hub.start({ data, command, args });
  };
  /** Opens as many connections as the hub takes, and sends the same on each. */
  const openMany = async (port: number, count: number, text: string): Promise<RawConnection[]> => {
    const opened = await Promise.all(
      Array.from({ length: count }, () => RawConnection.open(port).catch(() => null)),
    );
    const connections = opened.filter((one) => one !== null);
    for (const connection of connections) connection.send(text);
    return connections;
  };
  const isServed = async (hub: Hub): Promise<boolean> => {
    const { status } = await hub.get("/status").catch(() => ({ status: 0 }));
    return status === 200;
  };

  test("streams take three quarters of them, the others get 503, and calls and uploads go on", async () => {
    using dir = new TempDir();
    await using hub = await withFew(dir.join("data"), 150);
    await hub.register("n1");
    const early = await openMany(hub.port, 60, headOf({ path: "/agent/sse?node_id=n1" }));
    await Promise.all(early.map((stream) => stream.got(/retry: 3000/)));
    const late = await openMany(hub.port, 240, headOf({ path: "/agent/sse?node_id=n1" }));
    await until(() => late.every(({ received, ending }) => received !== "" || ending !== null));
    expect(late.some(({ received }) => received.includes('"error":"overloaded"'))).toBe(true);
    await until(() => isServed(hub));
    const { head, before, after } = uploadOf(5);
    const upload = await RawConnection.open(hub.port);
    upload.send(`${head}${before}hello${after}`);
    await upload.got(/^HTTP\/1\.1 200 /);
    expect(early.map(({ ending }) => ending)).toEqual(early.map(() => null));
    for (const one of [...early, ...late, upload]) one.cut();
    await until(async () => {
      const [again] = await openMany(hub.port, 1, headOf({ path: "/agent/sse?node_id=n1" }));
      if (again === undefined) return false;
      const isOpen = await again.got(/retry: 3000/).then(
        () => true,
        () => false,
      );
      again.cut();
      return isOpen;
    });
    expect((await hub.stop()).code).toBe(0);
  });

  test("connections of a stranger that stay open after a request do not keep others out", async () => {
    using dir = new TempDir();
    await using hub = await withFew(dir.join("data"), 200);
    const poll = "GET /api/v1/poll?timeout=0.001 HTTP/1.1\r\nHost: x\r\n\r\n";
    const idle: RawConnection[] = [];
    for (let round = 0; round < 5; round++) {
      idle.push(...(await openMany(hub.port, 200, poll)));
      await until(() => isServed(hub));
    }
    for (const one of idle) one.cut();
    expect((await hub.stop()).code).toBe(0);
  });

  test("halves of heads that stay open keep nobody out, and a long poll that runs goes on", async () => {
    using dir = new TempDir();
    await using hub = await withFew(dir.join("data"), 150);
    await hub.register("n1");
    const poll = await RawConnection.open(hub.port);
    poll.send(postOf("/message/receive", { node_id: "n1", blocking: true, timeout: 300 }));
    const stalled: RawConnection[] = [];
    for (let round = 0; round < 5; round++) {
      stalled.push(...(await openMany(hub.port, 150, "GET /api")));
      await until(() => isServed(hub));
    }
    expect(poll.ending).toBeNull();
    await hub.post("/message/send", { from_node: "operator", to_node: "n1", content: "still there" });
    await poll.got(/still there/);
    expect(hub.program.stdout).not.toContain("no new connection is accepted");
    for (const one of [...stalled, poll]) one.cut();
    expect((await hub.stop()).code).toBe(0);
  });
});

test.skipIf(!LINUX)(
  `TLS connections without a request keep nobody out, and a stream goes on${LINUX ? "" : " (needs a shell's ulimit)"}`,
  async () => {
    using dir = new TempDir();
    const args = ["--tls", "auto", "--listen", "A+tls:127.0.0.1:0"];
    const command = ["sh", "-c", `ulimit -n 150; exec "$@"`, "sh", ...PROGRAM];
    await using hub = await Hub.start({ data: dir.join("data"), command, args });
    const port = hub.listeners.find(({ url }) => url.startsWith("https:"))?.port ?? 0;
    /** Null if the hub refuses it. */
    const open = (): Promise<TLSSocket | null> =>
      new Promise((resolve) => {
        const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => resolve(socket));
        socket.on("error", () => resolve(null)).on("close", () => resolve(null));
      });
    await hub.register("n1");
    const stream = (await open()) ?? expect.unreachable("the first connection was refused");
    let received = "";
    stream.on("data", (bytes) => (received += String(bytes)));
    stream.write(headOf({ path: "/agent/sse?node_id=n1" }));
    await until(() => received.includes("retry: 3000"));
    const silent: (TLSSocket | null)[] = [];
    for (let round = 0; round < 5; round++) {
      silent.push(...(await Promise.all(Array.from({ length: 150 }, open))));
      await until(async () => (await hub.get("/status").catch(() => ({ status: 0 }))).status === 200);
    }
    await hub.post("/message/send", { from_node: "operator", to_node: "n1", content: "still there" });
    await until(() => received.includes("still there"));
    for (const socket of [...silent, stream]) socket?.destroy();
    expect((await hub.stop()).code).toBe(0);
  },
);

test.concurrent(
  "a short pipeline is answered whole; one of thousands of requests is cut off after its first",
  async () => {
    using dir = new TempDir();
    await using hub = await Hub.start({ data: dir.join("data") });
    const rows: readonly (readonly [requests: number, answers: (count: number) => boolean])[] = [
      [20, (count) => count === 20],
      [5_000, (count) => count >= 1 && count < 500],
    ];
    for (const [requests, isRight] of rows) {
      const connection = await RawConnection.open(hub.port);
      connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(requests));
      const answers = (): number => connection.received.split("HTTP/1.1 200").length - 1;
      await until(() => answers() === requests || connection.ending !== null);
      expect([requests, answers(), isRight(answers())]).toEqual([requests, answers(), true]);
      connection.cut();
    }
    expect((await hub.get("/status")).status).toBe(200);
  },
);

test.concurrent("a busy store is 503 with Retry-After, and nothing is half done", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  await hub.register("n1");
  const holder = new Database(dir.join("data", "luxhub.db"));
  holder.run("PRAGMA busy_timeout = 5000"); // the hub may be writing
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
    expect(body["detail"]).toBe("The database is locked by another process. Try again in a second.");
  }
  const headers = { "X-Matrix-Secret": SECRET };
  expect((await hub.get("/message/history?node_id=n1", { headers })).body["count"]).toBe(0);
  const sent = await hub.post("/message/send", { from_node: "operator", to_node: "n1", content: "hello" });
  expect(sent.status).toBe(200);
});
