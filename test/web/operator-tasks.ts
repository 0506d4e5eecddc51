/**
 * What operators do most, in a real Chromium, with every click and key counted: a change that makes one of them longer
 * fails here. A select is two clicks (open it, choose), a text field one click and its letters; the sign-in is not counted.
 */
import { expect } from "bun:test";
import { addNode, addNodes, addTask, ok } from "../api/scene.ts";
import type { TestHub } from "../support/hub.ts";
import type { Page } from "./chromium.ts";

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

  press(action: string): Promise<void> {
    return this.click(`[data-do="${action}"]`);
  }

  async key(key: string): Promise<void> {
    await this.#page.key(key);
    this.effort.keys++;
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
}

/** "What for": what it must show or do at the end, and the most clicks and keys. */
type Job = {
  readonly name: string;
  readonly most: readonly [clicks: number, keys: number];
  readonly run: (hand: Hand, page: Page, hub: TestHub) => Promise<unknown>;
};

/** The ids that the jobs need. */
type Stock = { readonly stuck: string; readonly running: string; readonly blocked: string };

async function stock(hub: TestHub): Promise<Stock> {
  for (let i = 0; i < 60; i++) await addTask(hub, { title: `Cheap ${i}`, group: "cheap" });
  await addNodes(hub, ["worker-1", "worker-2", "breaker"]);
  await addNode(hub, "picky", { capabilities: ["paint"] });
  for (let i = 0; i < 12; i++) {
    const of = {
      task_id: await addTask(hub, { title: `Bill ${i}`, task_type: "billing" }),
      node_id: "breaker",
    };
    await ok(hub.post("/task/claim", of));
    await ok(hub.post("/task/fail", { ...of, error: `No ledger ${i}`, retry: false }));
  }
  const running = await addTask(hub, { title: "Runs for long" });
  const of = { task_id: running, node_id: "worker-1" };
  await ok(hub.post("/task/claim", of));
  await ok(hub.post("/task/extend", { ...of, note: "Page 7 of 9" }));
  await ok(hub.post("/task/output", { ...of, offset: 0, data: "fetching page 7\n" }));
  const stuck = await addTask(hub, { title: "Wants a gpu", requires: { capabilities: ["gpu"] } });
  const blocked = await addTask(hub, { title: "Comes after", depends_on: [running] });
  return { stuck, running, blocked };
}

function jobs({ stuck, running, blocked }: Stock): readonly Job[] {
  const countOf = async (hub: TestHub, query: string): Promise<unknown> =>
    (await ok(hub.get(`/task/count?${query}`)))["count"];
  return [
    {
      name: "why does this task not run?",
      most: [1, 1],
      run: async (hand, page) => {
        await hand.key("2");
        await hand.click(`a.row[href="#/tasks/${stuck}"]`);
        await page.shows(/No registered node [^]*gpu/);
      },
    },
    {
      name: "what a worker does now, and its log",
      most: [1, 1],
      run: async (hand, page) => {
        await hand.key("3");
        await page.shows("Page 7 of 9");
        await hand.click(`a[href="#/tasks/${running}"]`);
        await page.shows("fetching page 7");
      },
    },
    {
      name: "what blocks, and what waits for it",
      most: [1, 1],
      run: async (hand, page) => {
        await hand.key("2");
        await hand.click(`a.row[href="#/tasks/${blocked}"]`);
        await page.shows(/Runs for long\s+● assigned · worker-1\s+Comes after\s+● waiting/);
      },
    },
    {
      name: "which node fails most",
      most: [2, 1],
      run: async (hand, page) => {
        await hand.key("3");
        await hand.choose("order", "fails");
        await page.until(`document.querySelector("a.row")?.textContent === "breaker"`);
      },
    },
    {
      name: "retry what failed of one type in the last hour",
      most: [2, 1],
      run: async (hand, page, hub) => {
        await hand.key("1");
        await hand.press("retry-group");
        await hand.press("yes");
        await page.shows("12 retried. Done.");
        await page.press("close"); // looks at what was done
        expect(await countOf(hub, "task_type=billing&status=failed")).toBe(0);
      },
    },
    {
      name: "cancel many tasks",
      most: [4, 5],
      run: async (hand, page, hub) => {
        await hand.click(`nav a[href="#/groups"]`);
        await hand.click(`a.row[href="#/groups/cheap"]`);
        await hand.press("cancel");
        await hand.press("yes");
        await page.shows("60 of 60");
        expect(await countOf(hub, "group=cheap&status=failed")).toBe(60);
      },
    },
    {
      name: "drain two nodes before an update, and see when they may stop",
      most: [3, 1],
      run: async (hand, page) => {
        await hand.key("3");
        for (const name of ["worker-1", "worker-2"]) await hand.click(`[aria-label="Select ${name}"]`);
        await hand.press("drain-selected");
        await page.shows(/draining\s+worker-2[^]*nothing: safe to stop/);
      },
    },
    {
      name: "cancel some tasks, by keyboard alone",
      most: [0, 8],
      run: async (hand, page) => {
        await hand.key("2");
        await page.until(`document.querySelectorAll("a.row").length > 2`);
        for (const key of ["j", "x", "j", "x"]) await hand.key(key);
        await page.shows("2 selected:");
      },
    },
  ];
}

/** Does each job in turn, and returns what each took. */
export async function operatorTasks(page: Page, hub: TestHub): Promise<ReadonlyMap<string, Effort>> {
  const all = jobs(await stock(hub));
  const efforts = new Map<string, Effort>();
  for (const { name, most, run } of all) {
    await page.go("overview");
    await page.until(`document.querySelector("main[data-view=overview] h1")`);
    const hand = new Hand(page);
    await run(hand, page, hub);
    const { clicks, keys } = hand.effort;
    expect([name, clicks <= most[0], keys <= most[1]]).toEqual([name, true, true]);
    efforts.set(name, hand.effort);
  }
  return efforts;
}
