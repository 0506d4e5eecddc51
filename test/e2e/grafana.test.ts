/**
 * The Grafana dashboard of docs/examples, and the alert rules of docs/monitoring.md: the queries of every panel find data
 * in a real Prometheus that scrapes a real hub. No Grafana draws it here: neither Debian nor npm has one.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { PROJECT } from "../support/executable.ts";
import { Hub, Program, TempDir, run, until } from "./program.ts";

const target = z.object({ refId: z.string(), expr: z.string(), legendFormat: z.string() });
const panel = z.object({
  id: z.int(),
  type: z.enum(["row", "stat", "timeseries"]),
  title: z.string(),
  description: z.optional(z.string()),
  gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
  targets: z._default(z.array(target), []),
  datasource: z.optional(z.object({ type: z.literal("prometheus"), uid: z.literal("${datasource}") })),
  fieldConfig: z.optional(z.object({ defaults: z.object({ unit: z.string() }) })),
});
const variable = z.object({
  name: z.string(),
  type: z.string(),
  definition: z.optional(z.string()),
  allValue: z.optional(z.string()),
});
const dashboard = z.object({
  id: z.null(),
  uid: z.string(),
  title: z.string(),
  schemaVersion: z.int(),
  panels: z.array(panel),
  templating: z.object({ list: z.array(variable) }),
});

const { panels, templating, ...meta } = dashboard.parse(
  JSON.parse(readFileSync(join(PROJECT, "docs/examples/grafana.json"), "utf8")),
);
const drawn = panels.filter(({ type }) => type !== "row");

/** Units of Grafana that the dashboard uses, by id. */
const UNITS = new Set(["short", "s", "ops", "reqps", "bytes", "percentunit"]);
/** The columns of Grafana's grid. */
const GRID = 24;

const page = readFileSync(join(PROJECT, "docs/monitoring.md"), "utf8");

const promtool = Bun.which("promtool");
test.skipIf(promtool === null)(
  `the alert rules are what promtool accepts${promtool === null ? " (skipped: no promtool here; install Debian's prometheus)" : ""}`,
  () => {
    const rules = [...page.matchAll(/^```yaml\n(- alert: [^]+?)^```$/gm)].map(([, block]) => block);
    expect(rules).toHaveLength(1);
    using dir = new TempDir();
    const file = dir.join("rules.yml");
    writeFileSync(file, `groups:\n- name: luxhub\n  rules:\n${rules.join("").replaceAll(/^/gm, "  ")}`);
    const check = Bun.spawnSync([promtool ?? "", "check", "rules", file]);
    expect([check.exitCode, check.stderr.toString()]).toEqual([0, ""]);
  },
);

