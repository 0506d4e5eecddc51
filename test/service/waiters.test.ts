/** Waiters: the races between wake-up, wait, leave, hang-up, deadline and drain. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { WAKE_UPS_TOGETHER } from "../../src/domain/limits.ts";
import { type Outcome, type Waiter, Waiters } from "../../src/service/waiters.ts";
import { costRatio, cpuOf } from "../support/cost.ts";
import { dice } from "../support/dice.ts";
import { brokenDuring } from "../support/invariants.ts";

const KEY = "mailbox";
const WAIT_MS = 1_000;
const ONE_WAIT = "a waiter waits once at a time";
const ONLY_AWAKE = "a waiter enters queues only while it is awake";

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
  readonly queue = new Waiters();
  readonly #actors = new Map<string, Actor>();

  async play(steps: readonly string[]): Promise<void> {
    for (const step of steps) {
      this.#step(step);
      await settle();
    }
  }

  #step(step: string): void {
    if (step === "wake one") this.queue.wakeOne({ key: KEY });
    else if (step === "wake all") this.queue.wakeAll(KEY);
    else if (step === "drain") this.queue.drain();
    else if (step === "time passes") jest.advanceTimersByTime(WAIT_MS);
    else if (step.includes(": ")) {
      const [name = "", said = ""] = step.split(": ");
      expect(`${step} = ${this.#actor(name).said}`).toBe(`${step} = ${said}`);
    } else this.#act(step);
  }

  #act(step: string): void {
    const [name = "", verb = ""] = step.split(/ (.*)/s);
    if (verb === "joins") {
      const waiter = this.queue.join(KEY);
      this.#actors.set(name, { waiter, hangUp: new AbortController(), said: "waits" });
      return;
    }
    const actor = this.#actor(name);
    if (verb === "waits" || verb === "asks") this.#wait(actor, verb === "waits" ? WAIT_MS : 0);
    else if (verb === "is served") actor.waiter.markServed(KEY);
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
  ["a wait without a wake-up goes on", ["a joins", "a waits", "a: waits"]],
  ["a wake-up ends a wait", ["a joins", "a waits", "wake one", "a: woken"]],
  ["a wake-up between join and wait is not lost", ["a joins", "wake one", "a waits", "a: woken"]],
  ["and ends one wait only", ["a joins", "wake one", "a waits", "a waits", "a: waits"]],
  [
    "a wake-up between two waits is not lost",
    ["a joins", "a waits", "wake one", "wake one", "a waits", "a: woken"],
  ],
  [
    "however many there were, it reads once",
    ["a joins", "wake one", "wake one", "a waits", "a waits", "a: waits"],
  ],
  ["a wake-up of all before the wait is not lost", ["a joins", "wake all", "a waits", "a: woken"]],
  ["a wake-up is not kept for who joins later", ["wake one", "wake all", "a joins", "a waits", "a: waits"]],
  ["a wake-up comes before an empty deadline", ["a joins", "wake one", "a asks", "a: woken"]],
  ["an empty deadline does not wait", ["a joins", "a asks", "a: timeout"]],

  ["first come, first woken", [...BOTH_WAIT, "wake one", "a: woken", "b: waits", "wake one", "b: woken"]],
  [
    "in the order of joining, not of falling asleep",
    ["a joins", "b joins", "b waits", "a waits", "wake one", "a: woken", "b: waits"],
  ],
  [
    "the place is kept over several waits",
    [...BOTH_WAIT, "wake one", "a waits", "wake one", "a: woken", "b: waits"],
  ],
  [
    "the place is kept when others fell asleep again first",
    [...BOTH_WAIT, "wake one", "wake one", "b waits", "a waits", "wake one", "a: woken", "b: waits"],
  ],
  [
    "who is awake is passed over",
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
  ["one wake-up wakes one", [...BOTH_WAIT, "wake one", "wake one", "a: woken", "b: woken"]],
  [
    "also when others are awake",
    ["a joins", "b joins", "b waits", "wake one", "b: woken", "a waits", "a: waits"],
  ],
  [
    "with all awake, all read again",
    [...BOTH_WAIT, "wake one", "wake one", "wake one", "b waits", "a waits", "b: woken", "a: woken"],
  ],
  ["a wake-up of all is for all", [...BOTH_WAIT, "wake all", "a: woken", "b: woken"]],
  ["and each reads once", [...BOTH_WAIT, "wake all", "a waits", "b waits", "a: waits", "b: waits"]],

  ["who is woken and leaves passes the wake-up on", [...BOTH_WAIT, "wake one", "a leaves", "b: woken"]],
  ["but not once it is served", [...BOTH_WAIT, "wake one", "a is served", "a leaves", "b: waits"]],
  ["nor after it read in vain", [...BOTH_WAIT, "wake one", "a waits", "a leaves", "b: waits"]],
  [
    "it goes to the next who sleeps",
    [...BOTH_WAIT, "c joins", "c waits", "wake one", "wake one", "a leaves", "c: woken"],
  ],
  [
    "or, if nobody does, all read again",
    [...BOTH_WAIT, "wake one", "wake one", "a leaves", "b waits", "b: woken", "b waits", "b: waits"],
  ],
  [
    "a wake-up of all is not passed on",
    ["a joins", "b joins", "a waits", "wake all", "b waits", "b waits", "a leaves", "b: waits"],
  ],
  ["leaving twice passes on once", [...BOTH_WAIT, "wake one", "a leaves", "b waits", "a leaves", "b: waits"]],

  ["hanging up ends the wait", ["a joins", "a waits", "a hangs up", "a: aborted"]],
  ["hung up before the wait", ["a joins", "a hangs up", "a waits", "a: aborted"]],
  [
    "hung up after the wake-up: it is passed on",
    [...BOTH_WAIT, "wake one", "a hangs up", "a: woken", "a waits", "a: aborted", "a leaves", "b: woken"],
  ],
  ["who hung up is passed over", [...BOTH_WAIT, "a hangs up", "wake one", "a: aborted", "b: woken"]],
  ["the deadline ends the wait", ["a joins", "a waits", "time passes", "a: timeout"]],
  [
    "who is past its deadline is passed over",
    [...BOTH_WAIT, "time passes", "b waits", "wake one", "b: woken"],
  ],
  [
    "the deadline of one wait does not end the next",
    ["a joins", "a waits", "wake one", "a waits", "time passes", "a: timeout"],
  ],
  ["leaving ends a running wait", ["a joins", "a waits", "a leaves", "a: aborted"]],
  ["a wait after leaving", ["a joins", "a leaves", "a waits", "a: aborted"]],
  [
    "a sleeper in the middle, the first and the last may leave",
    [
      ...BOTH_WAIT,
      "c joins",
      "c waits",
      "b leaves",
      "wake one",
      "a: woken",
      "a is served",
      "a leaves",
      "wake one",
      "c: woken",
    ],
  ],
  [
    "the only sleeper, last in the queue, leaves: who joins after it is woken",
    ["a joins", "b joins", "b waits", "b leaves", "c joins", "c waits", "wake one", "c: woken"],
  ],

  ["a drain ends every wait", [...BOTH_WAIT, "drain", "a: drained", "b: drained"]],
  ["and those to come", ["a joins", "drain", "a waits", "a: drained", "b joins", "b waits", "b: drained"]],
  ["a drain comes before a wake-up", ["a joins", "wake one", "drain", "a waits", "a: drained"]],
];

describe("races", () => {
  test.each(RACES.map(([name, steps]) => ({ name, steps })))("$name", async ({ steps }) => {
    await new Script().play(steps);
  });

  test("keys do not wake each other", async () => {
    const queue = new Waiters();
    const outcome = queue.join("mine").wait(WAIT_MS);
    queue.wakeOne({ key: "other" });
    queue.wakeAll("other");
    jest.advanceTimersByTime(WAIT_MS);
    expect(await outcome).toBe("timeout");
  });

  test("who sleeps or has left enters no queue", async () => {
    const broken = await brokenDuring(() => {
      for (const isGone of [false, true]) {
        const waiter = new Waiters().join(KEY);
        if (isGone) waiter.leave();
        else void waiter.wait(WAIT_MS);
        expect(() => waiter.standIn([KEY])).toThrow(ONLY_AWAKE);
        waiter.leave();
      }
    });
    expect(broken).toEqual([ONLY_AWAKE, ONLY_AWAKE]);
  });

  test("two waits at once are refused", async () => {
    const waiter = new Waiters().join(KEY);
    void waiter.wait(WAIT_MS);
    const broken = await brokenDuring(async () => {
      await expect(waiter.wait(WAIT_MS)).rejects.toThrow(ONE_WAIT);
    });
    expect(broken).toEqual([ONE_WAIT]);
    waiter.leave();
  });
});

describe("the third queue of an announcement", () => {
  const FREED = { key: "key", elseKeys: ["open"] } as const;

  /** A waiter that sleeps, and how its sleep has ended. */
  function asleep(queue: Waiters, key: string): { readonly waiter: Waiter; readonly outcomes: Outcome[] } {
    const waiter = queue.join(key);
    const outcomes: Outcome[] = [];
    void waiter.wait(WAIT_MS).then((outcome) => outcomes.push(outcome));
    return { waiter, outcomes };
  }

  test("gets what the one who was woken in the first queue has not used", async () => {
    const queue = new Waiters();
    const [first, other] = [asleep(queue, "key"), asleep(queue, "open")];
    queue.wakeOne(FREED);
    await settle();
    expect([first.outcomes, other.outcomes]).toEqual([["woken"], []]);
    first.waiter.leave();
    await settle();
    expect(other.outcomes).toEqual(["woken"]);
    other.waiter.leave();
  });

  test("passes nothing on when the one who was woken there has taken such a row", async () => {
    const queue = new Waiters();
    const [first, second] = [asleep(queue, "open"), asleep(queue, "open")];
    queue.wakeOne(FREED);
    first.waiter.markServed("key");
    first.waiter.leave();
    await settle();
    expect([first.outcomes, second.outcomes]).toEqual([["woken"], []]);
    second.waiter.leave();
  });
});

