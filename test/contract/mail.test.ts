/** The contract of src/mail/mail.ts, run against every engine. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Change, Notified } from "../../src/domain/change.ts";
import { type Decision, Rejection, type Undecided, accept } from "../../src/domain/decision.ts";
import {
  ACK_LEASE_MS,
  BROADCAST_LEASE_MS,
  BROADCAST_STEP_NODES,
  REDELIVERIES_MAX,
  SWEEP_BATCH,
} from "../../src/domain/limits.ts";
import type { Message } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { type Mail, MailBusy, type Sent, type Taken } from "../../src/mail/mail.ts";
import { RedisMail } from "../../src/mail/redis.ts";
import {
  historySizes,
  mailboxSizes,
  messageById,
  messageFates,
  parkedCount,
  waitingPart,
} from "../../src/store/sql/messages.ts";
import { count } from "../../src/store/sql/query.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Load, Loaded, Query, Store, Transact } from "../../src/store/store.ts";
import { openLog } from "../../src/lib/log.ts";
import { NOW, STEADY, message, node } from "../domain/samples.ts";
import { provideDatabase } from "../support/new-database.ts";
import { POSTGRES_MISSING, sharedServer } from "../support/postgres.ts";
import { dropSchemas, takeSchema } from "../support/schemas.ts";
import { OWN_HOST, freePort } from "../support/keeper.ts";
import { type SharedRedis, openRedis, withoutRedis } from "../support/redis.ts";

const steady = (): number => STEADY;

/** A transact for a broadcast that takes several commits: something happens before the last of them. */
function beforeLast({ transact }: Store, happen: () => Promise<void>): Transact {
  let calls = 0;
  const wrapped = async <L extends Load, A>(
    load: L,
    decide: (rows: Loaded<L>) => Decision<A> | Undecided,
  ): Promise<A | undefined> => {
    calls++;
    if (calls === 2) await happen(); // the first was to find out that one commit is not enough
    return transact(load, decide);
  };
  return wrapped as Transact; // both forms of it at once, as the store's own
}

const countOf = (table: string): Query<number> => count(`SELECT count(*) AS n FROM ${table}`, [], []);

type Engine = {
  readonly name: string;
  /** Why it cannot run here; null: it can. */
  readonly skip: string | null;
  open(store: Store): Promise<Mail>;
  /** The store that it works on; SQLite if it does not say. */
  openStore?(): Promise<Store>;
};

async function openPostgresStore(): Promise<Store> {
  const { url, giveBack } = await takeSchema();
  closing.push(async () => giveBack());
  return openPostgres(url, systemClock(), (error) => {
    throw error;
  });
}

const ENGINES: readonly Engine[] = [
  { name: "embedded", skip: null, open: async (store) => new EmbeddedMail(store) },
  {
    name: "embedded in postgresql",
    skip: POSTGRES_MISSING,
    open: async (store) => new EmbeddedMail(store),
    openStore: openPostgresStore,
  },
  {
    name: "redis",
    skip: withoutRedis() ? "no Redis here" : null,
    open: async (store) => {
      redis ??= openRedis();
      const mail = await openRedisMail(store, (await redis).url);
      expect(mail.transport).toBe("redis");
      return mail;
    },
  },
  {
    name: "redis that is unavailable",
    skip: null,
    open: async (store) => {
      const mail = await openRedisMail(store, `redis://${OWN_HOST}:${freePort()}`);
      expect(mail.transport).toBe("sqlite");
      return mail;
    },
  },
];

let redis: Promise<SharedRedis> | null = null;
afterAll(async () => (await redis)?.close());
afterAll(dropSchemas);

async function openRedisMail(store: Store, url: string): Promise<Mail> {
  const clock = systemClock();
  const log = openLog({ format: "json", level: "debug" }, clock.now, () => {});
  const mail = await RedisMail.open(store, { url, clock, log, onWakeUp: () => {} });
  closing.push(() => mail.close());
  return mail;
}

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Opened = { readonly mail: Mail; readonly store: Store };

async function openSqliteStore(): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), "luxhub-mail-"));
  closing.push(() => rm(folder, { recursive: true }));
  const path = join(folder, "db");
  await provideDatabase(path);
  return openSqlite(path, (error) => {
    throw error;
  });
}

