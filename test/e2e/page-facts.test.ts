/**
 * Statements of the pages that once contradicted the program, each compared with what it is about: the sources, a hub
 * that runs, or the table from which a figure comes. readme.test.ts has what a table of a page can be compared with.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { eventSchema } from "../../src/api/response-schemas.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { COMMANDS, FIRST_WORDS } from "../../src/cli/commands.ts";
import { programHelp } from "../../src/cli/help.ts";
import { BATCH_REQUESTS_MAX, DEPENDENCIES_MAX, KEYS_MAX, WHOLE_PAGE } from "../../src/domain/limits.ts";
import { TOOL_LIST } from "../../src/mcp/tools.ts";
import { INTERVALS } from "../../src/variant/by-name.ts";
import { must } from "../../src/lib/assert.ts";
import { type Row, readFigures, tablesIn } from "../../tools/bench/record.ts";
import { SECTIONS } from "../../tools/torture/sections.ts";
import { PROJECT } from "../support/executable.ts";
import { ADMIN_KEY, startHub } from "../support/hub.ts";
import { ok } from "../api/scene.ts";

function source(path: string): string {
  return readFileSync(join(PROJECT, path), "utf8");
}

/** A page in which a line break is a space. */
function prose(path: string): string {
  return source(path).replaceAll(/\s+/g, " ");
}

/** What the first group of a pattern finds; a page in which it finds nothing fails the test. */
function found(text: string, pattern: RegExp): string {
  const [, first] = pattern.exec(text) ?? [];
  if (first === undefined) throw new Error(`nothing is like ${pattern}`);
  return first;
}

/** The Debian package of each program that a test looks for; null for what every Debian has. */
const PACKAGES: Readonly<Record<string, string | null>> = {
  bash: null,
  "dpkg-deb": null,
  busybox: "busybox",
  curl: "curl",
  dash: null,
  fish: "fish",
  groff: "groff",
  ip: "iproute2",
  jq: "jq",
  mypy: "mypy",
  nginx: "nginx",
  node: "nodejs",
  npm: "npm",
  nsenter: null,
  openssl: "openssl",
  perl: null,
  pg_config: "postgresql",
  prometheus: "prometheus",
  promtool: "prometheus",
  python3: "python3",
  readelf: "binutils",
  "redis-server": "redis-server",
  setpriv: null,
  shellcheck: "shellcheck",
  ss: "iproute2",
  strace: "strace",
  "systemd-analyze": null,
  tar: null,
  tc: "iproute2",
  unshare: null,
  "valkey-server": "redis-server",
  zsh: "zsh",
};

