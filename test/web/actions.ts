/**
 * Every action of the dashboard, in a real Chromium against a hub. The suite does each once; `bun run torture` does all at
 * each width, on both variants. What they expect of the hub is looked up on its listener of variant A.
 */
import { expect } from "bun:test";
import { join } from "node:path";
import type { FieldName } from "../../src/domain/task/fields.ts";
import { PROJECT } from "../support/executable.ts";
import { ADMIN_KEY, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { type VariantName, list, ok, record, until } from "../api/scene.ts";
import { RECEIVER_URL, Receiver } from "../support/receiver.ts";
import { operatorTasks } from "./operator-tasks.ts";
import { Page, type Size, WIDE } from "./chromium.ts";

/** Where an action is done. */
export type Stage = { readonly hub: TestHub; readonly variant: VariantName; readonly size: Size };

type Action = { readonly name: string; readonly run: (stage: Stage) => Promise<void> };

/** A page at the sign-in. */
async function visit({ hub, variant, size }: Stage): Promise<Page> {
  const page = new Page(size);
  await page.open(`${hub.base(variant)}/`);
  await page.shows("Look without a secret");
  return page;
}

export async function signIn(page: Page, secret: string, adminKey = ""): Promise<void> {
  await page.fill("secret", secret);
  await page.fill("admin", adminKey);
  await page.press("sign-in");
}

/** A page of somebody who may do everything. */
async function admin(stage: Stage): Promise<Page> {
  const page = await visit(stage);
  await signIn(page, SECRET, ADMIN_KEY);
  await page.shows("Overview");
  return page;
}

async function pagesOf(page: Page): Promise<unknown> {
  return page.eval(`[...document.querySelectorAll("nav a")].map((a) => a.textContent)`);
}

async function rows(page: Page, count: number): Promise<void> {
  await page.until(`document.querySelectorAll("a.row").length === ${count}`);
}

const FOR_EVERYBODY = ["Overview", "Tasks", "Nodes", "Groups", "Files", "LUX", "Events"];
const FOR_VIEWERS = FOR_EVERYBODY.toSpliced(6, 0, "Cost")
  .toSpliced(4, 0, "Schedules")
  .toSpliced(3, 0, "Inbox")
  .concat("Notes");

async function refusal({ variant, ...stage }: Stage): Promise<void> {
  using page = await visit({ ...stage, variant });
  await signIn(page, "wrong");
  await page.shows("The secret is unknown, expired or revoked");
  await signIn(page, SECRET, "wrong");
  await page.shows("The administrator key is unknown, expired or revoked");
  await page.press("look");
  if (variant === "B") {
    await page.shows("This hub shows nothing without the secret.");
    return;
  }
  await page.shows("Tasks a minute");
  expect(await pagesOf(page)).toEqual(FOR_EVERYBODY);
  await page.go("tasks");
  await page.shows("More filters");
  expect(await page.text()).not.toContain("New task");
  await page.press("sign-out");
  await page.shows("Administrator key");
}

async function viewer(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("watched");
  const added = await ok(hub.admin("/key/add", { name: "watcher", role: "viewer" }));
  using page = await visit(stage);
  await signIn(page, String(added["secret"]));
  await page.shows("Tasks a minute");
  // Not by the origin alone: a proxy may serve several hubs under prefixes of one.
  expect(await page.eval("Object.keys(sessionStorage)")).toEqual([
    `luxhub.session ${hub.base(stage.variant)}/`,
  ]);
  expect(await pagesOf(page)).toEqual(FOR_VIEWERS);
  await ok(hub.admin("/key/revoke", { name: "watcher" }));
  await page.go("nodes/watched");
  await page.shows("The secret is no longer valid.");
}

/** A key that is bound to a node is offered what it may do for this node. */
async function bound(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNodes(["mine", "theirs", "third"]);
  const taskOf = (creator_node: string): Promise<string> =>
    hub.addTask({ title: `Of ${creator_node}`, creator_node });
  const [mine, theirs] = [await taskOf("mine"), await taskOf("theirs")];
  const inReview = async (creator_node: string): Promise<string> => {
    const task_id = await hub.addTask({ title: "Done", creator_node, review: "creator" });
    await ok(hub.post("/task/claim", { task_id, node_id: "third" }));
    await ok(hub.complete(task_id, "third"));
    return task_id;
  };
  const [toCheck, notToCheck] = [await inReview("mine"), await inReview("theirs")];
  const added = await ok(hub.admin("/key/add", { name: "of-mine", role: "full", node_id: "mine" }));
  using page = await visit(stage);
  await signIn(page, String(added["secret"]));
  await page.shows("Overview");
  const offers = async (view: string, actions: readonly string[]): Promise<void> => {
    await page.go(view);
    await page.until(`document.querySelector("main[data-view='${view.split("?")[0]}'] :is(.facts, a.row)")`);
    const names = ["drain", "cancel", "open-update", "again", "task/cancel-all", "pass"];
    const shown = `[...document.querySelectorAll("main [data-do]")].map((button) => button.dataset.do)`;
    const offered = `${shown}.filter((name) => ${JSON.stringify(names)}.includes(name))`;
    expect([view, await page.eval(offered)]).toEqual([view, actions]);
  };
  await offers("nodes/mine", ["drain"]);
  await offers("nodes/theirs", []);
  await offers(`tasks/${mine}`, ["cancel", "open-update", "again"]);
  await offers(`tasks/${theirs}`, ["again"]);
  await offers(`tasks/${toCheck}`, ["again", "pass"]);
  await offers(`tasks/${notToCheck}`, ["again"]);
  await offers("tasks?status=open", []);
  await offers("tasks?status=open&creator=mine", ["task/cancel-all"]);
  await ok(hub.admin("/key/revoke", { name: "of-mine" }));
  for (const task_id of [mine, theirs, toCheck, notToCheck]) await ok(hub.admin("/task/delete", { task_id }));
}

/** One sign-in for all tabs; a session that ends leaves the page and its forms. */
async function sessions({ variant, size }: Stage): Promise<void> {
  await using hub = await startHub(); // it counts the wrong secrets that come from here
  const stage = { hub, variant, size };
  const added = await ok(hub.admin("/key/add", { name: "shortlived", role: "full" }));
  using page = await visit(stage);
  await signIn(page, String(added["secret"]));
  await page.shows("Overview");
  using second = new Page(stage.size);
  await second.open(`${hub.base(variant)}/#/new`);
  await second.shows("New task"); // without asking for the secret
  await second.fill("title", "Not to be lost");
  await ok(hub.admin("/key/revoke", { name: "shortlived" }));
  await second.fill("description", "Nor this");
  await second.press("create");
  await second.shows(/The secret is no longer valid\.[^]*Sign in again/);
  expect(await second.eval(`document.querySelector("main [name=title]").value`)).toBe("Not to be lost");
  await second.key("Escape");
  await second.eval(`document.querySelector("dialog").close()`);
  await second.press("sign-in-again");
  await second.fill("secret", "wrong", "dialog");
  await second.press("sign-in");
  await second.shows(/Stay signed in on this device|unknown, expired or revoked/);
  await second.until(`document.querySelector("dialog .fault")?.textContent.includes("unknown")`);
  await second.fill("secret", SECRET, "dialog");
  await second.eval(`document.querySelector('[name="stay"]').click()`);
  await second.press("sign-in");
  await second.until(`document.querySelector("dialog") === null`);
  await second.press("create");
  await second.shows("Not to be lost");
  // The browser keeps the secret where the user asked for it, and only as long as somebody is signed in.
  expect(await second.eval(`Object.keys(localStorage).filter((key) => /session/.test(key))`)).toEqual([
    `luxhub.session ${hub.base(variant)}/`,
  ]);
  await page.eval("void sessionStorage.clear()");
  await page.eval("void location.reload()");
  await page.until(`document.querySelector('[data-do="sign-out"]')`);
  await page.press("sign-out");
  await page.shows("Look without a secret");
  await second.shows("Look without a secret");
  expect(await second.eval("[localStorage.length, sessionStorage.length]")).toEqual([0, 0]);
}

/** What is opened after the end of a session sends the revoked secret no more: the hub would refuse this address. */
async function revoked({ variant, size }: Stage): Promise<void> {
  await using hub = await startHub();
  const added = await ok(hub.admin("/key/add", { name: "shortlived", role: "full" }));
  using page = await visit({ hub, variant, size });
  await signIn(page, String(added["secret"]));
  await page.shows("Overview");
  await page.go("tasks");
  await page.shows("More filters");
  await ok(hub.admin("/key/revoke", { name: "shortlived" }));
  await page.go("lux");
  await page.shows("The secret is no longer valid.");
  for (let i = 0; i < 4; i++)
    for (const view of ["nodes", "overview", "tasks"]) {
      await page.go(view);
      await page.until(`document.querySelector("main[data-view=${view}] .fault")`);
    }
  await page.fill("secret", "wrong", "dialog");
  await page.press("sign-in");
  await page.until(`document.querySelector("dialog .fault")?.textContent.includes("unknown")`);
}

/** The history of the tab, the hub's clock, and a page over plain HTTP, which has no clipboard. */
async function places(stage: Stage): Promise<void> {
  const { hub } = stage;
  const requests = Array.from({ length: 50 }, (_, i) => ({
    path: "task/create",
    body: { title: `Place ${i}`, description: "d" },
  }));
  await ok(hub.post("/batch", { requests }));
  using page = await admin(stage);
  await page.go("tasks");
  await rows(page, 50);
  await page.until(`document.activeElement?.id === "content"`);
  const link = `document.querySelectorAll("a.row")[40]`;
  const href = await page.eval(`${link}.getAttribute("href")`);
  await page.eval(`${link}.scrollIntoView({ block: "center" }), ${link}.focus()`);
  const top = await page.eval("scrollY");
  expect(Number(top)).toBeGreaterThan(100);
  await page.eval(`${link}.click()`);
  await page.shows("Description");
  await page.until(`/(?:^|· )Place 9 · luxhub$/.test(document.title)`);
  await page.until("scrollY === 0");
  // The page has become a little shorter, so that the place is beyond its end.
  await page.eval(`void document.styleSheets[0].insertRule("main { padding-bottom: 0 !important }")`);
  await page.eval("void history.back()");
  await rows(page, 50);
  await page.until(`Math.abs(scrollY - ${String(top)}) < 50`);
  await page.until(`document.activeElement?.getAttribute("href") === ${JSON.stringify(href)}`);
  await page.eval(`void (navigator.clipboard.writeText = () => Promise.reject(new Error("insecure")))`);
  await page.eval(
    `document.addEventListener("copy", () => (window.taken = String(document.activeElement.value)))`,
  );
  await page.eval(`${link}.click()`);
  await page.press("copy");
  await page.until(`window.taken?.startsWith("curl") && document.body.innerText.includes("Copied.")`);
  await page.eval(`void (() => {
    const asked = fetch;
    window.fetch = async (url, init) => {
      const response = await asked(url, init);
      if (String(url).includes("events/stream")) return response;
      const headers = { ...Object.fromEntries(response.headers), date: new Date(Date.now() + 7200000).toUTCString() };
      return new Response(response.body, { status: response.status, headers });
    };
  })()`);
  await page.go("tasks");
  await page.shows("2 h");
}

async function task(stage: Stage): Promise<void> {
  const { hub } = stage;
  const taskOf = async (taskId: string): Promise<Record<string, unknown>> =>
    record((await ok(hub.get(`/task/${taskId}`)))["task"]);
  using page = await admin(stage);
  await page.go("tasks");
  await page.click('a[href="#/new"]');
  await page.fill("title", "Look at the logs");
  await page.fill("description", "All of last night");
  await page.fill("priority", "high");
  await page.fill("lux_reward", "2.5");
  await page.fill("group", "looks");
  await page.fill("tags", "night, logs");
  await page.fill("max_attempts", "1000");
  await page.press("create");
  await page.shows(/again\. max_attempts: must be at most 100$/);
  await page.fill("max_attempts", "");
  await page.fill("max_run_s", "7200");
  await page.press("create");
  await page.shows("Time line");
  await page.shows(/Max\. run\s+2 h/);
  const taskId = String(await page.eval("location.hash.split('/').pop()"));
  expect(await taskOf(taskId)).toMatchObject({
    title: "Look at the logs",
    priority: 0,
    lux_reward: 2.5,
    max_run_s: 7_200,
    group: "looks",
    tags: ["night", "logs"],
  });
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
  await page.press("no");
  await page.until(`document.activeElement?.dataset.do === "more"`); // the menu has the focus back
  await page.press("delete");
  await page.press("yes");
  await page.shows("Deleted.");
  await page.until(`location.hash === "#/tasks"`);
  expect((await hub.get("/task/list?q=once+more")).body).toMatchObject({ tasks: [] });
}

async function copies(stage: Stage): Promise<void> {
  const { hub, variant } = stage;
  const taskId = await hub.addTask({ title: "To be copied" });
  using page = await admin(stage);
  await page.eval(
    `void (window.copied = [], navigator.clipboard.writeText = async (text) => copied.push(text))`,
  );
  await page.go(`tasks/${taskId}`);
  await page.until(`document.querySelector('[data-do="more"]')`);
  await page.eval(
    `[...document.querySelectorAll("button")].filter((b) => /^Copy as/.test(b.textContent)).forEach((b) => b.click())`,
  );
  await page.until("copied.length === 2");
  const [curl = "", command = ""] = (await page.eval("copied")) as string[];
  const env = { ...process.env, LUXHUB_SECRET: SECRET };
  const shown = Bun.spawn(["sh", "-c", `${curl} -s`], { env, stdout: "pipe", stderr: "ignore" });
  expect(JSON.parse(await shown.stdout.text())).toMatchObject({ task: { title: "To be copied" } });
  expect(command).toBe(`luxhub task show ${taskId} --url ${hub.base(variant)}/`);
}

async function taskFiles(stage: Stage): Promise<void> {
  const { hub } = stage;
  using page = await admin(stage);
  await page.go("new");
  await page.shows("Input files");
  await page.fill("title", "Read the notes");
  await page.fill("description", "Both of them");
  await page.eval(`void (() => {
    const files = new DataTransfer();
    for (const name of ["one.txt", "two.txt"]) files.items.add(new File([name], name, { type: "text/plain" }));
    document.querySelector('[name="files"]').files = files.files;
  })()`);
  await page.press("create");
  await page.shows(/Input files[\s\S]*two\.txt[\s\S]*one\.txt/);
  expect(await page.text()).not.toContain("Output files");
  const taskId = String(await page.eval("location.hash.split('/').pop()"));
  await hub.addNode("reader");
  await ok(hub.post("/task/assign", { task_id: taskId, node_id: "reader" }));
  const form = new FormData();
  form.set("metadata", JSON.stringify({ task_id: taskId, node: "reader" }));
  form.set("file", new File(["done"], "done.txt"));
  await ok(hub.post("/file/upload", form));
  await page.shows(/Output files[\s\S]*done\.txt/);
  const dependent = await hub.addTask({ title: "Print", depends_on: [taskId] });
  await ok(hub.post("/task/cancel", { task_id: taskId }));
  await page.shows("Why it failed");
  await page.press("retry-all");
  await page.shows("The task is open again, with 1 of the tasks that depend on it.");
  await page.go(`tasks/${dependent}`);
  await page.shows(/waits for [^]*What it depends on/i);
  for (const id of [dependent, taskId]) await ok(hub.admin("/task/delete", { task_id: id }));
  await deleteFiles(hub);
}

async function deleteFiles(hub: TestHub): Promise<void> {
  for (const { file_id } of list(await ok(hub.get("/file/list")), "files"))
    await ok(hub.post("/file/delete", { file_id }));
}

/** The attempts of a task, why it does not run, its neighbours, and what its next worker gets. */
async function story(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNodes(["teller", "other-teller"]);
  const of = (task_id: string, node_id = "teller") => ({ task_id, node_id });
  const first = await hub.addTask({ title: "Gather", backoff_s: 0, task_type: "saga", unique_key: "once" });
  const second = await hub.addTask({ title: "Weave", depends_on: [first] });
  const third = await hub.addTask({ title: "Sing", depends_on: [second] });
  using page = await admin(stage);
  await page.go(`tasks/${first}`);
  await page.shows(/of its lane/);
  await page.shows(/What it depends on, and what waits for it\s+Gather\s+● open\s+Weave\s+● waiting/);
  await page.shows(/Unique key\s+once/);
  await ok(hub.post("/task/claim", of(first)));
  await ok(hub.post("/task/extend", { ...of(first), note: "Asked the elders" }));
  await page.shows(/running teller\s*\d+ s, 1 note[^]*Asked the elders/);
  await ok(hub.post("/task/fail", { ...of(first), error: "Lost\n    at sea", checkpoint: { verse: 7 } }));
  await ok(hub.post("/task/claim", of(first, "other-teller")));
  await page.shows(/running other-teller[^]*failed teller/);
  expect(await page.eval(`document.querySelectorAll(".bars i").length`)).toBe(2);
  // The line breaks of an error are kept.
  await page.eval(`document.querySelectorAll(".attempt")[1].open = true`);
  expect(await page.eval(`document.querySelectorAll(".attempt")[1].querySelector("pre").innerText`)).toBe(
    "Lost\n    at sea",
  );
  await page.eval(
    `[...document.querySelectorAll("summary")].find((one) => /worker gets/.test(one.innerText)).click()`,
  );
  await page.shows(/Checkpoint of teller[^]*"verse": 7[^]*1 failed attempts/);
  const result = { problem: "Too long", improvement: "Cut it", lesson: "Less is more" };
  await ok(hub.post("/task/complete", { ...of(first, "other-teller"), result }));
  // What came of it is first, what was asked for is below.
  await page.shows(/completed\s+Gather[^]*Result[^]*Less is more[^]*Attempts[^]*Description/);
  await page.go(`tasks/${second}`);
  await page.shows(/Gather\s+● completed\s+Weave\s+● open\s+Sing\s+● waiting/);
  // A graph has its own size, however narrow the window, and scrolls.
  const [drawnWidth, width] = (await page.eval(
    `(({ clientWidth, viewBox }) => [clientWidth, viewBox.baseVal.width])(document.querySelector(".graph svg"))`,
  )) as number[];
  expect(drawnWidth).toBe(Number(width));
  await page.eval(
    `document.querySelector(".graph a:last-of-type").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))`,
  );
  await page.until(`location.hash === "#/tasks/${third}"`);
  await page.shows(/waits for [^]*What it depends on/i);
  await page.shows(/Gather\s+● completed\s+Weave\s+● open\s+Sing\s+● waiting/);
  // A result that waits for its review is passed on its page.
  const checked = await hub.addTask({
    title: "Proofs",
    creator_node: "teller",
    review: "creator",
    lux_reward: 3,
  });
  await ok(hub.post("/task/claim", of(checked, "other-teller")));
  await ok(hub.post("/task/complete", { ...of(checked, "other-teller"), result }));
  await page.go(`tasks/${checked}`);
  await page.shows(/Review\s+pending\s+by creator/);
  await page.fill("note", "Well done");
  await page.press("pass");
  await page.shows(/Review\s+passed\s+by creator[^]*Well done/);
  await page.go(`nodes/other-teller`);
  await page.shows(/LUX\s+3/);
  const parts: string[] = [];
  for (let i = 0; i < 6; i++) parts.push(await hub.addTask({ title: `Part ${i}` }));
  const many = await hub.addTask({ title: "Bind", depends_on: parts, task_type: "nobody-takes-this" });
  await page.go(`tasks/${many}`);
  await page.shows(/It depends on 6[^]*open\s+Part 0\s+open\s+Part 1[^]*Part 5/);
  const colours = `["td > .state", "dt"].map((part) => getComputedStyle(document.querySelector(part)).color)`;
  expect(new Set((await page.eval(colours)) as string[]).size).toBe(2); // a state has its colour, also in a list
  await page.click(`a[href="#/tasks/${parts[0]}"]`);
  await page.shows(/Part 0\s+● open\s+Bind\s+● waiting/);
}

/**
 * On a hub of its own: the overview of the shared one is about everything that other actions have done. What is counted
 * is counted in a wide window.
 */
async function operators(stage: Stage): Promise<void> {
  await using own = await startHub();
  using page = await admin({ ...stage, hub: own, size: WIDE });
  await operatorTasks(page, own);
}

async function output(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("printer");
  const taskId = await hub.addTask({ title: "Print", backoff_s: 0 });
  const of = { task_id: taskId, node_id: "printer" };
  const send = (offset: number, data: string) => ok(hub.post("/task/output", { ...of, offset, data }));
  await ok(hub.post("/task/claim", of));
  using page = await admin(stage);
  await page.go(`tasks/${taskId}`);
  await page.shows("Description");
  expect(await page.text()).not.toContain("Output while it runs");
  const hostile = "\u001b[31mred\u001b[0m <img src=x onerror=document.title='run'> ✓\n";
  await send(0, hostile);
  await page.shows("red <img src=x onerror=document.title='run'> ✓");
  expect(await page.eval(`document.querySelectorAll("pre.output img").length`)).toBe(0);
  const from = Buffer.byteLength(hostile);
  const line = "0123456789abcde\n".repeat(4_000);
  // In one commit: a page that reads between them would see each piece before it is dropped.
  const pieces = [line, line, line, line, line, line, "the last line\n"];
  const requests = pieces.map((data, n) => ({
    path: "task/output",
    body: { ...of, offset: from + n * line.length, data },
  }));
  await ok(hub.post("/batch", { requests }));
  await page.shows(/\[[\d,.]+ bytes are no longer kept\][\s\S]*the last line/);
  const isAtEnd = `(() => {
    const box = document.querySelector("pre.output");
    return box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  })()`;
  await page.until(isAtEnd);
  // Who scrolls up reads on there, and what is selected stays selected; at the end again, it follows.
  let sent = from + 6 * line.length + 14;
  const more = async (text: string): Promise<void> => {
    await send(sent, text);
    sent += Buffer.byteLength(text);
  };
  const follows = `document.querySelector('[data-do="follow-output"]').checked`;
  await page.eval(`void (document.querySelector("pre.output").scrollTop = 300)`);
  await page.until(`!${follows}`);
  await page.eval(`(() => {
    const box = document.querySelector("pre.output");
    getSelection().setBaseAndExtent(box.lastChild, box.lastChild.length - 9, box.lastChild, box.lastChild.length - 1);
  })()`);
  await more("one more\n");
  await page.shows("one more");
  expect(await page.eval(`[${isAtEnd}, getSelection().toString()]`)).toEqual([false, "ast line"]);
  await page.eval(`void (document.querySelector("pre.output").scrollTop = 1e9, getSelection().empty())`);
  await page.until(follows);
  // A carriage return begins its line anew, also when it comes in pieces.
  for (const text of [
    "\u001b[1;32m10 %\u001b[0m of it\r",
    "\u001b[1;32m55 %\u001b[0m",
    "\r100 %",
    "\r\nover\n",
  ]) {
    await more(text);
    await page.shows(text.replaceAll(/\u001b\[[\d;]*m|[\r\n]/g, ""));
  }
  expect(await page.eval(`document.querySelector("pre.output").textContent.slice(-22)`)).toBe(
    "e\none more\n100 %\nover\n",
  );
  await more("\u001b[91mhot\u001b[0m\n");
  await page.until(`document.querySelector("pre.output .ansi-red.bright")?.textContent === "hot"`);
  await page.eval(`void (() => {
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => (blob.text().then((text) => (window.saved = text)), make.call(URL, blob));
    HTMLAnchorElement.prototype.click = () => {};
  })()`);
  await page.press("download-output");
  await page.until(`window.saved === document.querySelector("pre.output").textContent`);
  await ok(hub.post("/task/release", of));
  await ok(hub.post("/task/claim", of));
  await send(0, "again\n");
  await page.until(`document.querySelector("pre.output")?.innerText === "again\\n"`);
  // They are counted as the attempts of the page are, and one stands beside the other.
  const named = `[...document.querySelectorAll('[data-do^="output-"]')].map((button) => button.innerText).join()`;
  await page.until(`${named} === "Attempt 1 on printer,Attempt 2 on printer"`);
  await page.press("output-0");
  await page.shows(/the last line\s+one more/);
  await page.press("output-1");
  await page.until(`document.querySelector("pre.output")?.innerText === "again\\n"`);
  await page.press("beside-0");
  await page.until(`document.querySelectorAll("pre.output")[1]?.innerText.includes("one more")`);
  expect(await page.eval(`document.querySelectorAll("pre.output")[0].innerText`)).toBe("again\n");
  await page.press("beside-0");
  await page.until(`document.querySelectorAll("pre.output").length === 1`);
  await ok(hub.admin("/task/delete", { task_id: taskId }));
}

/** What others write: its elements, what it must not become, and what stays as it was written. */
async function prose(stage: Stage): Promise<void> {
  const { hub } = stage;
  const description = [
    "# A plan",
    "Read **this** and `src/**/*.ts`, not **/a,**/b nor 2 * 3 * 4,",
    "<b onclick=x>and [a link](javascript:x)</b> \u202egnp.exe",
    "",
    "- first",
    "  3. third",
    "```sh",
    "# no heading",
    "```",
    "| a | b |",
    "> said",
  ].join("\n");
  const taskId = await hub.addTask({ title: "Write", description });
  using page = await admin(stage);
  await page.go(`tasks/${taskId}`);
  await page.until(`document.querySelector("div.text")`);
  // A title that is written from the right turns nothing beside it.
  expect(await page.eval(`document.querySelector("h1 bdi").textContent`)).toBe("Write");
  await page.go("tasks?q=Write");
  await rows(page, 1);
  expect(await page.eval(`getComputedStyle(document.querySelector("a.row")).unicodeBidi`)).toBe("isolate");
  await page.go(`tasks/${taskId}`);
  await page.until(`document.querySelector("div.text")`);
  const seen = `[...document.querySelectorAll("div.text *")].map((part) => part.localName).join(" ")`;
  expect(await page.eval(seen)).toBe("h3 p b code ul li li pre pre blockquote");
  const text = String(await page.eval(`document.querySelector("div.text").textContent`));
  for (const kept of [
    "**/a,**/b nor 2 * 3 * 4,",
    "<b onclick=x>and [a link](javascript:x)</b> \\u{202e}gnp.exe",
  ])
    expect(text).toContain(kept);
  expect(
    await page.eval(`[...document.querySelectorAll("li[data-mark]")].map((item) => item.dataset.mark)`),
  ).toEqual(["•", "3."]);
  await ok(hub.admin("/task/delete", { task_id: taskId }));
}

/** What waits is changed, what runs is taken back, and what was done is undone. */
async function changes(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNodes(["holder", "heir"]);
  const fields = { title: "Draft", tags: ["a", "b"], lux_reward: 2, limit_key: "cards" };
  const taskId = await hub.addTask(fields);
  const taskOf = async (id = taskId) => record((await ok(hub.get(`/task/${id}`, { variant: "B" })))["task"]);
  using page = await admin(stage);
  await page.go(`tasks/${taskId}`);
  await page.press("open-update");
  // The form shows what is; another's change meanwhile stays, because only what the user changes is sent.
  await page.until(`document.querySelector('dialog [name="tags"]')?.value === "a, b"`);
  await ok(hub.post("/task/update", { task_id: taskId, description: "As another wants it" }));
  await page.fill("title", "Draft the reply", "dialog");
  await page.fill("tags", "b", "dialog");
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
  await page.fill("not_before", tomorrow, "dialog");
  await page.press("update");
  await page.shows("Changed.");
  await page.until(`document.activeElement?.dataset.do === "open-update"`);
  const changed = { title: "Draft the reply", description: "As another wants it", tags: ["b"] };
  expect(await taskOf()).toMatchObject({ ...changed, lux_reward: 2, limit_key: "cards" });
  await page.press("open-update");
  await page.until(`document.querySelector('dialog [name="not_before"]')?.value === "${tomorrow}"`);
  await page.fill("not_before", "", "dialog");
  await page.press("update");
  await until("at once", async () => (await taskOf())["not_before"] === null);
  // Who changes nothing sends nothing.
  await page.press("open-update");
  await page.press("update");
  await page.until(`document.querySelector("dialog") === null`);
  expect(await page.eval(`document.querySelector(".notice.bad")`)).toBeNull();
  // What was changed can be changed back.
  await page.press("open-update");
  await page.fill("title", "Not this", "dialog");
  await page.press("update");
  await page.until(`document.querySelector("h1").innerText.endsWith("Not this")`);
  await page.press("undo");
  await page.until(`document.querySelector("h1").innerText.endsWith("Draft the reply")`);
  await page.press("cancel");
  await page.press("yes");
  await page.shows("Why it failed");
  await page.press("undo");
  await until("open again", async () => (await taskOf())["status"] === "pending");
  await page.until(`document.querySelector('[data-do="cancel"]')`);
  // Who does not confirm is where the question was asked.
  await page.press("cancel");
  await page.press("no");
  await page.until(`document.activeElement?.dataset.do === "cancel"`);
  const held = await hub.addTask({ title: "Stuck" });
  await ok(hub.post("/task/claim", { task_id: held, node_id: "holder" }));
  await page.go(`tasks/${held}`);
  await page.press("open-revoke");
  await page.fill("node_id", "heir", "dialog");
  await page.press("revoke");
  await until("given on", async () => (await taskOf(held))["assigned_node"] === "heir");
  for (const task_id of [taskId, held]) await ok(hub.admin("/task/delete", { task_id }));
}

/** Of each field that task/create takes a value that is not its default; null: the copy of a task has none. */
const EVERY_FIELD: Readonly<Record<FieldName, unknown>> = {
  ...{ title: " Sum it up ", description: "In\nten lines\n", task_type: "sums", priority: "p5" },
  ...{ lux_reward: 2.5, creator_node: "planner", depends_on: [], on_dependency: "run", files: [] },
  ...{ timeout_s: 60, max_run_s: 600, retain_s: 0, max_cost_usd: 3, max_attempts: 4, backoff_s: 0 },
  ...{ review: "creator", review_within_s: 600, on_review_timeout: "reject" },
  quorum: { results: 2, of: 4, compare: "json:/output/sum" },
  ...{ group: "sums", tags: ["a", "b"], limit_key: "cards" },
  requires: { capabilities: ["gpu"], resources: { vram: 24 } },
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tracestate: "a=b",
  ...{ for_node: null, delay_s: null, not_before: null, expires_at: null },
  ...{ unique_key: null, unique_for_s: null },
};

/** A task that runs again has all that the first was created with; the form names what it leaves out. */
async function again(stage: Stage): Promise<void> {
  const { hub } = stage;
  const taskOf = async (id: string) => record((await ok(hub.get(`/task/${id}`, { variant: "B" })))["task"]);
  const upload = async (name: string): Promise<string> => {
    const form = new FormData();
    form.set("metadata", '{"pages":12}');
    form.set("file", new File([name], name, { type: "text/plain" }));
    return String((await ok(hub.post("/file/upload", form)))["file_id"]);
  };
  using page = await admin(stage);
  const { review, review_within_s, on_review_timeout, quorum, ...common } = EVERY_FIELD;
  const given = Object.fromEntries(Object.entries(common).filter(([, value]) => value !== null));
  const first = await hub.addTask({ title: "The first" });
  for (const more of [{ review, review_within_s, on_review_timeout }, { quorum }]) {
    const times = { expires_at: new Date(Date.now() + 86_400_000).toISOString(), delay_s: 3_600 };
    const old = await hub.addTask({
      ...{ ...given, ...more, ...times, depends_on: [first], unique_key: "sum", unique_for_s: 60 },
      files: [await upload("one.txt"), await upload("two.txt")],
    });
    await page.go(`tasks/${old}`);
    await page.press("again");
    await page.shows("Everything is copied, but its earliest start, its expiry, its unique key.");
    await page.eval(
      `[...document.querySelectorAll("label")].find((label) => label.innerText.includes("two.txt")).click()`,
    );
    await page.press("create");
    await page.until(`/^#.tasks/.test(location.hash) && !location.hash.includes("${old}")`);
    const [before, copy] = [
      await taskOf(old),
      await taskOf(String(await page.eval("location.hash.split('/').pop()"))),
    ];
    const names = Object.entries({ ...given, ...more, files: undefined }).filter(
      ([, value]) => value !== undefined,
    );
    const shown = names.flatMap(([name]) =>
      /^(?:review_within_s|on_review_timeout)$/.test(name) ? [] : [name],
    );
    for (const name of shown.filter((field) => !/^(?:review|quorum)$/.test(field)))
      expect([name, copy[name]]).toEqual([name, before[name]]);
    for (const [name, of] of Object.entries({
      review: ["by", "within_s", "on_timeout"],
      quorum: ["results", "of", "compare"],
    }))
      for (const part of of)
        expect([part, Object(copy[name])[part]]).toEqual([part, Object(before[name])[part]]);
    const { files } = await ok(hub.get(`/file/list?task_id=${String(copy["task_id"])}`));
    expect(files).toMatchObject([{ name: "one.txt", size: 7, metadata: { pages: 12 }, attached: "input" }]);
    for (const task_id of [old, copy["task_id"]]) await ok(hub.admin("/task/delete", { task_id }));
  }
  await ok(hub.admin("/task/delete", { task_id: first }));
  await deleteFiles(hub);
}

/** What nodes share, as a person sees it. */
async function notes(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("scribe", { host: "box-7.example", port: 22 });
  await ok(hub.post("/note/put", { key: "build/flags", text: "Use **O2**", node_id: "scribe" }));
  await ok(hub.post("/lease/acquire", { name: "src/api/**", node_id: "scribe", ttl_s: 3_600 }));
  using page = await admin(stage);
  await page.go("notes");
  await page.shows(/build\/flags[^]*Leases[^]*src\/api\/\*\*\s+scribe/);
  await page.fill("q", "nothing-of-this");
  await page.shows("No note matches.");
  await page.go("notes?prefix=build");
  await page.click("a.row");
  await page.until(`document.querySelector(".text b")?.innerText === "O2"`);
  await page.press("delete");
  await page.press("yes");
  await page.shows("There are no notes.");
  await page.press("release-lease");
  await page.press("yes");
  await page.shows("No node has a lease.");
  await page.go("nodes/scribe");
  await page.shows(/Host\s+box-7\.example:22/);
}

/** A hidden tab asks the hub for nothing, and has everything soon after it is shown again. */
async function hidden(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("unseen");
  const taskId = await hub.addTask({ title: "Print unseen" });
  const of = { task_id: taskId, node_id: "unseen" };
  await ok(hub.post("/task/claim", of));
  const send = (offset: number, data: string) => ok(hub.post("/task/output", { ...of, offset, data }));
  await send(0, "seen\n");
  using page = await admin(stage);
  await page.go("new");
  await page.shows("Description");
  // What the page asks the hub for, and the timers of the view that comes: the test cannot wait for a minute.
  await page.eval(`void (() => {
    const [asked, every] = [fetch, setInterval];
    Object.assign(window, { asked: [], underWay: 0, timers: [] });
    window.fetch = async (url, init) => {
      window.asked.push(String(url));
      window.underWay++;
      try { return await asked(url, init); } finally { window.underWay--; }
    };
    window.setInterval = (run, ms) => (window.timers.push(run), every(run, ms));
  })()`);
  const turn = (isHidden: boolean): Promise<unknown> =>
    page.eval(`void (() => {
      Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
      document.dispatchEvent(new Event("visibilitychange"));
    })()`);
  const asksFor = (path: string): Promise<void> =>
    page.until(`window.asked.some((url) => url.includes("/api/v1/${path}"))`);
  const views = ["stats/nodes", "stats/minutes?range=day"];
  await page.go("overview?range=day");
  for (const path of views) await asksFor(path);
  await page.until("window.timers.length === 3");
  await turn(true);
  await page.until("window.underWay === 0"); // the event stream is closed too
  await page.eval("void (window.asked = [], window.timers.forEach((run) => run()))");
  await page.settled();
  expect(await page.eval("window.asked.join()")).toBe("");
  await turn(false);
  for (const path of [...views, "events/stream"]) await asksFor(path);
  await page.go(`tasks/${taskId}`);
  await page.shows("seen");
  await page.until(`window.asked.some((url) => /\\/output\\?.*wait=/.test(url))`);
  await turn(true);
  await page.until("window.underWay === 0");
  await send(5, "not seen\n");
  await page.eval("void (window.asked = [])");
  await turn(false);
  await page.until(`document.querySelector("pre.output")?.innerText === "seen\\nnot seen\\n"`);
  // It reads on where it stopped.
  expect(await page.eval(`window.asked.find((url) => url.includes("/output?"))`)).toContain("from=5");
  await ok(hub.admin("/task/delete", { task_id: taskId }));
}

/** Fails a task permanently. */
async function failed(hub: TestHub, title: string, more: object = {}): Promise<void> {
  const taskId = await hub.addTask({ title, ...more });
  await ok(hub.post("/task/cancel", { task_id: taskId, reason: "not wanted" }));
}

async function lists(stage: Stage): Promise<void> {
  const { hub } = stage;
  for (let i = 0; i < 55; i++) await failed(hub, `Sweep ${i}`);
  using page = await admin(stage);
  await page.go("tasks?status=cancelled&q=sweep");
  await page.shows("Sweep 54");
  await page.click('a[rel="next"]');
  await page.until(`location.hash.includes("cursor=") && !document.body.innerText.includes("Sweep 54")`);
  await page.shows(/Sweep 4\b/);
  await page.go("tasks");
  await page.shows("Sweep 54");
  await page.fill("q", "sweep 54");
  await page.until(`location.hash.includes("q=sweep+54")`);
  await rows(page, 1);
  const top = `document.querySelector("a.row").getBoundingClientRect().top`;
  const before = await page.eval(top);
  await hub.addTask({ title: "Sweep 54 once more" });
  await page.shows("1 new: show");
  expect(await page.eval(top)).toBe(before);
  expect(await page.text()).not.toContain("once more");
  await page.click("button.news");
  await page.shows("once more");
  await page.click('.filters a[href="#/tasks"]');
  await page.until(`document.querySelector('[name="q"]').value === ""`);
  await page.go("tasks?status=cancelled&q=sweep");
  await page.until(`document.querySelector('[name="q"]').value === "sweep"`);
  await page.eval(`void (() => {
    const asked = fetch;
    let batches = 0;
    window.fetch = (url, init) => String(url).endsWith("/batch") && ++batches === 2
      ? new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)))
      : asked(url, init);
  })()`);
  await page.press("task/retry-all");
  await page.press("yes");
  await page.shows(/50 retried\s+of 55\s+Stop/);
  await page.press("close");
  await rows(page, 5);
  await page.press("task/retry-all");
  await page.press("yes");
  await page.shows("5 retried. Done.");
  await page.press("close");
  await page.shows("No task matches.");
  expect((await hub.get("/task/list?status=failed&q=sweep")).body).toMatchObject({ tasks: [] });
  await page.go("tasks?status=open&q=sweep");
  await page.press("task/cancel-all");
  await page.press("yes");
  await page.shows(/56 cancelled\. Done\./);
  await page.press("close");
  await page.go("tasks?status=cancelled&q=sweep");
  await page.press("task/delete-all");
  await page.press("yes");
  await page.shows(/56 deleted\. Done\./);
}

/**
 * What hid or destroyed: actions on everything, mistyped links, failures without their node, a time line without
 * events.
 */
async function traps(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("breaker");
  const failing = await hub.addTask({ title: "Trap that fails" });
  await ok(hub.post("/task/claim", { task_id: failing, node_id: "breaker" }));
  const failure = { task_id: failing, node_id: "breaker", error: "The saw broke", retry: false };
  await ok(hub.post("/task/fail", failure));
  using page = await admin(stage);
  const focused = (): Promise<unknown> => page.eval(`document.activeElement?.dataset.do`);
  const canSayYes = (): Promise<unknown> => page.eval(`!document.querySelector('[data-do="yes"]').disabled`);

  await page.go("tasks?node=breaker&status=failed");
  await rows(page, 1);
  await page.shows(/Trap that fails 1×\s+The saw broke[^]*breaker/);

  // On a list without a filter an action wants the number, and a key that is held down says no.
  await page.go("tasks");
  await page.shows("Trap that fails");
  const { total } = (await hub.get("/task/list")).body;
  await page.press("task/delete-all");
  await page.shows(`Delete all ${Number(total).toLocaleString()} tasks of this hub?`);
  expect([await focused(), await canSayYes()]).toEqual(["no", false]);
  await page.fill("typed", `${Number(total) - 1}`, "dialog");
  expect(await canSayYes()).toBe(false);
  await page.fill("typed", String(total), "dialog");
  await page.until(`!document.querySelector('[data-do="yes"]').disabled`);
  await page.press("no");
  await page.until(`document.querySelector("dialog") === null`);
  expect((await hub.get("/task/list")).body["total"]).toBe(total);
  // With a filter its words and the number are in the question.
  await page.go("tasks?status=failed&q=trap");
  await rows(page, 1);
  await page.press("task/retry-all");
  await page.shows("Retry the 1 tasks that match (failed, title trap), also on other pages?");
  expect([await focused(), await canSayYes()]).toEqual(["no", true]);
  await page.press("no");

  for (const [address, wrong] of [
    ["tasks?status=waitng", "status=waitng"],
    ["nodes?status=busy", "status=busy"],
    ["events?kind=task.eaten", "kind=task.eaten"],
    ["tasks?stauts=failed", "stauts=failed"],
    ["nodes?state=online", "state=online"],
    ["events?taks=x", "taks=x"],
    ["files?node=breaker", "node=breaker"],
    ["overview?range=year", "range=year"],
  ] as const) {
    await page.go(address);
    await page.shows(
      new RegExp(`The address has ${RegExp.escape(wrong)}, (?:which is none of|but this list knows only) `),
    );
    await page.until(`document.querySelectorAll("a.row").length === 0`);
  }
}

/** Rows are selected by clicks and keys, and changed together; to delete many wants the number. */
async function selection(stage: Stage): Promise<void> {
  const { hub } = stage;
  for (let i = 0; i < 5; i++) await hub.addTask({ title: `Pick ${i}`, group: "picks", tags: ["ripe"] });
  using page = await admin(stage);
  await page.go("tasks?group=picks&tag=ripe");
  await rows(page, 5);
  await page.shows(/Pick 4\s+picks\s+#ripe/);
  await page.press("select-page");
  await page.shows("5 selected");
  await page.press("select-page");
  // Who looks at a row and comes Back has what was selected; who comes by a link begins anew.
  await page.press("select");
  await page.shows("1 selected");
  await page.click("a.row");
  await page.shows("Time line");
  await page.eval("void history.back()");
  await page.shows("1 selected");
  await page.go("nodes");
  await page.until(`document.querySelector("main[data-view=nodes] h1")`);
  await page.go("tasks?group=picks&tag=ripe");
  await rows(page, 5);
  await page.until(`!/\\d selected/.test(document.body.innerText)`);
  await page.key("j");
  await page.key("x");
  await page.shows("1 selected");
  await page.key("j");
  await page.key("j");
  await page.key("x", { shiftKey: true });
  await page.shows("3 selected");
  await page.press("select"); // the first row's box: its click deselects
  await page.shows("2 selected");
  await page.press("task/cancel-selected");
  await page.shows("Cancel the 2 selected tasks?");
  expect(await page.eval(`document.activeElement?.dataset.do`)).toBe("no");
  await page.press("yes");
  await page.shows("2 cancelled. Done.");
  await page.press("undo");
  await page.shows("2 open again. Done.");
  await page.press("close");
  await page.until(`!/\\d selected/.test(document.body.innerText)`);
  await page.eval(
    `[...document.querySelectorAll('[data-do="select"]')].slice(1, 3).forEach((box) => box.click())`,
  );
  await page.key("a"); // goes to the actions
  await page.until(`document.activeElement?.dataset.do === "task/cancel-selected"`);
  await page.eval(`document.activeElement.click()`);
  await page.press("yes");
  await page.shows("2 cancelled. Done.");
  await page.press("close");
  const { tasks } = (await hub.get("/task/list?group=picks&status=failed")).body;
  expect(tasks).toMatchObject([{ title: "Pick 3" }, { title: "Pick 2" }]);
  const requests = Array.from({ length: 101 }, () => ({
    path: "task/create",
    body: { title: "Windfall", description: "d", group: "windfall" },
  }));
  await ok(hub.post("/batch", { requests }));
  await page.go("tasks?group=windfall");
  await page.shows("Windfall");
  await page.press("task/delete-all");
  await page.shows("Delete the 101 tasks that match (group windfall), also on other pages?");
  const canSayYes = `!document.querySelector('[data-do="yes"]').disabled`;
  expect(await page.eval(canSayYes)).toBe(false);
  await page.fill("typed", "101", "dialog");
  await page.until(canSayYes);
  await page.press("yes");
  await page.shows("101 deleted. Done.");
}

/** Tasks by what they wait for, by when they changed, and by who failed them and why. */
async function filters(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("sifter");
  const add = (title: string, more: object = {}) =>
    hub.addTask({ title, group: "sieve", task_type: "sifted", backoff_s: 0, ...more });
  const first = await add("Goes first");
  await add("Goes second", { depends_on: [first] });
  await add("Goes late", { delay_s: 3_600 });
  for (const [title, path, how] of [
    ["Breaks", "/task/fail", { error: "Snapped", retry: false }],
    ["Ends", "/task/cancel", { reason: "Enough" }],
  ] as const) {
    const of = { task_id: await add(title), node_id: "sifter" };
    await ok(hub.post("/task/claim", of));
    await ok(hub.post(path, { ...of, ...how }));
  }
  using page = await admin(stage);
  const found = async (query: string, titles: readonly string[]): Promise<void> => {
    await page.go(`tasks?group=sieve&${query}`);
    const shown = `[...document.querySelectorAll("a.row")].map((row) => row.textContent).join()`;
    await page.until(`document.querySelector("h1 small") && ${shown} === ${JSON.stringify(titles.join())}`);
  };
  await found("status=pending", ["Goes late", "Goes second", "Goes first"]);
  await found("status=open", ["Goes late", "Goes second", "Goes first"]);
  await found("status=held", ["Goes late", "Goes second"]);
  await found("status=depends_on", ["Goes second"]);
  await page.shows("waits for a task");
  await found("status=not_before", ["Goes late"]);
  await page.shows(/starts at \d/);
  await found("status=failed", ["Breaks"]);
  await found("status=cancelled", ["Ends"]);
  await found("failed_by=sifter&kind=failed", ["Breaks"]);
  await found("last=3600&kind=cancelled", ["Ends"]);
  await found("since=2001-01-01T00:00", ["Ends", "Breaks", "Goes late", "Goes second", "Goes first"]);
  await found("until=2001-01-01T00:00", []);
  await found("failure=snap", ["Breaks"]);
  await page.press("task/retry-all");
  await page.shows("Retry the 1 tasks that match (failure snap, group sieve), also on other pages?");
  await page.press("no");
  // Who goes Back while the field has the focus sees in it what the list is of; what was typed last is dropped.
  await page.eval(`document.querySelector('[name="failure"]').focus()`);
  await page.fill("failure", "nothing");
  await page.eval("void history.back()");
  await page.until(
    `location.hash.includes("until=") && document.querySelector('[name="failure"]').value === ""`,
  );
  await page.fill("until", "");
  await rows(page, 5);
  // The hub keeps its counts for a moment.
  await until("the type is known", async () =>
    list(await ok(hub.get("/stats/types")), "types").some((type) => type["task_type"] === "sifted"),
  );
  await page.eval(`document.querySelector('[name="type"]').focus()`);
  await page.until(`document.querySelector('datalist option[value="sifted"]')`);
  await page.fill("status", "held");
  await rows(page, 2);
  await page.press("task/cancel-all");
  await page.shows(
    "Cancel the 2 tasks that match (held back by anything, group sieve), also on other pages?",
  );
  await page.press("yes");
  await page.shows("2 cancelled. Done.");
}

async function groups(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("grouper");
  using page = await admin(stage);
  await page.go("groups?q=wiki-");
  await page.shows("No group matches.");
  for (let i = 0; i < 21; i++)
    await hub.addTask({ title: "One", group: `wiki-${String(i).padStart(2, "0")}` });
  await rows(page, 20); // live
  await page.click('a[rel="next"]');
  await rows(page, 1);
  const taskIds: string[] = [];
  for (let i = 0; i < 4; i++)
    taskIds.push(await hub.addTask({ title: `Page ${i}`, group: "wiki-20", lux_reward: 1.5 }));
  const of = (i: number) => ({ task_id: taskIds[i], node_id: "grouper" });
  for (const i of [0, 1]) await ok(hub.post("/task/claim", of(i)));
  await ok(hub.post("/task/fail", { ...of(0), error: "The page is too long", retry: false }));
  const usage = [{ seq: 1, model: "m", input_tokens: 7, output_tokens: 1, cost_usd: 0.5 }];
  await ok(
    hub.post("/task/complete", { ...of(1), usage, result: { problem: "p", improvement: "i", lesson: "l" } }),
  );
  await page.shows(/running\s+wiki-20\s+2 of 5/);
  await page.click('a[href="#/groups/wiki-20"]');
  await page.shows(
    /3\s+(?:open\s+0\s+running|unfinished)\s+1\s+completed\s+1\s+failed[^]*1\.5 of 6 paid\s+Cost\s+0\.50 USD/,
  );
  await page.shows(/Page 3[^]*Last failures[^]*Page 0\s+The page is too long\s+grouper/);
  await page.eval(
    `void (URL.createObjectURL = (blob) => { blob.text().then((text) => (window.exported = text)); return "blob:x"; })`,
  );
  await page.eval(`void (HTMLAnchorElement.prototype.click = function () { window.saved = this.download; })`);
  await page.press("export");
  await page.until(`window.saved === "wiki-20.jsonl" && window.exported`);
  const lines = String(await page.eval("exported"))
    .trimEnd()
    .split("\n");
  expect(lines.map((line) => record(JSON.parse(line))["title"])).toEqual([
    "Page 3",
    "Page 2",
    "Page 1",
    "Page 0",
    "One",
  ]);
  await page.press("retry");
  await page.shows("Retry the 1 failed tasks of the group wiki-20?");
  await page.press("yes");
  await page.shows("1 of 1 failed tasks are open again.");
  await page.shows("Cancel the 4 unfinished");
  await page.press("cancel");
  await page.shows("Cancel the 4 unfinished tasks of the group wiki-20?");
  await page.press("yes");
  await page.shows("4 of 4 unfinished tasks are cancelled.");
  await page.press("undo");
  await page.shows("4 open again. Done.");
  await page.press("close");
  await page.press("cancel");
  await page.press("yes");
  await page.shows(/cancelled\s+wiki-20[^]*5 of 5/);
  const group = (await hub.get("/group/wiki-20")).body;
  expect(group).toMatchObject({ done: true, cancelled: 4, by_status: { completed: 1, failed: 0 } });
  // A result that waits for a review cannot be cancelled.
  const reviewed = await hub.addTask({ title: "In review", group: "wiki-21", review: "creator" });
  await ok(hub.post("/task/claim", { task_id: reviewed, node_id: "grouper" }));
  const result = { problem: "p", improvement: "i", lesson: "l" };
  await ok(hub.post("/task/complete", { task_id: reviewed, node_id: "grouper", result }));
  await page.go("groups/wiki-21");
  await page.shows(/running\s+wiki-21/);
  expect(await page.text()).not.toContain("Cancel the");
  await ok(hub.admin("/task/delete", { task_id: reviewed })); // other tests find all results in review
}

async function schedules(stage: Stage): Promise<void> {
  const { hub } = stage;
  using page = await admin(stage);
  await page.go("schedules");
  await page.shows("No schedules yet.");
  await page.press("open-schedule");
  await page.fill("name", "nightly");
  await page.fill("when", "0 25 * * *");
  await page.fill("tz", "Asia/Tokyo");
  await page.fill("title", "Sum up the day");
  await page.fill("description", "In ten lines");
  await page.fill("group", "sums");
  await page.press("save-schedule");
  await page.until(`document.querySelector(".notice.bad")?.textContent.includes("cron")`);
  await page.fill("when", "0 3 * * *");
  await page.press("save-schedule");
  await page.shows(
    /on\s+nightly\s+Sum up the day\s+0 3 \* \* \*\s+Asia\/Tokyo\s+in \d+[^]* 3:00:00\sAM in Asia\/Tokyo/,
  );
  await page.press("run");
  await page.shows("A task was created.");
  await page.click('td a[href^="#/tasks/"]');
  await page.shows("Sum up the day");
  expect((await hub.get("/task/list?group=sums")).body).toMatchObject({
    tasks: [{ schedule: { name: "nightly", at: null }, description: "In ten lines" }],
  });
  await page.go("schedules");
  const scheduleOf = async (): Promise<unknown> => (await hub.get("/schedule/list")).body["schedules"];
  const [before] = (await scheduleOf()) as [object];
  await page.press("pause-schedule");
  await page.shows(/paused\s+nightly/);
  await page.press("pause-schedule");
  await page.shows(/on\s+nightly/);
  const [after] = (await scheduleOf()) as [object];
  expect({ ...after, updated_at: "" }).toEqual({ ...before, updated_at: "" });
  for (const isMistaken of [true, false]) {
    await page.press("delete-schedule");
    await page.press("yes");
    await page.shows("No schedules yet.");
    if (!isMistaken) break;
    await page.press("undo");
    await page.shows(/on\s+nightly/);
    const [restored] = (await scheduleOf()) as [object];
    const made = { created_at: "", updated_at: "", last_at: null, last_task_id: null };
    expect({ ...restored, ...made }).toEqual({ ...before, ...made });
  }
  // A pause saves the schedule anew: what its tasks require must stay.
  const task = {
    ...{ title: "Check the cards", description: "d", task_type: "check", lux_reward: 2, tags: ["night"] },
    ...{ requires: { capabilities: ["gpu"], resources: { vram: 24 } }, limit_key: "cards" },
  };
  await ok(hub.post("/schedule/put", { name: "cards", every_s: 3_600, task }));
  const [made] = (await scheduleOf()) as [object];
  for (const word of ["paused", "on"]) {
    await page.until(`document.querySelector('[data-do="pause-schedule"]')`);
    await page.press("pause-schedule");
    await page.shows(new RegExp(`${word}\\s+cards`));
    const [kept] = (await scheduleOf()) as [object];
    const changed = { updated_at: "", paused: false, next_at: "" };
    expect({ ...kept, ...changed }).toEqual({ ...made, ...changed });
  }
  await ok(hub.post("/schedule/delete", { name: "cards" }));
}

/** With more than 10,000 tasks and events before and after what is looked for. */
async function old(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("old-hand");
  const taskId = await hub.addTask({ title: "Antique between the line breaks" });
  const requests = (count: number) =>
    Array.from({ length: count }, () => ({
      path: "task/create",
      body: { title: "Filler", description: "f" },
    }));
  for (let i = 0; i < 21; i++) await ok(hub.post("/batch", { requests: requests(500) }));
  using page = await admin(stage);
  await page.go(`tasks/${taskId}`);
  await page.shows(/Time line\s+created/);
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "old-hand" }));
  await page.shows(/created[^]*assigned/);
  const note = { path: "task/extend", body: { task_id: taskId, node_id: "old-hand", note: "Rubbing" } };
  for (let i = 0; i < 2; i++)
    await ok(hub.post("/batch", { requests: Array.from({ length: 500 }, () => note) }));
  await page.shows("Only its last 200 notes.");
  await page.key("/");
  await page.fill("text", "antique", "dialog");
  await page.shows("Among the newest 10,000 tasks only; look further");
  await page.click("#found a");
  // It goes on by itself, unless somebody stops it.
  await page.until(`document.querySelector("a.row")?.innerText === "Antique between the line breaks"`);
  await page.go("tasks?q=no-such-title");
  await page.shows(/The search has examined [12]0,000 tasks|No task matches/);
  await page.shows("No task matches.");
  // A hub of very many tasks, none of which matches.
  await page.eval(`void (() => {
    const asked = fetch;
    const none = { success: true, tasks: [], next_cursor: "on", total: null };
    window.fetch = async (url, init) => {
      if (!String(url).includes("cursor=")) return asked(url, init);
      await new Promise((later) => setTimeout(later, 50));
      return Response.json({ ...none, next_cursor: "on" + performance.now() });
    };
  })()`);
  await page.go("tasks?q=antiques");
  await page.shows(/The search has examined [3-9]0,000 tasks/);
  await page.press("stop-search");
  await page.shows(/The search has examined [\d,]+ tasks\. The next page continues/);
}