test("whoever is woken by wakeAll and by wakeOneOfEach shares the slices: so many in each tick, then all", async () => {
  jest.useRealTimers();
  const queue = new Waiters();
  let woken = 0;
  const sleep = async (key: string): Promise<void> => {
    const waiter = queue.join(key);
    if ((await waiter.wait(60_000)) === "woken") woken++;
    waiter.markServed(key);
    waiter.leave();
  };
  const sleepers = [
    ...Array.from({ length: WAKE_UPS_TOGETHER + 50 }, () => sleep("polls")),
    ...Array.from({ length: WAKE_UPS_TOGETHER + 50 }, (_, i) => sleep(`mailbox ${i}`)),
  ];
  queue.wakeAll("polls");
  queue.wakeOneOfEach();
  await settle();
  expect(woken).toBe(WAKE_UPS_TOGETHER);
  await Promise.all(sleepers);
  expect(woken).toBe(sleepers.length);
  expect(queue.size).toBe(0);
});

describe("nothing is left behind", () => {
  test.each(["wake", "hang-up", "deadline", "leave", "drain"])("after a %s", async (end) => {
    const queue = new Waiters();
    const hangUp = new AbortController();
    let listeners = 0;
    const { signal } = hangUp;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args));
    const waiter = queue.join(KEY);
    const outcome = waiter.wait(WAIT_MS, signal);
    expect({ listeners, timers: jest.getTimerCount(), size: queue.size }).toEqual({
      listeners: 1,
      timers: 1,
      size: 1,
    });
    if (end === "wake") queue.wakeOne({ key: KEY });
    else if (end === "hang-up") hangUp.abort();
    else if (end === "deadline") jest.advanceTimersByTime(WAIT_MS);
    else if (end === "drain") queue.drain();
    else waiter.leave();
    await outcome;
    waiter.leave();
    expect({ listeners, timers: jest.getTimerCount(), size: queue.size, keys: queue.keys }).toEqual({
      listeners: 0,
      timers: 0,
      size: 0,
      keys: 0,
    });
  });
});