test("the packages in CONTRIBUTING.md provide every program that the suite looks for", () => {
  const files = [...new Bun.Glob("test/**/*.ts").scanSync({ cwd: PROJECT })];
  const wanted = files.flatMap((file) =>
    [...source(file).matchAll(/Bun\.which\("([^"]+)"/g)].map(([, name = ""]) => name),
  );
  expect(wanted.length).toBeGreaterThan(20);
  const named = found(source("CONTRIBUTING.md").replaceAll("\\\n", ""), /^apt-get install (curl .*)$/m).split(
    /\s+/,
  );
  // The tests find these in other ways.
  expect(named).toEqual(expect.arrayContaining(["libfaketime", "strace", "mypy", "chromium"]));
  for (const name of new Set([...wanted, "curl", "jq", "zsh", "fish", "busybox"])) {
    const provider = PACKAGES[name];
    expect([name, provider]).not.toEqual([name, undefined]);
    if (provider) expect(named).toContain(provider);
  }
});

test("CONTRIBUTING.md says what .ci/run runs", () => {
  const words: Readonly<Record<string, string>> = {
    types: "types",
    format: "format",
    "the suite": "the suite",
    "the OpenAPI documents": "the OpenAPI documents",
    "conformance to MCP": "conformance to MCP",
    "the README's Run line": "the README's Run line",
    build: "the build",
    "the executable starts": "the built executable",
    "the executable answers": "the built executable",
    "the executable ends in order": "the built executable",
  };
  const prepares = /^(?:Bun |servers for|dependencies as|a storage for)/;
  const steps = [...source(".ci/run").matchAll(/\bstep "([^"]+)"/g)].map(([, step = ""]) => step);
  const checks = steps.filter((step) => !prepares.test(step));
  expect(checks.toSorted()).toEqual(Object.keys(words).toSorted());
  const text = found(prose("CONTRIBUTING.md"), /(`\.ci\/run` runs all checks: .*?\.) - /);
  for (const step of checks) expect(text).toContain(words[step] ?? step);
});

test("the open event log of A shows who wrote to whom, and not what", async () => {
  expect(prose("README.md")).toContain("Who wrote to whom, and when, is in the open event log");
  expect(prose("docs/security.md")).toContain("the event log has `message.sent` with sender and recipient");
  await using hub = await startHub();
  for (const node of ["n1", "n2"]) await hub.addNode(node);
  await hub.send("n1", "n2", { content: "Between us" });
  const open = { headers: { "X-Matrix-Secret": null } };
  const { body, status } = await hub.get("/events?kind=message.sent", open);
  expect(status).toBe(200);
  const text = JSON.stringify(body);
  expect(text).toContain('"n1"');
  expect(text).toContain('"n2"');
  expect(text).not.toContain("Between us");
});

test("the pages name what needs the administrator key", () => {
  const admin = DECLARED.filter(({ auth }) => auth === "admin").map(({ path }) =>
    path.slice("/api/v1/".length),
  );
  const whole = new Set(
    admin
      .map((path) => path.split("/")[0] ?? "")
      .filter((group) =>
        DECLARED.every(({ auth, path }) => !path.startsWith(`/api/v1/${group}/`) || auth === "admin"),
      ),
  );
  const named = [
    ...new Set(
      admin.map((path) =>
        path.replace(/^(.+?)\/.+/, (all, group: string) => (whole.has(group) ? `${group}/…` : all)),
      ),
    ),
  ].toSorted();
  const text = prose("docs/security.md");
  const lists = [
    ...text.matchAll(/((?:`[a-z]+(?:\/[a-z…-]+)?`(?:, | and )?){3,}) need (?:it|the administrator key)/g),
  ];
  expect(lists).toHaveLength(1);
  for (const [, list = ""] of lists)
    expect([...list.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name).toSorted()).toEqual(named);
});

test("the page names the requests that a batch refuses", async () => {
  const bullet = found(
    prose("docs/api.md"),
    /- (Some requests return 400 in a batch, .*?task\/answer-by-token) - /,
  );
  const named = new Set(
    [...bullet.matchAll(/\b(?:[a-z]+\/[a-z-]+|batch|join|promote)(?=[,. ]|$)/g)].map(([name]) => name),
  );
  await using hub = await startHub();
  const paths = DECLARED.filter(
    ({ method, path, auth }) => method === "POST" && !path.includes(":") && auth !== "standby",
  ).map(({ path }) => path.slice("/api/v1/".length));
  const requests = paths.map((path) => ({ path, body: {} }));
  const { answers } = await ok(hub.admin("/batch", { requests }));
  // A request that may be in a batch says which fields it lacks.
  const refused = paths.filter((_, i) =>
    /"path":"path"/.test(JSON.stringify(z.array(z.unknown()).parse(answers)[i])),
  );
  expect(refused).toContain("key/add");
  for (const path of refused.filter((one) => one !== "file/upload"))
    expect([path, named.has(path)]).toEqual([path, true]);
});

test("a note/put is recognised as a repeat, but not with if_version and without node_id", async () => {
  await using hub = await startHub();
  for (const node_id of ["n1", undefined]) {
    const write = { key: `of-${node_id}`, text: "a", if_version: 0, node_id };
    await ok(hub.post("/note/put", write));
    const { status } = await hub.post("/note/put", write);
    expect([node_id, status]).toEqual([node_id, node_id === undefined ? 409 : 200]);
  }
});

test("a search of notes shows the line with a word of the search", async () => {
  await using hub = await startHub();
  await ok(hub.post("/note/put", { key: "colours", text: "The first line\nthen blue\nthen red" }));
  for (const [q, excerpt] of [
    ["red blue", "then blue"],
    ["colours", "The first line\nthen blue\nthen red"],
  ]) {
    const { notes } = await ok(hub.get(`/note/search?q=${encodeURIComponent(q ?? "")}`));
    expect(notes).toEqual([expect.objectContaining({ key: "colours", excerpt })]);
  }
});

test("the example of an error is what the hub returns, and that of an event has the fields of one", async () => {
  const example = (path: string): unknown => JSON.parse(found(source(path), /\n```json\n([^]*?)\n```/));
  expect(prose("docs/errors-and-limits.md")).toContain(
    '`POST task/create` with the body `{"title": ""}` returns 400:',
  );
  await using hub = await startHub();
  const { body } = await hub.post("/task/create", { title: "" });
  expect(body).toEqual(z.record(z.string(), z.unknown()).parse(example("docs/errors-and-limits.md")));

  await hub.addNode("worker-1");
  const { task_id } = await ok(
    hub.post("/task/create", { title: "T", description: "D", creator_node: "planner" }),
  );
  await ok(hub.post("/task/claim", { task_id, node_id: "worker-1" }));
  const result = { problem: "p", improvement: "i", lesson: "l" };
  await ok(hub.post("/task/complete", { task_id, node_id: "worker-1", result }));
  const { events } = await ok(hub.get("/events?kind=task.completed"));
  const event = eventSchema().parse(example("docs/events.md"));
  const varying = { id: expect.any(Number), at: expect.any(String), task_id: expect.any(String) };
  expect(events).toEqual([{ ...event, ...varying }]);
});

test("the files of the repository that the pages name exist", () => {
  const pages = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    ...new Bun.Glob("docs/*.md").scanSync(PROJECT),
  ];
  const named = pages.flatMap((page) =>
    [...source(page).matchAll(/(?<![\w./-])(?:src|test|tools|docs|lib|\.ci)\/[\w./-]*\w/g)].map(
      ([path]) => path,
    ),
  );
  expect(named.length).toBeGreaterThan(50);
  expect([...new Set(named)].filter((path) => !existsSync(join(PROJECT, path)))).toEqual([]);
});

