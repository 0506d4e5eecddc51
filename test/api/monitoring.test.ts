/** Monitoring: /healthz, /readyz and /metrics, which are outside /api/v1. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { monitoringEndpoints } from "../../src/api/monitoring.ts";
import { NO_COPIES } from "../../src/service/copies.ts";
import { Readiness } from "../../src/service/readiness.ts";
import { SECRET, TestClock, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { VARIANTS, ok, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);

const SHOWN = { "X-Matrix-Secret": SECRET };

/** The samples of a hub's metrics, by name and labels as they are written. */
async function samplesOf(hub: TestHub): Promise<ReadonlyMap<string, number>> {
  hub.clock.pass(1_000); // what is stored is read once a second
  const response = await fetch(`${hub.base()}/metrics`, { headers: SHOWN });
  expect(response.status).toBe(200);
  const lines = (await response.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(" ")),
      Number(line.slice(line.lastIndexOf(" ") + 1)),
    ]),
  );
}

describe("the metrics", () => {
  let hub: TestHub;
  beforeAll(async () => {
    hub = await startHub();
  });
  afterAll(() => hub.close());

  once.test("are made once for calls that arrive together", async () => {
    const read = async (): Promise<string> =>
      (await fetch(`${hub.base()}/metrics`, { headers: SHOWN })).text();
    const texts = await Promise.all(Array.from({ length: 60 }, read));
    expect(texts[0]).toContain("process_cpu_seconds_total "); // differs in each text that is made
    expect(new Set(texts).size).toBeLessThan(texts.length / 2);
  });

  once.test("ask for the secret on both variants, in either header", async () => {
    for (const variant of VARIANTS) {
      const url = `${hub.base(variant)}/metrics`;
      for (const headers of [
        SHOWN,
        { Authorization: `Bearer ${SECRET}` },
        { Authorization: `bearer  ${SECRET}` },
      ]) {
        const response = await fetch(url, { headers });
        expect(response.status).toBe(200);
        expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
        expect(await response.text()).toEndWith("\n");
      }
      for (const headers of [
        {},
        { Authorization: "Bearer no" },
        { Authorization: SECRET },
        { "X-Matrix-Secret": "no" },
      ]) {
        const response = await fetch(url, { headers });
        expect(response.status).toBe(401);
        expect(response.headers.get("www-authenticate")).toInclude("X-Matrix-Secret");
      }
      const head = await fetch(url, { method: "HEAD", headers: SHOWN });
      expect([head.status, await head.text()]).toEqual([200, ""]);
    }
  });

  test("show the stored data, and the activity of this hub", async () => {
    const before = await samplesOf(hub);
    await hub.addNodes(["m1", "m2", "m3", "m4"]);
    await ok(hub.post("/node/leave", { node_id: "m3" }));
    await ok(hub.post("/node/drain", { node_id: "m4", drain: true }));
    await hub.addTask({ delay_s: 3_600 }); // waits: it is not ready
    const taskId = await hub.addTaskOf("m1", { lux_reward: 2.5 });
    await ok(hub.complete(taskId, "m1"));
    const running = await hub.addTaskOf("m1");
    const report = { model: "m", input_tokens: 7, output_tokens: 1 };
    const usage = [
      { ...report, seq: 1, cost_usd: 0.25 },
      { ...report, seq: 2 },
    ];
    await ok(hub.post("/task/extend", { task_id: running, node_id: "m1", usage }));
    expect((await samplesOf(hub)).get("luxhub_tasks_oldest_ready_age_seconds")).toBe(0);
    await hub.addTask();
    await hub.send("m1", "m2", { require_ack: true });
    await hub.send("m1", "m2");
    await hub.send("m1", "m2");
    await hub.receive("m2", { count: 1 });
    const form = new FormData();
    form.append("file", new Blob(["twelve bytes"]), "f.txt");
    await ok(hub.post("/file/upload", form));
    hub.clock.pass(10_000); // not as long as a message is leased: the hub may do its periodic work at any time
    const after = await samplesOf(hub);
    const added = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    for (const [name, value] of [
      [`luxhub_nodes{status="online"}`, 2],
      [`luxhub_nodes{status="draining"}`, 1],
      [`luxhub_nodes{status="offline"}`, 1],
      [`luxhub_tasks{status="open"}`, 2],
      [`luxhub_tasks{status="assigned"}`, 1],
      [`luxhub_tasks{status="completed"}`, 1],
      [`luxhub_messages{state="waiting"}`, 2],
      [`luxhub_messages{state="delivered"}`, 1],
      ["luxhub_files", 1],
      ["luxhub_files_size_bytes", 12],
      ["luxhub_lux_paid_total", 2.5],
      ["luxhub_cost_usd_total", 0.25],
      [`luxhub_tokens_total{direction="input"}`, 14],
      [`luxhub_tokens_total{direction="output"}`, 2],
      [`luxhub_usage_reports_total{cost="known"}`, 1],
      [`luxhub_usage_reports_total{cost="unknown"}`, 1],
      [`luxhub_events_total{kind="task.created"}`, 4],
      [`luxhub_events_total{kind="message.sent"}`, 3],
      [`luxhub_http_requests_total{method="POST",endpoint="/api/v1/task/create",status="200"}`, 4],
    ] as const)
      expect([name, added(name)]).toEqual([name, value]);
    // On PostgreSQL the hub follows the clock of the database, which the test cannot move.
    if (hub.engine === "sqlite")
      expect(after.get("luxhub_tasks_oldest_ready_age_seconds") ?? 0).toBeGreaterThanOrEqual(10);
    expect(after.get(`luxhub_build_info{version="0.1.0",bun="${Bun.version}",engine="${hub.engine}"}`)).toBe(
      1,
    );
    expect(after.get("luxhub_leader")).toBe(1);
    expect(after.get(`luxhub_writable{store="database"}`)).toBe(1);
    expect(after.get("luxhub_database_size_bytes") ?? 0).toBeGreaterThan(10_000);
    expect(after.get("process_resident_memory_bytes") ?? 0).toBeGreaterThan(2 ** 20);
    const groups = after.get("luxhub_commit_duration_seconds_count") ?? 0;
    expect(groups).toBeGreaterThan(10);
    expect(after.get("luxhub_commit_group_transactions_sum") ?? 0).toBeGreaterThanOrEqual(groups);
  });

  test("count tasks by type: ready, running, the oldest, and how long they wait and run", async () => {
    await hub.addNodes(["typed"]);
    const type = `quoted"type\\`;
    const label = `{type="quoted\\"type\\\\"}`;
    const of = async (metric: string): Promise<number | undefined> =>
      (await samplesOf(hub)).get(`luxhub_type_${metric}${label}`);
    expect(await of("tasks_ready")).toBeUndefined();
    const tasks: string[] = [];
    for (let i = 0; i < 3; i++) tasks.push(await hub.addTask({ task_type: type }));
    await hub.addTask({ task_type: type, delay_s: 3_600 }); // not ready
    const [first = "", second = ""] = tasks;
    for (const task_id of [first, second]) await ok(hub.post("/task/claim", { task_id, node_id: "typed" }));
    hub.clock.pass(20_000);
    await ok(hub.complete(first, "typed"));
    const counts = async (): Promise<readonly (number | undefined)[]> => [
      await of("tasks_ready"),
      await of("tasks_running"),
      await of("task_wait_seconds_count"),
      await of("task_run_seconds_count"),
    ];
    expect(await counts()).toEqual([1, 1, 2, 1]);
    // On PostgreSQL the hub follows the clock of the database, which the test cannot move.
    if (hub.engine === "sqlite") {
      expect(await of("oldest_ready_age_seconds")).toBeGreaterThanOrEqual(20);
      expect(await of("task_run_seconds_sum")).toBeGreaterThanOrEqual(20);
      expect(await of("task_wait_seconds_sum")).toBeLessThan(20);
    }
    // Each event task.assigned is one wait.
    await ok(hub.post("/task/release", { task_id: second, node_id: "typed" }));
    await ok(hub.post("/task/claim", { task_id: second, node_id: "typed" }));
    await ok(hub.post("/task/next", { node_id: "typed", resume: true })); // again, without an event
    expect(await counts()).toEqual([1, 1, 3, 1]);
    // What falls to nothing stays visible, so that an autoscaler sees a 0.
    for (const task_id of tasks.slice(1)) await ok(hub.admin("/task/delete", { task_id }));
    expect((await counts()).slice(0, 2)).toEqual([0, 0]);
    expect(await of("oldest_ready_age_seconds")).toBe(0);
    // The 101st type has no label of its own.
    for (let i = 0; i <= 100; i++) await hub.addTask({ task_type: `many-${i}` });
    const samples = await samplesOf(hub);
    const labelled = [...samples.keys()].filter((name) => name.startsWith("luxhub_type_tasks_ready"));
    expect(labelled).toHaveLength(101);
    const ready = labelled.filter((name) => /many-|other/.test(name)).map((name) => samples.get(name) ?? 0);
    expect(ready.reduce((sum, count) => sum + count, 0)).toBe(101);
    expect(samples.get(`luxhub_type_tasks_ready{type="other"}`)).toBeGreaterThan(0);
  });

  once.test("show waiting calls and open streams", async () => {
    await hub.addNodes(["w1"]);
    const wait = new AbortController();
    const { signal } = wait;
    const stream = await fetch(`${hub.base()}/api/v1/agent/sse?node_id=w1`, { headers: SHOWN, signal });
    const poll = hub
      .get("/poll?timeout=60", { headers: { "X-Matrix-Secret": null }, signal })
      .catch(() => null);
    const receiving = hub
      .post("/message/receive", { node_id: "w1", blocking: true, timeout: 60 }, { signal })
      .catch(() => null);
    await until("they wait", async () => {
      const samples = await samplesOf(hub);
      const names = [
        `luxhub_waiting_calls{secret="valid"}`,
        `luxhub_waiting_calls{secret="none"}`,
        "luxhub_event_streams",
      ];
      return (
        names.every((name) => samples.get(name) === 1) && samples.get("luxhub_http_requests_in_flight") === 3
      );
    });
    wait.abort();
    await Promise.all([poll, receiving, stream.text().catch(() => null)]);
    await until("nobody waits", async () => {
      const samples = await samplesOf(hub);
      return samples.get("luxhub_http_requests_in_flight") === 1 && samples.get("luxhub_event_streams") === 0;
    });
  });

  once.test("use no caller's text as a label", async () => {
    await hub.get("/node/label-me");
    await hub.get("/label-me/too");
    await fetch(`${hub.base()}/label-me?x="}`);
    await fetch(`${hub.base()}/api/v1/status`, { method: "PATCH" });
    const names = [...(await samplesOf(hub)).keys()];
    expect(names.filter((name) => name.toLowerCase().includes("label-me"))).toEqual([]);
    const ended = new Set(
      names.map((name) => /endpoint="([^"]*)"/.exec(name)?.[1]).filter((path) => path !== undefined),
    );
    const paths = ENDPOINTS.map(({ path }) => path.replaceAll(/:(\w+)/g, "{$1}"));
    const others = ["/metrics", "/api/v1/agent/sse", "/api/v1/file/upload", "other"];
    expect([...ended].filter((path) => ![...paths, ...others].includes(path))).toEqual([]);
    expect(ended.has("/api/v1/node/{node_id}")).toBe(true);
    expect(names).toContain(`luxhub_http_requests_total{method="other",endpoint="other",status="405"}`);
  });

  const promtool = Bun.which("promtool");
  once.test.skipIf(promtool === null)(
    `are what promtool accepts${promtool === null ? " (skipped: no promtool here; install Debian's prometheus)" : ""}`,
    async () => {
      const text = await (await fetch(`${hub.base()}/metrics`, { headers: SHOWN })).arrayBuffer();
      const check = Bun.spawnSync([promtool ?? "", "check", "metrics"], { stdin: new Uint8Array(text) });
      expect([check.exitCode, check.stdout.toString(), check.stderr.toString()]).toEqual([0, "", ""]);
    },
  );
});

