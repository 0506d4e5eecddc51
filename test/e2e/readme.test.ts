/**
 * The README and the pages of docs/ are true: the commands run word for word, and the pages name no endpoint, error
 * code, setting or event kind that does not exist. For an outdated table of limits the test prints the correct one.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { DECLARED } from "../../src/api/routes.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { EXIT_LINES, exitCodeOf } from "../../src/cli/exit-codes.ts";
import type { Declared } from "../../src/api/endpoint.ts";
import { ERRORS } from "../../src/api/openapi-texts.ts";
import { SETTING_ROWS } from "../../src/config.ts";
import { EVENT_KINDS } from "../../src/domain/event.ts";
import * as limits from "../../src/domain/limits.ts";
import { HUB_LIMITS, type HubLimit } from "../../src/domain/shares.ts";
import { PROGRAM, PROJECT } from "../support/executable.ts";
import { Hub, TempDir, objectOf } from "./program.ts";

/** The README, its neighbours and the pages of docs/, by their path in the project. */
const PAGES: ReadonlyMap<string, string> = new Map(
  [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    ...[...new Bun.Glob("docs/*.md").scanSync({ cwd: PROJECT })].toSorted(),
  ].map((path) => [path, readFileSync(join(PROJECT, path), "utf8")]),
);
const README = page("README.md");

function page(path: string): string {
  const text = PAGES.get(path);
  if (text === undefined) throw new Error(`no page ${path}`);
  return text;
}

/** The section of a page under a heading of the second level, up to the next one. */
function section(text: string, heading: string): string {
  return text.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
}

/** The first shell block under a heading of a page. */
function blockUnder(heading: string, path = "README.md"): string {
  return /```sh\n([\s\S]*?)\n```/.exec(section(page(path), heading))?.[1] ?? "";
}