/** A mailbox with receivers whose every read of the store begins and ends when the test says so. */
class Mailbox {
  readonly queue = new Waiters();
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
    for (let row = 0; row < rows; row++) this.queue.wakeOne({ key: KEY });
  }

  /** The loop of a receive, as services write it. */
  async receive(): Promise<void> {
    const hangUp = new AbortController();
    this.hangUps.add(hangUp);
    const waiter = this.queue.join(KEY);
    const atMost = 1 + this.#random(2);
    try {
      for (;;) {
        const rows = await this.#read(atMost);
        if (rows > 0) {
          if (this.#random(2) === 0) waiter.markServed(KEY);
          return;
        }
        if ((await waiter.wait(WAIT_MS, hangUp.signal)) !== "woken") return;
        if (hangUp.signal.aborted) return;
      }
    } catch {
      return; // a read that failed: the wake-up must go on to the next
    } finally {
      waiter.leave();
      this.hangUps.delete(hangUp);
    }
  }

  async #read(atMost: number): Promise<number> {
    await new Promise<void>((open) => this.gates.push(open));
    if (this.#random(8) === 0) throw new Error("the store is unavailable");
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
  else if (dice < 17) mailbox.queue.wakeAll(KEY);
  else if (dice < 18) jest.advanceTimersByTime(WAIT_MS / 2);
  else await settle();
}

/** Lets every read end, until all receivers have left or sleep. */
async function quiesce(mailbox: Mailbox): Promise<void> {
  await settle();
  while (mailbox.gates.length > 0) {
    mailbox.openOne();
    await settle();
  }
}

test("1,500 random interleavings: no waiter sleeps while there is a row for it, and nothing is left at the end", async () => {
  let waited = 0;
  for (let seed = 1; seed <= 1_500; seed++) {
    const random = dice(seed);
    const mailbox = new Mailbox(random);
    for (let steps = 10 + random(30); steps > 0; steps--) await step(mailbox, random);
    await quiesce(mailbox);
    if (mailbox.rows > 0 && mailbox.queue.size > 0)
      throw new Error(`seed ${seed}: ${mailbox.queue.size} wait beside ${mailbox.rows} rows`);
    waited += mailbox.queue.size;
    for (const hangUp of mailbox.hangUps) hangUp.abort();
    await quiesce(mailbox);
    const left = { size: mailbox.queue.size, keys: mailbox.queue.keys, timers: jest.getTimerCount() };
    if (left.size + left.keys + left.timers > 0)
      throw new Error(`seed ${seed}: left behind ${JSON.stringify(left)}`);
  }
  expect(waited).toBeGreaterThan(150); // else the first check would have had nothing to see
});

test("a wake-up costs about the same among 20,000 waiters as among 1,000", async () => {
  const costPerWake = async (asleep: number): Promise<number> => {
    const queue = new Waiters();
    const waits = Array.from({ length: asleep }, () => queue.join(KEY).wait(WAIT_MS * 60));
    const cost = await cpuOf(async () => {
      for (let i = 0; i < asleep; i++) queue.wakeOne({ key: KEY });
    });
    expect(new Set(await Promise.all(waits))).toEqual(new Set(["woken"]));
    return cost / asleep;
  };
  jest.useRealTimers(); // no fake timer for each wait
  await costPerWake(20_000); // compile
  const ratio = await costRatio(
    () => costPerWake(1_000),
    () => costPerWake(20_000),
    7,
  );
  expect(ratio).toBeLessThan(8); // a walk along the queue would make it 20
});

test("a row that nobody sleeps for makes the waiters of each of its queues read again", async () => {
  for (const row of [
    { key: "x", orKey: "open" },
    { key: "k", elseKeys: ["a", "open"] },
  ]) {
    const queue = new Waiters();
    const waiter = queue.join("open");
    queue.wakeOne(row);
    expect(await waiter.wait(WAIT_MS)).toBe("woken");
    waiter.leave();
  }
});

describe("wake-ups in slices", () => {
  const MANY = WAKE_UPS_TOGETHER + 50;
  /** Sleepers that sleep again after each wake-up, and how often each was woken. */
  const sleepersIn = (queue: Waiters, keysOf: (i: number) => readonly string[]): number[] => {
    const woken: number[] = [];
    for (let i = 0; i < MANY; i++) {
      const waiter = queue.join(...keysOf(i));
      woken.push(0);
      const sleep = (): void => {
        void waiter.wait(60_000).then((outcome) => {
          if (outcome !== "woken") return;
          woken[i] = (woken[i] ?? 0) + 1;
          sleep();
        });
      };
      sleep();
    }
    return woken;
  };
  const nextSlices = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) {
      jest.advanceTimersByTime(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  test("a second wake-up of all, while the first is under way, also wakes who has read and sleeps again", async () => {
    const queue = new Waiters();
    const woken = sleepersIn(queue, () => [KEY]);
    queue.wakeAll(KEY);
    await settle();
    expect(woken.filter((times) => times > 0)).toHaveLength(WAKE_UPS_TOGETHER);
    queue.wakeAll(KEY);
    await nextSlices();
    const expected = woken.map((_, i) => (i < WAKE_UPS_TOGETHER ? 2 : 1)); // the others read once, for both
    expect(woken).toEqual(expected);
    queue.drain();
  });

  test("who sleeps in several queues reads once when all queues are woken", async () => {
    const queue = new Waiters();
    const woken = sleepersIn(queue, (i) => [`own ${i}`, "a", "b"]);
    queue.wakeAllOfEach();
    await nextSlices();
    expect(new Set(woken)).toEqual(new Set([1]));
    queue.drain();
  });
});