async function nodes(stage: Stage): Promise<void> {
  const { hub } = stage;
  const pool = Array.from({ length: 52 }, (_, i) => `pool-${String(i).padStart(2, "0")}`);
  await hub.addNodes(["drained", ...pool]);
  await ok(hub.post("/node/leave", { node_id: "pool-07" }));
  using page = await admin(stage);
  await page.go("nodes?order=id&q=POOL");
  await rows(page, 50);
  await page.shows(/52 of \d+/);
  await page.click('a[rel="next"]');
  await rows(page, 2);
  await page.shows("pool-51");
  await page.fill("status", "offline");
  await rows(page, 1);
  await page.shows("pool-07");
  await page.go("nodes?order=id&q=pool-0");
  await rows(page, 10);
  const replaced = [
    { path: "node/delete", body: { node_id: "pool-03" } },
    { path: "node/register", body: { node_id: "pool-0x", name: "pool-0x" } },
  ];
  await ok(hub.admin("/batch", { requests: replaced }));
  await page.shows("pool-0x");
  expect(await page.eval(`document.querySelectorAll("a.row")[3].textContent`)).toBe("pool-0x");
  await page.go("nodes");
  await page.fill("q", "drai");
  await rows(page, 1); // its row stays where it is now
  await page.click('a[href="#/nodes/drained"]');
  const held = await hub.addTask({ title: "Held by the drained" });
  await ok(hub.post("/task/claim", { task_id: held, node_id: "drained" }));
  await ok(hub.post("/task/extend", { task_id: held, node_id: "drained", note: "Half way" }));
  await page.shows(/Runs now[^]*Held by the drained\s+Half way/);
  await page.press("drain");
  await page.shows("End the drain");
  await page.shows("Drains: 1 task still runs.");
  await ok(hub.post("/task/fail", { task_id: held, node_id: "drained", error: "Too heavy", retry: false }));
  await page.shows("Drained: nothing runs here. It is safe to stop the node.");
  await page.shows(/Failed in the last hour[^]*Held by the drained\s+1×\s+Too heavy/);
  const nodeOf = async (): Promise<unknown> => (await hub.get("/node/drained")).body["node"];
  expect(await nodeOf()).toMatchObject({ draining: true });
  await page.press("drain");
  await page.until(`document.querySelector('[data-do="drain"]')?.textContent === "Drain"`);
  expect(await nodeOf()).toMatchObject({ draining: false });
  await page.go("nodes?order=fails");
  await page.shows(/drained[^]*1\s+0/);
  // Attempts count also if another node has completed the task.
  await page.click('td.number a[href*="node=drained"]');
  await page.shows(/task\.attempt_failed\s+drained[^]*Too heavy/);
  await rows(page, 1);
  // Several at once, from the list.
  await page.go("nodes?q=pool-1&order=id");
  await rows(page, 10);
  await page.eval(
    `[...document.querySelectorAll('[data-do="select"]')].slice(2, 5).forEach((box) => box.click())`,
  );
  await page.shows("3 selected");
  await page.press("drain-selected");
  await page.shows("3 nodes drain.");
  await page.fill("status", "draining");
  await rows(page, 3);
  await page.shows(/pool-12[^]*nothing: safe to stop/);
  await page.eval(`document.querySelectorAll('[data-do="select"]').forEach((box) => box.click())`);
  await page.press("undrain-selected");
  await page.shows("3 nodes take tasks again.");
  await page.press("undo");
  await page.until(`document.querySelectorAll(".state.s-draining").length === 3`);
  await page.eval(
    `document.querySelectorAll('[data-do="select"]:not(:checked)').forEach((box) => box.click())`,
  );
  await page.press("undrain-selected");
  await page.until(`document.querySelector(".state.s-draining") === null`);
  const { nodes: again } = (await hub.get("/node/list?q=pool-1&status=draining")).body;
  expect(again).toEqual([]);
  await page.go("nodes/drained");
  await page.press("delete");
  await page.press("yes");
  await page.until(`location.hash === "#/nodes"`);
  expect((await hub.get("/node/drained")).status).toBe(404);
}

