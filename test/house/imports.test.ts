/**
 * Who may import whom (src/README.md, design). Reads every import of src/, type-only ones too, and fails on any that the
 * table below does not allow. A file that no layer claims fails as well: give it a layer first.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { type Source, importsOf, sourcesIn } from "./source.ts";

type Layer = {
  /** Globs from src/. A file is of the first layer that has it. */
  readonly files: readonly string[];
  /** Layers it may import, beside itself. */
  readonly layers: readonly LayerName[];
  /** Packages and built-ins it may import; `node:*` is all of Node's. */
  readonly packages?: readonly string[];
};

type LayerName =
  | "lib"
  | "domain"
  | "store port"
  | "mail port"
  | "blobs port"
  | "queries"
  | "database connection"
  | "store engines"
  | "mail engines"
  | "blobs engines"
  | "service"
  | "http"
  | "variant"
  | "manual"
  | "api"
  | "joined hub"
  | "client"
  | "mcp"
  | "a2a"
  | "web"
  | "config"
  | "data directory"
  | "upkeep"
  | "hub"
  | "standby"
  | "cli"
  | "main";

const PORTS = ["store port", "mail port", "blobs port"] as const;
const ENGINES = ["store engines", "mail engines", "blobs engines"] as const;

const LAYERS: Readonly<Record<LayerName, Layer>> = {
  lib: { files: ["lib/**"], layers: [], packages: [] },
  domain: { files: ["domain/**"], layers: ["lib"] },
  "store port": { files: ["store/store.ts"], layers: ["domain"] },
  "mail port": { files: ["mail/mail.ts"], layers: ["domain", "store port"] }, // of the store: see below
  "blobs port": { files: ["blobs/blobs.ts"], layers: ["domain"] },
  queries: {
    files: ["store/sql/**"],
    layers: ["domain", "lib", "store port"],
  },
  // What the engines on PostgreSQL, of the store and of the blobs, have in common.
  "database connection": {
    files: ["store/postgres/connection.ts"],
    layers: ["domain", "lib", "store port"],
    packages: ["bun"],
  },
  "store engines": {
    files: ["store/**"],
    layers: ["domain", "lib", "store port", "queries", "database connection"],
    packages: ["bun", "bun:sqlite", "node:fs", "node:path"],
  },
  "mail engines": {
    files: ["mail/**"],
    layers: ["domain", "lib", "mail port", "store port", "queries"],
    packages: ["bun"],
  },
  "blobs engines": {
    files: ["blobs/**"],
    layers: ["domain", "lib", "blobs port", "database connection"],
    packages: ["bun", "node:*"],
  },
  service: {
    files: ["service/**"],
    layers: ["domain", "lib", ...PORTS, "queries", "variant"],
    packages: [],
  },
  http: { files: ["http/**"], layers: ["lib"], packages: ["bun", "bun:ffi", "node:*", "@fastify/busboy"] },
  variant: { files: ["variant/**"], layers: ["domain", "lib"] },
  // Bun renders its Markdown.
  manual: { files: ["manual/**"], layers: ["domain", "lib", "config"], packages: ["node:path"] },
  api: {
    files: ["api/**"],
    layers: ["service", "variant", "http", "manual", "domain", "lib", ...PORTS, "queries"],
    packages: ["zod/mini"], // not "zod": the same checks for 2 MiB more memory
  },
  mcp: {
    files: ["mcp/**"],
    layers: ["api", "variant", "http", "domain", "lib", "config"],
    packages: ["@modelcontextprotocol/server"],
  },
  a2a: {
    files: ["a2a/**"],
    layers: ["api", "service", "http", "domain", "lib", "config"],
    packages: ["@a2a-js/sdk", "@a2a-js/sdk/errors", "zod/mini"],
  },
  // A module of the client for programs on a machine, which has files.
  "joined hub": { files: ["client/joined.ts"], layers: [], packages: ["node:*"] },
  // Shipped by itself, also to browsers: see docs/typescript.md.
  client: { files: ["client/**"], layers: [] },
  // The page runs in browsers; dashboard.ts, which builds it, in the hub.
  web: {
    files: ["web/**"],
    layers: ["client", "domain", "lib"],
    packages: ["preact", "preact/hooks"],
  },
  config: {
    files: ["config.ts", "version.ts"],
    layers: ["domain", "lib"],
    packages: ["node:*"],
  },
  // `service` for the form of the two secrets that the key ring is given.
  "data directory": {
    files: ["data-dir.ts", "permissions.ts", "text-file.ts"],
    layers: ["domain", "lib", "config", "service"],
    packages: ["node:*"],
  },
  upkeep: {
    files: ["upkeep/**"],
    layers: [
      "lib",
      "domain",
      "store port",
      "blobs port",
      "queries",
      "store engines",
      "blobs engines",
      "database connection",
      "data directory",
    ],
    packages: ["bun:sqlite", "node:*", "modern-tar", "zod/mini"],
  },
  hub: {
    files: ["hub.ts", "hub/**"],
    layers: [
      "lib",
      "domain",
      ...PORTS,
      "queries",
      ...ENGINES,
      "service",
      "http",
      "variant",
      "api",
      "mcp",
      "a2a",
      "web",
      "config",
      "data directory",
    ],
    packages: ["node:*"],
  },
  // What a hub is in a pair, and how a standby calls its first hub.
  standby: {
    files: ["standby/**"],
    layers: [
      "lib",
      "domain",
      "store port",
      "blobs engines",
      "store engines",
      "queries",
      "service",
      "api",
      "client",
      "joined hub",
      "config",
      "data directory",
      "upkeep",
      "hub",
    ],
    packages: ["bun:sqlite", "node:*", "zod/mini"],
  },
  cli: {
    files: ["cli/**"],
    // `api` for the form of a node_id, which must be the same in `luxhub keys` as in a request.
    layers: [
      "lib",
      "domain",
      ...PORTS,
      "queries",
      ...ENGINES,
      "service",
      "variant",
      "api",
      "client",
      "joined hub",
      "config",
      "data directory",
      "upkeep",
      "hub",
      "standby",
    ],
    packages: ["node:*"],
  },
  main: { files: ["main.ts"], layers: ["cli", "config", "lib"], packages: ["bun", "node:*"] },
};

