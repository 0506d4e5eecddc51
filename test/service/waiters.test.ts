/** Waiters: the races between wake, wait, leave, hang-up, deadline and drain. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { type Outcome, type Waiter, Waiters } from "../../src/service/waiters.ts";
import { costRatio, cpuOf } from "../support/cost.ts";

const KEY = "mailbox";
const WAIT_MS = 1_000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Lets every promise that can settle do so; no timer fires. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

type Actor = { waiter: Waiter; hangUp: AbortController; said: Outcome | "waits" };

/** Runs sentences such as "a joins", "wake one", "a: woken" one after the other. */
class Script {
  readonly waiters = new Waiters();
  readonly #actors = new Map<string, Actor>();

  async play(steps: readonly string[]): Promise<void> {
    for (const step of steps) {
      this.#step(step);
      await settle();
    }
  }

  #step(step: string): void {
    if (step === "wake one") this.waiters.wakeOne(KEY);
    else if (step === "wake all") this.waiters.wakeAll(KEY);
    else if (step === "drain") this.waiters.drain();
    else if (step === "time passes") jest.advanceTimersByTime(WAIT_MS);
    else if (step.includes(": ")) {
      const [name = "", said = ""] = step.split(": ");
      expect(`${step} = ${this.#actor(name).said}`).toBe(`${step} = ${said}`);
    } else this.#act(step);
  }

  #act(step: string): void {
    const [name = "", verb = ""] = step.split(/ (.*)/s);
    if (verb === "joins") {
      const waiter = this.waiters.join(KEY);
      this.#actors.set(name, { waiter, hangUp: new AbortController(), said: "waits" });
      return;
    }
    const actor = this.#actor(name);
    if (verb === "waits" || verb === "asks") this.#wait(actor, verb === "waits" ? WAIT_MS : 0);
    else if (verb === "took") actor.waiter.took();
    else if (verb === "leaves") actor.waiter.leave();
    else if (verb === "hangs up") actor.hangUp.abort();
    else throw new Error(`no such step: ${step}`);
  }

  #wait(actor: Actor, remainingMs: number): void {
    actor.said = "waits";
    void actor.waiter.wait(remainingMs, actor.hangUp.signal).then((outcome) => (actor.said = outcome));
  }

  #actor(name: string): Actor {
    const actor = this.#actors.get(name);
    if (!actor) throw new Error(`nobody called ${name}`);
    return actor;
  }
}

const BOTH_WAIT = ["a joins", "b joins", "a waits", "b waits"];

