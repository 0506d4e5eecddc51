/**
 * The dashboard: how it is served, and every action of it once, in a real Chromium against a hub. The browser's part is
 * skipped without a Chromium; test/servers.test.ts says so.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { takePictures } from "../../tools/generate/dashboard-pictures.ts";
import { PROJECT } from "../support/executable.ts";
import { ADMIN_KEY, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { dashboard } from "../../src/web/dashboard.ts";
import { RESULT, VARIANTS, ok } from "../api/scene.ts";
import { NGINX_MISSING, Nginx } from "../support/nginx.ts";
import { ACTIONS, furnish, inspect } from "./actions.ts";
import { someOfEverything } from "./everything.ts";
import { CHROMIUM_MISSING, NARROWEST, Page, TABLES, WIDE, closeBrowser } from "./chromium.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startHub();
});
afterAll(async () => {
  await hub.close();
  closeBrowser();
});

/** The addresses of the scripts and styles that the page names. */
async function assetsOf(base: string): Promise<readonly string[]> {
  const html = await (await fetch(`${base}/`)).text();
  return [...html.matchAll(/(?:href|src)="(assets\/[^"]+)"/g)].map(([, path]) => `${base}/${path}`);
}

describe("is served", () => {
  test("without a secret and under a strict policy, on both variants", async () => {
    await using closed = await startHub({ isPrivate: true });
    for (const variant of VARIANTS) {
      const page = await fetch(`${closed.base(variant)}/`);
      expect(page.status).toBe(200);
      expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(page.headers.get("x-content-type-options")).toBe("nosniff");
      expect(page.headers.get("referrer-policy")).toBe("no-referrer");
      expect(page.headers.get("cache-control")).toBe("no-cache");
      const policy = page.headers.get("content-security-policy") ?? "";
      for (const part of [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
      ])
        expect(policy.split("; ")).toContain(part);
      expect(policy).not.toContain("unsafe");
      const [, nonce = ""] = /script-src 'nonce-([\w+/]{22}==)'; style-src/.exec(policy) ?? [];
      const html = await page.text();
      expect(html).not.toMatch(/https?:|<script>|<style|\son\w+=/);
      expect([...html.matchAll(/<script nonce="([^"]+)"/g)].map(([, given]) => given)).toEqual([nonce]);
      const again = await fetch(`${closed.base(variant)}/`);
      expect(again.headers.get("content-security-policy")).not.toBe(policy);
    }
  });

  test("with assets that caches may keep, and a page that they must ask for", async () => {
    const base = hub.base();
    const assets = await assetsOf(base);
    expect(assets.map((path) => path.slice(path.lastIndexOf("."))).toSorted()).toEqual([".css", ".js"]);
    for (const url of assets) {
      const asset = await fetch(url);
      expect(asset.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(asset.headers.get("content-type")).toMatch(/^text\/(?:javascript|css); charset=utf-8$/);
    }
    const [asset = ""] = assets;
    const etag = (await fetch(asset)).headers.get("etag") ?? "";
    const again = await fetch(asset, { headers: { "If-None-Match": `"other", W/${etag}` } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const head = await fetch(asset, { method: "HEAD" });
    expect([head.status, head.headers.get("etag")]).toEqual([200, etag]);
    expect((await fetch(`${base}/assets/none.js`)).status).toBe(404);
  });

  test("with one script and its styles, which are compressed: nothing is loaded later", async () => {
    const { assets } = await dashboard(null);
    expect(assets.size).toBe(2);
    for (const name of assets.keys())
      for (const coding of ["br", "gzip"]) {
        const headers = { "Accept-Encoding": coding };
        const response = await fetch(`${hub.base()}/assets/${name}`, { headers, decompress: false });
        expect(response.headers.get("content-encoding")).toBe(coding);
      }
  });

  test("not with --ui off", async () => {
    await using bare = await startHub({ ui: false });
    expect((await fetch(`${bare.base()}/`)).status).toBe(404);
    expect((await fetch(`${bare.base()}/assets/a.js`)).status).toBe(404);
  });
});

function sizeOfPng(bytes: Uint8Array): readonly number[] {
  const header = new DataView(bytes.buffer, bytes.byteOffset);
  return [header.getUint32(16), header.getUint32(20)];
}

const reason = CHROMIUM_MISSING === null ? "" : ` (${CHROMIUM_MISSING})`;

describe.skipIf(CHROMIUM_MISSING !== null)(`in a browser${reason}`, () => {
  for (const { name, run } of ACTIONS) test(name, () => run({ hub, variant: "A", size: WIDE }));

  test("the pictures of the README can be taken from a hub that has done something", async () => {
    await using own = await startHub();
    await own.addNode("painter");
    const task_id = await own.addTask({ title: "Paint" });
    await ok(own.post("/task/claim", { task_id, node_id: "painter" }));
    const result = { problem: "A wall", improvement: "A picture", lesson: "Dry first" };
    await ok(own.post("/task/complete", { task_id, node_id: "painter", result }));
    const pictures = await takePictures({ url: own.base(), secret: SECRET, adminKey: ADMIN_KEY });
    const html = await Promise.all(
      ["README.md", "docs/dashboard.md"].map((page) => Bun.file(join(PROJECT, page)).text()),
    );
    const shown = [...html.join().matchAll(/!\[[^\]]+\]\((?:docs\/)?(dashboard-[\w.]+)\)/g)].map(
      ([, name = ""]) => name,
    );
    expect([...pictures.keys()].toSorted()).toEqual(shown.toSorted());
    for (const [file, picture] of pictures) {
      const [width, height] = sizeOfPng(new Uint8Array(await picture.arrayBuffer()));
      const kept = sizeOfPng(await Bun.file(join(PROJECT, "docs", file)).bytes());
      expect([file, width, height]).toEqual([file, ...kept]); // as the program takes them
    }
  });

  test("hubs with names are told apart: by the head, the title, the icon and the colour", async () => {
    const looks: string[][] = [];
    for (const name of ["prod-eu", "staging"]) {
      await using named = await startHub({ name });
      using page = new Page(WIDE);
      await page.open(`${named.base()}/`);
      await page.until(`document.querySelector("h1")?.innerText.startsWith("${name} 127.0.0.1")`);
      expect(await page.eval("document.title")).toBe(`Sign in · ${name}`);
      await page.press("look");
      await page.until(`document.title === "Overview · ${name}"`);
      await page.until(`document.querySelector(".brand").textContent.trim() === "${name}"`);
      const icon = `document.querySelector('link[rel="icon"]').getAttribute("href")`;
      const colour = `getComputedStyle(document.querySelector(".mark")).backgroundColor`;
      await page.until(`${icon}.includes("hsl")`);
      looks.push([String(await page.eval(icon)), String(await page.eval(colour))]);
    }
    const [one, other] = looks;
    for (const i of [0, 1]) expect(one?.[i]).not.toBe(other?.[i]);
  });

  for (const variant of VARIANTS)
    test(`every number of the overview and of a group is the number of what it opens, on ${variant}`, async () => {
      await using own = await startHub();
      await someOfEverything(own);
      using page = new Page(WIDE);
      await page.open(`${own.base(variant)}/`);
      await page.fill("secret", SECRET);
      await page.fill("admin", ADMIN_KEY);
      await page.press("sign-in");
      await page.until(`document.querySelector(".todo a[href='#/inbox']")`);
      const numbersIn = async (selector: string): Promise<readonly (readonly [string, string])[]> => {
        const numberOf = `(a) => [a.hash, (a.querySelector("b, .count") ?? a).innerText.replace("×", "")]`;
        await page.until(`document.querySelector(${JSON.stringify(selector)})`);
        const found = `[...document.querySelectorAll(${JSON.stringify(selector)})].map(${numberOf})`;
        return (await page.eval(found)) as [string, string][];
      };
      const shown = [
        ...(await numbersIn(
          ".flow a, .todo li > b a, .types td.number a, .failures td.number a, nav a:has(.count)",
        )),
      ];
      expect(shown.length).toBeGreaterThan(20);
      for (const group of ["scans", "complaints", "sites"]) {
        await page.go(`groups/${group}`);
        await page.until(`document.querySelector("main[data-view='groups/${group}'] .flow")`);
        shown.push(...(await numbersIn(".flow a")));
      }
      for (const [address, count] of shown) {
        await page.eval(`void (location.hash = ${JSON.stringify(address)})`);
        await page.until(`document.querySelector("main:not([data-view=overview]) h1 small")`);
        const listed = await page.eval(`/[\\d,]+/.exec(document.querySelector("h1 small").innerText)?.[0]`);
        expect([address, listed]).toEqual([address, count]);
        await page.go("overview");
        await page.until(`document.querySelector(".flow")`);
      }
      // What is in review cannot be cancelled; an action says how many it has changed.
      await page.go("groups/complaints");
      await page.until(`document.querySelector('[data-do="export"]')`);
      expect(await page.eval(`document.querySelector('[data-do="cancel"]')`)).toBeNull();
      await page.go("groups/scans");
      await page.press("retry");
      await page.press("yes");
      await page.shows("9 of 9 failed tasks are open again.");
      await page.press("cancel");
      await page.press("yes");
      await page.shows("9 of 9 unfinished tasks are cancelled.");
      const listed = await ok(own.get("/task/count?group=scans&status=cancelled"));
      expect(listed["count"]).toBe(9);
      // Who was away for some time sees what has changed.
      const look = `"luxhub.looked " + location.href.split("#")[0]`;
      await page.eval(`localStorage.setItem(${look}, "at=" + (Date.now() - 600_000) + "&completed=1")`);
      await page.go("overview");
      await page.shows(/since you looked at .*\+3 completed/);
    });

  test("the chart of 24 hours shows what was completed a day before", async () => {
    await using own = await startHub();
    await own.addNode("steady");
    const complete = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const task_id = await own.addTask({ title: `Step ${i}` });
        await ok(own.post("/task/claim", { task_id, node_id: "steady" }));
        await ok(own.post("/task/complete", { task_id, node_id: "steady", result: RESULT }));
      }
    };
    const TEN_MINUTES_MS = 600_000;
    await complete(3);
    for (let passed = 0; passed < 26 * 6; passed++) {
      own.clock.pass(TEN_MINUTES_MS);
      await own.sweep();
    }
    await ok(own.post("/node/heartbeat", { node_id: "steady" }));
    await complete(2);
    using page = new Page(WIDE);
    await page.open(`${own.base()}/#/overview?range=day`);
    await page.press("look");
    await page.shows(/created 2\s*completed 2\s*failed 0\s*completed the day before 3/);
    expect(
      Number(await page.eval(`document.querySelector(".plot .t-quiet .line").getTotalLength()`)),
    ).toBeGreaterThan(0);
  });

  test("a part of the chart's time is in the address: it can be shared, and Back shows the whole", async () => {
    await using own = await startHub();
    await own.addNode("steady");
    const MINUTE_MS = 60_000;
    const complete = async (): Promise<void> => {
      const task_id = await own.addTask({ title: "Step" });
      await ok(own.post("/task/claim", { task_id, node_id: "steady" }));
      await ok(own.post("/task/complete", { task_id, node_id: "steady", result: RESULT }));
    };
    await complete();
    const { minutes } = await ok(own.get("/stats/minutes"));
    const begin = Date.parse((minutes as readonly { at: string }[]).at(-1)?.at ?? "");
    for (let passed = 0; passed < 10; passed++) {
      own.clock.pass(MINUTE_MS);
      await own.sweep();
    }
    await ok(own.post("/node/heartbeat", { node_id: "steady" }));
    await complete();
    await complete();
    using page = new Page(WIDE);
    await page.open(`${own.base()}/#/overview`);
    await page.press("look");
    await page.shows(/created 3\s*completed 3/);
    await page.press("utc"); // the fields of the form are in the zone that the user has chosen
    const typed = (ms: number): string => new Date(ms).toISOString().slice(0, 16);
    await page.press("open-between");
    await page.fill("from", typed(begin - MINUTE_MS));
    await page.fill("to", typed(begin + 2 * MINUTE_MS));
    await page.press("show-between");
    await page.shows(/created 1\s*completed 1/);
    const address = String(await page.eval("location.href"));
    expect(address).toContain(`from=${encodeURIComponent(new Date(begin - MINUTE_MS).toISOString())}`);
    expect(await page.eval(`document.querySelectorAll(".chart .running").length`)).toBe(0); // all of it is over
    await page.eval("void history.back()");
    await page.shows(/created 3\s*completed 3/);
    await page.eval("void history.forward()");
    await page.shows(/created 1\s*completed 1/);
    using other = new Page(WIDE);
    await other.open(address);
    await other.shows(/created 1\s*completed 1/); // the tab has asked the first for its session
    await other.go("overview?from=noon");
    await other.shows("The address has the time noon, which is none.");
    expect([...page.complaints, ...other.complaints]).toEqual([]);
  });

  test("times are local, or in UTC where the user has chosen so", async () => {
    await using own = await startHub();
    const task_id = await own.addTask({ title: "Timed", delay_s: 86_400 });
    const { task } = await ok(own.get(`/task/${task_id}`));
    const at = Date.parse(String((task as { not_before: string }).not_before));
    using page = new Page(WIDE);
    await page.protocol("Emulation.setTimezoneOverride", { timezoneId: "Asia/Tokyo" });
    const local = `until ${new Date(at).toLocaleString("en-US", { timeZone: "Asia/Tokyo" })}`;
    const utc = `until ${new Date(at).toLocaleString("en-US", { timeZone: "UTC", timeZoneName: "short" })}`;
    await page.open(`${own.base()}/#/tasks/${task_id}`);
    await page.press("look");
    await page.shows(local);
    await page.press("utc");
    await page.shows(utc);
    expect(await page.eval(`document.querySelector('[data-do="utc"]').ariaPressed`)).toBe("true");
    await page.eval("void location.reload()");
    await page.shows(utc); // this browser keeps the choice
    const since = new Date(Date.parse("2026-11-01T10:00Z")).toISOString();
    await page.go(`tasks?since=${since}`);
    const field = `document.querySelector('[name="since"]')`;
    await page.until(`${field}?.value === "2026-11-01T10:00"`);
    await page.press("utc");
    await page.until(`${field}.value === "2026-11-01T19:00"`);
    expect(await page.eval("localStorage.length")).toBe(0);
    expect(page.complaints).toEqual([]);
  });

  test("the heads of columns sort the nodes, where the API can", async () => {
    await using own = await startHub();
    for (const node of ["b", "a", "c"]) await own.addNode(node);
    const task_id = await own.addTask({ title: "Paid", lux_reward: 5 });
    await ok(own.post("/task/claim", { task_id, node_id: "c" }));
    await ok(own.post("/task/complete", { task_id, node_id: "c", result: RESULT }));
    const claimed = await own.addTask({ title: "Held" });
    await ok(own.post("/task/claim", { task_id: claimed, node_id: "b" }));
    using page = new Page(WIDE);
    await page.open(`${own.base()}/#/nodes`);
    await page.press("look");
    const sorted = (head: string, order: string, nodes: string): Promise<void> =>
      page.until(`document.querySelector("[aria-sort]")?.innerText === "${head}" &&
        document.querySelector("[aria-sort]").ariaSort === "${order}" &&
        [...document.querySelectorAll("a.row")].map((a) => a.innerText).join("") === "${nodes}"`);
    await sorted("Load", "descending", "bac");
    for (const [head, order, nodes] of [
      ["Node", "ascending", "abc"],
      ["LUX", "descending", "cab"],
      ["Load", "descending", "bac"],
    ] as const) {
      await page.eval(
        `[...document.querySelectorAll("th a")].find((a) => a.innerText === "${head}").click()`,
      );
      await sorted(head, order, nodes);
    }
    await page.eval("void history.back()");
    await sorted("LUX", "descending", "cab");
    expect(page.complaints).toEqual([]);
  });

  const noProxy = NGINX_MISSING === null ? "" : ` (${NGINX_MISSING})`;
  test.skipIf(NGINX_MISSING !== null)(
    `behind nginx, under a prefix: compressed and live${noProxy}`,
    async () => {
      await using own = await startHub();
      await using nginx = await Nginx.start([[new URL(own.base()).host]], false, "/hub/");
      const base = `http://127.0.0.1:${nginx.ports[0] ?? 0}/hub/`;
      using page = new Page(WIDE);
      await page.open(base);
      await page.shows("Look without a secret");
      await page.fill("secret", SECRET);
      await page.press("sign-in");
      await page.shows("The hub is empty");
      await page.go("events");
      await page.until(`document.querySelector("main tbody tr")`);
      await own.addNode("seen-live");
      await page.shows("seen-live");
      const coded = `Promise.all([...performance.getEntriesByType("resource")].map(({ name }) => name)
      .filter((name) => /\\/assets\\//.test(name))
      .map(async (name) => [name.startsWith(${JSON.stringify(base)}), (await fetch(name)).headers.get("content-encoding")]))`;
      const assets = await page.eval(coded);
      expect(assets).toEqual(Array(2).fill([true, "br"]));
      expect(page.complaints).toEqual([]);
    },
  );

  test("a printed task is its content alone, whole, in black on white, also from a dark page", async () => {
    await using own = await startHub();
    await own.addNode("writer");
    const task_id = await own.addTask({ title: "Long", description: "line\n".repeat(300) });
    await ok(own.post("/task/claim", { task_id, node_id: "writer" }));
    const result = { problem: "p", improvement: "i\n".repeat(300), lesson: "l" };
    await ok(own.post("/task/complete", { task_id, node_id: "writer", result }));
    using page = new Page(WIDE);
    await page.open(`${own.base()}/`);
    await page.press("look");
    await page.go(`tasks/${task_id}`);
    await page.shows("Description");
    await page.press("theme");
    await page.until(`document.documentElement.dataset.theme === "dark"`);
    await page.protocol("Emulation.setEmulatedMedia", { media: "print" });
    await page.until(`matchMedia("print").matches`);
    const shown = `[...document.querySelectorAll("nav, button, .button, input, select, .skip")]
      .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > 0).map((one) => one.outerHTML)`;
    expect(await page.eval(shown)).toEqual([]);
    // What does not fit on the screen scrolls there; paper does not.
    const cut = `[...document.querySelectorAll("main .text")].filter((one) => one.scrollHeight > one.clientHeight + 1).length`;
    expect(await page.eval(cut)).toBe(0);
    // A page is as light as the paper, and each text is dark on it, of at most half the light of white.
    const colours = `(() => {
      const light = (colour) => {
        const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
        return a === 0 ? null : (r + g + b) / 765;
      };
      const texts = [...document.querySelectorAll("main, main *")].filter((one) => one.checkVisibility());
      return {
        grounds: [document.documentElement, document.body, ...texts]
          .filter((one) => !one.matches(".lamp, meter, i, .state")).map((one) => light(getComputedStyle(one).backgroundColor))
          .filter((one) => one !== null && one < 0.8),
        texts: texts.map((one) => light(getComputedStyle(one).color)).filter((one) => one === null || one > 0.5),
      };
    })()`;
    expect(await page.eval(colours)).toEqual({ grounds: [], texts: [] });
    await page.protocol("Emulation.setEmulatedMedia", { media: "" });
  });

  test("an uploaded script does not run as one of the page, and only pictures are previewed as such", async () => {
    await using own = await startHub();
    const upload = async (name: string, type: string, content: string): Promise<string> => {
      const form = new FormData();
      form.set("metadata", "{}");
      form.set("file", new File([content], name, { type }));
      const { status, body } = await own.post("/file/upload", form);
      expect(status).toBe(200);
      return String(body["file_id"]);
    };
    const script = await upload("evil.js", "text/javascript", "window.evil = 1");
    await upload("evil.png", "image/png+xml", "<svg/>");
    await upload("evil.json", "application/json-evil", "{}");
    let stolen = 0;
    using thief = Bun.serve({ port: 0, fetch: () => new Response(String(stolen++)) });
    const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="parent.evil = 1">
      <script>parent.evil = 1</script><image href="http://127.0.0.1:${thief.port}/"/><rect width="40" height="40"/></svg>`;
    await upload("evil.svg", "image/svg+xml", drawing);
    using page = new Page(WIDE);
    await page.open(`${own.base()}/`);
    await page.press("look");
    await page.go("files");
    await page.shows("evil.png");
    const run = `new Promise((done) => {
      const script = document.createElement("script");
      script.src = "api/v1/file/download/${script}";
      script.onload = () => done("loaded");
      script.onerror = () => done("blocked");
      document.head.append(script);
    })`;
    expect(await page.eval(run)).toBe("blocked");
    expect(await page.eval("window.evil ?? null")).toBe(null);
    // Of evil.js, which is shown as text, and of the drawing.
    expect(await page.eval(`document.querySelectorAll('[data-do="preview"]').length`)).toBe(2);
    await page.click(`tr:has([title="evil.svg"]) [data-do="preview"]`);
    await page.until(`document.querySelector("dialog img")?.naturalWidth === 40`);
    expect(await page.eval(`document.querySelector("dialog img").src`)).toStartWith("data:image/svg+xml,");
    expect(await page.eval("window.evil ?? null")).toBe(null);
    expect(stolen).toBe(0);
  });

  test("the changes that a task has left in a repository are shown as a diff, and as text", async () => {
    await using own = await startHub();
    await own.addNode("coder");
    const task_id = await own.addTask({ title: "Change it" });
    await ok(own.post("/task/claim", { task_id, node_id: "coder" }));
    const patch =
      "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+<b id=evil>two</b>\n";
    const form = new FormData();
    form.set("metadata", JSON.stringify({ task_id, node: "coder" }));
    form.set("file", new File([patch], "changes.patch", { type: "text/x-diff" }));
    expect((await own.post("/file/upload", form)).status).toBe(200);
    using page = new Page(WIDE);
    await page.open(`${own.base()}/`);
    await page.press("look");
    await page.go(`tasks/${task_id}`);
    await page.shows("+<b id=evil>two</b>");
    const lines = `[...document.querySelectorAll("pre.diff > *")].map((line) => line.localName).join(" ")`;
    expect(await page.eval(lines)).toBe("b b b i del ins");
    expect(await page.eval(`document.getElementById("evil")`)).toBe(null);
  });

  test("accessible names, contrasts and widths are right on both variants, and nothing violates the policy", async () => {
    await using furnished = await startHub();
    const views = await furnish(furnished);
    await inspect({ hub: furnished, variant: "A", size: TABLES }, views, [TABLES], false);
    await inspect({ hub: furnished, variant: "B", size: NARROWEST }, views, [NARROWEST], true);
  });
});
