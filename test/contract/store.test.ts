/** The contract of src/store/store.ts, run against every engine: transactions, listeners, reads, opening and closing. */
import { expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { type Decision, Rejection, UNDECIDED, accept, nodeNotFound } from "../../src/domain/decision.ts";
import { QUEUE_MAX } from "../../src/domain/limits.ts";
import { heartbeatChange, saved } from "../../src/domain/node.ts";
import { InvariantBroken, assert } from "../../src/lib/assert.ts";
import * as eventReads from "../../src/store/sql/events.ts";
import * as luxReads from "../../src/store/sql/lux.ts";
import * as nodeReads from "../../src/store/sql/nodes.ts";
import { candidatesIfBalanced } from "../../src/store/sql/balancer.ts";
import { NO_ROW, NO_ROWS } from "../../src/store/sql/query.ts";
import * as taskReads from "../../src/store/sql/tasks.ts";
import { type Part, type Query, StoreBusy } from "../../src/store/store.ts";
import { node, tally, task } from "../domain/samples.ts";
import { brokenDuring } from "../support/invariants.ts";
import {
  ENGINES,
  COUNT_EVENTS,
  closing,
  event,
  log,
  names,
  openFresh,
  outcome,
  prepareStores,
  suiteOf,
  write,
} from "./store-engines.ts";

await prepareStores();

for (const engine of ENGINES) {
  const suite = suiteOf(engine);

  suite("transact", () => {
    test("commits before it resolves", async () => {
      const { store, place } = await openFresh(engine);
      expect(await place.look(COUNT_EVENTS)).toBe(0);
      const seen = store.transact({}, log("a")).then(() => place.look(COUNT_EVENTS));
      expect(await seen).toBe(1);
    });

    test("a rejection throws Rejection and writes nothing", async () => {
      const { store, place } = await openFresh(engine);
      const rejected = store.transact({}, () => nodeNotFound("n1"));
      await expect(rejected).rejects.toThrow(Rejection);
      expect(await outcome(rejected)).toBe("node_not_found");
      expect(await place.look(COUNT_EVENTS)).toBe(0);
    });

    test("undecided resolves with undefined and writes nothing", async () => {
      const { store, place } = await openFresh(engine);
      expect(await store.transact({}, () => UNDECIDED)).toBeUndefined();
      expect(await place.look(COUNT_EVENTS)).toBe(0);
    });

    test("accepted without changes answers", async () => {
      const { store } = await openFresh(engine);
      expect(await store.transact({}, () => accept({ a: [1] }))).toEqual<object>({ a: [1] });
    });

    test("decides in order of arrival, and each transaction sees the changes of all before it", async () => {
      const { store } = await openFresh(engine);
      const load = { last: eventReads.lastEventId() };
      const seen = await Promise.all(
        Array.from({ length: 200 }, (_, i) =>
          store.transact(load, ({ last }) => (i % 3 === 1 ? accept(last) : accept(last, [event(String(i))]))),
        ),
      );
      let written = 0;
      expect(seen).toEqual(seen.map((_, i) => (i % 3 === 1 ? written : written++)));
      expect(await names(store)).toEqual(
        Array.from({ length: 200 }, (_, i) => String(i)).filter((_, i) => i % 3 !== 1),
      );
    });

    test("each transaction sees the totals, the ledger and the heartbeats of all before it", async () => {
      const { store } = await openFresh(engine);
      await write(store, ...saved(node("n1")));
      const load = {
        nodes: nodeReads.nodesById(["n1"]),
        totals: taskReads.taskTotals(),
        entries: luxReads.ledgerPage("n1", 1, 9),
        head: luxReads.ledgerHead(),
        last: eventReads.lastEventId(),
      };
      const step = (n: number): Promise<unknown> =>
        store.transact(load, ({ nodes: [found], totals, entries, head, last }) => {
          const seen = [
            found?.tasksAssigned,
            found?.lastHeartbeatAt,
            totals.open,
            entries.length,
            head.seq,
            last,
          ];
          const amounts = { n: n + 1, amountMicro: 1, balanceMicro: 1n } as const;
          const accounts = { from: "treasury", to: "node:n1", nodeId: "n1" } as const;
          const paid = {
            seq: n + 1,
            id: `e${n}`,
            ...accounts,
            ...amounts,
            kind: "reward",
            hash: `h${n}`,
          } as const;
          return accept(seen, [
            tally({ nodeId: "n1", assigned: 1 }),
            { kind: "tasks.tallied", open: 2, assigned: 0, completed: 0, failed: 0 },
            { kind: "lux.entered", entry: { ...paid, taskId: null, at: 1 } },
            heartbeatChange("n1", { now: n, steady: n, leaseMs: 0 }),
            event("a"),
          ]);
        });
      const first = [0, node("n1").lastHeartbeatAt, 0, 0, 0, 0];
      expect(await Promise.all([step(0), step(1), step(2)])).toEqual([
        first,
        [1, 0, 2, 1, 1, 1],
        [2, 1, 4, 2, 2, 2],
      ]);
    });

    test("loads each query under its name", async () => {
      const { store } = await openFresh(engine);
      await write(store, ...saved(node("n1")));
      const load = {
        one: nodeReads.nodeById("n1"),
        none: nodeReads.nodeById("n2"),
        all: nodeReads.nodePart("", 10),
      };
      expect(await store.transact(load, (rows) => accept(rows))).toMatchObject({
        one: { nodeId: "n1" },
        none: null,
        all: { online: ["n1"], next: null },
      });
    });

    test("queries that find nothing keep their shapes beside each other", async () => {
      const { store } = await openFresh(engine);
      const load = { node: NO_ROW, tasks: NO_ROWS, takers: candidatesIfBalanced(null, null) };
      const expected = { node: null, tasks: [], takers: { best: [], isWhole: true } };
      expect(await store.transact(load, (rows) => accept({ ...rows }))).toEqual<object>(expected);
    });

    test("a rejection writes what stores it for a repeat", async () => {
      const { store, place } = await openFresh(engine);
      const rejected = store.transact({}, () => ({ ...nodeNotFound("n1"), changes: [event("a")] }));
      expect(await outcome(rejected)).toBe("node_not_found");
      expect(await place.look(COUNT_EVENTS)).toBe(1);
    });

    test("an error in decide rejects only its transaction; the others of the group commit once", async () => {
      const { store, place } = await openFresh(engine);
      const fault = new Error("a bug");
      const outcomes = [
        outcome(store.transact({}, log("a"))),
        outcome(
          store.transact({}, (): Decision<null> => {
            throw fault;
          }),
        ),
        outcome(store.transact({}, () => nodeNotFound("n9"))),
        outcome(store.transact({}, () => UNDECIDED)),
        outcome(store.transact({ last: eventReads.lastEventId() }, ({ last }) => accept(last, [event("b")]))),
      ];
      expect(await Promise.all(outcomes)).toEqual(["a", fault, "node_not_found", undefined, 1]);
      expect(await names(store)).toEqual(["a", "b"]);
      expect(await place.look(COUNT_EVENTS)).toBe(2);
    });

    test("a broken invariant rejects only its transaction, and the store goes on", async () => {
      const { store } = await openFresh(engine);
      const fails = (): Decision<string> => {
        assert(false, "a rule never decides this");
        return accept("never", [event("never")]);
      };
      const outcomes: unknown[] = [];
      const broken = await brokenDuring(async () => {
        const asked = [store.transact({}, log("a")), store.transact({}, fails), store.transact({}, log("b"))];
        outcomes.push(...(await Promise.all(asked.map(outcome))));
      });
      expect(outcomes).toEqual(["a", expect.any(InvariantBroken), "b"]);
      expect(new Set(broken)).toEqual(new Set(["a rule never decides this"]));
      expect(await store.transact({}, log("c"))).toBe("c");
      expect([await names(store), store.writable]).toEqual([["a", "b", "c"], true]);
    });

    test("a change that the store refuses rejects only its transaction, with all its changes", async () => {
      const { store } = await openFresh(engine);
      const created: Change = { kind: "task.created", task: task("t") };
      const outcomes = await Promise.all([
        outcome(store.transact({}, () => accept("first", [created, event("first")]))),
        outcome(store.transact({}, () => accept("twice", [event("twice"), created, event("never")]))),
        outcome(store.transact({}, log("after"))),
      ]);
      expect(outcomes).toEqual(["first", expect.any(Error), "after"]);
      expect(await names(store)).toEqual(["first", "after"]);
    });

    const part = (name: string): Part => ({ load: () => ({}), decide: log(name) });

    test("parts are decided before their transaction, each sees those before it, and all commit once", async () => {
      const { store, place } = await openFresh(engine);
      const seen: unknown[] = [];
      const load = { last: eventReads.lastEventId() };
      const sees = (name: string): Part => ({
        load: () => load,
        decide: ({ last }: { last: number }) => {
          seen.push(last);
          return accept(null, [event(name)]);
        },
      });
      const told: (readonly [number, readonly number[]])[] = [];
      store.onCommit((changes, ids) => told.push([changes.length, ids]));
      const rejected: Part = { load: () => ({}), decide: () => nodeNotFound("n1") };
      const undecided: Part = { load: () => load, decide: () => UNDECIDED };
      const outcomes = await Promise.all([
        store.transact({}, log("before")),
        store.transact(load, ({ last }) => accept(last, [event("d")]), [
          sees("a"),
          rejected,
          sees("b"),
          undecided,
          sees("c"),
        ]),
        store.transact(load, ({ last }) => accept(last)),
      ]);
      expect(outcomes).toEqual(["before", 4, 5]);
      expect(seen).toEqual([1, 2, 3]);
      expect(await names(store)).toEqual(["before", "a", "b", "c", "d"]);
      expect(told).toEqual([1, 2, 3, 4, 5].map((id) => [1, [id]]));
      expect(await place.look(COUNT_EVENTS)).toBe(5);
    });

    test("an error in one part undoes all of its transaction, and nothing of the others", async () => {
      const { store } = await openFresh(engine);
      const fault = new Error("a bug");
      const throws = (): Decision<null> => {
        throw fault;
      };
      const created: Change = { kind: "task.created", task: task("t") };
      const twice: Part = { load: () => ({}), decide: () => accept(null, [created, created]) };
      const outcomes = await Promise.all([
        outcome(store.transact({}, log("first"))),
        outcome(store.transact({}, throws, [part("a"), part("b")])),
        outcome(store.transact({}, log("c"), [part("d"), { load: () => ({}), decide: throws }])),
        outcome(store.transact({}, log("second"), [part("e")])),
        outcome(store.transact({}, log("f"), [part("g"), twice, part("h")])),
        outcome(store.transact({}, log("third"))),
      ]);
      expect(outcomes).toEqual(["first", fault, fault, "second", expect.any(Error), "third"]);
      expect(await names(store)).toEqual(["first", "e", "second", "third"]);
    });

    test("parts count against QUEUE_MAX, and more than a group has are still one commit", async () => {
      const { store, place } = await openFresh(engine);
      const many = Array.from({ length: 1_500 }, (_, i) => part(String(i)));
      const counts: Promise<number>[] = [];
      store.onCommit(() => {
        if (counts.length < 3) counts.push(place.look(COUNT_EVENTS));
      });
      const decide = (): Decision<number> => accept(1);
      const taken = [store.transact({}, decide, many)];
      const room = QUEUE_MAX - many.length - 1;
      expect(
        await outcome(store.transact({}, decide, many.concat(Array(room).fill(part("x"))))),
      ).toBeInstanceOf(StoreBusy);
      taken.push(store.transact({}, decide, Array(room - 1).fill({ load: () => ({}), decide })));
      expect(await outcome(store.transact({}, decide))).toBeInstanceOf(StoreBusy);
      expect(await Promise.all(taken)).toEqual([1, 1]);
      expect(await Promise.all(counts)).toEqual([1_500, 1_500, 1_500]);
    });

    test("queues QUEUE_MAX transactions, rejects more with StoreBusy, and continues", async () => {
      const { store } = await openFresh(engine);
      const decide = (): Decision<number> => accept(1);
      const taken = Array.from({ length: QUEUE_MAX }, () => store.transact({}, decide));
      expect(await outcome(store.transact({}, decide))).toBeInstanceOf(StoreBusy);
      expect((await Promise.all(taken)).length).toBe(QUEUE_MAX);
      expect(await store.transact({}, decide)).toBe(1);
    });
  });

  suite("onCommit, read, close", () => {
    test("notifies listeners of each commit and its changes, in order, after the commit and before the answers", async () => {
      const { store, place } = await openFresh(engine);
      const told: string[] = [];
      const looks: Promise<number>[] = [];
      store.onCommit((changes) => {
        looks.push(place.look(COUNT_EVENTS));
        for (const change of changes)
          if (change.kind === "event.logged") told.push(`wrote ${change.event.data["name"]}`);
      });
      await Promise.all(
        ["a", "b"].map((name) =>
          store.transact({}, log(name)).then((answer) => told.push(`answered ${answer}`)),
        ),
      );
      await store.transact({}, log("c")).then((answer) => told.push(`answered ${answer}`));
      const before = (first: string, second: string): void =>
        expect(told.indexOf(first)).toBeLessThan(told.indexOf(second));
      expect(told.toSorted()).toEqual([
        "answered a",
        "answered b",
        "answered c",
        "wrote a",
        "wrote b",
        "wrote c",
      ]);
      for (const name of ["a", "b", "c"]) before(`wrote ${name}`, `answered ${name}`);
      before("wrote a", "wrote b");
      before("wrote b", "wrote c");
      const counts = await Promise.all(looks);
      counts.forEach((count, i) => expect(count).toBeGreaterThanOrEqual(i + 1));
    });

    test("does not notify when nothing was written", async () => {
      const { store } = await openFresh(engine);
      let calls = 0;
      store.onCommit(() => calls++);
      await outcome(store.transact({}, () => nodeNotFound("n1")));
      await store.transact({}, () => UNDECIDED);
      await store.transact({}, () => accept(1));
      await outcome(
        store.transact({}, (): Decision<null> => {
          throw new Error("a bug");
        }),
      );
      expect(calls).toBe(0);
    });

    test("notifies decision listeners of each transaction that writes, before it is answered", async () => {
      const { store } = await openFresh(engine);
      const heard: string[][] = [];
      store.onDecision((changes) => heard.push(changes.map(({ kind }) => kind)));
      await outcome(store.transact({}, () => nodeNotFound("n1")));
      await store.transact({}, () => accept(1));
      expect(heard).toEqual([]);
      await store.transact({}, () => accept(1, saved(node("n1"))));
      expect(heard).toEqual([["node.saved", "node.beaten"]]);
    });

    test("notifies with the log ids of the events, in the order of the changes", async () => {
      const { store } = await openFresh(engine);
      const told: [names: unknown[], ids: readonly number[]][] = [];
      store.onCommit((changes, eventIds) => {
        const logged = changes.filter((change) => change.kind === "event.logged");
        told.push([logged.map((change) => change.event.data["name"]), eventIds]);
      });
      const named = (id: string): readonly Change[] => saved(node(id));
      const mixed = (name: string): Change[] => [
        ...named(`1 ${name}`),
        event(`1 ${name}`),
        { kind: "task.created", task: task(name) },
        event(`2 ${name}`),
        event(`3 ${name}`),
        ...named(`2 ${name}`),
      ];
      const bug = (): Decision<null> => {
        throw new Error("a bug");
      };
      const groups: readonly (readonly (() => Decision<unknown>)[])[] = [
        [() => accept(1, mixed("a")), () => nodeNotFound("n"), () => accept(1, named("n")), log("b")],
        // With a fault among them they are written twice, the first time for nothing.
        [log("c"), bug, () => accept(1, [event("never"), { kind: "task.created", task: task("a") }])],
        [() => accept(1, mixed("d")), log("e")],
        Array.from({ length: 60 }, (_, i) => () => accept(i, mixed(`many ${i}`))),
      ];
      for (const group of groups)
        await Promise.all(group.map((decide) => outcome(store.transact({}, decide))));
      const stored = await store.read(eventReads.eventsAfter(0, [], 100_000));
      const idOf = new Map(stored.map(({ id, data }) => [data["name"], id]));
      expect(told).toHaveLength(3 + 1 + 2 + 60);
      for (const [names, ids] of told)
        expect([...ids]).toEqual(names.map((name) => idOf.get(String(name)) ?? NaN));
      expect(told.flatMap(([, ids]) => ids)).toEqual(stored.map(({ id }) => id));
    });

    test("a listener that throws affects neither the commit, nor the answers, nor the other listeners", async () => {
      const faults: unknown[] = [];
      const { store, place } = await openFresh(engine, (error) => faults.push(error));
      const told: unknown[] = [];
      let decided = 0;
      const fault = new Error("a bug of a listener");
      const fails = (): never => {
        throw fault;
      };
      store.onCommit(fails);
      store.onDecision(fails);
      store.onGroup(fails);
      store.onCommit((changes) => told.push(...changes));
      const answers = await Promise.all(
        ["a", "b"].map((name) =>
          store.transact({}, () => {
            decided++;
            return accept(name, [event(name)]);
          }),
        ),
      );
      expect({ answers, told: told.length, decided }).toEqual({ answers: ["a", "b"], told: 2, decided: 2 });
      // Of each transaction twice, and once of each group.
      expect(faults.length).toBeWithin(5, 7);
      for (const one of faults) expect(one).toBe(fault);
      expect(await place.look(COUNT_EVENTS)).toBe(2);
    });

    test("reads see committed changes and nothing else", async () => {
      const { store } = await openFresh(engine);
      expect(await store.read(eventReads.lastEventId())).toBe(0);
      const failed = store.transact({}, () => {
        throw new Error("no decision");
      });
      expect(await outcome(failed)).toBeInstanceOf(Error);
      expect(await store.read(eventReads.lastEventId())).toBe(0);
      const written = store.transact({}, log("a"));
      // The commit may be over before the read, or after it.
      expect(await store.read(eventReads.lastEventId())).toBeWithin(0, 2);
      await written;
      expect(await store.read(eventReads.lastEventId())).toBe(1);
    });

    test("a failing read rejects, and the store continues", async () => {
      const { store } = await openFresh(engine);
      const wrong: Query<null> = { sql: "SELECT * FROM nowhere", params: [], shape: () => null, reads: [] };
      expect(await outcome(store.read(wrong))).toBeInstanceOf(Error);
      expect(await outcome(store.transact({ wrong }, () => accept(1)))).toBeInstanceOf(Error);
      expect(await store.transact({}, log("a"))).toBe("a");
    });

    test("close finishes the queue, and every change is there after opening again", async () => {
      const { store, place } = await openFresh(engine);
      const queued = Array.from({ length: 2_000 }, (_, i) => store.transact({}, log(`${i}`)));
      const closed = store.close();
      expect(await Promise.all(queued)).toHaveLength(2_000);
      await closed;
      const again = await place.open();
      closing.push(() => again.close());
      expect(await names(again)).toEqual(Array.from({ length: 2_000 }, (_, i) => `${i}`));
    });

    test("readTogether sees one snapshot, whatever is committed meanwhile", async () => {
      const { store, place } = await openFresh(engine);
      await write(store, event("first"));
      const commits: Promise<unknown>[] = [];
      const seen = await store.readTogether(async (read) => {
        const ids = [await read(eventReads.lastEventId())];
        for (let i = 0; i < 100; i++) {
          commits.push(store.transact({}, log(`${i}`)));
          ids.push(
            await read(eventReads.lastEventId()),
            (await read(eventReads.newestEvents([], 1)))[0]?.id ?? 0,
          );
        }
        return ids;
      });
      expect(new Set(seen).size).toBe(1);
      await Promise.all(commits);
      expect(await store.read(eventReads.lastEventId())).toBe(Number(seen[0]) + 100);
      expect(await place.look("SELECT count(*) AS n FROM events")).toBe(Number(seen[0]) + 100);
    });

    test("a failing readTogether rejects with the cause, and the store continues", async () => {
      const { store } = await openFresh(engine);
      await write(store, event("a"));
      const wrong: Query<null> = { sql: "SELECT 1 FROM nowhere", params: [], shape: () => null, reads: [] };
      for (let i = 0; i < 20; i++) {
        expect(await outcome(store.readTogether((read) => read(wrong)))).toBeInstanceOf(Error);
        const thrown = store.readTogether(async (read) => {
          await read(eventReads.lastEventId());
          throw new Error("no more");
        });
        expect(await outcome(thrown)).toMatchObject({ message: "no more" });
      }
      const many = Array.from({ length: 50 }, () =>
        store.readTogether((read) => read(eventReads.lastEventId())),
      );
      expect(new Set(await Promise.all([...many, store.read(eventReads.lastEventId())])).size).toBe(1);
      expect(await outcome(write(store, event("b")))).toBeNull();
    });

    test("after close every call fails; close again does nothing", async () => {
      const { store } = await openFresh(engine);
      await write(store, event("a"));
      await store.read(eventReads.lastEventId());
      await store.close();
      await store.close();
      expect(await outcome(store.transact({}, log("b")))).toBeInstanceOf(Error);
      expect(await outcome(store.read(eventReads.lastEventId()))).toBeInstanceOf(Error);
      expect(await outcome(store.readTogether((read) => read(eventReads.lastEventId())))).toBeInstanceOf(
        Error,
      );
      expect(await outcome(store.diagnose())).toBeInstanceOf(Error);
    });

    test("diagnose shows the engine's state", async () => {
      const { store } = await openFresh(engine);
      const waits = store.transact({}, log("a"));
      expect(await store.diagnose()).toMatchObject({ queued: 1, migration: engine.migrations });
      await waits;
      const diagnosis = await store.diagnose();
      expect(diagnosis.queued).toBe(0);
      expect(diagnosis.sizeBytes).toBeGreaterThan(0);
      expect(diagnosis.engineVersion).toMatch(/^\d+\.\d+/);
      expect(store.engine).toBe(engine.name);
    });
  });
}