describe("the probes", () => {
  once.test("are open on both variants, also on a private hub", async () => {
    await using hub = await startHub({ isPrivate: true });
    for (const variant of VARIANTS)
      for (const [path, status] of [
        ["/healthz", "ok"],
        ["/readyz", "ready"],
      ] as const)
        for (const headers of [{}, { "X-Matrix-Secret": "wrong" }]) {
          const answer = await fetch(hub.base(variant) + path, { headers });
          expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "no-store"]);
          expect(await answer.json()).toEqual({ success: true, status });
          const head = await fetch(hub.base(variant) + path, { method: "HEAD", headers });
          expect([head.status, await head.text()]).toEqual([200, ""]);
          expect((await fetch(hub.base(variant) + path, { method: "POST", headers })).status).toBe(405);
        }
    expect((await fetch(`${hub.base()}/metrics`)).status).toBe(401);
  });

  once.test("a full disk is found without a request that writes", async () => {
    await using hub = await startHub({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    if (hub.engine === "postgresql") return; // the database has a disk of its own
    const answer = await fetch(`${hub.base()}/readyz`);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await answer.json()).toMatchObject({ success: false, status: 503, error: "insufficient_storage" });
    expect((await fetch(`${hub.base()}/healthz`)).status).toBe(200);
    expect((await samplesOf(hub)).get(`luxhub_writable{store="database"}`)).toBe(0);
  });

  once.test("a second's callers share one write, and the state of the hub comes first", async () => {
    let writes = 0;
    let fault: Error | null = null;
    const transact = async () => {
      writes++;
      if (fault) throw fault;
    };
    const clock = new TestClock();
    // The store of the test answers nothing, as the check needs.
    const readiness = new Readiness({ transact: transact as never }, clock);
    const [, ready] = monitoringEndpoints(readiness, async () => "", NO_COPIES);
    const code = async (): Promise<unknown> => {
      if (ready?.kind !== "raw") throw new Error("readyz is no raw endpoint");
      const answer = await ready.handle({} as never).catch((error: unknown) => error);
      return answer instanceof Response ? answer.status : JSON.parse(JSON.stringify(answer)).error;
    };
    expect(await code()).toBe("starting");
    readiness.start();
    expect(await Promise.all([code(), code(), code()])).toEqual([200, 200, 200]);
    expect(writes).toBe(1);
    fault = new Error("the disk is on fire");
    clock.pass(1_000);
    expect([await code(), await code(), writes]).toEqual(["internal_error", "internal_error", 2]);
    readiness.drain();
    expect([await code(), writes]).toEqual(["draining", 2]);
  });
});

const bash = Bun.which("bash");
once.test.skipIf(bash === null)(
  `the health check of the container asks readyz${bash === null ? " (skipped: no bash here)" : ""}`,
  async () => {
    const dockerfile = await Bun.file(`${import.meta.dir}/../../docs/examples/container/Dockerfile`).text();
    const [, given = ""] = /^HEALTHCHECK .* CMD (\[[^\n]*\\\n[^\n]*)$/m.exec(dockerfile) ?? [];
    const command: string[] = JSON.parse(given.replace("\\\n", ""));
    const check = (port: number): Promise<number> =>
      Bun.spawn(command, { env: { ...process.env, LUXHUB_PORT: String(port) }, stderr: "ignore" }).exited;
    await using hub = await startHub();
    expect(await check(hub.port())).toBe(0);
    expect(await check(1)).toBe(1); // nobody listens on it
    await using full = await startHub({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    if (full.engine === "sqlite") expect(await check(full.port())).toBe(1);
  },
);