async function questions(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("asker");
  const taskId = await hub.addTask({ title: "To be decided" });
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "asker" }));
  using page = await admin(stage);
  await page.go("inbox");
  await page.shows("Nothing waits for a person");
  const ask = async (fields: object): Promise<void> =>
    void (await ok(hub.post("/task/ask", { task_id: taskId, node_id: "asker", ...fields })));
  await ask({ question: "Which colour?", choices: ["red", "dark blue"] });
  await page.shows(/asker asks[^]*Which colour\?/); // live
  await page.key("1"); // goes to the first answer
  await page.until(`document.activeElement?.matches('[data-do="choose"]')`);
  await page.eval(`document.activeElement.click()`);
  await page.shows("Nothing waits for a person");
  await ask({ question: "How many, and where?" });
  await page.shows("How many, and where?");
  await page.fill("answer", "{");
  await page.eval(`document.querySelector('[name="json"]').click()`);
  await page.press("answer");
  await page.shows("The answer is not JSON.");
  await page.fill("answer", '{"n": 9007199254740993}');
  await page.press("answer");
  await page.shows("Nothing waits for a person");
  await ask({ question: "Last one?", choices: ["yes", "no"], park: true });
  await page.go("inbox?done=yes");
  await page.shows(/answered by @primary[^]*To be decided[^]*9007199254740993/);
  await page.go("overview");
  await page.shows(/wait for a person\s+1 question/);
  await page.go(`tasks/${taskId}`);
  await page.shows(/Which colour\?[\s\S]*answered[\s\S]*red[\s\S]*9007199254740993[\s\S]*Last one\?/);
  await page.fill("answer", "maybe");
  await page.press("answer");
  await page.press("yes"); // an answer that is none of the choices
  await until(
    "answered",
    async () => record((await ok(hub.get(`/task/${taskId}`)))["task"])["ready"] === true,
  );
  const { questions: asked } = (await hub.get(`/task/${taskId}/questions`)).body;
  expect(asked).toMatchObject([{ answer: "red" }, { answer: { n: 9007199254740992 } }, { answer: "maybe" }]);
}