/** The part of a page between two marks. */
function marked(path: string, name: string): string {
  const [, text = ""] =
    new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)\n<!-- /${name} -->`).exec(page(path)) ?? [];
  return text;
}

/** What stands in backticks. */
function codeSpans(text: string): readonly string[] {
  return [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

/** The rows of all tables below their heads, as cells. */
function rowsOf(text: string): readonly (readonly string[])[] {
  const lines = text.split("\n").filter((line, i, all) => {
    const isHead = all[i + 1]?.startsWith("| -") || all[i + 1]?.startsWith("| :");
    return line.startsWith("|") && !isHead && !/^\| :?-/.test(line);
  });
  return lines.map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const ALL_ENDPOINTS: readonly Declared[] = DECLARED;

/** `node/<node_id>` of /api/v1/node/:node_id. */
function shortPath({ path }: Pick<Declared, "path">): string {
  return path.replace("/api/v1/", "").replaceAll(/:(\w+)/g, "<$1>");
}

test("Run and Test are one line each, for the Bun that this project is tested with", () => {
  const wanted = packageJson.engines.bun.replace(">=", "");
  expect(blockUnder("Run")).toBe(`npx --yes bun@${wanted} start`);
  expect(blockUnder("Test")).toBe(`npx --yes bun@${wanted} run test`);
  expect(blockUnder("Build", "CONTRIBUTING.md")).toBe("bun run build");
  expect(Object.keys(packageJson.scripts)).toEqual(
    expect.arrayContaining(["start", "test", "build", "bench"]),
  );
  expect(blockUnder("Install")).toStartWith(`npx --yes bun@${wanted} run build && `);
  expect(packageJson.scripts.start).toEndWith("bun src/main.ts serve");
});

test("the session with curl", async () => {
  using dir = new TempDir();
  // As Run does, but on a port of our own: with no data directory named, it is the one that the session looks into.
  await using hub = await Hub.start({ cwd: dir.path, ownSecrets: false });
  const session = blockUnder("A session with curl", "docs/api.md");
  expect(session.match(/127\.0\.0\.1:19104/g)).toHaveLength(1);
  const { PATH = "" } = process.env;
  const shell = Bun.spawn(["sh", "-eu"], {
    cwd: dir.path,
    env: { PATH },
    stdin: new Blob([session.replace("127.0.0.1:19104", `127.0.0.1:${hub.port}`), "\n"]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited]);
  expect({ err, code }).toEqual({ err: "", code: 0 });

  const lines = out.split("\n").filter((line) => line !== "");
  const [register, create, claim, complete, signin, send, receive, upload] = lines.map(objectOf);
  expect(lines).toHaveLength(9);
  expect(register).toMatchObject({ success: true, node_id: "worker-1", status: "online", created: true });
  expect(create).toMatchObject({ success: true, status: "open", assigned_node: null });
  const taskId = String(create?.["task_id"]);
  expect(claim).toMatchObject({
    success: true,
    task_id: taskId,
    status: "assigned",
    assigned_node: "worker-1",
  });
  expect(complete).toMatchObject({ success: true, status: "completed", lux_paid: 2.5, task_id: taskId });
  expect(signin).toMatchObject({
    success: true,
    lux_earned: 10,
    already_signed_in: false,
    lux_balance: 12.5,
  });
  expect(send).toMatchObject({ success: true, transport: "sqlite" });
  expect(receive).toMatchObject({
    success: true,
    count: 1,
    messages: [{ id: send?.["message_id"], from_node: "operator", content: "Well done", type: "text" }],
  });
  expect(upload).toMatchObject({ success: true, name: "hello.txt", size: 17, task_id: taskId });
  expect(lines[8]).toBe("Hello, everyone.");
});

/**
 * A shell block of a page, with what the comment before it says: `not run: REASON`; `terminal`, which goes on running; or
 * `until: TEXT`, for what ends with a signal: it runs until it has printed the text.
 */
type Block = { readonly text: string; readonly mark: string };

function blocksOf(text: string): readonly Block[] {
  return [
    ...text.matchAll(/(?:<!-- ((?:not run|terminal|until)\b[^>]*) -->\n\n *)?```sh\n([^]*?)\n *```/g),
  ].map(([, mark = "", block = ""]) => ({ text: block, mark }));
}

/** Runs a block until its output has a text, and ends it with SIGTERM. A hub in it has a port and data of its own. */
const RUN_UNTIL = `run_until() { # TEXT NAME BLOCK
  LUXHUB_PORT=0 LUXHUB_DATA="$2" bash -c "$3" >"$2.out" 2>&1 &
  local started=$!
  until grep -qF -- "$1" "$2.out"; do
    kill -0 $started || { cat "$2.out" >&2; return 1; }
    sleep 0.02
  done
  kill -TERM $started
  wait $started || [ $? = 143 ]
}`;

function scriptOf({ text, mark }: Block, number: number): string {
  if (mark === "terminal") return `{ ${text}\n} >>terminals 2>&1 &`;
  if (!mark.startsWith("until: ")) return text;
  const words = [mark.slice("until: ".length), `until-${number}`, text];
  return `run_until ${words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")}`;
}

/** Runs blocks one after the other in the directory of a hub, as a reader would. */
async function runBlocks(blocks: readonly Block[]): Promise<string> {
  using dir = new TempDir();
  await using hub = await Hub.start({ cwd: dir.path, ownSecrets: false });
  for (const name of ["bin", "backups"]) mkdirSync(dir.join(name));
  symlinkSync(PROGRAM[0] ?? "", dir.join("bin/luxhub"));
  symlinkSync(PROGRAM[0] ?? "", dir.join("luxhub"));
  symlinkSync(process.execPath, dir.join("bin/bun"));
  symlinkSync(join(PROJECT, "src"), dir.join("src")); // as in a checkout
  const lines = [RUN_UNTIL, ...blocks.filter(({ mark }) => !mark.startsWith("not run")).map(scriptOf)]
    .join("\n")
    .replaceAll("127.0.0.1:19104", `127.0.0.1:${hub.port}`)
    .replaceAll("/path/to/luxhub/", `${PROJECT}/`)
    .replaceAll("/var/lib/luxhub", dir.join("luxhub-data"))
    .replaceAll("/backups", dir.join("backups"));
  const { PATH = "" } = process.env;
  const shell = Bun.spawn(["bash", "-eu", "-o", "pipefail"], {
    cwd: dir.path,
    env: { PATH: `${dir.join("bin")}:${PATH}`, HOME: dir.path, XDG_STATE_HOME: dir.join("state") },
    stdin: new Blob([lines, "\n"]),
    stdout: Bun.file(dir.join("stdout")),
    stderr: Bun.file(dir.join("stderr")),
    detached: true, // a process group of its own, with the terminals in it
  });
  try {
    const code = await shell.exited;
    const said = await Promise.all(["stdout", "stderr"].map((name) => Bun.file(dir.join(name)).text()));
    expect({ code, said: code === 0 ? "" : said.join("") }).toEqual({ code: 0, said: "" });
    return said[0] ?? "";
  } finally {
    try {
      process.kill(-shell.pid, "SIGKILL");
    } catch {
      // all of them have ended
    }
  }
}

