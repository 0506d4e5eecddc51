/**
 * The README is true: its session runs as it stands there, and its tables are those of the sources. A table that has
 * changed is printed as it should be.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import packageJson from "../../package.json";
import { ENDPOINTS } from "../../src/api/endpoints.ts";
import type { Endpoint } from "../../src/api/endpoint.ts";
import { fileEndpoints } from "../../src/api/files.ts";
import {
  deliveryShape,
  entryShape,
  eventShape,
  fileShape,
  messageShape,
  nodeShape,
  taskShape,
} from "../../src/api/shapes.ts";
import { SETTING_ROWS } from "../../src/config.ts";
import { EVENT_KINDS } from "../../src/domain/event.ts";
import { Hub, PROJECT, TempDir, objectOf } from "./program.ts";

const README = readFileSync(join(PROJECT, "README.md"), "utf8");

const ObjectSchema = z.object({
  properties: z.optional(z.record(z.string(), z.unknown())),
  required: z.optional(z.array(z.string())),
});
/** What is read here of a JSON schema. */
const JsonSchema = z.extend(ObjectSchema, { anyOf: z.optional(z.array(ObjectSchema)) });
type JsonSchema = z.infer<typeof JsonSchema>;

/** The first block of shell under a heading. */
function shellUnder(heading: string): string {
  const section = README.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return /```sh\n([\s\S]*?)\n```/.exec(section)?.[1] ?? "";
}

/** What stands between two marks. */
function marked(name: string): string {
  const [, text = ""] = new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)\n<!-- /${name} -->`).exec(README) ?? [];
  return text;
}

/** The rows of a table below its head, as cells. */
function rowsOf(table: string): readonly (readonly string[])[] {
  const [_head, _rule, ...lines] = table.split("\n").filter((line) => line.startsWith("|"));
  return lines.map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test("Run and Test are one line each, for the Bun that this project is tested with", () => {
  const wanted = packageJson.engines.bun.replace(">=", "");
  expect(shellUnder("Run")).toBe(`npx --yes bun@${wanted} start`);
  expect(shellUnder("Test")).toBe(`npx --yes bun@${wanted} run test`);
  expect(shellUnder("Build")).toBe("bun run build");
  expect(Object.keys(packageJson.scripts)).toEqual(
    expect.arrayContaining(["start", "test", "build", "bench"]),
  );
  expect(README.indexOf("\n## Run\n")).toBeLessThan(README.indexOf("\n## A session\n"));
});

test("the session", async () => {
  using dir = new TempDir();
  // As Run does, but on a port of our own: with no data directory named, it is the one that the session looks into.
  await using hub = await Hub.start({ cwd: dir.path, ownSecrets: false });
  expect(packageJson.scripts.start).toEndWith("bun src/main.ts serve");
  const session = shellUnder("A session");
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

/** The names in a schema, a question mark after what may be left out; of one that takes this or that, both. */
function fieldsOf(schema: z.ZodMiniType, io: "input" | "output"): string {
  const written: JsonSchema = JsonSchema.parse(z.toJSONSchema(schema, { io, unrepresentable: "any" }));
  return [written, ...(written.anyOf ?? [])]
    .map(({ properties = {}, required = [] }) =>
      Object.keys(properties)
        .map((name) => `\`${name}${required.includes(name) ? "" : "?"}\``)
        .join(", "),
    )
    .filter((names) => names !== "")
    .join(" or ");
}