async function costs(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("spender");
  const taskId = await hub.addTask({
    title: "Spends",
    task_type: "costly",
    group: "spends",
    max_cost_usd: 5,
  });
  await ok(hub.post("/task/claim", { task_id: taskId, node_id: "spender" }));
  const report = { model: "large", input_tokens: 1_000, cached_tokens: 400, output_tokens: 20 };
  const extend = (usage: readonly object[]) =>
    ok(hub.post("/task/extend", { task_id: taskId, node_id: "spender", usage }));
  using page = await admin(stage);
  await page.go("cost");
  await page.shows(/No worker has reported usage[\s\S]*There are no budgets/);
  await extend([
    { ...report, seq: 1, cost_usd: 1.25 },
    { ...report, seq: 2 },
  ]);
  const set = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    await page.press("open-budget");
    for (const [name, value] of Object.entries(fields)) await page.fill(name, value);
    await page.press("set-budget");
    await page.until(`document.querySelector("dialog") === null`);
  };
  await set({ scope: "type", value: "costly", per: "total", cost_usd: "1" });
  await set({ per: "total", tokens: "1000000", on_limit: "warn" });
  await page.go("overview");
  await page.go("cost");
  await page.shows(/1\.25 USD 1 of 2 reports without a cost\s+2,000\s+800\s+40/);
  await page.shows(
    /open\s+hub\s+total\s+1\.25 USD 1 of 2 reports without a cost\s+2,040 of 1,000,000\s+warn/,
  );
  await page.shows(/paused\s+type costly\s+total\s+1\.25 USD of 1 USD/);
  await page.fill("by", "model");
  await page.shows(/Model\s+Cost[\s\S]*large\s+1\.25 USD/);
  await page.fill("by", "group");
  await page.click('a[href="#/groups/spends"]');
  await page.shows(/Cost\s+1\.25 USD/);
  await page.go("cost?by=node");
  await page.fill("days", "7");
  await page.until(`location.hash === "#/cost?by=node&days=7"`);
  await page.click('a[href="#/nodes/spender"]');
  await page.shows("Ledger");
  await page.go("cost?by=nothing");
  await page.shows("The address has by=nothing");
  await page.go(`tasks/${taskId}`);
  await page.shows(
    /1\.25 USD 1 of 2 reports without a cost\s+2,000 input tokens \(800 cached\), 40 output tokens\s+Max\. cost\s+5 USD/,
  );
  await page.go("cost?by=node&days=1");
  await page.press("void spender");
  await page.press("yes");
  await page.shows(/No worker has reported usage[\s\S]*open\s+type costly/);
  const budgetsOf = async (): Promise<unknown> =>
    (await hub.get("/budget/list", { headers: { "X-Admin-Key": ADMIN_KEY } })).body["budgets"];
  const left = (budgets: number): Promise<void> =>
    page.until(`document.querySelectorAll('[data-do="delete-budget"]').length === ${budgets}`);
  const before = await budgetsOf();
  for (const budgets of [1, 0]) {
    await page.press("delete-budget");
    await page.press("yes");
    await left(budgets);
    await page.press("undo");
    await left(budgets + 1);
    if (budgets === 1) expect(await budgetsOf()).toEqual(before);
    await page.press("delete-budget");
    await page.press("yes");
    await left(budgets);
  }
}