const NEEDS = ["bash", "curl", "jq"].filter((name) => Bun.which(name) === null);
const WITHOUT = NEEDS.length > 0 ? ` (skipped: there is no ${NEEDS.join(", ")} here)` : "";

test.skipIf(NEEDS.length > 0)(`the first worker and the first agent of the README${WITHOUT}`, async () => {
  const [work, ask, join, ...more] = ["First worker", "First agent"].flatMap((heading) =>
    blocksOf(section(README, heading)),
  );
  if (!work || !ask || !join) throw new Error("a block is missing");
  expect(more).toEqual([]);
  for (const { text } of [work, ask, join]) expect(text.split("\n")).toHaveLength(1);
  const out = await runBlocks([
    { ...work, mark: "terminal" },
    ask,
    join,
    // The agent itself is not here: this runs the program that it would start, with one call.
    {
      text: `echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hub_status","arguments":{}}}' |
      eval "$(jq -r '.mcpServers.luxhub | [.command, .args[]] | @sh' .mcp.json)"`,
      mark: "",
    },
  ]);
  expect(out).toStartWith("Hello, Ada\n");
  expect(out).toContain("You are the node agent-1");
});

/** The pages whose shell blocks run in their order, each page with a hub of its own. */
const RUN_ALONE = ["tutorial", "recipes", "troubleshooting", "comparison", "worker"].map(
  (name) => `docs/${name}.md`,
);
/** Other tests run the blocks of these. */
const RUN_BY_OTHERS = ["README.md", "docs/api.md"];
/**
 * All other pages with shell blocks, which share a hub: first the page that starts a worker, last the one that changes
 * keys.
 */
const RUN_TOGETHER = [
  "docs/worker-command.md",
  ...[...PAGES]
    .filter(([path, text]) => ![...RUN_ALONE, ...RUN_BY_OTHERS].includes(path) && blocksOf(text).length > 0)
    .map(([path]) => path)
    .filter((path) => !["docs/worker-command.md", "docs/keys.md"].includes(path)),
  "docs/keys.md",
];

for (const path of RUN_ALONE)
  test.skipIf(NEEDS.length > 0)(`the commands of ${path}${WITHOUT}`, async () => {
    const blocks = blocksOf(page(path));
    expect(blocks.filter(({ mark }) => !mark.startsWith("not run"))).not.toBeEmpty();
    await runBlocks(blocks);
  });

test.skipIf(NEEDS.length > 0)(`the commands of ${RUN_TOGETHER.join(", ")}${WITHOUT}`, async () => {
  const says = (path: string): Block => ({ text: `echo "# ${path}" | tee /dev/stderr`, mark: "" });
  const out = await runBlocks(RUN_TOGETHER.flatMap((path) => [says(path), ...blocksOf(page(path))]));
  expect(out).toEndWith("\n");
  for (const path of RUN_TOGETHER) expect(out).toContain(`# ${path}\n`);
});

for (const path of [...RUN_ALONE, ...RUN_TOGETHER])
  for (const { text, mark } of blocksOf(page(path))) {
    if (!/^(?:|terminal|until: .+|not run: .{10,})$/.test(mark)) throw new Error(`${path}: ${mark}`);
    if (mark.startsWith("not run: ")) test.skip(`${path}: ${text.split("\n")[0]} (${mark})`, () => {});
  }

test("the pages for a start have no shell block that is not run", () => {
  for (const path of ["docs/concepts.md", "docs/versioning.md", "docs/README.md", "docs/decisions.md"])
    expect(blocksOf(page(path))).toEqual([]);
});