/** Mail over a store with the nodes n1, n2 and n3 (online) and n0 (offline). */
async function openMail(engine: Engine): Promise<Opened> {
  const store = await (engine.openStore ?? openSqliteStore)();
  closing.push(() => store.close());
  const nodes = ["n0", "n1", "n2", "n3"].flatMap((id) => saved(node(id)));
  await store.transact({}, () => accept(null, [...nodes, { kind: "node.offline", nodeId: "n0" }]));
  return { mail: await engine.open(store), store };
}

/** Sends messages that are named; each says its own name. */
async function sendAll(
  { mail, store }: Opened,
  ids: readonly string[],
  patch: Partial<Message> = {},
): Promise<void> {
  const toNode = patch.toNode ?? "n1";
  await Promise.all(
    ids.map((id) => mail.send(store.transact, message(id, { content: id, ...patch, toNode }), toNode)),
  );
}

const idsOf = (taken: Taken | undefined): readonly string[] | undefined =>
  taken?.deliveries.map((delivery) => delivery.message.messageId);

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "resolved";
  } catch (error) {
    return error instanceof Rejection ? error.code : String(error);
  }
}

async function eventsOf({ store }: Opened): Promise<readonly string[]> {
  const events = await store.read(eventsAfter(0, [], 10_000));
  const mail = events.filter(({ kind }) => kind !== "transport.changed"); // that Redis is unavailable
  return mail.map(({ kind, nodeId, data }) => `${kind} ${nodeId} ${String(data["message_id"])}`);
}

if (POSTGRES_MISSING === null) await sharedServer(); // so that no test spends its time limit on starting it