const RACES: readonly (readonly [name: string, steps: readonly string[]])[] = [
  ["a wait without a wake goes on", ["a joins", "a waits", "a: waits"]],
  ["a wake ends a wait", ["a joins", "a waits", "wake one", "a: woken"]],
  ["a wake between join and wait is kept", ["a joins", "wake one", "a waits", "a: woken"]],
  ["and is used up by that wait", ["a joins", "wake one", "a waits", "a waits", "a: waits"]],
  ["a wake between two waits is kept", ["a joins", "a waits", "wake one", "wake one", "a waits", "a: woken"]],
  ["a wake of all before the wait is kept", ["a joins", "wake all", "a waits", "a: woken"]],
  ["a wake with nobody in line is not kept", ["wake one", "wake all", "a joins", "a waits", "a: waits"]],
  ["a kept wake beats an empty deadline", ["a joins", "wake one", "a asks", "a: woken"]],
  ["an empty deadline does not wait", ["a joins", "a asks", "a: timeout"]],

  ["first come, first woken", [...BOTH_WAIT, "wake one", "a: woken", "b: waits", "wake one", "b: woken"]],
  [
    "order of joining, not of waiting",
    ["a joins", "b joins", "b waits", "a waits", "wake one", "a: woken", "b: waits"],
  ],
  [
    "the place is kept over several waits",
    [...BOTH_WAIT, "wake one", "a waits", "wake one", "a: woken", "b: waits"],
  ],
  [
    "the place is kept when others came back first",
    [...BOTH_WAIT, "wake one", "wake one", "b waits", "a waits", "wake one", "a: woken", "b: waits"],
  ],
  ["one wake each", [...BOTH_WAIT, "wake one", "wake one", "a: woken", "b: woken"]],
  ["a wake of all is for all", [...BOTH_WAIT, "wake all", "a: woken", "b: woken"]],

  ["who is woken and leaves passes the wake on", [...BOTH_WAIT, "wake one", "a leaves", "b: woken"]],
  ["but not what he took", [...BOTH_WAIT, "wake one", "a took", "a leaves", "b: waits"]],
  ["nor what he looked after in vain", [...BOTH_WAIT, "wake one", "a waits", "a leaves", "b: waits"]],
  [
    "a wake not told of is passed on",
    ["a joins", "b joins", "b waits", "wake one", "b: waits", "a leaves", "b: woken"],
  ],
  [
    "took() covers the wake told of, not one that came during the look",
    ["a joins", "a waits", "wake one", "wake one", "b joins", "b waits", "a took", "a leaves", "b: woken"],
  ],
  [
    "a wake of all is not passed on",
    ["a joins", "b joins", "wake all", "b waits", "b waits", "a leaves", "b: waits"],
  ],
  ["leaving twice passes on once", [...BOTH_WAIT, "wake one", "a leaves", "b waits", "a leaves", "b: waits"]],
  [
    "a wake passed on goes past carriers",
    [...BOTH_WAIT, "c joins", "c waits", "wake one", "wake one", "a leaves", "c: woken"],
  ],
  [
    "a wake for which all carry one already waits for the first who looked",
    [...BOTH_WAIT, "wake one", "wake one", "wake one", "b waits", "b: woken", "b waits", "b: waits"],
  ],

  [
    "one such wake for each in line",
    [
      ...BOTH_WAIT,
      "wake one",
      "wake one",
      "wake one",
      "wake one",
      "a waits",
      "b waits",
      "a: woken",
      "b: woken",
    ],
  ],
  [
    "and no more than that",
    ["a joins", "a waits", "wake one", "wake one", "wake one", "a waits", "a: woken", "a waits", "a: waits"],
  ],
  [
    "between the first, who came back, and the last, carriers are passed over",
    [
      ...BOTH_WAIT,
      "c joins",
      "c waits",
      "wake one",
      "wake one",
      "a waits",
      "wake one",
      "wake one",
      "a: woken",
      "c: woken",
    ],
  ],

  ["hanging up ends the wait", ["a joins", "a waits", "a hangs up", "a: aborted"]],
  ["hung up before the wait", ["a joins", "a hangs up", "a waits", "a: aborted"]],
  [
    "hung up with a wake kept: it is passed on",
    [
      "a joins",
      "wake one",
      "a hangs up",
      "a waits",
      "a: aborted",
      "b joins",
      "b waits",
      "a leaves",
      "b: woken",
    ],
  ],
  [
    "hung up after the wake: it is passed on",
    [...BOTH_WAIT, "wake one", "a hangs up", "a: woken", "a leaves", "b: woken"],
  ],
  [
    "a wake after hanging up goes to the first in line, and on",
    [...BOTH_WAIT, "a hangs up", "wake one", "a: aborted", "b: waits", "a leaves", "b: woken"],
  ],
  ["the deadline ends the wait", ["a joins", "a waits", "time passes", "a: timeout"]],
  [
    "a wake after the deadline is passed on",
    [...BOTH_WAIT, "time passes", "b waits", "wake one", "b: waits", "a leaves", "b: woken"],
  ],
  [
    "a deadline gone by does not end the next wait",
    ["a joins", "a waits", "wake one", "a waits", "time passes", "a: timeout"],
  ],
  ["leaving ends a running wait", ["a joins", "a waits", "a leaves", "a: aborted"]],
  ["a wait after leaving", ["a joins", "a leaves", "a waits", "a: aborted"]],

  ["a drain ends every wait", [...BOTH_WAIT, "drain", "a: drained", "b: drained"]],
  ["and those to come", ["a joins", "drain", "a waits", "a: drained", "b joins", "b waits", "b: drained"]],
  ["a drain comes before a wake kept", ["a joins", "wake one", "drain", "a waits", "a: drained"]],
];

describe("races", () => {
  test.each(RACES.map(([name, steps]) => ({ name, steps })))("$name", async ({ steps }) => {
    await new Script().play(steps);
  });

  test("keys do not wake each other", async () => {
    const waiters = new Waiters();
    const outcome = waiters.join("mine").wait(WAIT_MS);
    waiters.wakeOne("other");
    waiters.wakeAll("other");
    jest.advanceTimersByTime(WAIT_MS);
    expect(await outcome).toBe("timeout");
  });

  test("two waits at once are refused", async () => {
    const waiter = new Waiters().join(KEY);
    void waiter.wait(WAIT_MS);
    expect(waiter.wait(WAIT_MS)).rejects.toThrow("once at a time");
    await settle();
    waiter.leave();
  });
});

describe("nothing is left behind", () => {
  test.each(["wake", "hang-up", "deadline", "leave", "drain"])("after a %s", async (end) => {
    const waiters = new Waiters();
    const hangUp = new AbortController();
    let listeners = 0;
    const { signal } = hangUp;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args));
    const waiter = waiters.join(KEY);
    const outcome = waiter.wait(WAIT_MS, signal);
    expect({ listeners, timers: jest.getTimerCount(), size: waiters.size }).toEqual({
      listeners: 1,
      timers: 1,
      size: 1,
    });
    if (end === "wake") waiters.wakeOne(KEY);
    else if (end === "hang-up") hangUp.abort();
    else if (end === "deadline") jest.advanceTimersByTime(WAIT_MS);
    else if (end === "drain") waiters.drain();
    else waiter.leave();
    await outcome;
    waiter.leave();
    expect({ listeners, timers: jest.getTimerCount(), size: waiters.size, keys: waiters.keys }).toEqual({
      listeners: 0,
      timers: 0,
      size: 0,
      keys: 0,
    });
  });
});