test("the exit codes", () => {
  const rows = rowsOf(section(page("docs/cli.md"), "Exit codes"));
  expect(rows).toEqual(EXIT_LINES.map(([code, meaning]) => [String(code), meaning]));
  // Which error response gives which code, as the page says below the table.
  const statuses = [400, 401, 403, 404, 409, 422, 413, 429, 500, 507, 502, 503, 504];
  expect(statuses.map(exitCodeOf)).toEqual([2, 4, 4, 3, 5, 5, 1, 1, 1, 1, 6, 6, 6]);
});

test("the pages of the clients name every method of the hub itself, and the call for what has none", () => {
  for (const path of ["docs/typescript.md", "docs/python.md"])
    for (const name of ["status", "minutes", "diagnostic", "batch", "call"])
      expect([path, page(path).includes(`hub.${name}(`)]).toEqual([path, true]);
  const methods = ["hub-calls.ts", "luxhub.ts"]
    .map((file) => readFileSync(join(PROJECT, "src/client", file), "utf8"))
    .join("\n");
  for (const name of ["status", "minutes", "diagnostic", "batch", "call"])
    expect(methods).toMatch(new RegExp(`^  (?:async )?${name}[(<]|^  readonly ${name}\\b`, "m"));
});

test("an alert fires when no hub is there to answer", () => {
  const rules = section(page("docs/monitoring.md"), "Metrics");
  expect(rules).toContain("absent(luxhub_leader)");
  expect(rules).toMatch(/up\{job="luxhub"\} == 0/);
});

test("the pages say which paths are open", () => {
  expect(section(README, "Who can read what")).toContain("docs/security.md#open-reads");
  const text = section(page("docs/security.md"), "Open reads");
  const [open = ""] = /\*\*On A these reads[\s\S]*?These reads show/.exec(text) ?? [];
  const wanted = ALL_ENDPOINTS.filter(({ auth }) => auth === "public").map((endpoint) => shortPath(endpoint));
  expect(codeSpans(open).toSorted()).toEqual(wanted.toSorted());
  // Outside /api/v1 some paths need no secret on either variant, even with --private.
  const [always = ""] = /\*\*Open on both variants[\s\S]*?These paths show no\s+stored data/.exec(text) ?? [];
  const paths = codeSpans(always).filter((span) => span.startsWith("/"));
  const card = "/.well-known/agent-card.json";
  const server = ["/", card, `/a2a${card}`, "/client/luxhub.py", "/docs", "/healthz", "/readyz"];
  expect(paths.toSorted()).toEqual(server);
  for (const path of server.filter((one) => one !== "/")) expect(page("docs/api.md")).toContain(path);
});

test("the paths that the pages call open are open, even with --private", async () => {
  await using hub = await Hub.start({ args: ["--private"] });
  for (const path of [
    "/",
    "/.well-known/agent-card.json",
    "/a2a/.well-known/agent-card.json",
    "/client/luxhub.py",
    "/docs",
    "/healthz",
    "/readyz",
  ]) {
    const response = await fetch(`http://127.0.0.1:${hub.port}${path}`);
    expect([path, response.status]).toEqual([path, 200]);
    await response.bytes();
  }
  for (const path of ["/metrics", "/api/v1/status"]) {
    const response = await fetch(`http://127.0.0.1:${hub.port}${path}`);
    expect([path, response.status]).toEqual([path, 401]);
    await response.bytes();
  }
});

/** Only of the probes and of MCP. */
const NOT_OF_THE_API = ["403 origin_not_allowed", "503 draining", "503 starting"];

