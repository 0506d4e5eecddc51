/**
 * The dashboard: how it is served, and every action of it once, in a real Chromium against a hub. The browser's part is
 * skipped without a Chromium; test/servers.test.ts says so.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PROJECT } from "../support/executable.ts";
import { ADMIN_KEY, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { VARIANTS, addNode, addTask, ok, record, until } from "../api/scene.ts";
import { CHROMIUM_MISSING, NARROW, Page, type Size, WIDE } from "./chromium.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startHub();
});
afterAll(async () => {
  await hub.close();
  if (CHROMIUM_MISSING === null) Bun.WebView.closeAll();
});

/** The addresses of the scripts and styles that the page names. */
async function assetsOf(base: string): Promise<readonly string[]> {
  const html = await (await fetch(`${base}/`)).text();
  return [...html.matchAll(/(?:href|src)="(assets\/[^"]+)"/g)].map(([, path]) => `${base}/${path}`);
}

describe("is served", () => {
  test("under a strict policy, on both variants, to who has no secret", async () => {
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
      expect(await page.text()).not.toMatch(/https?:|<script>|<style|\son\w+=/);
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
    const etag = (await fetch(`${base}/`)).headers.get("etag") ?? "";
    const again = await fetch(`${base}/`, { headers: { "If-None-Match": `"other", W/${etag}` } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const head = await fetch(`${base}/`, { method: "HEAD" });
    expect([head.status, head.headers.get("etag")]).toEqual([200, etag]);
    expect((await fetch(`${base}/assets/none.js`)).status).toBe(404);
  });

  test("in at most 120 kB, compressed", async () => {
    const assets = await Promise.all(
      (await assetsOf(hub.base())).map(async (url) => (await fetch(url)).arrayBuffer()),
    );
    const sizes = assets.map((bytes) => Bun.gzipSync(new Uint8Array(bytes)).length);
    expect(sizes.length).toBeGreaterThan(0);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(120_000);
  });

  test("not with --ui off", async () => {
    await using bare = await startHub({ ui: false });
    expect((await fetch(`${bare.base()}/`)).status).toBe(404);
    expect((await fetch(`${bare.base()}/assets/a.js`)).status).toBe(404);
  });
});

const reason = CHROMIUM_MISSING === null ? "" : ` (${CHROMIUM_MISSING})`;

/** A page at the sign-in. */
async function visit(base: string, size: Size = WIDE): Promise<Page> {
  const page = new Page(size);
  await page.open(`${base}/`);
  await page.shows("Look without a secret");
  return page;
}

async function signIn(page: Page, secret: string, adminKey = ""): Promise<void> {
  await page.fill("secret", secret);
  await page.fill("admin", adminKey);
  await page.press("sign-in");
}

/** A page of somebody who may do everything. */
async function admin(size?: Size, base = hub.base()): Promise<Page> {
  const page = await visit(base, size);
  await signIn(page, SECRET, ADMIN_KEY);
  await page.shows("Overview");
  return page;
}

async function pagesOf(page: Page): Promise<unknown> {
  return page.eval(`[...document.querySelectorAll("nav a")].map((a) => a.textContent)`);
}

async function taskOf(taskId: string): Promise<Record<string, unknown>> {
  return record((await ok(hub.get(`/task/${taskId}`)))["task"]);
}

/** Fails a task for good. */
async function failed(title: string): Promise<string> {
  const taskId = await addTask(hub, { title });
  await ok(hub.post("/task/cancel", { task_id: taskId, reason: "not wanted" }));
  return taskId;
}

describe.skipIf(CHROMIUM_MISSING !== null)(`in a browser${reason}`, () => {
  test("a wrong secret is refused; without one the public reads of A are shown, and nothing to change", async () => {
    using page = await visit(hub.base());
    await signIn(page, "wrong");
    await page.shows("unknown, expired or revoked");
    await page.press("look");
    await page.shows("Tasks a minute");
    expect(await pagesOf(page)).toEqual(["Overview", "Tasks", "Nodes", "Files", "LUX", "Events"]);
    await page.go("tasks");
    await page.shows("Creator");
    expect(await page.text()).not.toContain("New task");
    await page.press("sign-out");
    await page.shows("Administrator key");
  });

  test("a viewer is offered what it may see; a revoked key signs out", async () => {
    await addNode(hub, "watched");
    const added = await ok(hub.admin("/key/add", { name: "watcher", role: "viewer" }));
    using page = await visit(hub.base());
    await signIn(page, String(added["secret"]));
    await page.shows("Tasks a minute");
    expect(await pagesOf(page)).toEqual(["Overview", "Tasks", "Nodes", "Files", "LUX", "Events"]);
    await ok(hub.admin("/key/revoke", { name: "watcher" }));
    await page.go("nodes/watched");
    await page.shows("The secret is no longer valid.");
  });

  test("a task is created, cancelled, retried, run again with edits, and deleted; its story is told", async () => {
    using page = await admin();
    await page.go("tasks");
    await page.click('a[href="#/new"]');
    await page.fill("title", "Look at the logs");
    await page.fill("description", "All of last night");
    await page.fill("priority", "high");
    await page.fill("lux_reward", "2.5");
    await page.press("create");
    await page.shows("Story");
    const taskId = String(await page.eval("location.hash.split('/').pop()"));
    expect(await taskOf(taskId)).toMatchObject({ title: "Look at the logs", priority: 0, lux_reward: 2.5 });
    await page.press("cancel");
    await page.press("yes");
    await page.shows("Why it failed");
    await page.press("retry");
    await page.shows(/retried[\s\S]*Open again|open Look/);
    await until("open again", async () => (await taskOf(taskId))["status"] === "open");
    await page.shows(/created[\s\S]*failed[\s\S]*retried/);
    await page.press("again");
    await page.shows("Run again");
    await page.until(`document.querySelector('[name="description"]')?.value === "All of last night"`);
    await page.fill("title", "Look at them once more");
    await page.press("create");
    await page.shows(/open\s+Look at them once more/);
    await page.press("delete");
    await page.press("yes");
    await page.shows("Deleted.");
    await page.until(`location.hash === "#/tasks"`);
    expect((await hub.get("/task/list?q=once+more")).body).toMatchObject({ tasks: [] });
  });

  test("what is copied is a command that works", async () => {
    const taskId = await addTask(hub, { title: "To be copied" });
    using page = await admin();
    await page.eval(
      `void (window.copied = [], navigator.clipboard.writeText = async (text) => copied.push(text))`,
    );
    await page.go(`tasks/${taskId}`);
    await page.shows("Copy as curl");
    await page.eval(
      `[...document.querySelectorAll("button")].filter((b) => /^Copy as/.test(b.textContent)).forEach((b) => b.click())`,
    );
    await page.until("copied.length === 2");
    const [curl = "", command = ""] = (await page.eval("copied")) as string[];
    const env = { ...process.env, LUXHUB_SECRET: SECRET };
    const shown = Bun.spawn(["sh", "-c", `${curl} -s`], { env, stdout: "pipe", stderr: "ignore" });
    expect(JSON.parse(await shown.stdout.text())).toMatchObject({ task: { title: "To be copied" } });
    expect(command).toBe(`luxhub task show ${taskId} --url ${hub.base()}/`);
  });

  test("filters and cursor stand in the URL; new rows wait; all that match are changed in steps", async () => {
    for (let i = 0; i < 55; i++) await failed(`Sweep ${i}`);
    using page = await admin();
    await page.go("tasks?status=failed&q=sweep");
    await page.shows("Sweep 54");
    await page.click('a[rel="next"]');
    await page.until(`location.hash.includes("cursor=") && !document.body.innerText.includes("Sweep 54")`);
    await page.shows(/Sweep 4\b/);
    await page.go("tasks");
    await page.shows("Sweep 54");
    await page.fill("q", "sweep 54");
    await page.until(`location.hash.includes("q=sweep+54")`);
    await page.until(`document.querySelectorAll("a.row").length === 1`);
    await addTask(hub, { title: "Sweep 54 once more" });
    await page.shows("1 new: show");
    expect(await page.text()).not.toContain("once more");
    await page.click(".news button");
    await page.shows("once more");
    await page.click('.filters a[href="#/tasks"]');
    await page.until(`document.querySelector('[name="q"]').value === ""`);
    await page.go("tasks?status=failed&q=sweep");
    await page.until(`document.querySelector('[name="q"]').value === "sweep"`);
    await page.press("task/retry-all");
    await page.press("yes");
    await page.shows("55 retried. Done.");
    await page.press("close");
    expect((await hub.get("/task/list?status=failed&q=sweep")).body).toMatchObject({ tasks: [] });
    await page.go("tasks?status=open&q=sweep");
    await page.press("task/cancel-all");
    await page.press("yes");
    await page.shows(/56 cancelled\. Done\./);
    await page.press("close");
    await page.go("tasks?status=failed&q=sweep");
    await page.press("task/delete-all");
    await page.press("yes");
    await page.shows(/56 deleted\. Done\./);
  });

  test("a node drains, takes tasks again, and is deleted", async () => {
    await addNode(hub, "drained");
    using page = await admin();
    await page.go("nodes");
    await page.shows("drained");
    await page.fill("q", "drai");
    await page.click('a[href="#/nodes/drained"]');
    await page.press("drain");
    await page.shows("Let it take tasks");
    const nodeOf = async (): Promise<unknown> => (await hub.get("/node/drained")).body["node"];
    expect(await nodeOf()).toMatchObject({ draining: true });
    await page.press("drain");
    await page.until(`document.querySelector('[data-do="drain"]')?.textContent === "Drain"`);
    expect(await nodeOf()).toMatchObject({ draining: false });
    await page.press("delete");
    await page.press("yes");
    await page.until(`location.hash === "#/nodes"`);
    expect((await hub.get("/node/drained")).status).toBe(404);
  });

  test("messages are sent, broadcast, shown with their states, and redriven", async () => {
    await addNode(hub, "reader");
    using page = await admin();
    await page.go("messages");
    await page.fill("node", "reader");
    await page.press("show");
    await page.shows("No messages.");
    await page.fill("content", "Only for you", ".columns section:first-child");
    await page.eval(`document.querySelector('[name="ack"]').click()`);
    await page.press("send");
    await page.shows("Only for you");
    await page.fill("content", "For everyone", ".columns section:last-child");
    await page.press("broadcast");
    await page.shows("For everyone");
    const parked = async (): Promise<unknown> =>
      (await hub.get("/message/parked?node_id=reader")).body["total"];
    while ((await parked()) !== 1) {
      await hub.post("/message/receive", { node_id: "reader" });
      hub.clock.pass(31_000);
      await hub.sweep();
    }
    await page.eval(`document.querySelector('[name="parked"]').click()`);
    await page.press("redrive");
    await page.shows("It waits again.");
    await page.shows("Nothing is parked.");
    expect(await parked()).toBe(0);
  });

  test("a file is uploaded, previewed, downloaded and deleted", async () => {
    using page = await admin();
    await page.go("files");
    await page.shows("No files yet.");
    await page.eval(`(() => {
      const files = new DataTransfer();
      files.items.add(new File(["<b>Not bold</b>"], "note.html", { type: "text/html" }));
      document.querySelector('[name="file"]').files = files.files;
    })()`);
    await page.press("upload");
    await page.shows("note.html");
    await page.press("preview");
    await page.shows("<b>Not bold</b>");
    await page.click("dialog form button");
    await page.eval(
      `void (HTMLAnchorElement.prototype.click = function () { window.saved = this.download; })`,
    );
    await page.press("download");
    await page.until(`window.saved === "note.html"`);
    await page.press("delete");
    await page.press("yes");
    await page.shows("No files yet.");
  });

  test("events come live, are filtered by kind, and can be held", async () => {
    using page = await admin();
    await page.go("events?kind=node.registered");
    await page.shows("Pause");
    await addNode(hub, "live-1");
    await page.shows("live-1");
    await page.press("pause");
    await addNode(hub, "live-2");
    await page.shows("Go on");
    await page.press("pause");
    await page.shows("live-2");
    await page.fill("kind", "hub.started");
    await page.until(`!document.body.innerText.includes("live-2")`);
  });

  test("keys are added, shown once and revoked; the ledger of a node is shown", async () => {
    await addNode(hub, "earner");
    await ok(hub.post("/signin", { node_id: "earner" }));
    using page = await admin();
    await page.go("lux");
    await page.click('a[href="#/nodes/earner"]');
    await page.shows(/Ledger[\s\S]*signin/);
    await page.go("keys");
    await page.fill("name", "robot");
    await page.fill("role", "viewer");
    await page.fill("days", "2");
    await page.press("add");
    await page.shows("The secret of robot");
    const secret = String(await page.eval(`document.querySelector("dialog code").textContent`));
    expect((await hub.get("/file/list", { headers: { "X-Matrix-Secret": secret } })).status).toBe(200);
    await page.click("dialog form button");
    await page.press("revoke");
    await page.press("yes");
    await page.shows(/revoked\s+robot/);
  });

  test("keyboard: search, rows, pages, help; and the colours", async () => {
    await addTask(hub, { title: "First row" });
    using page = await admin();
    await page.key("2");
    await page.shows("First row");
    await page.key("j");
    await page.until(`document.activeElement?.matches("a.row")`);
    await page.key("j");
    await page.key("k");
    await page.until(`document.activeElement === document.querySelector("a.row")`);
    await page.key("/");
    await page.until(`document.activeElement?.name === "q"`);
    await page.eval(`document.activeElement.blur()`);
    await page.key("?");
    await page.shows("Keyboard");
    await page.click("dialog form button");
    const before = await page.eval(`getComputedStyle(document.documentElement).backgroundColor`);
    await page.press("theme");
    await page.until(
      `getComputedStyle(document.documentElement).backgroundColor !== ${JSON.stringify(before)}`,
    );
  });

  test("nothing is out of place: names, contrasts, widths, on both variants, and the policy is kept", async () => {
    const axe = await Bun.file(join(PROJECT, "node_modules/axe-core/axe.min.js")).text();
    await addNode(hub, "busy", { max_tasks: 2 });
    const held = await addTask(hub, { title: "Held" });
    await ok(hub.post("/task/claim", { task_id: held, node_id: "busy" }));
    await failed("Broken");
    const addresses = ["overview", "tasks", `tasks/${held}`, "new", "nodes", "nodes/busy", "messages/busy"];
    const views = [...addresses, "files", "lux", "events", "keys"];
    for (const [variant, size] of [
      ["A", WIDE],
      ["B", NARROW],
    ] as const) {
      using page = await admin(size, hub.base(variant));
      await page.eval(`(() => { ${axe} })()`);
      if (variant === "B") await page.press("theme");
      for (const view of views) {
        await page.go(view);
        await page.until(`document.querySelector("main[data-view='${view}'] h1")`);
        const found = await page.eval(
          `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map((n) => n.html).slice(0, 3)]))`,
        );
        expect([variant, view, found]).toEqual([variant, view, []]);
        const wider = await page.eval(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        expect([variant, view, wider]).toEqual([variant, view, 0]);
        const fault = await page.eval(`document.querySelector("p.fault[role=alert]")?.textContent ?? ""`);
        expect([variant, view, fault]).toEqual([variant, view, ""]);
      }
      expect(page.complaints).toEqual([]);
    }
  });
});