for (const engine of ENGINES) {
  const suite = engine.skip === null ? describe : describe.skip;
  suite(`mail: ${engine.name}${engine.skip === null ? "" : ` (skipped: ${engine.skip})`}`, () => {
    describe("send", () => {
      test("answers with the recipients and the transport", async () => {
        const { mail, store } = await openMail(engine);
        const sent = await mail.send(store.transact, message("m1"), "n1");
        expect(sent).toEqual<Sent>({ messageId: "m1", receivers: ["n1"], transport: mail.transport });
        expect(["sqlite", "postgresql", "redis"]).toContain(mail.transport);
      });

      test("stores the message before it answers, and logs an event without the content", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["m1"]);
        expect(await opened.store.read(historySizes("n1", null, 10))).toEqual([
          { seq: expect.any(Number), bytes: 2 },
        ]);
        expect((await opened.store.read(messageById("m1")))?.message).toEqual(
          message("m1", { content: "m1" }),
        );
        expect(await eventsOf(opened)).toEqual(["message.sent n1 m1"]);
      });

      test("refuses a recipient that is not registered, and stores nothing", async () => {
        const opened = await openMail(engine);
        expect(await codeOf(opened.mail.send(opened.store.transact, message("m1"), "n9"))).toBe(
          "node_not_found",
        );
        expect(await opened.store.read(historySizes("sender", null, 10))).toEqual([]);
        expect(await eventsOf(opened)).toEqual([]);
      });

      test("keeps messages to an offline node", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["m1"], { toNode: "n0" });
        expect(idsOf(await opened.mail.take(opened.store.transact, "n0", 10, () => STEADY))).toEqual(["m1"]);
      });
    });

    describe("broadcast", () => {
      test("goes to all nodes that are online, except the sender", async () => {
        const { mail, store } = await openMail(engine);
        const sent = await mail.broadcast(
          store.transact,
          message("m1", { fromNode: "n2", toNode: null, type: "alert" }),
          steady,
        );
        expect(sent.receivers.toSorted()).toEqual(["n1", "n3"]);
        for (const [nodeId, ids] of [
          ["n0", undefined],
          ["n1", ["m1"]],
          ["n2", undefined],
          ["n3", ["m1"]],
        ] as const)
          expect(idsOf(await mail.take(store.transact, nodeId, 10, () => STEADY))).toEqual(ids);
      });

      test("to no node is a success", async () => {
        const { mail, store } = await openMail(engine);
        const offline = ["n1", "n2", "n3"].map((nodeId): Change => ({ kind: "node.offline", nodeId }));
        await store.transact({}, () => accept(null, offline));
        const sent = await mail.broadcast(store.transact, message("m1", { toNode: null }), steady);
        expect(sent).toEqual<Sent>({ messageId: "m1", receivers: [], transport: mail.transport });
      });

      const MANY = 2 * BROADCAST_STEP_NODES + 7;
      const toMany = message("m1", { toNode: null });
      const openMany = async (): Promise<Opened> => {
        const opened = await openMail(engine);
        const more = Array.from({ length: MANY - 4 }, (_, i) => saved(node(`more-${i}`))).flat();
        await opened.store.transact({}, () => accept(null, more));
        return opened;
      };
      /** How many nodes find something in their mailbox, of one in each step. */
      const found = async ({ mail, store }: Opened): Promise<number> => {
        let count = 0;
        for (const nodeId of ["more-0", "more-300", "n1"])
          if (await mail.take(store.transact, nodeId, 10, () => STEADY)) count++;
        return count;
      };

      test("to many nodes takes several commits, and reaches all of them at once", async () => {
        const opened = await openMany();
        const { mail, store } = opened;
        const sizes: number[] = [];
        const seen: Promise<readonly unknown[]>[] = [];
        store.onCommit((changes) => {
          const queued = changes.reduce(
            (sum, change) => sum + (change.kind === "deliveries.queued" ? change.toNodes.length : 0),
            0,
          );
          if (queued === 0) return;
          sizes.push(queued);
          seen.push(
            Promise.all([
              store.read(waitingPart("n1", 0)),
              store.read(historySizes("n1", null, 10)),
              store.read(historySizes("sender", null, 10)),
              store.read(mailboxSizes("n1", { since: null, before: null }, 10)),
            ]),
          );
        });
        const { transact } = store;
        // On a busy machine these reads could come after the next commit.
        const transactAndRead = async (load: Load, decide: () => Decision<unknown>): Promise<unknown> => {
          const answer = await transact(load, decide);
          await Promise.all(seen);
          return answer;
        };
        Object.assign(store, { transact: transactAndRead });
        const sent = await mail.broadcast(store.transact, toMany, steady);
        expect(sent.receivers).toHaveLength(MANY - 1); // n0 is offline
        expect(sent.receivers).toEqual([...sent.receivers].toSorted());
        expect(sizes.length).toBeGreaterThan(2);
        for (const size of sizes) expect(size).toBeLessThanOrEqual(BROADCAST_STEP_NODES);
        const nothing = [{ count: 0, last: 0 }, [], [], []];
        expect((await Promise.all(seen)).slice(0, -1)).toEqual(seen.slice(1).map(() => nothing));
        expect(await eventsOf(opened)).toEqual(["message.sent null m1"]);
        expect(await found(opened)).toBe(3);
        const [fate] = await store.read(messageFates("sender", [1], "newest first"));
        expect(fate?.recipients).toEqual({ waiting: MANY - 4, delivered: 3, acked: 0 });
      });

      test("one whose last commit fails reaches nobody, and is removed in bounded steps", async () => {
        const opened = await openMany();
        const { mail, store } = opened;
        const failing = beforeLast(store, () => Promise.reject(new Error("no room")));
        await expect(mail.broadcast(failing, toMany, steady)).rejects.toThrow("no room");
        expect(await found(opened)).toBe(0);
        expect(await eventsOf(opened)).toEqual([]);
        expect(await mail.dropUnfinished(STEADY)).toBe(false); // its hub may still go on
        const late = STEADY + BROADCAST_LEASE_MS;
        const steps: boolean[] = [];
        do steps.push(await mail.dropUnfinished(late));
        while (steps.at(-1) === true && steps.length < 10);
        expect(steps.length).toBeGreaterThan(2);
        expect(steps.at(-1)).toBe(false);
        for (const table of ["messages", "deliveries", "broadcasts"])
          expect(await store.read(countOf(table))).toBe(0);
      });

      test("one that was given up meanwhile is refused, and reaches nobody", async () => {
        const opened = await openMany();
        const { mail, store } = opened;
        let isGivenUp = false;
        store.onCommit((changes) => {
          if (isGivenUp || !changes.some(({ kind }) => kind === "broadcast.saved")) return;
          isGivenUp = true;
          void store.transact({}, () => accept(null, [{ kind: "broadcasts.abandoned" }]));
        });
        await expect(mail.broadcast(store.transact, toMany, steady)).rejects.toBeInstanceOf(MailBusy);
        while (await mail.dropUnfinished(STEADY));
        expect(await found(opened)).toBe(0);
        expect(await store.read(countOf("deliveries"))).toBe(0);
      });

      test("a reader with a cursor does not pass one that is being written", async () => {
        const opened = await openMany();
        const { mail, store } = opened;
        const settled = (): Promise<readonly unknown[]> =>
          store.read(mailboxSizes("n1", { since: null, before: null }, 10));
        const publishing = beforeLast(store, async () => {
          await mail.send(store.transact, message("m2"), "n1");
          expect(await settled()).toEqual([]);
          // A receive has no cursor, and is not held up.
          expect(idsOf(await mail.take(store.transact, "n1", 10, () => STEADY))).toEqual(["m2"]);
        });
        await mail.broadcast(publishing, toMany, steady);
        expect(await settled()).toHaveLength(2);
      });
    });

    describe("redrive", () => {
      test("a parked message waits again, with its deliveries from 0; any other does not", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        await sendAll(opened, ["a", "b"], { requireAck: true });
        let now = STEADY;
        for (let i = 0; i <= REDELIVERIES_MAX; i++) {
          await mail.take(store.transact, "n1", 1, () => now);
          now += ACK_LEASE_MS;
          await mail.expireSome(NOW, now);
        }
        const redrive = (messageId: string, nodeId: string): Promise<string> =>
          codeOf(mail.redrive(store.transact, { messageId, nodeId }));
        expect(await store.read(parkedCount("n1"))).toBe(1);
        expect(await redrive("b", "n1")).toBe("message_not_parked");
        expect(await redrive("a", "n2")).toBe("not_your_message");
        expect(await redrive("a", "n9")).toBe("node_not_found");
        expect(await redrive("x", "n1")).toBe("message_not_found");
        expect(await redrive("a", "n1")).toBe("resolved");
        expect(await redrive("a", "n1")).toBe("message_not_parked");
        const taken = await mail.take(store.transact, "n1", 1, () => now);
        expect(taken?.deliveries).toMatchObject([{ deliveries: 1, message: { messageId: "a" } }]);
      });
    });

    describe("take", () => {
      test("an empty mailbox", async () => {
        const { mail, store } = await openMail(engine);
        expect(await mail.take(store.transact, "n1", 10, () => STEADY)).toBeUndefined();
      });

      test("an unknown node", async () => {
        const { mail, store } = await openMail(engine);
        expect(await codeOf(mail.take(store.transact, "n9", 10, () => STEADY))).toBe("node_not_found");
        expect(await codeOf(mail.takeNothing(store.transact, "n9"))).toBe("node_not_found");
      });

      test("takeNothing returns and takes no messages", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["m1"]);
        const nothing = await opened.mail.takeNothing(opened.store.transact, "n1");
        expect(nothing).toEqual<Taken>({ deliveries: [], transport: opened.mail.transport });
        expect(idsOf(await opened.mail.take(opened.store.transact, "n1", 10, () => STEADY))).toEqual(["m1"]);
      });

      test("oldest first, at most the requested number, each once", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["a", "b", "c", "d", "e"]);
        const take = async () => idsOf(await opened.mail.take(opened.store.transact, "n1", 2, () => STEADY));
        expect([await take(), await take(), await take(), await take()]).toEqual([
          ["a", "b"],
          ["c", "d"],
          ["e"],
          undefined,
        ]);
      });

      test("only from its own mailbox", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["a"], { toNode: "n1" });
        await sendAll(opened, ["b"], { toNode: "n2" });
        expect(idsOf(await opened.mail.take(opened.store.transact, "n2", 10, () => STEADY))).toEqual(["b"]);
      });

      test("of many concurrent takes, one gets each message", async () => {
        const opened = await openMail(engine);
        const ids = Array.from({ length: 50 }, (_, i) => `m${String(i).padStart(2, "0")}`);
        await sendAll(opened, ids);
        const takes = Array.from({ length: 12 }, () =>
          opened.mail.take(opened.store.transact, "n1", 7, () => STEADY),
        );
        const taken = (await Promise.all(takes)).flatMap((one) => idsOf(one) ?? []);
        expect(taken).toEqual(ids);
      });

      test("hands out the message as it was sent", async () => {
        const opened = await openMail(engine);
        const sent = message("m1", {
          content: "Grüße 🚀\n\"'\\",
          type: "status",
          requireAck: true,
          toNode: "n1",
        });
        await opened.mail.send(opened.store.transact, sent, "n1");
        const taken = await opened.mail.take(opened.store.transact, "n1", 1, () => STEADY);
        expect(taken?.deliveries).toMatchObject([
          { message: sent, toNode: "n1", deliveries: 1, state: "leased" },
        ]);
        expect(taken?.transport).toBe(opened.mail.transport);
      });
    });

    describe("putBack", () => {
      for (const requireAck of [false, true])
        test(`restores a message to its old position (require_ack ${requireAck})`, async () => {
          const opened = await openMail(engine);
          const { mail, store } = opened;
          await sendAll(opened, ["a", "b"], { requireAck });
          const taken = await mail.take(store.transact, "n1", 1, () => STEADY);
          if (!taken) throw new Error("nothing taken");
          await sendAll(opened, ["c"], { requireAck });
          await mail.putBack("n1", taken.deliveries);
          const again = await mail.take(store.transact, "n1", 10, () => STEADY);
          expect(again?.deliveries.map((d) => `${d.message.messageId} ${d.deliveries}`)).toEqual([
            "a 1",
            "b 1",
            "c 1",
          ]);
        });

      test("skips a message that was acknowledged meanwhile", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        await sendAll(opened, ["a", "b"], { requireAck: true });
        const taken = await mail.take(store.transact, "n1", 10, () => STEADY);
        await mail.acknowledge(store.transact, { messageId: "a", nodeId: "n1" }, () => NOW);
        if (taken) await mail.putBack("n1", taken.deliveries);
        expect(idsOf(await mail.take(store.transact, "n1", 10, () => STEADY))).toEqual(["b"]);
      });

      test("skips a message that was redelivered meanwhile", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        await sendAll(opened, ["a"], { requireAck: true });
        const first = await mail.take(store.transact, "n1", 10, () => STEADY);
        await mail.expireSome(NOW, STEADY + ACK_LEASE_MS);
        const second = await mail.take(store.transact, "n1", 10, () => STEADY + ACK_LEASE_MS);
        expect(idsOf(second)).toEqual(["a"]);
        if (first) await mail.putBack("n1", first.deliveries);
        expect(await mail.take(store.transact, "n1", 10, () => STEADY + ACK_LEASE_MS)).toBeUndefined();
      });
    });

    describe("acknowledge", () => {
      test("ends the redelivery; a repeat is a success and logs no second event", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        await sendAll(opened, ["a"], { requireAck: true });
        await mail.take(store.transact, "n1", 1, () => STEADY);
        const asked = { messageId: "a", nodeId: "n1" };
        expect(await mail.acknowledge(store.transact, asked, () => NOW)).toBeNull();
        expect(await mail.acknowledge(store.transact, asked, () => NOW)).toBeNull();
        expect(await mail.expireSome(NOW, STEADY + ACK_LEASE_MS)).toBe(0);
        expect(await mail.take(store.transact, "n1", 1, () => STEADY)).toBeUndefined();
        expect(await eventsOf(opened)).toEqual(["message.sent n1 a", "message.acked n1 a"]);
      });

      test("of a message that still waits removes it from the mailbox", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["a"], { requireAck: true });
        await opened.mail.acknowledge(opened.store.transact, { messageId: "a", nodeId: "n1" }, () => NOW);
        expect(await opened.mail.take(opened.store.transact, "n1", 1, () => STEADY)).toBeUndefined();
      });

      test("by one receiver of a broadcast leaves the others alone", async () => {
        const { mail, store } = await openMail(engine);
        await mail.broadcast(store.transact, message("m1", { toNode: null, requireAck: true }), steady);
        await mail.take(store.transact, "n1", 1, () => STEADY);
        await mail.take(store.transact, "n2", 1, () => STEADY);
        await mail.acknowledge(store.transact, { messageId: "m1", nodeId: "n1" }, () => NOW);
        await mail.expireSome(NOW, STEADY + ACK_LEASE_MS);
        expect(await mail.take(store.transact, "n1", 1, () => STEADY)).toBeUndefined();
        expect(idsOf(await mail.take(store.transact, "n2", 1, () => STEADY))).toEqual(["m1"]);
      });

      const rows: readonly (readonly [string, string, string])[] = [
        ["a", "n2", "not_your_message"],
        ["x", "n1", "message_not_found"],
        ["a", "n9", "node_not_found"],
      ];
      for (const [messageId, nodeId, code] of rows)
        test(`of ${messageId} by ${nodeId}: ${code}`, async () => {
          const opened = await openMail(engine);
          await sendAll(opened, ["a"]);
          const asked = { messageId, nodeId };
          expect(await codeOf(opened.mail.acknowledge(opened.store.transact, asked, () => NOW))).toBe(code);
        });
    });

    describe("expireSome", () => {
      test("redelivers a message when its visibility timeout is over, not before", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        await sendAll(opened, ["a"], { requireAck: true });
        await mail.take(store.transact, "n1", 1, () => STEADY);
        expect(await mail.expireSome(NOW, STEADY + ACK_LEASE_MS - 1)).toBe(0);
        expect(await mail.take(store.transact, "n1", 1, () => STEADY)).toBeUndefined();
        expect(await mail.expireSome(NOW, STEADY + ACK_LEASE_MS)).toBe(1);
        const again = await mail.take(store.transact, "n1", 1, () => STEADY);
        expect(again?.deliveries).toMatchObject([{ deliveries: 2 }]);
      });

      test("ignores messages that require no ACK", async () => {
        const opened = await openMail(engine);
        await sendAll(opened, ["a"]);
        await opened.mail.take(opened.store.transact, "n1", 1, () => STEADY);
        expect(await opened.mail.expireSome(NOW, STEADY + 10 * ACK_LEASE_MS)).toBe(0);
      });

      test("redelivers five times, then parks and logs an event", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        await sendAll(opened, ["a"], { requireAck: true });
        let steady = STEADY;
        const counts: number[] = [];
        for (;;) {
          const taken = await mail.take(store.transact, "n1", 1, () => steady);
          if (!taken) break;
          counts.push(...taken.deliveries.map((delivery) => delivery.deliveries));
          steady += ACK_LEASE_MS;
          await mail.expireSome(NOW, steady);
        }
        expect(counts).toEqual(Array.from({ length: REDELIVERIES_MAX + 1 }, (_, i) => i + 1));
        expect(await eventsOf(opened)).toEqual(["message.sent n1 a", "message.parked n1 a"]);
        expect(await store.read(historySizes("n1", null, 1))).toHaveLength(1);
      });

      test("in bounded steps", async () => {
        const opened = await openMail(engine);
        const { mail, store } = opened;
        const ids = Array.from({ length: SWEEP_BATCH + 3 }, (_, i) => `m${i}`);
        await sendAll(opened, ids, { requireAck: true });
        await mail.take(store.transact, "n1", 1_000, () => STEADY);
        const late = STEADY + ACK_LEASE_MS;
        const steps = [
          await mail.expireSome(NOW, late),
          await mail.expireSome(NOW, late),
          await mail.expireSome(NOW, late),
        ];
        expect(steps).toEqual([SWEEP_BATCH, 3, 0]);
      });
    });

    test("writes through the caller's transact, so that the caller can add to the commit", async () => {
      const opened = await openMail(engine);
      const { mail, store } = opened;
      const marks = saved(node("mark"));
      const commits: (readonly Notified[])[] = [];
      store.onCommit((changes) => commits.push(changes));
      const marking = (<L extends Load, A>(load: L, decide: (rows: Loaded<L>) => Decision<A> | Undecided) =>
        store.transact(load, (rows) => {
          const decision = decide(rows);
          return decision.kind === "accepted"
            ? accept(decision.answer, [...decision.changes, ...marks])
            : decision;
        })) as Transact; // both forms of it at once, as the store's own
      await mail.send(marking, message("m1", { requireAck: true }), "n1");
      await mail.broadcast(marking, message("m2", { toNode: null }), steady);
      await mail.take(marking, "n1", 10, () => STEADY);
      await mail.takeNothing(marking, "n1");
      await mail.acknowledge(marking, { messageId: "m1", nodeId: "n1" }, () => NOW);
      expect(commits).toHaveLength(5);
      for (const changes of commits) expect(changes).toEqual(expect.arrayContaining([...marks]));
      expect(await store.read(nodeById("mark"))).not.toBeNull();
    });
  });
}