/** A small generator with a seed, so that what fails can be run again (mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** A mailbox with receivers whose every look at the store begins and ends when the test says so. */
class Mailbox {
  readonly waiters = new Waiters();
  readonly gates: (() => void)[] = [];
  readonly hangUps = new Set<AbortController>();
  rows = 0;
  taken = 0;
  readonly #random: (below: number) => number;

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  produce(rows: number): void {
    this.rows += rows;
    for (let row = 0; row < rows; row++) this.waiters.wakeOne(KEY);
  }

  /** The loop of a receive, as services write it. */
  async receive(): Promise<void> {
    const hangUp = new AbortController();
    this.hangUps.add(hangUp);
    const waiter = this.waiters.join(KEY);
    const atMost = 1 + this.#random(2);
    try {
      for (;;) {
        const rows = await this.#look(atMost);
        if (rows > 0) {
          if (this.#random(2) === 0) waiter.took();
          return;
        }
        if ((await waiter.wait(WAIT_MS, hangUp.signal)) !== "woken") return;
        if (hangUp.signal.aborted) return;
      }
    } catch {
      return; // a look that failed: the wake must go on to the next
    } finally {
      waiter.leave();
      this.hangUps.delete(hangUp);
    }
  }

  async #look(atMost: number): Promise<number> {
    await new Promise<void>((open) => this.gates.push(open));
    if (this.#random(8) === 0) throw new Error("the store is away");
    const rows = Math.min(this.rows, atMost);
    this.rows -= rows;
    this.taken += rows;
    await new Promise<void>((open) => this.gates.push(open));
    return rows;
  }

  openOne(): void {
    const at = this.#random(this.gates.length || 1);
    this.gates.splice(at, 1)[0]?.();
  }

  hangUpOne(): void {
    [...this.hangUps][this.#random(this.hangUps.size || 1)]?.abort();
  }
}

async function step(mailbox: Mailbox, random: (below: number) => number): Promise<void> {
  const dice = random(20);
  if (dice < 4) mailbox.produce(1 + random(3));
  else if (dice < 7) void mailbox.receive();
  else if (dice < 15) mailbox.openOne();
  else if (dice < 16) mailbox.hangUpOne();
  else if (dice < 17) mailbox.waiters.wakeAll(KEY);
  else if (dice < 18) jest.advanceTimersByTime(WAIT_MS / 2);
  else await settle();
}

/** Lets every look come to its end, until all receivers have left or wait. */
async function quiesce(mailbox: Mailbox): Promise<void> {
  await settle();
  while (mailbox.gates.length > 0) {
    mailbox.openOne();
    await settle();
  }
}

test("4,000 random interleavings: nobody waits beside a row, and all is gone in the end", async () => {
  let waited = 0;
  for (let seed = 1; seed <= 4_000; seed++) {
    const random = seeded(seed);
    const mailbox = new Mailbox(random);
    for (let steps = 10 + random(30); steps > 0; steps--) await step(mailbox, random);
    await quiesce(mailbox);
    if (mailbox.rows > 0 && mailbox.waiters.size > 0)
      throw new Error(`seed ${seed}: ${mailbox.waiters.size} wait beside ${mailbox.rows} rows`);
    waited += mailbox.waiters.size;
    for (const hangUp of mailbox.hangUps) hangUp.abort();
    await quiesce(mailbox);
    const left = { size: mailbox.waiters.size, keys: mailbox.waiters.keys, timers: jest.getTimerCount() };
    if (left.size + left.keys + left.timers > 0)
      throw new Error(`seed ${seed}: left behind ${JSON.stringify(left)}`);
  }
  expect(waited).toBeGreaterThan(400); // else the first check would have had nothing to see
});

test("a wake-up among 20,000 waiters costs about what one among 1,000 does", async () => {
  const costPerWake = async (count: number): Promise<number> => {
    const waiters = new Waiters();
    for (let i = 0; i < count; i++) waiters.join(KEY);
    const cost = await cpuOf(async () => {
      for (let i = 0; i < count; i++) waiters.wakeOne(KEY);
    });
    return cost / count;
  };
  await costPerWake(20_000); // compile
  const ratio = await costRatio(
    () => costPerWake(1_000),
    () => costPerWake(20_000),
    7,
  );
  expect(ratio).toBeLessThan(8); // a walk along the queue would make it 20
});
