/**
 * The manual that a hub serves: every page, link, anchor and picture of it, the API reference, and the search; in a real
 * Chromium on a phone and a desk, and with a search as one types. Without a Chromium that part is skipped.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { MANUAL_HITS_MAX, MANUAL_QUERY_MAX_CHARS } from "../../src/domain/limits.ts";
import { FILES, nameOf } from "../../src/manual/files.ts";
import { renderMarkdown } from "../../src/manual/markdown.ts";
import { VARIANTS } from "../api/scene.ts";
import { PROJECT } from "../support/executable.ts";
import { type TestHub, startHub } from "../support/hub.ts";
import { DocumentChecks } from "../support/openapi.ts";
import { SPILLED, VIOLATIONS, loadAxe } from "../web/actions.ts";
import { CHROMIUM_MISSING, NARROWEST, Page, type Size, closeBrowser } from "../web/chromium.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startHub({ isPrivate: true });
});
afterAll(async () => {
  await hub.close();
  closeBrowser();
});

type Got = { readonly response: Response; readonly html: string };

async function get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Got> {
  const response = await fetch(`${hub.base()}${path}`, { headers, redirect: "manual" });
  return { response, html: await response.text() };
}

/** The addresses of all pages, from the root of the hub. */
const PAGES = [...FILES.keys()].filter((path) => path.endsWith(".md")).map((path) => addressOf(nameOf(path)));
const GENERATED = ["/docs/api-reference", "/docs/search?q=lease"];

function addressOf(name: string): string {
  return name === "" ? "/docs" : `/docs/${name}`;
}

const textOf = (html: string): string => html.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
const idsOf = (html: string): readonly string[] =>
  [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id);

test("the manual has every page of docs/, its pictures and its examples", () => {
  const files = [
    ...[...new Bun.Glob("*.md").scanSync({ cwd: PROJECT })],
    ...[...new Bun.Glob("docs/*").scanSync({ cwd: PROJECT })],
    ...[...new Bun.Glob("docs/examples/*").scanSync({ cwd: PROJECT })],
  ];
  expect([...FILES.keys()].toSorted()).toEqual(files.toSorted());
  expect(new Set([...FILES.keys()].map(nameOf)).size).toBe(FILES.size);
});

describe("each page", () => {
  /** The pages by their addresses, with the ids in them. */
  const pages = new Map<string, { readonly html: string; readonly ids: ReadonlySet<string> }>();

  beforeAll(async () => {
    for (const address of [...PAGES, ...GENERATED]) {
      const { response, html } = await get(address);
      expect([address, response.status]).toEqual([address, 200]);
      pages.set(address, { html, ids: new Set(idsOf(html)) });
    }
  });

  test("is HTML under a strict policy, without a secret on both variants of a private hub", async () => {
    for (const variant of VARIANTS)
      for (const address of ["/docs", "/docs/tutorial", ...GENERATED]) {
        const page = await fetch(`${hub.base(variant)}${address}`);
        const html = await page.text();
        expect([address, page.status]).toEqual([address, 200]);
        expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
        expect(page.headers.get("x-content-type-options")).toBe("nosniff");
        expect(page.headers.get("cache-control")).toBe("no-cache");
        const policy = page.headers.get("content-security-policy")?.split("; ") ?? [];
        for (const tag of ["style", "script"]) {
          const [, text = ""] = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(html) ?? [];
          const hash = new Bun.CryptoHasher("sha256").update(text).digest("base64");
          expect(policy).toContain(`${tag}-src 'sha256-${hash}'`);
        }
        expect(policy).toEqual(
          expect.arrayContaining(["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"]),
        );
      }
  });

  test("has nothing that the policy forbids, no id twice, and one title", () => {
    for (const [address, { html }] of pages) {
      const markup = html.replace(/<style>[^]*?<\/style>/, "").replace(/<script>[^]*?<\/script>/, "");
      expect([address, /<(?:style|script|iframe|object)\b|\sstyle=|\son\w+="/.exec(markup)?.[0]]).toEqual([
        address,
        undefined,
      ]);
      const ids = idsOf(html);
      expect([address, ids.filter((id, i) => ids.indexOf(id) !== i)]).toEqual([address, []]);
      expect([address, [...markup.matchAll(/<h1\b/g)].length]).toEqual([address, 1]);
      expect([address, /<title>. · luxhub/.test(html)]).toEqual([address, false]);
    }
  });

  test("has links, anchors and pictures that lead somewhere on the hub", async () => {
    /** Everything else that is linked, with its status. */
    const others = new Map<string, number>();
    const lost: string[] = [];
    let anchors = 0;
    for (const [address, { html }] of pages)
      for (const [, target = ""] of html.matchAll(/ (?:href|src|action)="([^"]+)"/g)) {
        if (/^(?:https?:|data:)/.test(target)) continue;
        const { pathname, hash } = new URL(target.replaceAll("&amp;", "&"), new URL(address, "http://hub"));
        const there = pages.get(hash !== "" && target.startsWith("#") ? address : pathname);
        if (!there && !others.has(pathname)) others.set(pathname, (await get(pathname)).response.status);
        if (hash !== "") anchors++;
        if (hash !== "" && !there?.ids.has(decodeURIComponent(hash.slice(1))))
          lost.push(`${address}: ${target}`);
      }
    expect(lost).toEqual([]);
    expect(anchors).toBeGreaterThan(500);
    const failed = [...others].filter(([path, status]) => status !== 200 && path !== "/api/v1/openapi.json");
    expect(failed).toEqual([]);
    expect([...others.keys()]).toContain("/docs/dashboard-task.png");
  });

  test("is in the contents of every other", () => {
    for (const [address, { html }] of pages) {
      if (address === "/docs/api-reference") continue;
      const [, contents = ""] = /<nav [^>]*>([^]*)<\/nav>/.exec(html) ?? [];
      const linked = [...contents.matchAll(/<a href="([^"#]+)"/g)].map(
        ([, target = ""]) => new URL(target, new URL(address, "http://hub")).pathname,
      );
      const wanted = PAGES.filter((one) => one !== "/docs" && one !== address);
      expect([address, linked.toSorted()]).toEqual([address, wanted.toSorted()]);
    }
  });
});