describe("the tables", () => {
  const cell = (text: string): string => text.replaceAll("|", "\\|");

  test("settings", () => {
    const rows = SETTING_ROWS.map(({ flag, value, env, key, fallback, help }) => [
      `\`${cell(`${flag} ${value}`)}\``,
      `\`${env}\``,
      `\`${key}\``,
      fallback === null ? "" : `\`${fallback}\``,
      cell(help),
    ]);
    expect(rowsOf(marked("settings"))).toEqual(rows);
  });

  test("endpoints", () => {
    const line = ({
      method,
      path,
      auth,
      summary,
    }: Pick<Endpoint, "method" | "path" | "auth" | "summary">) => [
      method,
      `\`${path.replaceAll(/:(\w+)/g, "<$1>")}\``,
      auth,
      summary,
    ];
    // The stream's endpoint is made with the room of streams; here it is read from its source.
    const source = readFileSync(join(PROJECT, "src/api/stream.ts"), "utf8");
    const [, path = "", auth = "", summary = ""] =
      /method: "GET",\s+path: "([^"]+)",\s+auth: "(\w+)",\s+summary: "([^"]+)"/.exec(source) ?? [];
    const all = [...[...ENDPOINTS, ...fileEndpoints(1)].map(line), ["GET", `\`${path}\``, auth, summary]];
    const byPath = (a: readonly string[], b: readonly string[]): number => (a.join() < b.join() ? -1 : 1);
    expect(rowsOf(marked("endpoints")).toSorted(byPath)).toEqual(all.toSorted(byPath));
  });

  test("fields", () => {
    const rows = [...ENDPOINTS, ...fileEndpoints(1)].flatMap((endpoint) => {
      if (endpoint.kind !== "json") return [];
      const { method, path, input, answer } = endpoint;
      const place = `${method} ${path.replace("/api/v1/", "").replaceAll(/:(\w+)/g, "<$1>")}`;
      return [[`\`${place}\``, fieldsOf(input(), "input"), fieldsOf(answer(), "output")]];
    });
    expect(rowsOf(marked("fields")).toSorted()).toEqual(rows.toSorted());
  });

  test("records", () => {
    const shapes = {
      node: nodeShape(),
      task: taskShape(),
      message: messageShape(),
      "message of receive": deliveryShape(),
      event: eventShape(),
      file: fileShape(),
      "ledger entry": entryShape(),
    };
    const rows = Object.entries(shapes).map(([name, shape]) => [name, fieldsOf(shape, "output")]);
    expect(rowsOf(marked("records"))).toEqual(rows);
  });

  test("the kinds of events", () => {
    expect(EVENT_KINDS.filter((kind) => !new RegExp(`\\b${kind}\\b`).test(README))).toEqual([]);
  });

  test("errors", async () => {
    const found = new Set<string>();
    for await (const file of new Bun.Glob("src/**/*.ts").scan({ cwd: PROJECT })) {
      const text = readFileSync(join(PROJECT, file), "utf8");
      for (const [, status, code] of text.matchAll(/new Problem\(\s*(\d{3}),\s*"(\w+)"/g)) {
        found.add(`${status} \`${code}\``);
      }
      if (!file.endsWith("api/problems.ts")) continue;
      for (const [, code, status] of text.matchAll(/^ {2}(\w+): \[(\d{3}), "/gm)) {
        found.add(`${status} \`${code}\``);
      }
    }
    const named = rowsOf(marked("errors")).map(([status, code]) => `${status} ${code}`);
    expect(found.size).toBeGreaterThan(20);
    expect(named.toSorted()).toEqual([...found].toSorted());
    expect(new Set(named).size).toBe(named.length);
  });
});

test("the map of src names every file", async () => {
  const map = readFileSync(join(PROJECT, "src/README.md"), "utf8");
  const tree = new Set(/```\n([\s\S]*?)\n```/.exec(map)?.[1]?.match(/[\w-]+/g) ?? []);
  const files = await Array.fromAsync(new Bun.Glob("**/*.ts").scan({ cwd: join(PROJECT, "src") }));
  const words = files.flatMap((path) => path.replace(/\.ts$/, "").split("/"));
  expect(words.length).toBeGreaterThan(50);
  expect(words.filter((word) => !tree.has(word))).toEqual([]);
});

test("what it links to is there", async () => {
  const links = [...README.matchAll(/\]\(([^)#][^)]*)\)/g)].map(([, target = ""]) => target);
  expect(links).toContain("src/README.md");
  for (const target of links) {
    if (/^https?:/.test(target)) continue;
    expect([target, await Bun.file(join(PROJECT, target)).exists()]).toEqual([target, true]);
  }
  const anchors = [...README.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = ""]) => anchor);
  const headings = [...README.matchAll(/^##+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
  expect(headings).toEqual(expect.arrayContaining(anchors));
});