describe("the pages", () => {
  test("the kinds of events", () => {
    const lines = [...marked("docs/events.md", "kinds").matchAll(/^- (.*?): /gm)].map(
      ([, kinds = ""]) => kinds,
    );
    expect(codeSpans(lines.join()).toSorted()).toEqual([...EVENT_KINDS].toSorted());
  });

  test("the OpenAPI documents describe every error code of the sources", async () => {
    const codes = new Set<string>();
    for await (const file of new Bun.Glob("src/**/*.ts").scan({ cwd: PROJECT })) {
      const text = readFileSync(join(PROJECT, file), "utf8");
      for (const [, status, code] of text.matchAll(/new Problem\(\s*(\d{3}),\s*"(\w+)"/g))
        codes.add(`${status} ${code}`);
      if (!file.endsWith("api/error-table.ts")) continue;
      for (const [, code, status] of text.matchAll(/^ {2}(\w+): \[(\d{3}), "/gm))
        codes.add(`${status} ${code}`);
    }
    expect(codes.size).toBeGreaterThan(20);
    const described = Object.entries(ERRORS).map(([code, { status }]) => `${status} ${code}`);
    expect([...described, ...NOT_OF_THE_API].toSorted()).toEqual([...codes].toSorted());
  });
});

describe("limits", () => {
  type Name = {
    [K in keyof typeof limits]: (typeof limits)[K] extends number | bigint ? K : never;
  }[keyof typeof limits];
  const valueOf = (name: Name): number => Number(limits[name]);
  const count = (name: Name): string => valueOf(name).toLocaleString("en-US");
  const bytes = (name: Name): string => {
    const kib = valueOf(name) / 1_024;
    return kib < 1_024 ? `${kib} KiB` : `${(kib / 1_024).toLocaleString("en-US")} MiB`;
  };
  const seconds = (name: Name): string => `${valueOf(name) / 1_000} s`;

  /** The numbers that each row of the page has, in its order; a plain text is no limit of ours, or has no name. */
  const ROWS: readonly (readonly [what: string, ...numbers: readonly string[]])[] = [
    ["Head of a request", "16 KiB", "198", "12 s"],
    ["JSON body", bytes("JSON_BODY_MAX_BYTES"), seconds("JSON_BODY_DEADLINE_MS")],
    ["Values, lists and objects in a JSON body", count("JSON_VALUES_MAX")],
    ["Nesting levels of stored JSON", count("JSON_DEPTH_MAX")],
    ["Reports in one `usage` · reports of a task", count("USAGE_TOGETHER_MAX"), count("USAGE_OF_TASK_MAX")],
    ["A secret in a request", count("SECRET_MAX_CHARS")],
    ["Progress of an upload", bytes("UPLOAD_STALL_MIN_BYTES"), seconds("UPLOAD_STALL_MS")],
    ["`metadata` of a file", bytes("METADATA_MAX_BYTES")],
    ["Parts of an upload", count("UPLOAD_PARTS_MAX"), bytes("UPLOAD_PART_HEADERS_MAX_BYTES")],
    ["Files of one task", count("FILES_OF_TASK_MAX")],
    ["Responses in one batch", bytes("BATCH_ANSWERS_MAX_BYTES")],
    ["Rows that one batch reads and writes", count("BATCH_ROWS_MAX")],
    ["Time for which one batch is decided", `${count("BATCH_DECIDE_MS")} ms`],
    ["Stored responses of one secret (`Idempotency-Key`)", bytes("ANSWERS_OF_KEY_MAX_BYTES")],
    ["Writes that wait for their commit", count("QUEUE_MAX")],
    [
      "LUX balance of a node",
      (valueOf("BALANCE_MAX_MICRO") / valueOf("MICRO_PER_LUX")).toLocaleString("en-US"),
    ],
    ["An idle connection", "60 s"],
    ["Connections"],
    [
      "Progress of a client that reads a response over 64 KiB",
      bytes("ANSWER_SLICE_BYTES"),
      seconds("ANSWER_STALL_MS"),
    ],
  ];

  /** The resources of which each caller has a share, in the order of the page. */
  const SHARES: readonly (readonly [what: string, name: keyof typeof limits])[] = [
    ["Long polls", "WAIT_SHARES"],
    ["Open event streams", "STREAM_SHARES"],
    ["Uploads at once", "UPLOAD_SHARES"],
    ["Running reads of lists and events", "READ_SHARES"],
    ["Unread responses over 64 KiB", "ANSWER_BYTES_SHARES"],
    ["Unread events of streams", "STREAM_BYTES_SHARES"],
    ["Request bodies in transit", "BODY_BYTES_SHARES"],
  ];

  test("the page has the numbers of the sources", () => {
    const numbers = (cell: string): readonly string[] =>
      cell
        .replaceAll(/`[^`]*`|UTF-8|(?:then|else) \d{3}/g, "")
        .match(/\d[\d,]*(?: (?:KiB|MiB|ms|s)\b)?/g)
        ?.map((number) => number.replace(/,$/, "")) ?? [];
    const rows = rowsOf(marked("docs/errors-and-limits.md", "limits"));
    expect(rows.map(([what, limit = ""]) => [what, ...numbers(limit)])).toEqual(ROWS.map((row) => [...row]));
  });

  test("the page has the shares of callers, of every kind", () => {
    const sizesOf = (name: keyof typeof limits): readonly string[] => {
      const { keys, fullKey, limitedKey, addresses, address } = limits[name] as limits.ShareSizes;
      const isBytes = name.endsWith("_BYTES_SHARES");
      return [keys, fullKey, limitedKey, addresses, address].map((size) =>
        isBytes ? `${size / 2 ** 20} MiB` : size.toLocaleString("en-US"),
      );
    };
    const rows = rowsOf(marked("docs/errors-and-limits.md", "shares"));
    expect(rows).toEqual(SHARES.map(([what, name]) => [what, ...sizesOf(name)]));
    const all = Object.keys(limits).filter((name) => name.endsWith("_SHARES"));
    expect(SHARES.map(([, name]) => name).toSorted()).toEqual(all.toSorted() as (typeof SHARES)[number][1][]);
  });

  test("the page has the share of a node in every limit of the whole hub", () => {
    const rows = Object.values(HUB_LIMITS).map(({ what, all, ofNode, code, undo }: HubLimit) => {
      const isBytes = what.startsWith("bytes");
      const share = ofNode === null ? "administrator only" : ofNode.toLocaleString("en-US");
      return [
        what,
        isBytes ? `${all / 2 ** 20} MiB` : all.toLocaleString("en-US"),
        isBytes ? "in the number of its notes" : share,
        `409 \`${code}\``,
        `\`${undo}\``,
      ];
    });
    expect(rowsOf(marked("docs/errors-and-limits.md", "node-shares"))).toEqual(rows);
  });
});

describe("what the pages name exists", () => {
  const spans = [...PAGES].flatMap(([path, text]) => codeSpans(text).map((code) => ({ path, code })));
  const all = [...PAGES].map(([path, text]) => ({ path, text }));

  test("endpoints", () => {
    const known = new Set(ALL_ENDPOINTS.map((endpoint) => `${endpoint.method} ${shortPath(endpoint)}`));
    const named = spans.filter(({ code }) => /^(?:GET|POST|PUT|PATCH|DELETE) \S+$/.test(code));
    expect(named.length).toBeGreaterThan(60);
    expect(named.filter(({ code }) => !known.has(code.replace(/\?.*/, "")))).toEqual([]);
    // Also those without a method, by their first part: task/…
    const paths = new Set(ALL_ENDPOINTS.map((endpoint) => shortPath(endpoint)));
    const resources = new Set(
      [...paths].flatMap((path) => (path.includes("/") ? [path.split("/")[0] ?? ""] : [])),
    );
    const loose = all.flatMap(({ path, text }) =>
      [
        ...text
          .replaceAll(/```[\s\S]*?```|\]\([^)]*\)/g, "")
          .matchAll(/(?<![\w./-])([a-z]+)\/([a-z][a-z-]*)\b(?!\/)/g),
      ].flatMap(([place, resource = ""]) =>
        resources.has(resource) && !paths.has(place) ? [`${path}: ${place}`] : [],
      ),
    );
    expect(loose.filter((place) => !/: file\/download$/.test(place))).toEqual([]);
  });

  test("kinds of events", () => {
    const kinds = new Set<string>(EVENT_KINDS);
    const kind = /^(?:node|task|lux|message|file|note|hub|transport)\.[a-z]+$/;
    expect(spans.filter(({ code }) => kind.test(code) && !kinds.has(code))).toEqual([]);
  });

  test("error codes", () => {
    const codes = new Set([...Object.keys(ERRORS), ...NOT_OF_THE_API.map((code) => code.slice(4))]);
    const wrong = all.flatMap(({ path, text }) =>
      [...text.matchAll(/\b[45]\d\d\s+`(\w+)`/g)].flatMap(([, code = ""]) =>
        codes.has(code) ? [] : [`${path}: ${code}`],
      ),
    );
    expect(wrong).toEqual([]);
  });

  test("flags and environment variables", () => {
    const places = ["src/**/*.ts", "tools/**/*.{ts,sh}", "test/support/*.ts", "package.json"];
    const files = places.flatMap((place) => [...new Bun.Glob(place).scanSync({ cwd: PROJECT })]);
    const sources = files.map((file) => readFileSync(join(PROJECT, file), "utf8")).join("\n");
    const known = new Set([
      ...SETTING_ROWS.flatMap(({ flag, env }) => [flag, env]),
      ...COMMANDS.flatMap(({ flags }) => Object.keys(flags).map((flag) => `--${flag}`)),
      ...(sources.match(/--[a-z][a-z-]+\b|\bLUXHUB_[A-Z_]+\b/g) ?? []),
      ...["only", "scale", "seed"].map((name) => `--${name}`), // of torture, read by parseArgs
      "--yes", // npx
      "--cacert", // curl
      "--retry", // curl
      ...["--arg", "--argjson"], // jq
      "--retry-delay",
      "--retry-all-errors",
      "--target", // bun build
      "--update-timings", // bun test
      "--dry-run", // npm publish
    ]);
    const wrong = all.flatMap(({ path, text }) =>
      [
        ...text
          .replaceAll(/<!--[\s\S]*?-->|^```toml[\s\S]*?^```/gm, "")
          .matchAll(/(?<![\w-])--[a-z][a-z-]+\b|\bLUXHUB_[A-Z_]+\b/g),
      ].flatMap(([name]) => (known.has(name) ? [] : [`${path}: ${name}`])),
    );
    expect(wrong).toEqual([]);
  });
});