test("a page has what its Markdown has", async () => {
  const { html } = await get("/docs/security");
  expect(html).toContain('<h1 id="security">Security</h1>');
  expect(html).toContain('<h2 id="open-reads">Open reads ');
  const rows = readFileSync(join(PROJECT, "docs/security.md"), "utf8").match(/^\|(?! -)/gm) ?? [];
  expect(html.match(/<tr>/g)?.length).toBe(rows.length);
  expect(html).not.toContain("&lt;!--");
  const { html: concepts } = await get("/docs/concepts");
  expect(concepts).toMatch(/<img src="drawing-how-luxhub-works\.svg" alt="Producers create [^"]+"/);
  expect(concepts).not.toContain("flowchart");
});

test("raw HTML in a page is text, and anchors are GitHub's", () => {
  const addresses = { ofLink: (target: string) => target, ofPicture: (target: string) => target };
  const markdown = `# A & B: <i>"x"</i>\n\n<script>alert(1)</script>\n\na <b onclick="x">\n<!-- no -->\n
## A b\n\n## A b\n\n[l](a<b)\n\n\`\`\`sh\n<h2 id="x">\n\`\`\`\n`;
  const { body, sections } = renderMarkdown(markdown, addresses);
  expect(body.text).not.toMatch(/<(?:script|i|b)\b/);
  expect(body.text).toContain("&lt;b onclick=&quot;x&quot;&gt;");
  expect(body.text).toContain('<a href="a&lt;b">l</a>');
  expect(sections.map(({ anchor }) => anchor)).toEqual(["a--b-ixi", "a-b", "a-b-1"]);
  expect(sections[2]?.text).toBe('l <h2 id="x">');
});

test("the drawings have every word of the Mermaid that they stand for", () => {
  const blocks = [...FILES.keys()]
    .filter((path) => path.endsWith(".md"))
    .flatMap((path) => [...readFileSync(join(PROJECT, path), "utf8").matchAll(/```mermaid\n([^]*?)```/g)])
    .map(([, block = ""]) => block);
  expect(blocks).toHaveLength(2);
  for (const block of blocks) {
    const [, title = ""] = /accTitle: (.+)/.exec(block) ?? [];
    const svg = readFileSync(
      join(PROJECT, `docs/drawing-${title.toLowerCase().replaceAll(" ", "-")}.svg`),
      "utf8",
    );
    const drawn = textOf(svg);
    const labels = [
      ...[...block.matchAll(/"([^"]+)"/g)].map(([, label = ""]) => label),
      ...[...block.matchAll(/ (?:<--|--) ([^->]+) -->/g)].map(([, label = ""]) => label),
      ...[...block.matchAll(/--> \S+: (.+)$/gm)].map(([, label = ""]) => label),
      ...[...block.matchAll(/^ {2}([a-z]+) --> ([a-z]+):/gm)].flatMap(([, from = "", to = ""]) => [from, to]),
    ].flatMap((label) => label.split("<br>"));
    expect(labels.length).toBeGreaterThan(10);
    expect(labels.filter((label) => !drawn.includes(label))).toEqual([]);
  }
});