test("the commands with the exit codes 0, 1 and 2 have no others", () => {
  const sentence = found(prose("docs/operations.md"), /(`serve`[^.]*) exit with 0 on success, with 2/);
  const names = [...sentence.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
  expect(names).toEqual(["serve", "backup", "restore", "doctor", "move"]);
  for (const name of names) {
    expect(COMMANDS.find((command) => command.name === name)).not.toHaveProperty("isRemote");
    const codes = [...source(`src/cli/${name}.ts`).matchAll(/\bEXIT\.([A-Z_]+)/g)].map(([, code]) => code);
    expect([name, codes.filter((code) => !["OK", "FAILED", "USAGE"].includes(code ?? ""))]).toEqual([
      name,
      [],
    ]);
  }
});

test("the help says what each group of commands is about", () => {
  const lines = programHelp().split("\n");
  for (const word of FIRST_WORDS) {
    const line = lines.find((one) => one.startsWith(`  luxhub ${word} `));
    const about = found(line ?? word, /^ {2}luxhub .*? {2,}(\S.*)$/);
    expect([word, /^[a-z]/.test(about) && !about.startsWith(`${word}:`)]).toEqual([word, true]);
  }
});

test("the pages have the times after which a node is offline, and what starts them", () => {
  const seconds = (name: keyof typeof INTERVALS): number => INTERVALS[name].offlineAfterMs / 1_000;
  expect(prose("docs/worker.md")).toContain(
    `A node is offline after ${seconds("A")} seconds without a heartbeat, and loses its tasks. The time is ` +
      `${seconds("B")} seconds for a node that registered at a listener of variant B, or with a key that is pinned to variant B, and ` +
      `${seconds("MCP")} seconds for a node that registered through MCP.`,
  );
  expect(prose("docs/troubleshooting.md")).toContain(
    `${seconds("A")} seconds after the last heartbeat of the node (${seconds("B")} on B, ${seconds("MCP")} through MCP)`,
  );
  expect(prose("docs/tutorial.md")).toContain(`After ${seconds("A")} seconds without a heartbeat`);
});

test("the calls that worker.md names are heartbeats, and no other call over HTTP", async () => {
  const sentence = found(prose("docs/worker.md"), /- (`[^.;]*) count as heartbeats;/);
  const named = [...sentence.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
  expect(named).toEqual(["node/register", "node/heartbeat", "task/next"]);
  await using hub = await startHub();
  await hub.addNode("n1");
  const node_id = "n1";
  const about = { title: "T", description: "D", creator_node: node_id, for_node: node_id };
  const { task_id } = await ok(hub.post("/task/create", about));
  const last = async (): Promise<unknown> => (await hub.nodeOf(node_id))["last_heartbeat"];
  /** Whether a call moved the node's last heartbeat, two seconds after the one before. */
  const isHeartbeat = async (path: string, body: object): Promise<boolean> => {
    const before = await last();
    hub.clock.pass(2_000);
    await ok(hub.post(`/${path}`, body));
    return (await last()) !== before;
  };
  const calls: readonly (readonly [path: string, body: object])[] = [
    ["task/extend", { task_id, node_id, note: "half" }],
    ["task/output", { task_id, node_id, offset: 0, data: "Hello" }],
    ["message/send", { from_node: node_id, to_node: node_id, content: "Hello" }],
    ["message/receive", { node_id }],
    ["note/put", { key: "a", text: "b", node_id }],
    ["lease/acquire", { name: "deploy", node_id, ttl_s: 60 }],
    ["task/complete", { task_id, node_id, result: { problem: "p", improvement: "i", lesson: "l" } }],
    ["node/register", { node_id, name: "N1" }],
    ["node/heartbeat", { node_id }],
    ["task/next", { node_id, wait: 0 }],
  ];
  for (const [path, body] of calls)
    expect([path, await isHeartbeat(path, body)]).toEqual([path, named.includes(path)]);
});

test("the page of the dashboard names its views in the order of the menu", () => {
  const main = source("src/web/page/main.tsx");
  const titles = [...main.matchAll(/^  \["\w+", "([^"]+)", /gm)].map(([, title = ""]) => title);
  expect(titles.length).toBeGreaterThan(7);
  const sentence = found(prose("docs/dashboard.md"), /(The pages are .*? Keys\b)/);
  const places = titles.map((title) => sentence.search(new RegExp(`\\b${title}\\b`)));
  expect(places).toEqual(places.filter((place) => place > 0).toSorted((a, b) => a - b));
});

const MODES: Readonly<Record<string, string>> = {
  "A large store and a small one": "growth",
  "Other queues": "peers",
  "Queues on PostgreSQL": "postgres",
};

test("the figures of the pages are the recorded ones", () => {
  const figures = readFigures();
  const shown = new Set<string>();
  for (const section of source("docs/benchmarks.md").split(/^## /m).slice(1)) {
    const mode = MODES[section.split("\n")[0] ?? ""] ?? "echo";
    for (const { name, rows } of tablesIn(section)) {
      const part = `${mode}: ${name}`;
      shown.add(part);
      const { date, flushMs, rows: recorded } = must(figures[part], `${part} is recorded`);
      expect([part, section.includes(date), date]).toEqual([part, true, date]);
      if (flushMs !== null) expect(section.replaceAll("\n", " ")).toContain(`flush ${flushMs.toFixed(2)} ms`);
      const isRecorded = (row: Row): boolean =>
        recorded.some((other) =>
          Object.keys(row).every((column) => (other[column] ?? row[column]) === row[column]),
        );
      expect([part, rows.filter((row) => !isRecorded(row))]).toEqual([part, []]);
    }
  }
  expect(shown.size).toBeGreaterThan(6);
  const cell = (part: string, column: string, where: Row): string => {
    const row = figures[part]?.rows.find((row) =>
      Object.entries(where).every(([name, is]) => row[name] === is),
    );
    return must(row?.[column], `${part} has ${JSON.stringify(where)}`);
  };

  const readme = prose("README.md");
  const [idle] = Object.keys(figures).filter((part) => part.startsWith("echo: Idle"));
  const hub = cell(idle ?? "", "Pss MiB", { [(idle ?? "").slice("echo: ".length)]: "luxhub, executable" });
  expect(readme).toContain(`${Math.round(Number(hub))} MiB of memory when idle`);
  const cycles = cell("echo: Scenario", "Cycles/s", { Scenario: "Task cycle", Callers: "256" });
  expect(readme).toContain(`${cycles} durable task cycles a second`);
  expect(readme).toContain("172,134");
  expect(prose("docs/fault-injection.md")).toContain("172,134");

  const [table] = tablesIn(source("docs/comparison.md")).filter(({ rows }) => "Cycles/s" in (rows[0] ?? {}));
  for (const row of table?.rows ?? []) {
    const [name = ""] = Object.values(row);
    const words = name.split(/, | over | on /);
    const connections = /pipelined/.test(name) ? "shared, pipelined" : "a connection each";
    const recorded = (figures["peers: System"]?.rows ?? []).filter(({ System = "", Callers }) =>
      name.includes("batches")
        ? System === name
        : System.startsWith(words[0] ?? "") && Callers === connections,
    );
    expect([name, recorded.map((other) => other["Cycles/s"])]).toEqual([name, [row["Cycles/s"]]]);
  }
  expect(table?.rows.length).toBeGreaterThan(4);

  // A ratio that is no quotient of two cells says what it is.
  const streams = "A broadcast to 10,000 streams";
  const p50 = (server: string): number => Number(cell(`echo: ${streams}`, "p50 ms", { [streams]: server }));
  const ratio = found(
    prose("docs/benchmarks.md"),
    /The ratio of the p50, the median of the rounds' ratios, is ([\d.]+)/,
  );
  expect(Math.abs(p50("luxhub") / p50("bare `Bun.serve`") - Number(ratio))).toBeLessThan(0.2);
});

test("the pages have the reasons for which a schedule skips a time", () => {
  const reasons = found(source("src/domain/schedule.ts"), /^export type SkipReason = (.*);$/m);
  const wanted = [...reasons.matchAll(/"(\w+)"/g)].map(([, reason = ""]) => reason);
  const part = found(source("docs/troubleshooting.md"), /\n## My schedule created no task\n([^]*?)\n## /);
  expect([...part.matchAll(/^- `(\w+)`: /gm)].map(([, reason = ""]) => reason)).toEqual(wanted);
  expect(prose("docs/events.md")).toContain(`\`reason\`: ${wanted.map((one) => `\`${one}\``).join(", ")}`);
});

test("a large store is no slower than concepts.md says", () => {
  const least = Number(found(prose("docs/concepts.md"), /served at least ([\d.]+) times as many requests/));
  const table = found(source("docs/benchmarks.md"), /\n## A large store and a small one\n([^]*?)\n## /);
  const ratios = [...table.matchAll(/\| +([\d.]+) \|$/gm)].map(([, ratio]) => Number(ratio));
  expect(ratios.length).toBeGreaterThan(5);
  expect(1 / Math.max(...ratios)).toBeGreaterThanOrEqual(least);
  expect(1 / Math.max(...ratios)).toBeLessThan(least + 0.1);
});

test("the changelog has the numbers of the program", () => {
  const text = prose("CHANGELOG.md");
  expect(text).toContain(`: ${TOOL_LIST.length} tools, resources`);
  expect(text).toContain(`up to ${BATCH_REQUESTS_MAX} requests in one transaction`);
  expect(text).toContain(`up to ${DEPENDENCIES_MAX.toLocaleString("en-US")} for a task`);
});

test("the page of fault injection names parts that there are", () => {
  const text = source("docs/fault-injection.md");
  const named = [...text.matchAll(/--only ([a-z-]+)/g)].map(([, name = ""]) => name);
  const tables = [...text.matchAll(/^\| Part .*\n((?:\|.*\n)+)/gm)].map(([, rows = ""]) => rows);
  const rows = [...tables.join("").matchAll(/^\| ([a-z][a-z-]*) /gm)].map(([, name = ""]) => name);
  const parts = new Set([...named, ...rows]);
  expect(parts.size).toBeGreaterThan(15);
  const known = new Set(SECTIONS.map(({ name }) => name));
  expect([...parts].filter((part) => !known.has(part))).toEqual([]);
});

test("every response but that to HEAD has a Date, and only GET reads a query, as the page of the API says", async () => {
  const text = prose("docs/api.md");
  expect(text).toContain("Every response has a `Date`, except a response to `HEAD`.");
  expect(text).toContain("GET takes them in the path and the query, DELETE in the path.");
  await using hub = await startHub();
  const asked = [
    ["GET", "/status", true],
    ["GET", "/node/none", true],
    ["POST", "/task/claim", true],
    ["HEAD", "/status", false],
  ] as const;
  for (const [method, path, has] of asked) {
    const { headers } = await hub.call(method, path, method === "POST" ? { body: {} } : {});
    expect([method, path, headers.has("date")]).toEqual([method, path, has]);
  }
  expect(await ok(hub.get("/status?bogus=1"))).toHaveProperty("ignored", ["bogus"]);
});

test("on B every list without page and per_page is one page of 500", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const lists = DECLARED.filter(
    (one) => one.method === "GET" && "kind" in one && one.kind === "json" && pagesOf(one.input()),
  ).map(({ path }) => path.slice("/api/v1".length));
  expect(lists.length).toBeGreaterThan(8);
  const sizes: [path: string, size: unknown][] = [];
  for (const path of lists) {
    const options = { variant: "B", headers: { "X-Admin-Key": ADMIN_KEY } } as const;
    const query = path === "/lux/ledger" ? "?node_id=n1" : "";
    sizes.push([path, (await ok(hub.get(path + query, options)))["per_page"]]);
  }
  const wanted = new Map<string, unknown>([
    ["/node/list", undefined],
    ["/key/list", KEYS_MAX],
  ]);
  expect(sizes).toEqual(lists.map((path) => [path, wanted.has(path) ? wanted.get(path) : WHOLE_PAGE]));
  const filtered = await ok(hub.get("/node/list?status=online", { variant: "B" }));
  expect(filtered).toHaveProperty("per_page", 20);
});

test("after the answer to a question the time limits begin again in full", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const limits = { timeout_s: 3_000, max_run_s: 1_000 };
  const { task_id } = await ok(hub.post("/task/create", { title: "T", description: "D", ...limits }));
  const holder = { task_id, node_id: "n1" };
  await ok(hub.post("/task/claim", holder));
  hub.clock.pass(100_000);
  await ok(hub.post("/node/heartbeat", { node_id: "n1" }));
  const { question } = await ok(hub.post("/task/ask", { ...holder, question: "Which?" }));
  const { question_id } = z.looseObject({ question_id: z.string() }).parse(question);
  await ok(hub.post("/task/answer", { task_id, question_id, answer: 1 }));
  const answeredAt = hub.clock.now();
  const { lease } = await ok(hub.post("/task/extend", holder));
  const { expires_at } = z.looseObject({ expires_at: z.string() }).parse(lease);
  const leftMs = Date.parse(expires_at) - answeredAt;
  expect(Math.abs(leftMs - limits.max_run_s * 1_000)).toBeLessThan(60_000); // else 100 s less
});

/** Whether a request has pages with numbers. */
function pagesOf(schema: z.ZodMiniType): boolean {
  const text = JSON.stringify(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }));
  return /"page":/.test(text) && /"per_page":/.test(text);
}