async function messages(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("reader");
  const worn = { from_node: "op", to_node: "reader", content: "One of many", require_ack: true };
  using page = await admin(stage);
  await page.go("messages");
  await page.fill("node", "rea");
  await page.until(`document.querySelector('datalist option[value="reader"]')`);
  await page.fill("node", "reader");
  await page.press("show");
  await page.shows("No messages.");
  for (let i = 0; i < 50; i++) await ok(hub.post("/message/send", worn));
  await page.press("open-send");
  await page.fill("content", "Only for you");
  await page.eval(`document.querySelector('[name="ack"]').click()`);
  await page.press("send");
  await page.shows("Only for you");
  await page.press("open-broadcast");
  await page.fill("content", "For everyone");
  await page.press("broadcast");
  await page.shows("For everyone");
  await page.click('a[rel="next"]');
  await page.until(`location.hash.includes("before=") && !document.body.innerText.includes("For everyone")`);
  const parked = async (): Promise<unknown> =>
    (await hub.get("/message/parked?node_id=reader")).body["total"];
  while ((await parked()) !== 51) {
    await hub.post("/message/receive", { node_id: "reader", count: 100 });
    hub.clock.pass(31_000);
    await hub.sweep();
  }
  await page.click('.ranges a[href="#/messages/reader?parked=yes"]');
  await page.shows("51 dead letters");
  await page.click('a[rel="next"]');
  await page.shows("Only for you");
  await page.press("redrive");
  await page.shows("The message is back in the mailbox.");
  await until("redriven", async () => (await parked()) === 50);
  // Of all nodes: counted in the navigation, found from the overview, and redriven at once.
  await page.go("overview");
  await page.shows(/50\s+dead letters/);
  await page.until(`document.querySelector("nav .count")?.title === "50 dead letters"`);
  await page.click('.todo a[href="#/messages?parked=yes"]');
  await page.shows(/50 dead letters, the oldest first\.[^]*reader 50/);
  await page.press("redrive-all");
  await page.shows("Put the 50 dead letters of all nodes back into their mailboxes?");
  await page.press("yes");
  await page.shows("50 redriven. Done.");
  await page.press("close");
  await until("all redriven", async () => (await parked()) === 0);
  await page.shows("Every message was acknowledged");
}