// The keys of a record over a closed union are that union; their order is that of the table.
const NAMES = Object.keys(LAYERS) as LayerName[];

function layerOf(path: string): LayerName | null {
  const inside = path.replace(/^src\//, "");
  if (inside === path) return null;
  return NAMES.find((name) => LAYERS[name].files.some((glob) => new Bun.Glob(glob).match(inside))) ?? null;
}

/** One line for each import of a file that its layer does not allow. */
function offences({ path, text }: Source): readonly string[] {
  const from = layerOf(path);
  if (from === null) return [`${path} is of no layer: add it to the table`];
  return importsOf(text).flatMap((specifier) => {
    const reason = offence(path, from, specifier);
    return reason === null ? [] : [`${path} imports ${specifier}: ${reason}`];
  });
}

function offence(path: string, from: LayerName, specifier: string): string | null {
  const { layers, packages = [] } = LAYERS[from];
  if (!specifier.startsWith(".")) {
    const allowed = packages.some((name) =>
      name.endsWith(":*") ? specifier.startsWith(name.slice(0, -1)) : name === specifier,
    );
    return allowed ? null : `${from} may not use this package`;
  }
  const target = posix.join(posix.dirname(path), specifier);
  if (target === "package.json") return from === "config" ? null : "only src/version.ts reads it";
  if (target === "src/client/luxhub.py") return from === "api" ? null : "only src/api/routes.ts serves it";
  if (/^(?:docs\/.+|[A-Z]+\.md)$/.test(target))
    return path === "src/manual/files.ts" ? null : "only src/manual/files.ts names the files of the manual";
  if (target === "tools/recorded/openapi-examples.json")
    return path === "src/api/openapi.ts" ? null : "only src/api/openapi.ts serves it";
  if (!/\.(?:ts|tsx|html|css|json)$/.test(specifier)) return "name the file with its ending";
  const to = layerOf(target);
  if (to === null) return "it is outside src/";
  return to === from || layers.includes(to) ? null : `${from} may not import ${to}`;
}

const SOURCES = sourcesIn("src");

describe("src imports only what the house allows", () => {
  for (const name of NAMES) {
    const own = SOURCES.filter(({ path }) => layerOf(path) === name);
    test.skipIf(own.length === 0)(`${name}${own.length === 0 ? " (has no files yet)" : ""}`, () => {
      expect(own.flatMap(offences)).toEqual([]);
    });
  }

  test("every file is of a layer", () => {
    expect(SOURCES.filter(({ path }) => layerOf(path) === null).map(({ path }) => path)).toEqual([]);
  });

  test("what is imported exists", () => {
    const root = join(import.meta.dir, "../..");
    const missing = SOURCES.flatMap(({ path, text }) =>
      importsOf(text)
        .filter((specifier) => specifier.startsWith("."))
        .filter((specifier) => !existsSync(join(root, posix.dirname(path), specifier)))
        .map((specifier) => `${path} imports ${specifier}`),
    );
    expect(missing).toEqual([]);
  });

  test("no files import each other in a circle", () => {
    const targets = new Map(
      SOURCES.map(({ path, text }) => [
        path,
        importsOf(text)
          .filter((specifier) => specifier.startsWith("."))
          .map((specifier) => posix.join(posix.dirname(path), specifier)),
      ]),
    );
    expect(circlesIn(targets)).toEqual([]);
  });

  test("the mail port takes of the store's port only the types of transact", () => {
    const text = SOURCES.find(({ path }) => path === "src/mail/mail.ts")?.text ?? "";
    expect(text.match(/import .* from "\.\.\/store\/store\.ts";/g)).toEqual([
      'import type { Answer, Committed, Transact } from "../store/store.ts";',
    ]);
  });
});

/** Each chain of imports that comes back to its first file, found by a depth-first search. */
function circlesIn(targets: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (path: string, above: readonly string[]): void => {
    const at = above.indexOf(path);
    if (at >= 0) circles.push([...above.slice(at), path].join(" -> "));
    if (at >= 0 || done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...above, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return circles;
}

test("a circle of imports would be seen", () => {
  const targets = { a: ["b"], b: ["c", "d"], c: ["a"], d: [] };
  expect(circlesIn(new Map(Object.entries(targets)))).toEqual(["a -> b -> c -> a"]);
});

describe("the table forbids", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["src/lib/a.ts", "../domain/task/core.ts"],
    ["src/lib/a.ts", "node:fs"],
    ["src/domain/a.ts", "../store/store.ts"],
    ["src/domain/a.ts", "zod"],
    ["src/domain/a.ts", "zod/mini"],
    ["src/domain/a.ts", "bun"],
    ["src/store/store.ts", "./sqlite/engine.ts"],
    ["src/store/sql/tasks.ts", "../sqlite/engine.ts"],
    ["src/mail/mail.ts", "./embedded.ts"],
    ["src/mail/embedded.ts", "../store/sqlite/engine.ts"],
    ["src/blobs/disk.ts", "../store/store.ts"],
    ["src/service/a.ts", "../store/sqlite/engine.ts"],
    ["src/service/a.ts", "../store/sqlite/migrations.ts"],
    ["src/service/a.ts", "../blobs/disk.ts"],
    ["src/service/a.ts", "../http/problem.ts"],
    ["src/service/a.ts", "../api/response-schemas.ts"],
    ["src/http/a.ts", "../domain/limits.ts"],
    ["src/http/a.ts", "zod/mini"],
    ["src/variant/a.ts", "../service/tasks.ts"],
    ["src/api/a.ts", "../store/sqlite/engine.ts"],
    ["src/api/a.ts", "../mail/embedded.ts"],
    ["src/api/a.ts", "../hub.ts"],
    ["src/api/a.ts", "zod"],
    ["src/api/a.ts", "../../docs/api.md"],
    ["src/manual/files.ts", "../../src/README.md"],
    ["src/manual/manual.ts", "../http/problem.ts"],
    ["src/client/a.ts", "../lib/clock.ts"],
    ["src/client/a.ts", "node:crypto"],
    ["src/config.ts", "zod"],
    ["src/config.ts", "./hub.ts"],
    ["src/upkeep/a.ts", "../service/files.ts"],
    ["src/upkeep/a.ts", "../hub.ts"],
    ["src/hub.ts", "./upkeep/backup.ts"],
    ["src/hub.ts", "./cli/serve.ts"],
    ["src/cli/a.ts", "../http/listener.ts"],
    ["src/cli/a.ts", "../../test/support/hub.ts"],
    ["src/hub.ts", "../test/support/hub.ts"],
    ["src/api/a.ts", "../../tools/recorded/openapi-examples.json"],
    ["src/api/openapi.ts", "../../tools/release.ts"],
    ["src/hub.ts", "./domain/limits"],
    ["src/elsewhere/a.ts", "../lib/clock.ts"],
  ];
  for (const [path, specifier] of rows)
    test(`${path} -> ${specifier}`, () => {
      expect(offences({ path, text: `import { x } from "${specifier}";` })).toHaveLength(1);
    });
});
