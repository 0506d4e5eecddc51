/**
 * What operators do most, in a real Chromium, with every click and key counted, as the table of docs/dashboard.md says: a
 * change that makes one of them longer fails here. A select is two clicks (open it, choose), a text field one click and its
 * letters; the sign-in is not counted.
 */
import { expect } from "bun:test";
import { join } from "node:path";
import { ok, until } from "../api/scene.ts";
import { PROJECT } from "../support/executable.ts";
import type { TestHub } from "../support/hub.ts";
import { Page, WIDE } from "./chromium.ts";

type Effort = { clicks: number; keys: number };

/** Counts what the user of a page does. */
class Hand {
  readonly #page: Page;
  effort: Effort = { clicks: 0, keys: 0 };

  constructor(page: Page) {
    this.#page = page;
  }

  async click(selector: string): Promise<void> {
    await this.#page.until(`document.querySelector(${JSON.stringify(selector)})`);
    await this.#page.click(selector);
    this.effort.clicks++;
  }

  async press(action: string): Promise<void> {
    this.effort.clicks += await this.#page.press(action);
  }

  /** Types keys where the focus is. */
  async key(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.#page.key(key);
    this.effort.keys += keys.length;
  }

  async choose(name: string, value: string): Promise<void> {
    await this.#page.fill(name, value);
    this.effort.clicks += 2;
  }

  async type(name: string, text: string): Promise<void> {
    await this.#page.fill(name, text);
    this.effort.clicks++;
    this.effort.keys += text.length;
  }

  /** Types into the field of Find, which has the focus when it opens. */
  async find(text: string): Promise<void> {
    await this.key("/");
    await this.#page.fill("text", text, "dialog");
    this.effort.keys += text.length;
  }
}

/** `name` is that of its row in docs/dashboard.md. */
type Job = {
  readonly name: string;
  readonly run: (hand: Hand, page: Page, hub: TestHub) => Promise<unknown>;
};

/** The clicks and keys by the table of docs/dashboard.md. */
async function documented(): Promise<ReadonlyMap<string, Effort>> {
  const text = await Bun.file(join(PROJECT, "docs/dashboard.md")).text();
  const rows = text.matchAll(/^\| (.+?) +\| (\d+) \+ (\d+) +\|$/gm);
  return new Map(
    [...rows].map(([, name = "", clicks, keys]) => [name, { clicks: Number(clicks), keys: Number(keys) }]),
  );
}

/** The ids that the jobs need. */
type Stock = Readonly<Record<"stuck" | "running" | "blocked" | "twice", string>>;

async function stock(hub: TestHub): Promise<Stock> {
  await park(hub); // first: the time that passes would take the other nodes offline
  const cheap = Array.from({ length: 60 }, (_, i) => ({
    title: `Cheap ${i}`,
    description: "d",
    group: "cheap",
  }));
  await hub.inBatches("task/create", cheap);
  await hub.addNodes(["worker-1", "worker-2", "breaker"]);
  await hub.addNode("picky", { capabilities: ["paint"] });
  // A node whose work others do: its tasks do not fail.
  await hub.addNode("flaky", { host: "box-7" });
  const twice = await hub.addTask({ title: "Tried twice", task_type: "billing", backoff_s: 0 });
  for (let i = 0; i < 13; i++) {
    const task_id = i === 0 ? twice : await hub.addTask({ task_type: "billing", backoff_s: 0 });
    await ok(hub.post("/task/claim", { task_id, node_id: "flaky" }));
    await ok(hub.post("/task/output", { task_id, node_id: "flaky", offset: 0, data: "the disk is full\n" }));
    await ok(hub.post("/task/fail", { task_id, node_id: "flaky", error: "The disk is full" }));
    await ok(hub.post("/task/claim", { task_id, node_id: "breaker" }));
    await ok(hub.post("/task/output", { task_id, node_id: "breaker", offset: 0, data: "it fits\n" }));
    const usage = [{ seq: 1, model: "m", input_tokens: 9, output_tokens: 9, cost_usd: 0.25 }];
    const done = { task_id, node_id: "breaker", result: RESULT, ...(i === 0 && { usage }) };
    await ok(hub.post("/task/complete", done));
  }
  const bills = (await hub.addTasks(12, { task_type: "billing", group: "bills" })).map((task_id, i) => ({
    ...{ task_id, node_id: "breaker", error: `No ledger ${i}`, retry: false },
  }));
  await hub.inBatches("task/claim", bills);
  await hub.inBatches("task/fail", bills);
  const running = await hub.addTask({ title: "Runs for long" });
  const of = { task_id: running, node_id: "worker-1" };
  await ok(hub.post("/task/claim", of));
  await ok(hub.post("/task/extend", { ...of, note: "Page 7 of 9" }));
  await ok(hub.post("/task/output", { ...of, offset: 0, data: "fetching page 7\n" }));
  const paid = { task_id: await hub.addTask({ title: "Paid", lux_reward: 30 }), node_id: "worker-2" };
  await ok(hub.post("/task/claim", paid));
  await ok(hub.post("/task/complete", { ...paid, result: RESULT }));
  await addFiles(hub, 6);
  const stuck = await hub.addTask({ title: "Wants a gpu", requires: { capabilities: ["gpu"] } });
  const blocked = await hub.addTask({ title: "Comes after", depends_on: [running] });
  await ok(hub.post("/lease/acquire", { name: "src/api/**", node_id: "worker-1", ttl_s: 3_600 }));
  return { stuck, running, blocked, twice };
}

