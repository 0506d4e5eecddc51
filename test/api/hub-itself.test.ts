/** What a hub does by itself, and what it shows of itself and its machine: its name, its page, pg/diagnostic. */
import { afterAll, expect, test } from "bun:test";
import { hostname, tmpdir } from "node:os";
import { ADMIN_KEY, SECRET, startHub } from "../support/hub.ts";
import { POSTGRES_MISSING } from "../support/postgres.ts";
import { dropSchemas } from "../support/schemas.ts";
import { play } from "../support/transcript.ts";
import { RESULT, VARIANTS, list, ok, pick, record, until } from "./scene.ts";

afterAll(dropSchemas);

test("does its periodic work by itself, each second", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.addNode("silent");
  hub.clock.pass(200_000);
  const isOffline = async () => (await hub.nodeOf("silent"))["status"] === "offline";
  await until("a sweep has looked at the nodes", isOffline);
});

test("a hub with a name has it in its status, its metrics and its page", async () => {
  await using hub = await startHub({ name: "prod-eu" });
  await play(hub, 'GET status -> name prod-eu\nmetrics -> text "~name=\\"prod-eu\\""');
  const page = await (await fetch(`${hub.base()}/`)).text();
  expect(page).toContain('<meta name="application-name" content="prod-eu">');
  await using other = await startHub();
  expect(await (await fetch(`${other.base()}/`)).text()).not.toContain("application-name");
});

test("poll, repeated with its cursor, misses nothing and repeats nothing", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const seen: unknown[] = [];
  const follow = (async () => {
    let cursor = 0;
    while (seen.length < 90) {
      const body = await ok(hub.get(`/poll?since=${cursor}&timeout=10`));
      seen.push(...pick(body, "events", "id"));
      cursor = Number(body["cursor"]);
    }
  })();
  const work = Array.from({ length: 30 }, async () => {
    const body = { task_id: await hub.addTaskOf("n1"), node_id: "n1", result: RESULT };
    await ok(hub.post("/task/complete", body));
  });
  await Promise.all([...work, follow]);
  const all = list(await ok(hub.get("/events?since=0&limit=1000")), "events");
  const ofTasks = all.filter((event) => String(event["kind"]).startsWith("task."));
  expect(seen).toEqual(ofTasks.map((event) => event["id"]));
});

test.each([
  ["sqlite", /^3\.\d+/],
  ["postgresql", /^\d\d\.\d+/],
] as const)("pg/diagnostic of %s: its size grows, and it helps no attacker", async (engine, version) => {
  if (engine === "postgresql" && POSTGRES_MISSING !== null) return;
  await using hub = await startHub({ engine });
  await hub.addNode("secret-node");
  for (const variant of VARIANTS) {
    const body = await ok(hub.get("/pg/diagnostic", { variant }));
    expect(body).toMatchObject({ engine, connected: true, engine_version: expect.stringMatching(version) });
    expect(Number(body["latency_ms"])).toBeGreaterThanOrEqual(0);
    expect(record(body["details"])).toBeDefined();
    const words = [hub.dataDir, tmpdir(), SECRET, ADMIN_KEY, "127.0.0.1", hostname(), ".db", "secret"];
    for (const word of words) expect([word, JSON.stringify(body).includes(word)]).toEqual([word, false]);
  }
  const size = async () => Number((await ok(hub.get("/pg/diagnostic")))["size_bytes"]);
  // Of what cannot be made small: PostgreSQL compresses long texts, and counts in pages of its own.
  const noise = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(32 * 1024))).toString("hex");
  // Again and again: on PostgreSQL other suites are in the same database, and may drop much of theirs at the same time.
  await until("it has grown", async () => {
    const before = await size();
    for (let i = 0; i < 4; i++) await hub.addTask({ description: noise() });
    return (await size()) > before + 100_000;
  });
});