describe("the Grafana dashboard", () => {
  test("is one that Grafana imports: no id, a choice of the data source, panels side by side", () => {
    expect(meta).toEqual({ id: null, uid: "luxhub", title: "luxhub", schemaVersion: 38 });
    expect(templating.list.map(({ name, type }) => `${name} ${type}`)).toEqual([
      "datasource datasource",
      "instance query",
      "type query",
    ]);
    const taken = new Map<string, string>();
    for (const { type, title, gridPos, ...more } of panels) {
      const { x, y, w, h } = gridPos;
      expect([title, x >= 0 && w > 0 && x + w <= GRID && h > 0]).toEqual([title, true]);
      for (let i = 0; i < w * h; i++) {
        const cell = `${x + (i % w)},${y + Math.floor(i / w)}`;
        expect([title, cell, taken.get(cell)]).toEqual([title, cell, undefined]);
        taken.set(cell, title);
      }
      if (type === "row") continue;
      expect([title, more.datasource?.uid, UNITS.has(more.fieldConfig?.defaults.unit ?? "")]).toEqual([
        title,
        "${datasource}",
        true,
      ]);
      expect([title, (more.description ?? "").length > 10]).toEqual([title, true]);
      expect([title, new Set(more.targets.map(({ refId }) => refId)).size]).toEqual([
        title,
        more.targets.length,
      ]);
      expect([title, more.targets.length > 0]).toEqual([title, true]);
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  });

  const missing = Bun.which("prometheus") === null ? "no prometheus here; install Debian's prometheus" : null;
  test.skipIf(missing !== null)(
    `each panel shows data of a hub that has worked, and each alert rule is one that Prometheus evaluates${missing === null ? "" : ` (skipped: ${missing})`}`,
    async () => {
      using dir = new TempDir();
      const args = ["--backup-to", dir.join("backups"), "--backup-every", "1h"];
      await using hub = await Hub.start({ data: dir.join("data"), args });
      await using prometheus = await Prometheus.start(dir, hub);
      // Rates need an increase between two scrapes: the second round of work follows a scrape of the first.
      const valueOf = async (query: string): Promise<number> =>
        Number((await prometheus.query(query)).result[0]?.value?.[1] ?? 0);
      const completed = `luxhub_type_task_run_seconds_count{type="render"}`;
      const backups = `luxhub_chore_last_success_timestamp_seconds{chore="backup"}`;
      const ticks = "luxhub_event_loop_lag_seconds_count"; // one a second
      let ticked = 0;
      for (const round of [1, 2]) {
        await work(hub, round);
        await until(
          async () =>
            (await valueOf(completed)) === round &&
            (await valueOf(backups)) > 0 &&
            (await valueOf(ticks)) > ticked,
        );
        ticked = await valueOf(ticks);
      }
      const chosen = new Map<string, string>([["__rate_interval", "1m"]]);
      for (const { name, definition, allValue } of templating.list.filter((one) => one.type === "query")) {
        const [, metric = "", label = ""] = /^label_values\((.+), (\w+)\)$/.exec(definition ?? "") ?? [];
        const values = await prometheus.labelValues(fillIn(metric, chosen), label);
        expect([name, values]).toEqual([name, name === "type" ? ["render"] : [`127.0.0.1:${hub.port}`]]);
        chosen.set(name, allValue ?? values.join("|"));
      }
      expect(drawn.length).toBeGreaterThan(30);
      for (const { title, targets } of drawn)
        for (const { expr, legendFormat } of targets) {
          const { result, warnings } = await prometheus.queryRange(fillIn(expr, chosen));
          const numbers = result.flatMap(({ values = [] }) => values.map(([, value]) => Number(value)));
          expect([title, expr, numbers.some(Number.isFinite), warnings]).toEqual([title, expr, true, []]);
          const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
          for (const { metric } of result)
            expect([title, labels.filter((label) => !(label in metric))]).toEqual([title, []]);
          // Several lines that the legend does not tell apart.
          const names = result.map(({ metric }) => labels.map((label) => metric[label]).join(" "));
          expect([title, new Set(names).size]).toEqual([title, names.length]);
        }
      const rules = [...page.matchAll(/^ +expr: (.+)$/gm)].map(([, expr = ""]) => expr);
      expect(rules.length).toBeGreaterThan(7);
      // Nothing is wrong with this hub.
      const firing: string[] = [];
      for (const expr of rules) {
        const { result } = await prometheus.query(expr);
        // How much is free on this machine is none of the test's business.
        if (result.length > 0 && !expr.includes("disk_free")) firing.push(expr);
      }
      expect(firing).toEqual([]);
    },
  );
});

/** One task of each fate, so that each metric by kind or type has moved. */
async function work(hub: Hub, round: number): Promise<void> {
  await hub.register("n1");
  await hub.register("n2");
  const create = async (more: object): Promise<string> => {
    const { body } = await hub.post("/task/create", {
      title: "t",
      description: "d",
      task_type: "render",
      ...more,
    });
    return String(body["task_id"]);
  };
  const ended = await create({ lux_reward: 2 });
  const failed = await create({});
  const held = await create({});
  await create({});
  for (const task_id of [ended, failed, held]) await hub.post("/task/claim", { task_id, node_id: "n1" });
  const result = { problem: "p", improvement: "i", lesson: "l" };
  await hub.post("/task/complete", { task_id: ended, node_id: "n1", result });
  await hub.post("/task/fail", { task_id: failed, node_id: "n1", error: "broken", retry: false });
  await hub.post("/message/send", { from_node: "n1", to_node: "n2", content: `Round ${round}` });
  await hub.post("/task/claim", { task_id: "none", node_id: "n1" }); // an error
  const listed = await run(["task", "list", "--url", hub.api.replace("/api/v1", "")], {
    env: { LUXHUB_SECRET: hub.secret },
  });
  expect(listed.code).toBe(0);
}

/** Replaces Grafana's variables. */
function fillIn(expr: string, values: ReadonlyMap<string, string>): string {
  return expr.replaceAll(/\$(\w+)/g, (_, name: string) => values.get(name) ?? `unknown variable ${name}`);
}

const SCRAPE_EVERY = "200ms";
const series = z.object({
  metric: z.record(z.string(), z.string()),
  value: z.optional(z.tuple([z.number(), z.string()])),
  values: z.optional(z.array(z.tuple([z.number(), z.string()]))),
});
const answer = z.object({
  status: z.literal("success"),
  warnings: z._default(z.array(z.string()), []),
  data: z.object({ result: z.array(series) }),
});
type Result = { readonly result: readonly z.infer<typeof series>[]; readonly warnings: readonly string[] };

/** A Prometheus that scrapes one hub, configured as in docs/monitoring.md but for the interval. */
class Prometheus implements AsyncDisposable {
  readonly #program: Program;
  readonly #url: string;

  private constructor(program: Program, url: string) {
    this.#program = program;
    this.#url = url;
  }

  static async start(dir: TempDir, hub: Hub): Promise<Prometheus> {
    const config = dir.join("prometheus.yml");
    writeFileSync(dir.join("secret"), hub.secret);
    writeFileSync(
      config,
      `global: { scrape_interval: ${SCRAPE_EVERY} }
scrape_configs:
  - job_name: luxhub
    authorization: { credentials_file: ${dir.join("secret")} }
    static_configs:
      - targets: ["127.0.0.1:${hub.port}"]
`,
    );
    const flags = [`--config.file=${config}`, `--storage.tsdb.path=${dir.join("series")}`];
    const program = new Program([...flags, "--web.listen-address=127.0.0.1:0"], {
      command: ["sh", "-c", 'exec prometheus "$@" 2>&1', "sh"],
      cwd: dir.path,
    });
    const [, address] = await program.printed(/Listening on" address=(\S+)/);
    const prometheus = new Prometheus(program, `http://${address}/api/v1`);
    await until(async () => (await fetch(`http://${address}/-/ready`)).ok);
    return prometheus;
  }

  query(query: string): Promise<Result> {
    return this.#ask("query", { query });
  }

  /** Of the last minute, in seconds. */
  queryRange(query: string): Promise<Result> {
    const end = Date.now() / 1_000;
    return this.#ask("query_range", { query, start: String(end - 60), end: String(end), step: "1s" });
  }

  async labelValues(metric: string, label: string): Promise<readonly string[]> {
    const response = await fetch(
      `${this.#url}/label/${label}/values?${new URLSearchParams({ "match[]": metric })}`,
    );
    return z.object({ data: z.array(z.string()) }).parse(await response.json()).data;
  }

  async #ask(path: string, parameters: Readonly<Record<string, string>>): Promise<Result> {
    const body = new URLSearchParams(parameters);
    const response = await fetch(`${this.#url}/${path}`, { method: "POST", body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${parameters["query"]}: ${text}`);
    const { data, warnings } = answer.parse(JSON.parse(text));
    return { result: data.result, warnings };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#program[Symbol.asyncDispose]();
  }
}