test("the API reference has every operation of the caller's variant", async () => {
  for (const variant of VARIANTS) {
    const html = await (await fetch(`${hub.base(variant)}/docs/api-reference`)).text();
    const ids = idsOf(html);
    const { document } = DocumentChecks.of(variant);
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    for (const { operationId, summary } of operations) {
      expect(ids).toContain(operationId);
      expect(html).toContain(Bun.escapeHTML(summary));
    }
  }
});

test("pages are compressed for browsers that accept it, and pictures are not", async () => {
  const { brotliDecompressSync, gunzipSync } = await import("node:zlib");
  for (const address of [
    "/docs",
    "/docs/tutorial",
    "/docs/api-reference",
    "/docs/drawing-states-of-a-task.svg",
  ]) {
    const asked = async (coding: string) => {
      const headers = { "Accept-Encoding": coding };
      const response = await fetch(`${hub.base()}${address}`, { headers, decompress: false });
      return { headers: response.headers, bytes: await response.bytes() };
    };
    const plain = await asked("identity");
    expect(plain.headers.get("content-encoding")).toBe(null);
    const etags = new Set([plain.headers.get("etag")]);
    for (const [accepted, coding, decoded] of [
      ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
      ["gzip", "gzip", gunzipSync],
    ] as const) {
      const { headers, bytes } = await asked(accepted);
      expect([address, headers.get("content-encoding")]).toEqual([address, coding]);
      expect(headers.get("vary")).toContain("Accept-Encoding");
      expect(bytes.length).toBeLessThan(plain.bytes.length / 2);
      expect(decoded(bytes).equals(plain.bytes)).toBe(true);
      etags.add(headers.get("etag"));
    }
    expect(etags.size).toBe(3);
  }
  const picture = await fetch(`${hub.base()}/docs/dashboard-task.png`, {
    headers: { "Accept-Encoding": "br" },
  });
  expect(picture.headers.get("content-encoding")).toBe(null);
});

test("what did not change is not sent again, and other paths are not served", async () => {
  for (const address of ["/docs", "/docs/tutorial", "/docs/api-reference", "/docs/dashboard-task.png"]) {
    const etag = (await get(address)).response.headers.get("etag") ?? "";
    const { response, html } = await get(address, { "If-None-Match": `"other", W/${etag}` });
    expect([address, response.status, html]).toEqual([address, 304, ""]);
    const head = await fetch(`${hub.base()}${address}`, { method: "HEAD" });
    expect([head.status, head.headers.get("etag")]).toEqual([200, etag]);
  }
  const { response } = await get("/docs/");
  expect([response.status, response.headers.get("location")]).toEqual([308, "../docs"]);
  for (const name of [
    "none",
    "tutorial.md",
    "..%2fpackage.json",
    "%2fetc%2fpasswd",
    "constructor",
    "README.md",
  ]) {
    const got = await get(`/docs/${name}`);
    expect([name, got.response.status, JSON.parse(got.html).error]).toEqual([name, 404, "not_found"]);
  }
});

test("files have their types", async () => {
  const types = { "worker.sh": "text/plain; charset=utf-8", "dashboard-task.png": "image/png" };
  for (const [name, type] of Object.entries(types)) {
    const { response } = await get(`/docs/${name}`);
    expect([name, response.status, response.headers.get("content-type")]).toEqual([name, 200, type]);
  }
  for (const path of [...FILES.keys()].filter((one) => /\.(?:png|svg|sh|py)$/.test(one))) {
    const file = await (await fetch(`${hub.base()}${addressOf(nameOf(path))}`)).bytes();
    expect([path, Buffer.compare(file, readFileSync(join(PROJECT, path)))]).toEqual([path, 0]);
  }
});