async function files(stage: Stage): Promise<void> {
  const { hub } = stage;
  const taskId = await hub.addTask({ title: "With a file" });
  using page = await admin(stage);
  await page.go("files");
  await page.shows("No files yet.");
  await page.press("open-upload");
  await page.eval(`(() => {
    const files = new DataTransfer();
    files.items.add(new File(["<b>Not bold</b>"], "note.html", { type: "text/html" }));
    document.querySelector('[name="file"]').files = files.files;
  })()`);
  await page.fill("task_id", taskId);
  await page.press("upload");
  await page.shows("note.html");
  await page.press("preview");
  await page.shows("<b>Not bold</b>");
  await page.click("dialog form button");
  await page.eval(
    `void (HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.protocol]; })`,
  );
  await page.press("download");
  await page.until(`String(window.saved) === "note.html,blob:"`);
  await page.go(`tasks/${taskId}`);
  await page.shows(/Input files[^]*note\.html\s+15 B/);
  await large(page, stage);
  await page.go(`files?task=${taskId}`);
  await page.press("delete-file");
  await page.press("yes");
  await page.shows("No files yet.");
}

/** A file that the page takes for a large one: by its own address where that is open, else as the browser can. */
async function large(page: Page, { variant }: Stage): Promise<void> {
  await page.eval(`void (() => {
    const asked = fetch;
    window.fetch = async (url, init) => {
      const response = await asked(url, init);
      if (!String(url).includes("file/list")) return response;
      const body = await response.json();
      for (const file of body.files) file.size = 5 * 2 ** 30;
      return Response.json(body, response);
    };
    window.chunks = "";
    window.showSaveFilePicker = async ({ suggestedName }) => ({
      createWritable: async () => new WritableStream({
        write: (chunk) => void (chunks += new TextDecoder().decode(chunk)),
        close: () => void (window.saved = [suggestedName, "disk"]),
      }),
    });
  })()`);
  await page.go("files");
  await page.shows("5.0 GiB");
  await page.eval("void (window.saved = null)");
  await page.press("download");
  if (variant === "A") {
    await page.until(`String(window.saved) === "note.html,http:"`);
    return;
  }
  await page.until(`String(window.saved) === "note.html,disk"`);
  expect(await page.eval("chunks")).toBe("<b>Not bold</b>");
  await page.eval("void (window.saved = null, window.showSaveFilePicker = undefined)");
  await page.press("download");
  await page.shows(/5\.0 GiB in memory/);
  await page.press("yes");
  await page.until(`String(window.saved) === "note.html,blob:"`);
}

async function events(stage: Stage): Promise<void> {
  const { hub } = stage;
  using page = await admin(stage);
  await page.go("events?kind=node.registered");
  await page.shows("Pause");
  await hub.addNode("live-1");
  await page.shows("live-1");
  await page.press("pause");
  await hub.addNode("live-2");
  await page.shows("Go on");
  await page.press("pause");
  await page.shows("live-2");
  await page.fill("kind", "hub.started");
  await page.until(`!document.body.innerText.includes("live-2")`);
  await page.go("events");
  await page.fill("node", "live-2");
  await page.until(`location.hash === "#/events?node=live-2"`);
  await page.until(`!document.body.innerText.includes("live-1")`);
  const [taskId, other] = [await hub.addTask({ title: "Followed" }), await hub.addTask()];
  for (const task_id of [taskId, other]) await ok(hub.post("/task/claim", { task_id, node_id: "live-2" }));
  await page.shows(/task\.assigned\s+live-2/);
  await page.go(`events?task=${taskId}`);
  await page.shows(/task\.assigned[^]*Followed/);
  await page.until(`document.querySelectorAll("a.row").length === 2`);
  for (const task_id of [taskId, other]) await ok(hub.post("/task/cancel", { task_id }));
  await page.shows(/task\.failed[^]*Followed/);
  await page.until(`document.querySelector("td .s-failed")?.textContent === "task.failed"`);
  await page.until(`document.querySelectorAll("a.row").length === 3`);
  // From a time on, and before it, are all of them.
  const live = list(await ok(hub.get("/events?node_id=live-2&since=0")), "events");
  const at = String(live[3]?.["at"]);
  const [since, until] = [
    live.filter((event) => String(event["at"]) >= at),
    live.filter((event) => String(event["at"]) < at),
  ];
  for (const [query, shown] of Object.entries({ since, until })) {
    await page.go(`events?node=live-2&${query}=${at}`);
    await page.until(`[...document.querySelectorAll("td:last-child")].map((cell) => cell.innerText).join() ===
      "${shown
        .map(({ id }) => id)
        .toReversed()
        .join()}"`);
  }
  await page.go("events?kind=attempts&node=live-2&last=3600");
  await page.shows("No event matches.");
  await page.go(`events?task=${crypto.randomUUID()}`);
  await page.shows("No event matches.");
  await page.go("nodes/nobody");
  await page.shows(/Node\s+No node is registered as nobody\.\s+All nodes/);
}

/** What an event costs the list of events: its own row, and no drawing of the others, at most four times a second. */
async function manyEvents(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("chatty");
  const send = async (count: number): Promise<void> => {
    const body = { from_node: "op", to_node: "chatty", content: "Hello" };
    const requests = Array.from({ length: count }, () => ({ path: "message/send", body }));
    await ok(hub.post("/batch", { requests }));
  };
  await send(100);
  using page = await admin(stage);
  await page.go("events?kind=message.sent");
  const count = `document.querySelectorAll("tbody tr").length`;
  await page.until(`${count} === 100`);
  await page.eval(`void (() => {
    window.draws = { batches: 0, rows: 0, others: 0, startedAt: performance.now(), endedAt: 0 };
    new MutationObserver((records) => {
      const rows = records.filter(({ target }) => target.matches?.("tbody")).flatMap(({ addedNodes }) => [...addedNodes]);
      draws.rows += rows.length;
      draws.batches += rows.length > 0;
      draws.endedAt = performance.now();
      // Ages are texts that change with the clock alone.
      draws.others += records.filter(({ type, target }) => type === "attributes" && target.closest("tbody")).length;
    }).observe(document.querySelector("table"), { subtree: true, childList: true, attributes: true });
  })()`);
  for (let i = 0; i < 50; i++) await send(5);
  const { cursor } = (await hub.get("/events?limit=1")).body;
  await page.until(`document.querySelector("tbody tr td:last-child").textContent === "${String(cursor)}"`);
  const {
    rows: drawn,
    batches,
    others,
    startedAt,
    endedAt,
  } = (await page.eval("draws")) as Record<string, number>;
  expect(others).toBe(0);
  expect(drawn).toBeLessThanOrEqual(250);
  expect(batches).toBeLessThanOrEqual(1 + Math.ceil((Number(endedAt) - Number(startedAt)) / 2_000));
  expect(await page.eval(count)).toBe(200);
}

/** On a slow network a view says that it loads, until it has. */
async function slow(stage: Stage): Promise<void> {
  await stage.hub.addNode("far-away");
  using page = await admin(stage);
  await page.eval(`void (() => {
    const asked = fetch;
    window.fetch = async (url, init) => {
      if (String(url).includes("node/list")) await new Promise((resolve) => (window.arrive = resolve));
      return asked(url, init);
    };
  })()`);
  await page.go("nodes?q=far-away");
  await page.shows(/Name or host[^]*Loading …/);
  await page.eval("window.arrive()");
  await rows(page, 1);
  await page.until(`!document.body.innerText.includes("Loading …")`);
}

async function faults(stage: Stage): Promise<void> {
  using page = await visit(stage);
  await page.eval(`void (() => {
    const asked = fetch;
    window.refused = true;
    window.broken = false;
    window.fetch = async (url, init) => {
      if (window.broken) throw new TypeError("Failed to fetch");
      return window.refused && String(url).includes("events/stream")
        ? Response.json({ success: false, error: "no_streams", detail: "There are no streams." }, { status: 404 })
        : asked(url, init);
    };
  })()`);
  await signIn(page, SECRET);
  await page.shows("The page is no longer live. There are no streams.");
  await page.eval("void (window.broken = true)");
  await page.go("events");
  await page.until(`document.querySelector("main .fault")?.textContent === "The hub cannot be reached."`);
  await page.eval("void (window.refused = window.broken = false)");
  await page.press("follow");
  await page.until(`!/no longer live|cannot be reached/.test(document.body.innerText)`);
  await page.shows("Pause");
  await stage.hub.addNode("seen-live");
  await page.shows("seen-live");
}

async function keys(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("earner");
  await ok(hub.post("/signin", { node_id: "earner" }));
  using page = await admin(stage);
  await page.go("lux");
  await page.click('a[href="#/lux?range=week"]');
  await page.shows(/LUX of the week[^]*earner\s+10\s+1/);
  // It is live: a reward, and what came of the ledger.
  await hub.addNode("latecomer");
  const paid = await hub.addTask({ title: "Paid", lux_reward: 7 });
  await ok(hub.post("/task/claim", { task_id: paid, node_id: "latecomer" }));
  const result = { problem: "p", improvement: "i", lesson: "l" };
  const done = await ok(hub.post("/task/complete", { task_id: paid, node_id: "latecomer", result }));
  const { hash } = record(done["receipt"]);
  await page.shows(/latecomer\s+7\s+1/);
  await page.shows(String(hash)); // the head of the ledger
  await page.go(`tasks/${paid}`);
  await page.shows(new RegExp(`Receipt\\s+entry \\d+: 7 LUX[^]*${String(hash)}`));
  await page.go("nodes/latecomer");
  await page.until(`document.querySelector('td [title="${String(hash)}"]')`);
  await page.go("lux?range=week");
  await page.click('.ranges a[href="#/lux"]');
  await page.click('a[href="#/nodes/earner"]');
  await page.shows(/Ledger[\s\S]*signin/);
  await untouched(page, hub);
  await page.go("keys");
  await page.press("open-key");
  await page.fill("name", "robot");
  await page.fill("role", "viewer");
  await page.fill("days", "2");
  await page.press("add");
  await page.shows("The secret of robot");
  const secret = String(await page.eval(`document.querySelector("dialog code").textContent`));
  expect((await hub.get("/file/list", { headers: { "X-Matrix-Secret": secret } })).status).toBe(200);
  await page.shows(`LUXHUB_SECRET=${secret} luxhub top`);
  await page.shows(
    new RegExp(`at this address[^]*${RegExp.escape(hub.base(stage.variant))}/\\s+Copy the address`),
  );
  await page.until(`document.querySelector("dialog svg.qr")`);
  await page.click("dialog form button");
  await page.press("open-key");
  await page.fill("name", "for-a-node");
  await page.fill("role", "full");
  await page.fill("node", "earner");
  await page.fill("days", "1");
  await page.fill("mint", "100");
  await page.press("add");
  await page.shows(/LUXHUB_URL=http:.* LUXHUB_SECRET=.* luxhub worker --node earner --agent claude/);
  await page.click("dialog form button");
  await page.shows(/for-a-node[^]*earner\s+100 LUX a day/);
  await ok(hub.admin("/key/revoke", { name: "for-a-node" }));
  await page.press("revoke");
  await page.press("yes");
  await page.shows(/revoked\s+robot/);
  await invitations(page, hub);
}