/** Sends messages that nobody confirms, until they are dead letters. */
async function park(hub: TestHub): Promise<void> {
  await hub.addNode("deaf");
  const message = { from_node: "op", to_node: "deaf", content: "Never read", require_ack: true };
  for (let i = 0; i < 3; i++) await ok(hub.post("/message/send", message));
  await until("parked", async () => {
    await hub.post("/message/receive", { node_id: "deaf", count: 10 });
    hub.clock.pass(31_000);
    await hub.sweep();
    return (await ok(hub.get("/message/parked?node_id=deaf")))["total"] === 3;
  });
}

async function addFiles(hub: TestHub, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const form = new FormData();
    form.set("metadata", "{}");
    form.set("file", new File([`{"page":${i}}`], `page-${i}.json`, { type: "application/json" }));
    await ok(hub.post("/file/upload", form));
  }
}

const RESULT = { problem: "p", improvement: "i", lesson: "l" };

function jobs({ stuck, running, blocked, twice }: Stock): readonly Job[] {
  const countOf = async (hub: TestHub, query: string): Promise<unknown> =>
    (await ok(hub.get(`/task/count?${query}`)))["count"];
  return [
    {
      name: "Why does nothing run?",
      run: async (_, page) => {
        await page.shows(/1\s+no node takes them.*\s.*lacks: the word gpu/);
      },
    },
    {
      name: "Why does this task not run?",
      run: async (hand, page) => {
        await hand.key("2");
        await hand.click(`a.row[href="#/tasks/${stuck}"]`);
        await page.shows(/No registered node [^]*gpu/);
      },
    },
    {
      name: "What a worker does now, and its log",
      run: async (hand, page) => {
        await hand.key("3");
        await page.shows("Page 7 of 9");
        await hand.click(`a[href="#/tasks/${running}"]`);
        await page.shows("fetching page 7");
      },
    },
    {
      name: "What blocks a task, and what waits for it",
      run: async (hand, page) => {
        await hand.key("2");
        await hand.click(`a.row[href="#/tasks/${blocked}"]`);
        await page.shows(/Runs for long\s+● assigned · worker-1\s+Comes after\s+● waiting/);
      },
    },
    {
      name: "Which node fails most?",
      run: async (hand, page) => {
        await hand.key("3");
        await hand.click('th a[href="#/nodes?order=fails"]');
        await page.until(`document.querySelector("a.row")?.textContent === "flaky"`);
      },
    },
    {
      name: "Compare two attempts",
      run: async (hand, page) => {
        await hand.find("Tried");
        await page.until(`document.querySelector("#found a")?.innerText.includes("Tried twice")`);
        await hand.key("Enter");
        await hand.press("beside-0");
        await page.until(
          `[...document.querySelectorAll("pre.output")].map((out) => out.innerText).join() === "it fits\\n,the disk is full\\n"`,
        );
        expect(await page.eval("location.hash")).toBe(`#/tasks/${twice}`);
      },
    },
    {
      name: "What failed on a day at a node with a message",
      run: async (hand, page) => {
        await hand.key("2");
        await hand.press("more-filters");
        await hand.type("failed_by", "breaker");
        await hand.type("failure", "ledger 7");
        await hand.type("since", "2020-01-01T00:00");
        await hand.type("until", "2099-01-01T00:00");
        await page.until(`document.querySelectorAll("a.row").length === 1`);
        await page.shows("No ledger 7");
      },
    },
    {
      name: "Retry what failed of one type in the last hour",
      run: async (hand, page, hub) => {
        await hand.press("retry-group");
        await hand.press("yes");
        await page.shows("12 retried. Done.");
        await page.press("close"); // looks at what was done
        expect(await countOf(hub, "task_type=billing&status=failed")).toBe(0);
      },
    },
    {
      name: "Cancel 60 tasks of a group, and undo it",
      run: async (hand, page, hub) => {
        await hand.key("5");
        await hand.click(`a.row[href="#/groups/cheap"]`);
        await hand.press("cancel");
        await hand.press("yes");
        await page.shows("60 of 60");
        expect(await countOf(hub, "group=cheap&status=cancelled")).toBe(60);
        await hand.press("undo");
        await page.shows("60 open again. Done.");
        await page.press("close");
        expect(await countOf(hub, "group=cheap&status=open")).toBe(60);
      },
    },
    {
      name: "Drain two nodes, and see when they may stop",
      run: async (hand, page) => {
        await hand.key("3");
        for (const name of ["worker-1", "worker-2"]) await hand.click(`[aria-label="Select ${name}"]`);
        await hand.press("drain-selected");
        await page.shows(/draining\s+worker-2[^]*nothing: safe to stop/);
      },
    },
    {
      name: "Is it safe to restart this machine?",
      run: async (hand, page) => {
        await hand.key("3");
        await hand.type("q", "box-7");
        await page.until(`document.querySelectorAll("a.row").length === 1`);
        await hand.press("select-page");
        await hand.press("drain-selected");
        await page.shows(/draining\s+flaky[^]*nothing: safe to stop/);
      },
    },
    {
      name: "Who has the lease on a path?",
      run: async (hand, page) => {
        await hand.click('nav a[href="#/notes"]');
        await page.shows(/src\/api\/\*\*\s+worker-1/);
      },
    },
    {
      name: "What cost most this week, by type",
      run: async (hand, page) => {
        await hand.click('nav a[href="#/cost"]');
        await hand.choose("by", "type");
        await hand.choose("days", "7");
        await page.shows(/billing\s+0\.25 USD/);
      },
    },
    {
      name: "What has happened in the last hour?",
      run: async (hand, page) => {
        await hand.click('nav a[href="#/events"]');
        await hand.choose("last", "3600");
        await page.shows(/task\.created/);
      },
    },
    {
      name: "A key that only reads, and its address, to hand over",
      run: async (hand, page) => {
        await hand.click('nav a[href="#/keys"]');
        await hand.press("open-key");
        await hand.type("name", "board");
        await hand.choose("role", "viewer");
        await hand.press("add");
        await page.shows("The secret of board (viewer)");
        await page.eval(
          `void (window.copied = [], navigator.clipboard.writeText = async (text) => copied.push(text))`,
        );
        for (const label of ["Copy", "Copy the address"]) {
          await page.eval(
            `[...document.querySelectorAll("dialog button")].find(({ innerText }) => innerText === "${label}").click()`,
          );
          hand.effort.clicks++;
        }
        await page.until("copied.length === 2");
        await page.click("dialog form button");
      },
    },
    {
      name: "Select two rows by keyboard",
      run: async (hand, page) => {
        await hand.key("2");
        await page.until(`document.querySelectorAll("a.row").length > 2`);
        for (const key of ["j", "x", "j", "x"]) await hand.key(key);
        await page.shows("2 selected");
      },
    },
    {
      name: "Throughput of the last 24 hours, and of one moment of it",
      run: async (hand, page) => {
        await hand.click('.ranges a[href="#/overview?range=day"]');
        await page.shows("Tasks in 10 minutes, the last 24 hours");
        await hand.click(".plot");
        await hand.key("End");
        await page.shows(/:\d\d.* created \d+ · completed \d+ · failed \d+/);
      },
    },
    {
      name: "Queue depth and waiting time by type",
      run: async (_, page) => {
        await page.shows(/Wait p50 · p95[^]*billing\s+\d+/);
      },
    },
    {
      name: "Find the dead letters, and redrive all",
      run: async (hand, page, hub) => {
        await hand.key("7");
        await page.shows(/3 dead letters, the oldest first\.[^]*deaf 3/);
        await hand.press("redrive-all");
        await hand.press("yes");
        await page.shows("3 redriven. Done.");
        await page.press("close");
        expect((await ok(hub.get("/message/parked?node_id=deaf")))["total"]).toBe(0);
      },
    },
    {
      name: "Who earned most this week?",
      run: async (hand, page, hub) => {
        await hand.key("9");
        await hand.click('a[href="#/lux?range=week"]');
        await page.shows(/1\s+worker-2\s+30/);
        await ok(hub.post("/signin", { node_id: "worker-1" }));
        await page.shows(/2\s+worker-1\s+10/);
      },
    },
    {
      name: "A key for a new node, copied to hand over",
      run: async (hand, page) => {
        await hand.click('nav a[href="#/keys"]');
        await hand.press("open-invite");
        await hand.type("node_id", "worker-9");
        await hand.press("invite");
        await page.until(`document.querySelector("dialog svg.qr")`);
        await page.eval(`void (navigator.clipboard.writeText = async (text) => void (window.copied = text))`);
        await hand.press("copy");
        await page.until(`/^luxhub join .*#join\\./.test(window.copied)`);
        await page.click("dialog form button");
      },
    },
    {
      name: "Find a file by its name, and look into it",
      run: async (hand, page) => {
        await hand.find("page-3.");
        await page.until(`document.querySelector("#found a")?.innerText.includes("page-3.json")`);
        await hand.key("Enter");
        await page.until(`document.querySelectorAll('[data-do="preview"]').length === 1`);
        await hand.press("preview");
        await page.shows(/"page": 3/);
        await page.click("dialog form button");
      },
    },
    {
      name: "Follow a task to its end, with its output",
      run: async (hand, page, hub) => {
        const of = { task_id: running, node_id: "worker-1" };
        await hand.key("2");
        await hand.click(`a.row[href="#/tasks/${running}"]`);
        await page.shows("fetching page 7");
        const [before, after] = ["fetching page 7\n", "fetching page 8\n"];
        await ok(hub.post("/task/output", { ...of, offset: before.length, data: after }));
        await page.shows("fetching page 8");
        await ok(hub.post("/task/complete", { ...of, result: { ...RESULT, improvement: "Read all nine" } }));
        await page.shows(/completed\s+Runs for long[^]*Read all nine[^]*fetching page 8/);
      },
    },
    {
      name: "The oldest of very many tasks",
      run: async (hand, page) => {
        await hand.key("2");
        await hand.press("more-filters");
        await hand.type("until", "2020-01-01T00:00");
        await page.shows("No task matches.");
      },
    },
    {
      name: "Share a filtered view",
      run: async (_, page) => {
        await page.go("tasks?status=open&type=billing");
        await page.shows(/Tasks\s+\d+/);
        using other = new Page(WIDE);
        await other.open(String(await page.eval("location.href")));
        await other.until(`location.hash === "#/tasks?status=open&type=billing"`);
        await other.until(`document.querySelector('[name="type"]')?.value === "billing"`); // without a sign-in
      },
    },
    {
      name: "Print a result",
      run: async (_, page) => {
        await page.go(`tasks/${running}`);
        await page.shows("Read all nine");
        const shown = (selector: string): Promise<unknown> =>
          page.eval(`getComputedStyle(document.querySelector("${selector}")).display !== "none"`);
        await page.protocol("Emulation.setEmulatedMedia", { media: "print" });
        expect([await shown("header.bar"), await shown(".buttons"), await shown(".text")]).toEqual([
          false,
          false,
          true,
        ]);
        expect(await page.eval(`getComputedStyle(document.querySelector(".text")).maxHeight`)).toBe("none");
        await page.protocol("Emulation.setEmulatedMedia", { media: "" });
      },
    },
  ];
}

/** Does each job in turn: each takes what the documentation says. */
export async function operatorTasks(page: Page, hub: TestHub): Promise<void> {
  const efforts = new Map<string, Effort>();
  for (const { name, run } of jobs(await stock(hub))) {
    await page.go("overview");
    await page.until(`document.querySelector("main[data-view=overview] h1")`);
    const hand = new Hand(page);
    await run(hand, page, hub);
    efforts.set(name, hand.effort);
  }
  expect(Object.fromEntries(efforts)).toEqual(Object.fromEntries(await documented()));
}