describe("the search", () => {
  async function search(query: string): Promise<{ readonly html: string; readonly hits: readonly string[] }> {
    const { response, html } = await get(`/docs/search?q=${encodeURIComponent(query)}`);
    expect(response.status).toBe(200);
    const [, list = ""] = /<ol class="hits">([^]*?)<\/ol>/.exec(html) ?? [];
    return { html, hits: [...list.matchAll(/<a href="([^"]+)"/g)].map(([, target = ""]) => target) };
  }

  test("finds a section by words of its heading first, then by its text", async () => {
    expect((await search("open reads")).hits[0]).toBe("security#open-reads");
    expect((await search("ask a person")).hits[0]).toBe("recipes#ask-a-person");
    // Beginnings of words, in any case; a name of the API as it is written.
    expect((await search("ASK pers")).hits[0]).toBe("recipes#ask-a-person");
    const { html, hits } = await search("stale_lease");
    expect(hits.length).toBeGreaterThan(2);
    expect(html).toContain("<mark>stale</mark>_<mark>lease</mark>");
    expect((await search("prometheus")).hits.map((hit) => posix.basename(hit))).toContain(
      "monitoring#metrics",
    );
  });

  test.each([
    ["cron timezone", "recipes"],
    ["fan-out", "pipelines"],
    ["DAG", "pipelines"],
    ["max files per task", "errors-and-limits"],
    ["tasks without a type", "agents"],
    ["untyped", "agents"],
    ["delete old tasks", "operations"],
    ["gpu", "recipes"],
    ["stale_lease", "troubleshooting"],
    ["webhook localhost", "webhooks"],
    ["git worktree", "coding-agents"],
    ["slack", "webhooks"],
    ["autostart worker", "worker"],
    ["self-signed certificate", "hardening"],
    ["DLQ", "messages"],
    ["OpenTelemetry", "recipes"],
    ["upgrade", "operations"],
  ])("answers %p from %s at the first try", async (query, page) => {
    const { hits } = await search(query);
    expect(hits.slice(0, 5).map((hit) => hit.split("#")[0])).toContain(page);
  });

  test("says what it has not found, and shows its own form to whoever types nothing", async () => {
    const none = await search("quetzalcoatl");
    expect([none.hits, none.html]).toEqual([
      [],
      expect.stringContaining("No section has any of these words"),
    ]);
    const { hits, html } = await search("");
    expect([hits, html]).toEqual([[], expect.stringContaining('<form role="search" action="search">')]);
    expect((await search("?!")).hits).toEqual([]);
  });

  test("escapes the query, and bounds it and the results", async () => {
    const { html } = await search('"><script>alert(1)</script>');
    expect(html).toContain("&quot;&gt;&lt;script&gt;alert(1)");
    expect(html).not.toContain("<script>alert");
    expect((await search("t")).hits).toHaveLength(MANUAL_HITS_MAX);
    const long = await get(`/docs/search?q=${"x".repeat(MANUAL_QUERY_MAX_CHARS + 1)}`);
    expect([long.response.status, JSON.parse(long.html).error]).toEqual([400, "invalid_request"]);
    expect((await search("x".repeat(MANUAL_QUERY_MAX_CHARS))).hits).toEqual([]);
  });
});

const reason = CHROMIUM_MISSING === null ? "" : ` (${CHROMIUM_MISSING})`;
const DESK: Size = { width: 1_280, height: 900 };

describe.skipIf(CHROMIUM_MISSING !== null)(`in a browser${reason}`, () => {
  // What fits a phone fits a desk, but for what only a desk shows, which all pages have in common.
  const ON_A_DESK = ["/docs", "/docs/concepts", "/docs/readme", "/docs/tasks", ...GENERATED];
  test.each([
    ["a phone", NARROWEST, [...PAGES, ...GENERATED]],
    ["a desk", DESK, ON_A_DESK],
  ] as const)(
    "no page is wider than the window of %s, and nothing violates the policy",
    async (_, size, all) => {
      using page = new Page(size);
      for (const address of all) {
        await page.open(`${hub.base()}${address}`);
        await page.until(`innerWidth === ${size.width}`);
        await page.until(`[...document.images].every((image) => image.complete && image.naturalWidth > 0)`);
        const spilled = await page.eval(SPILLED.replace(".table, nav", ".table, nav, pre"));
        expect([address, size.width, spilled]).toEqual([address, size.width, []]);
      }
      expect(page.complaints).toEqual([]);
    },
  );

  test("names and contrasts are right", async () => {
    using page = new Page(DESK);
    for (const address of ["/docs", "/docs/concepts", "/docs/readme", "/docs/search?q=lease"]) {
      await page.open(`${hub.base()}${address}`);
      await loadAxe(page);
      expect([address, await page.eval(VIOLATIONS)]).toEqual([address, []]);
    }
  });

  test("results appear as one types, lead to their section, and go when the field is empty", async () => {
    using page = new Page(DESK);
    const typed = (text: string) => page.fill("q", text, "form");
    await page.open(`${hub.base()}/docs`);
    await typed("open reads");
    await page.until(`document.querySelector("#found a")?.textContent === "Open reads"`);
    expect(await page.eval(`document.getElementById("top").hidden`)).toBe(true);
    await typed("");
    await page.until(`document.getElementById("found").hidden && !document.getElementById("top").hidden`);
    await typed("open reads");
    await page.click("#found a");
    await page.until(`location.href === ${JSON.stringify(`${hub.base()}/docs/security#open-reads`)}`);
    // A result on the same page shows the page again.
    await typed("open reads");
    await page.until(`!document.getElementById("found").hidden`);
    await page.click("#found a");
    await page.until(`document.getElementById("found").hidden && !document.getElementById("top").hidden`);
    expect(page.complaints).toEqual([]);
  });
});