/**
 * A form that is sent with nothing but what it requires asks for what the API does by itself: a key that is added without
 * a look is no administrator's.
 */
async function untouched(page: Page, hub: TestHub): Promise<void> {
  for (const [view, button] of [
    ["new"],
    ["control", "open-pause"],
    ["control", "open-webhook"],
    ["cost", "open-budget"],
    ["schedules", "open-schedule"],
    ["messages", "open-send"],
    ["messages", "open-broadcast"],
    ["keys", "open-key"],
  ] as const) {
    await page.go(view);
    if (button !== undefined) await page.press(button);
    await page.until(`document.querySelector("main ${button === undefined ? "form" : "dialog"} select")`);
    const chosen = `[...document.querySelectorAll("form:not(.filters) select")].filter((field) => field.selectedIndex !== 0)`;
    expect([view, await page.eval(`${chosen}.map(({ name }) => name)`)]).toEqual([view, []]);
    if (button !== undefined) await page.click("dialog form[method=dialog] button");
  }
  const send = async (
    view: string,
    button: string,
    action: string,
    fields: Readonly<Record<string, string>>,
  ): Promise<void> => {
    await page.go(view);
    if (button !== "") await page.press(button);
    for (const [name, value] of Object.entries(fields))
      await page.fill(name, value, `form:has([data-do="${action}"])`);
    await page.press(action);
  };
  const titled = { title: "Untouched", description: "d" };
  await send("keys", "open-key", "add", { name: "untouched" });
  await page.shows("The secret of untouched (full)");
  await page.click("dialog form button");
  await ok(hub.admin("/key/revoke", { name: "untouched" }));
  await send("schedules", "open-schedule", "save-schedule", { name: "untouched", ...titled });
  await page.shows(/on\s+untouched/);
  const made = await ok(hub.post("/schedule/put", { name: "default", cron: "0 3 * * *", task: titled }));
  const [own, ofApi] = [list(await ok(hub.get("/schedule/list")), "schedules"), record(made["schedule"])];
  const { name: _, created_at: __, updated_at: ___, next_at: ____, tz: _____, ...same } = ofApi;
  expect(own.find(({ name }) => name === "untouched")).toMatchObject(same);
  for (const name of ["untouched", "default"]) await ok(hub.post("/schedule/delete", { name }));
  await send("messages", "open-send", "send", { to: "earner", content: "Sent untouched" });
  await page.shows("Sent.");
  await send("messages", "open-broadcast", "broadcast", { content: "Called untouched" });
  await page.shows("Sent to all nodes");
  const { messages } = await ok(hub.get("/message/history?node_id=earner&count=2"));
  expect(messages).toMatchObject([{ type: "broadcast" }, { type: "text" }]);
  await send("cost", "open-budget", "set-budget", { cost_usd: "99" });
  await page.shows("The budget is set.");
  const { budgets } = await ok(hub.get("/budget/list", { headers: { "X-Admin-Key": ADMIN_KEY } }));
  expect(budgets).toMatchObject([{ scope: "hub", per: "day", on_limit: "pause", tokens: null }]);
  await ok(hub.admin("/budget/delete", { scope: "hub", per: "day" }));
  await send("new", "", "create", titled);
  await page.shows(/\w+\s+Untouched/);
  const task_id = String(await page.eval("location.hash.split('/').pop()"));
  const of = async (id: string) => {
    const task = record((await ok(hub.get(`/task/${id}`)))["task"]);
    return Object.fromEntries(Object.keys(EVERY_FIELD).map((name) => [name, task[name]]));
  };
  const plain = await hub.addTask(titled);
  expect(await of(task_id)).toEqual(await of(plain));
  for (const id of [task_id, plain]) await ok(hub.admin("/task/delete", { task_id: id }));
  await send("control", "open-pause", "pause-hub", {});
  await page.shows("Pause the whole hub?");
  await page.press("no");
}

/** A node is invited on the page of the keys, joins with the line, and appears there. */
async function invitations(page: Page, hub: TestHub): Promise<void> {
  await page.press("open-invite");
  await page.fill("node_id", "newcomer");
  await page.fill("minutes", "0");
  await page.press("invite");
  await page.shows(/expires_in_s.*60/);
  await page.fill("minutes", "10");
  await page.press("invite");
  await page.shows("The invitation of newcomer");
  await page.until(`document.querySelector("dialog svg.qr")`);
  const line = String(await page.eval(`document.querySelector("dialog code").textContent`));
  const [, token = ""] = /^luxhub join '?http.*#join\.([^.']+)/.exec(line) ?? [];
  await page.click("dialog form button");
  await page.shows(/open\s+newcomer/);
  const key_hash = new Bun.CryptoHasher("sha256").update("a secret of the machine").digest("hex");
  await ok(hub.post("/join", { token, key_hash }));
  await page.shows(/used\s+newcomer\s+newcomer/);
  await page.press("open-invite");
  await page.fill("node_id", "unwanted");
  await page.press("invite");
  await page.shows("The invitation of unwanted");
  await page.click("dialog form button");
  await page.shows(/open\s+unwanted/);
  await page.click('tr:last-child [data-do="delete-invitation"]');
  await page.shows("Delete the invitation of unwanted?");
  await page.press("yes");
  await page.until(`!document.querySelector("main").innerText.includes("unwanted")`);
}

async function keyboard(stage: Stage): Promise<void> {
  await stage.hub.addTask({ title: "First row" });
  using page = await admin(stage);
  await page.key("2");
  await page.shows("First row");
  await page.key("j");
  await page.until(`document.activeElement?.matches("a.row")`);
  await page.key("j");
  await page.key("k");
  await page.until(`document.activeElement === document.querySelector("a.row")`);
  await page.key("f");
  await page.until(`document.activeElement?.name === "q"`);
  await page.key("Escape");
  await page.until(`document.activeElement?.name !== "q"`);
  await page.eval(`document.activeElement.blur()`);
  await page.key("?");
  await page.shows("Keyboard");
  await page.click("dialog form button");
  const before = await page.eval(`getComputedStyle(document.documentElement).backgroundColor`);
  await page.press("theme");
  await page.until(
    `getComputedStyle(document.documentElement).backgroundColor !== ${JSON.stringify(before)}`,
  );
}

/** Anything is found by what it is called. */
async function find(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("zebra-node");
  const fields = { title: "The zebra crossing", task_type: "zebra", group: "zebra-group", tags: ["zebra"] };
  const taskId = await hub.addTask(fields);
  const form = new FormData();
  form.set("metadata", "{}");
  form.set("file", new File(["stripes"], "zebra.txt"));
  await ok(hub.post("/file/upload", form));
  using page = await admin(stage);
  const look = async (text: string): Promise<void> => {
    await page.key("/");
    await page.fill("text", text, "dialog");
  };
  const hits = `[...document.querySelectorAll("#found a")].map((hit) => hit.innerText.replace(/\\s+/g, " "))`;
  await look("zebra");
  await page.until(`${hits}.length === 6`);
  expect(await page.eval(hits)).toEqual([
    "type zebra 1 task",
    "tag zebra 1 task",
    "task The zebra crossing open zebra",
    "node zebra-node online",
    "group zebra-group 1 tasks",
    "file zebra.txt 7 B",
  ]);
  await loadAxe(page);
  expect(await page.eval(VIOLATIONS)).toEqual([]);
  for (let i = 0; i < 3; i++) await page.key("ArrowDown");
  await page.until(`document.querySelector("#found [aria-selected=true]").innerText.includes("zebra-node")`);
  await page.key("Enter", { isComposing: true });
  expect(await page.eval(`document.querySelector("dialog") !== null`)).toBe(true);
  await page.key("Enter");
  await page.until(`location.hash === "#/nodes/zebra-node" && document.querySelector("dialog") === null`);
  await look(taskId);
  await page.until(`${hits}.length === 1`);
  await page.key("Enter");
  await page.until(`location.hash === "#/tasks/${taskId}"`);
  await look("no such thing");
  await page.shows("Nothing of this name.");
  await page.fill("text", "mess", "dialog");
  await page.until(`String(${hits}) === "page Messages"`);
  await page.fill("text", "zebra.txt", "dialog");
  await page.until(`${hits}.some((hit) => hit.startsWith("file"))`);
  await page.eval(
    `[...document.querySelectorAll("#found a")].find((hit) => hit.innerText.startsWith("file")).click()`,
  );
  await rows(page, 1);
  await page.fill("q", "no-such-file");
  await page.shows("No file matches.");
  await deleteFiles(hub);
}

/** What is wrong, and what can be done about it where it is said. */
async function overview(stage: Stage): Promise<void> {
  const { hub } = stage;
  for (const name of ["weaver", "spinner"]) {
    await hub.addNode(name, { capabilities: ["weaving"] });
    for (const thread of [1, 2, 3]) {
      const task_id = await hub.addTask({ title: `Weave ${thread}`, task_type: "weaving" });
      await ok(hub.post("/task/claim", { task_id, node_id: name }));
      const failure = { error: `The thread ${thread} broke at ${name === "weaver" ? 7 : 12}`, retry: false };
      await ok(hub.post("/task/fail", { task_id, node_id: name, ...failure }));
    }
  }
  await hub.get("/stats/types"); // the hub keeps this count for a while; the page shows what came after it nonetheless
  await hub.addTask({ title: "Melt", task_type: "glass" });
  using page = await admin(stage);
  await page.go("overview");
  // Nodes of other tests may take any type.
  const takers = await hub.get("/node/list?capability=glass&status=online&per_page=1");
  if (takers.body["total"] === 0)
    await page.until(
      `[...document.querySelectorAll(".todo li")].some((li) => /^1\\s+no node/.test(li.innerText))`,
    );
  await page.shows(/glass\s+1\s+/);
  await page.shows(/6×\s*The thread 3 broke at 12\s*weaving · 2 nodes/);
  await page.until(`document.querySelector('[data-node="weaver"].fails')?.title.includes("3 failed")`);
  await page.eval(
    `[...document.querySelectorAll('[data-do="retry-group"]')].find((b) => b.textContent === "Retry 6").click()`,
  );
  await page.shows("Retry the 6 tasks that failed with “The thread 3 broke at 12”?");
  await page.press("yes");
  await page.shows("6 retried. Done.");
  await page.press("close");
  await page.until(`!document.body.innerText.includes("The thread 3 broke")`);
  const open = await hub.get("/task/list?task_type=weaving&status=open");
  expect(open.body["total"]).toBe(6);
  for (const [range, words] of [
    ["24 h", "Tasks in 10 minutes, the last 24 hours"],
    ["30 d", "Tasks an hour, the last 30 days"],
    ["1 h", "Tasks a minute, the last hour"],
  ] as const) {
    await page.eval(
      `[...document.querySelectorAll(".ranges a")].find((a) => a.textContent === "${range}").click()`,
    );
    await page.shows(words);
    await page.until(`document.querySelector(".ranges [aria-current]").textContent === "${range}"`);
  }
  // The cross-hair reads by keyboard too, and a lamp leads to its node.
  await page.eval(`document.querySelector(".plot").focus()`);
  await page.key("End");
  await page.shows(/:\d\d.* created \d+ · completed \d+ · failed \d+/);
  await page.click('[data-node="weaver"]');
  await page.until(`location.hash === "#/nodes/weaver"`);
  const { tasks } = (await hub.get("/task/list?status=open&per_page=50")).body as {
    tasks: { task_id: string; task_type: string }[];
  };
  for (const { task_id, task_type } of tasks)
    if (/^(?:weaving|glass)$/.test(task_type)) await ok(hub.admin("/task/delete", { task_id }));
}

/** Pauses, limits, webhooks, and results in review. */
async function control(stage: Stage): Promise<void> {
  const { hub } = stage;
  await hub.addNode("reviewed");
  using page = await admin(stage);
  await page.go("control");
  await page.shows(/Nothing is paused\.[^]*There are no limits\.[^]*There are no webhooks/);
  await page.press("open-pause");
  await page.fill("scope", "type");
  await page.fill("value", "dangerous");
  await page.fill("reason", "The saw is broken");
  await page.press("pause-hub");
  await page.shows("Pause a type: dangerous?");
  await page.press("yes");
  await page.shows(/Paused: type dangerous\.[^]*type dangerous\s+The saw is broken/); // the banner too
  await page.press("open-limit");
  await page.fill("key", "model");
  await page.fill("running", "2");
  await page.press("set-limit");
  await page.shows(/model\s+0 of 2\s+any/);
  expect(
    (await ok(hub.get("/limit/list", { headers: { "X-Admin-Key": ADMIN_KEY } })))["limits"],
  ).toMatchObject([{ key: "model", running: 2, per_minute: null }]);
  // What was deleted or resumed by mistake is there again, as it was.
  const remove = async (): Promise<void> => {
    await page.press("delete-limit");
    await page.press("yes");
    await page.shows("There are no limits.");
  };
  await remove();
  await page.press("undo");
  await page.shows(/model\s+0 of 2\s+any/);
  await remove();
  await page.press("resume-hub");
  await page.shows("Nothing is paused.");
  await page.press("undo");
  await page.shows(/type dangerous\s+The saw is broken/);
  await page.press("resume-hub");
  await page.shows("Nothing is paused.");
  await page.until(`!document.body.innerText.includes("Paused: type")`);
  const review = "creator";
  const inReview = async (title: string): Promise<string> => {
    const task_id = await hub.addTask({ title, review });
    await ok(hub.post("/task/claim", { task_id, node_id: "reviewed" }));
    const result = { problem: "p", improvement: "i", lesson: "l" };
    await ok(hub.post("/task/complete", { task_id, node_id: "reviewed", result }));
    return task_id;
  };
  const rejected = await inReview("Too hasty");
  await page.go("inbox");
  await page.shows(/Too hasty[^]*review · reviewed[^]*improvement\s+i/); // what is to be checked
  await page.fill("note", "Read the text first");
  await page.press("reject");
  await until(
    "rejected",
    async () => record((await ok(hub.get(`/task/${rejected}`)))["task"])["status"] === "open",
  );
  const passed = await inReview("Well done");
  await page.shows("Well done");
  await page.shows(/improvement\s+i/);
  await page.key("p");
  await page.until(`document.activeElement?.dataset.do === "pass"`);
  await page.press("pass");
  await until("passed", async () => {
    const { review: state } = record((await ok(hub.get(`/task/${passed}`)))["task"]);
    return record(state)["state"] === "passed";
  });
  for (const task_id of [rejected, passed]) await ok(hub.admin("/task/delete", { task_id }));
}