describe("form", () => {
  const TABLE_MAX_COLUMNS = 120;

  test("no guide has more than 1,500 words", () => {
    // A word has a letter or a digit; the bars of a table are none.
    const long = [...PAGES].flatMap(([path, text]) => {
      const words = text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      return path.startsWith("docs/") && words > 1_500 ? [`${path} has ${words}`] : [];
    });
    expect(long).toEqual([]);
  });

  test("no table is wider than a screen", () => {
    const wide = [...PAGES].flatMap(([path, text]) =>
      text
        .split("\n")
        .flatMap((line, i) =>
          line.startsWith("|") && line.length > TABLE_MAX_COLUMNS
            ? [`${path}:${i + 1} has ${line.length} columns`]
            : [],
        ),
    );
    expect(wide).toEqual([]);
  });

  test.each([
    ["yaml", (text: string): unknown => Bun.YAML.parse(text)],
    ["json", (text: string): unknown => JSON.parse(text)],
    ["toml", (text: string): unknown => Bun.TOML.parse(text)],
  ])("blocks of %s can be parsed", (language, parse) => {
    const block = new RegExp("^```" + language + "\\n([^]*?)^```$", "gm");
    const blocks = [...PAGES].flatMap(([path, text]) =>
      [...text.matchAll(block)].map(([, held = ""]) => ({ path, held })),
    );
    for (const { path, held } of blocks) expect(() => parse(held), path).not.toThrow();
    expect(blocks).not.toBeEmpty();
  });

  test("relative links and anchors lead somewhere, and the index to every page", () => {
    const anchorsOf = (text: string): ReadonlySet<string> =>
      new Set(
        [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
          heading
            .toLowerCase()
            .replaceAll(/[^\w -]/g, "")
            .replaceAll(" ", "-"),
        ),
      );
    const linked = new Set<string>();
    const broken: string[] = [];
    for (const [path, text] of [
      ...PAGES,
      ...["src/README.md", "CHANGELOG.md"].map(
        (path) => [path, readFileSync(join(PROJECT, path), "utf8")] as const,
      ),
    ]) {
      for (const [, target = ""] of text.matchAll(/\]\(([^)]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file = "", anchor = ""] = target.split("#");
        const there = file === "" ? path : join(path, "..", file);
        if (path === "docs/README.md") linked.add(there);
        const whole = join(PROJECT, there);
        if (!existsSync(whole)) broken.push(`${path}: ${target}`);
        else if (anchor !== "" && !anchorsOf(readFileSync(whole, "utf8")).has(anchor))
          broken.push(`${path}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
    expect(
      [...PAGES.keys()].filter(
        (path) => !["README.md", "docs/README.md"].includes(path) && !linked.has(path),
      ),
    ).toEqual([]);
    expect(linked).toContain("src/README.md");
    expect(README).toContain("(docs/README.md)");
  });
});