/** The buttons of webhooks, on a hub of its own, which calls the receiver. */
async function webhooks(stage: Stage): Promise<void> {
  await using receiver = new Receiver();
  await using own = await startHub({ post: receiver.post });
  using page = await admin({ ...stage, hub: own });
  await page.go("control");
  await page.press("open-webhook");
  const put = async (kinds: string): Promise<void> => {
    for (const [name, value] of Object.entries({ name: "alerts", url: RECEIVER_URL, kinds }))
      await page.fill(name, value);
    await page.press("put-webhook");
  };
  await put("task.created, task.fnished");
  await page.shows("task.fnished is no kind of event.");
  await put("task.created");
  await page.shows("The secret of alerts");
  expect(await page.eval(`document.querySelector("dialog code").textContent`)).toStartWith("whsec_");
  await page.click("dialog form button");
  await page.shows(/active\s+alerts\s+https:\/\/receiver\.test\/hook/);
  const hooks = await ok(own.get("/webhook/list", { headers: { "X-Admin-Key": ADMIN_KEY } }));
  expect(hooks["webhooks"]).toMatchObject([{ format: "luxhub", group: null }]); // as the form begins
  await page.press("test-webhook");
  await page.shows("The test message was delivered.");
  expect(receiver.received).toHaveLength(1);
  receiver.answer = () => new Response(null, { status: 410 }); // ends a webhook at once
  await own.addTask();
  await until("suspended", async () => {
    await own.sweep();
    const { webhooks: all } = await ok(own.get("/webhook/list", { headers: { "X-Admin-Key": ADMIN_KEY } }));
    return record((all as unknown[])[0])["state"] === "suspended";
  });
  await page.shows(/suspended\s+alerts/);
  receiver.answer = () => new Response(null, { status: 204 });
  await page.press("resume-webhook");
  await page.shows(/active\s+alerts/);
  await page.press("delete-webhook");
  await page.press("yes");
  await page.shows("There are no webhooks.");
}

export const ACTIONS: readonly Action[] = [
  { name: "a wrong secret is refused; without one only the public reads of A are shown", run: refusal },
  { name: "a viewer is offered what it may see; a revoked key signs out", run: viewer },
  { name: "a key that is bound to a node is offered what it may do", run: bound },
  { name: "tabs share one sign-in; a session that ends leaves the page and its forms", run: sessions },
  { name: "a revoked secret is not sent again and again", run: revoked },
  { name: "Back restores the place; ages are the hub's; a copy works without a clipboard", run: places },
  { name: "the overview says what is wrong, by type and message, and retries it", run: overview },
  { name: "a task is created, cancelled, retried, run again and deleted; its story is told", run: task },
  { name: "a task gets input files, shows its outputs, and is retried with its dependents", run: taskFiles },
  { name: "a task's page is its story: attempts, why it waits, neighbours, what a worker gets", run: story },
  { name: "what operators do most takes few clicks and keys", run: operators },
  { name: "the output of a task is shown as a terminal shows it, as text, and each attempt", run: output },
  { name: "what others write is prose, of which nothing runs and nothing is hidden", run: prose },
  { name: "what waits is changed, and back, and what runs is taken back", run: changes },
  { name: "a task runs again with all that it had, and the form names what it leaves out", run: again },
  { name: "notes and leases are shown, with the host of a node", run: notes },
  { name: "a hidden tab loads nothing; when it is shown again, it has what it missed", run: hidden },
  { name: "what is copied is a command that works", run: copies },
  { name: "filters and cursor stand in the URL; new rows wait; all that match are changed", run: lists },
  { name: "rows are selected with x and Shift; to delete more than 100 wants the number", run: selection },
  { name: "tasks are found by what they wait for, by time, and by who failed them and why", run: filters },
  { name: "nodes are found by pages; one drains, takes tasks again, and is deleted", run: nodes },
  { name: "open questions come live, and are answered by a choice, a text or JSON", run: questions },
  { name: "a schedule is made, run now, paused, resumed and deleted", run: schedules },
  // Before any other that reports usage.
  {
    name: "costs are shown by day, model and node, with what is unknown, and budgets; and are voided",
    run: costs,
  },
  { name: "groups are found by name; one is followed, exported, retried and cancelled", run: groups },
  { name: "messages are sent, broadcast, shown by pages with their states, and redriven", run: messages },
  { name: "a file is uploaded, previewed, downloaded and deleted; a large one is not held", run: files },
  { name: "events come live, are filtered by kind, and can be held", run: events },
  { name: "many events cost a row each, and few drawings; the newest 200 are shown", run: manyEvents },
  {
    name: "what ends the event stream is shown, and it can be followed again; a hub that is back is asked again",
    run: faults,
  },
  { name: "a view that takes long to load says so", run: slow },
  { name: "keys are added, shown once and revoked; the ledger of a node is shown", run: keys },
  { name: "nothing is hidden or destroyed by mistake: all tasks, mistyped links, who failed", run: traps },
  { name: "keyboard: search, rows, pages, help; and the colours", run: keyboard },
  { name: "types are paused and limited, webhooks listed, results passed and rejected", run: control },
  { name: "a webhook is tested, resumed and deleted", run: webhooks },
  { name: "anything is found: by id, title, type, group, tag, node, file, page", run: find },
  { name: "an old task has its time line, and is found by its title", run: old },
];

/** Fills a hub so that every view has something to show, also what is long. Returns the views. */
export async function furnish(hub: TestHub): Promise<readonly string[]> {
  const long = "A-title-without-a-place-to-break-".repeat(6);
  await hub.addNode("busy", { max_tasks: 2, name: `A node ${long}`.slice(0, 200) });
  const held = await hub.addTask({ title: `Held ${long}`, task_type: "x".repeat(60) });
  await ok(hub.post("/task/claim", { task_id: held, node_id: "busy" }));
  await failed(hub, "Broken");
  for (const choices of [[], [long.slice(0, 200), "b"]]) {
    const question = `Which? ${long}`;
    await ok(hub.post("/task/ask", { task_id: held, node_id: "busy", question, choices }));
  }
  const spent = { seq: 1, model: long.slice(0, 128), input_tokens: 1_000_000_000, output_tokens: 1 };
  const usage = [spent, { ...spent, seq: 2, cost_usd: 9_999.999999 }];
  await ok(hub.post("/task/extend", { task_id: held, node_id: "busy", usage }));
  await ok(hub.admin("/budget/set", { scope: "node", value: "busy", per: "month", cost_usd: 1 }));
  await ok(hub.post("/signin", { node_id: "busy" }));
  await ok(hub.post("/note/put", { key: "busy-note", text: long, node_id: "busy" }));
  await ok(hub.post("/lease/acquire", { name: long.slice(0, 120), node_id: "busy" }));
  const group = long.slice(0, 120);
  await failed(hub, `Grouped ${long}`, { group, tags: [long.slice(0, 64), "eu"], lux_reward: 1 });
  const timing = { cron: "0 3 * * *", tz: "America/Argentina/ComodRivadavia" };
  await ok(
    hub.post("/schedule/put", {
      name: long.slice(0, 64),
      ...timing,
      task: { title: long, description: "d" },
    }),
  );
  await ok(hub.post("/message/send", { from_node: "op", to_node: "busy", content: long }));
  const form = new FormData();
  form.set("file", new File(["bytes"], `${long}.txt`));
  form.set("metadata", JSON.stringify({ task_id: held }));
  await ok(hub.post("/file/upload", form));
  const open = [
    "overview",
    "tasks",
    `tasks/${held}`,
    "new",
    "nodes",
    "nodes/busy",
    "groups",
    `groups/${group}`,
  ];
  return [
    ...open,
    "schedules",
    "inbox",
    "messages/busy",
    "notes",
    "notes/busy-note",
    "files",
    "lux",
    "lux?range=week",
    "cost",
    "cost?by=model",
    "events",
    "control",
    "keys",
    "none",
    "tasks/none",
    "nodes/none",
  ];
}

/**
 * In each view axe-core finds nothing, the page is not wider than the window, nothing is cut without a way to see it, and
 * nothing is refused or wrong. `isDark`: in the other colours than those of a new browser.
 */
export async function inspect(
  stage: Stage,
  views: readonly string[],
  sizes: readonly Size[],
  isDark: boolean,
): Promise<void> {
  const { variant } = stage;
  using page = await admin({ ...stage, size: sizes[0] ?? WIDE });
  await loadAxe(page);
  await page.watch();
  if (isDark) await page.press("theme");
  for (const size of sizes) {
    await page.resize(size);
    await page.until(`innerWidth === ${size.width}`);
    expect([size, await page.eval(MISSED_PAGES)]).toEqual([size, 0]);
    for (const view of views) {
      const where = [variant, view, size.width];
      await page.go(view);
      await page.until(`document.querySelector("main[data-view='${view.split("?")[0]}'] h1")`);
      await page.settled();
      await page.eval(`document.querySelectorAll("main details").forEach((more) => (more.open = true))`);
      await page.eval(`document.querySelectorAll("main [popover]").forEach((menu) => {
        menu.popover = "manual"; // one beside the other
        menu.showPopover();
      })`);
      await page.settled();
      expect([where, await page.eval(VIOLATIONS)]).toEqual([where, []]);
      expect([where, await page.eval(SPILLED)]).toEqual([where, []]);
      expect([where, await page.eval(WIDE_TABLES)]).toEqual([where, []]);
      const fault = await page.eval(`document.querySelector("p.fault[role=alert]")?.textContent ?? ""`);
      expect([where, fault !== ""]).toEqual([where, view.endsWith("none")]);
      // The first hand-outs of the hub are in its last minute, which has no neighbour: also such a value is drawn.
      if (view === "overview") expect(await page.eval(DRAWN_LENGTH)).toBeGreaterThan(0);
    }
  }
  expect(page.complaints).toEqual([]);
}

/** How many pages are neither in sight in the navigation nor in its menu. */
const MISSED_PAGES = `(() => {
  const room = document.querySelector(".bar nav").getBoundingClientRect();
  const links = [...document.querySelectorAll(".bar nav a")];
  const inSight = links.filter((link) => getComputedStyle(link).visibility === "visible" &&
    link.getBoundingClientRect().right <= room.right + 1 && link.getBoundingClientRect().bottom <= room.bottom + 1);
  return links.length - inSight.length - document.querySelectorAll('.bar .menu a[href^="#/"]').length;
})()`;

/** The tables that have to be scrolled sideways, with their width and that of their place. */
const WIDE_TABLES = `[...document.querySelectorAll(".table")]
  .filter((table) => table.scrollWidth > table.clientWidth + 1)
  .map((table) => [table.ariaLabel, table.scrollWidth, table.clientWidth])`;

/** How long the first line of the second chart is. */
const DRAWN_LENGTH = `[...document.querySelectorAll(".chart")[1].querySelectorAll("g:first-of-type path")]
  .reduce((sum, path) => sum + path.getTotalLength(), 0)`;

/** Loads axe-core into a page, for VIOLATIONS. */
export async function loadAxe(page: Page): Promise<void> {
  const axe = await Bun.file(join(PROJECT, "node_modules/axe-core/axe.min.js")).text();
  await page.eval(`(() => { ${axe} })()`);
}

/** What axe-core finds. */
export const VIOLATIONS = `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map((n) => n.html).slice(0, 3)]))`;

/**
 * What reaches beyond the window, outside of what scrolls by itself, and what is cut without a title that has all of
 * it.
 */
export const SPILLED = `[
  ...[...document.querySelectorAll("body, body *")].filter((element) => {
    const { right, left, width } = element.getBoundingClientRect();
    const isOut = width > 0 && (right > innerWidth + 1 || left < -1);
    const { overflowX } = getComputedStyle(element);
    const isCut = /hidden|clip/.test(overflowX) && element.scrollWidth > element.clientWidth + 1 && !element.title;
    return (isCut || isOut) && !element.matches(".skip, svg, input") && !element.parentElement?.closest(".table, nav, svg");
  }).map((element) => element.outerHTML.slice(0, 160)),
  ...(document.documentElement.scrollWidth > innerWidth ? ["the page"] : []),
].slice(0, 3)`;
