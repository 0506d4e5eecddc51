/**
 * Deliveries on every engine: three hubs, of which one after the other leads and is killed at any moment, and a receiver
 * that fails every third time, lose no event, send each in order, and repeat one only with the same id.
 */
import { expect, test } from "bun:test";
import { accept } from "../../src/domain/decision.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { openLog } from "../../src/lib/log.ts";
import { type Encode, type Post, WebhookCourier } from "../../src/service/webhook-courier.ts";
import { WebhookService } from "../../src/service/webhooks.ts";
import { OutcomeUnknown, type Store, StoreUnavailable } from "../../src/store/store.ts";
import { until } from "../api/scene.ts";
import { TestClock } from "../support/hub.ts";
import { ENGINES, openFresh, prepareStores, suiteOf } from "./store-engines.ts";

await prepareStores();

const ALL = { kinds: [], taskId: null, nodeId: null, creatorNode: null, group: null } as const;
const encode: Encode = async ({ url }, happened) =>
  happened.kind === "event" && happened.event.kind === "file.deleted"
    ? [{ url, headers: {}, body: String(happened.event.data["n"]) }]
    : [];

function eventOf(n: number): NewEvent {
  return { kind: "file.deleted", at: 1_000, nodeId: null, taskId: null, data: { n } };
}

const log = openLog(
  { format: "json", level: "error" },
  () => 0,
  () => {},
);

async function addEvents(store: Store, numbers: readonly number[]): Promise<void> {
  const changes = numbers.map((n) => ({ kind: "event.logged", event: eventOf(n) }) as const);
  await store.transact({}, () => accept(null, changes));
}

for (const engine of ENGINES)
  suiteOf(engine)("webhooks", () => {
    test("leaders that are killed, and a receiver that fails, lose nothing and keep the order", async () => {
      const { store, place } = await openFresh(engine);
      const stores =
        engine.name === "sqlite" ? [store, store, store] : [store, await place.open(), await place.open()];
      const clock = new TestClock();
      const service = new WebhookService(store, clock, newId, () => null);
      const draft = { name: "w", url: "https://receiver.test/", format: "luxhub", filter: ALL, push: null };
      await service.put(store.transact, { ...draft, format: "luxhub" }, null);

      const received: { readonly id: string; readonly n: number }[] = [];
      let requests = 0;
      let leader: WebhookCourier | null = null;
      const post: Post = async ({ headers, body }) => {
        requests++;
        await Promise.resolve();
        if (requests % 3 === 0) return { status: 500, retryAfter: null };
        received.push({ id: String(headers["webhook-id"]), n: Number(body) });
        // Killed after the receiver has the message, and before the cursor is stored.
        if (requests % 5 === 0) await leader?.tick(false);
        return requests % 7 === 0
          ? { status: null, error: "connection reset" }
          : { status: 204, retryAfter: null };
      };
      const couriers = stores.map(
        (one) => new WebhookCourier({ store: one, clock, log, post, encode, isRevoked: () => false }),
      );
      const total = engine.name === "sqlite" ? 60 : 24;
      await addEvents(
        store,
        Array.from({ length: total / 2 }, (_, n) => n),
      );
      const isDone = (): boolean => received.some(({ n }) => n === total - 1);
      for (let turn = 0; !isDone() && turn < 10_000; turn++) {
        leader = couriers[turn % couriers.length] ?? null;
        await leader?.tick(true);
        if (turn === 3)
          await addEvents(
            store,
            Array.from({ length: total / 2 }, (_, n) => total / 2 + n),
          );
        const before = requests;
        // Until a delivery was tried; or, when none is due, for a moment.
        for (let waits = 0; requests === before && waits < 20; waits++) await Bun.sleep(1);
        clock.pass(SECOND_MS);
        await leader?.tick(false);
      }
      await Promise.all(couriers.map((courier) => courier.stop()));
      const first = new Map<number, string>();
      for (const { id, n } of received) {
        expect(first.get(n) ?? id).toBe(id);
        first.set(n, id);
      }
      expect([...first.keys()]).toEqual(Array.from({ length: total }, (_, n) => n));
      expect(new Set(first.values()).size).toBe(total);
      expect(received.length).toBeGreaterThan(total);
      await Promise.all(stores.slice(1).map((one) => (one === store ? undefined : one.close())));
    });

    for (const isWritten of [false, true])
      test(`a cursor that cannot be stored ${isWritten ? "for certain " : ""}skips and repeats nothing`, async () => {
        const { store } = await openFresh(engine);
        const clock = new TestClock();
        const service = new WebhookService(store, clock, newId, () => null);
        const filter = { ...ALL, kinds: ["file.deleted"] } as const;
        await service.put(
          store.transact,
          { name: "w", url: "https://receiver.test/", format: "luxhub", filter, push: null },
          null,
        );
        let faults = 1;
        const transact: Store["transact"] = async (...all: Parameters<Store["transact"]>) => {
          const isFault = faults-- > 0;
          if (isFault && !isWritten) throw new StoreUnavailable("gone");
          const answer = await store.transact(...all);
          if (isFault) throw new OutcomeUnknown("gone");
          return answer;
        };
        const failing: Store = new Proxy(store, {
          get: (target, name: keyof Store) => {
            if (name === "transact") return transact;
            const value = target[name];
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
        const received: string[] = [];
        const post: Post = async ({ body }) => {
          received.push(body);
          return { status: 204, retryAfter: null };
        };
        const courier = new WebhookCourier({
          store: failing,
          clock,
          log,
          post,
          encode,
          isRevoked: () => false,
        });
        await addEvents(store, [1]);
        await courier.tick(true);
        await until("the store fails", async () => faults <= 0);
        await addEvents(store, [2, 3]);
        await until("all are sent", async () => {
          clock.pass(SECOND_MS);
          await courier.tick(true);
          return received.includes("3");
        });
        await courier.stop();
        expect(received).toEqual(["1", "2", "3"]);
      });

    test("a hub without webhooks reads them once, and writes nothing", async () => {
      const { store } = await openFresh(engine);
      const clock = new TestClock();
      let statements = 0;
      const counted: Store = new Proxy(store, {
        get: (target, name: keyof Store) => {
          const value = target[name];
          if (typeof value !== "function") return value;
          if (name === "onCommit") return value.bind(target);
          return (...args: unknown[]) => {
            statements++;
            return (value as (...all: unknown[]) => unknown).apply(target, args); // whatever method it is
          };
        },
      });
      const post: Post = () => expect.unreachable();
      const courier = new WebhookCourier({
        store: counted,
        clock,
        log,
        post,
        encode,
        isRevoked: () => false,
      });
      for (let turn = 0; turn < 5; turn++) {
        await courier.tick(true);
        await addEvents(store, [turn]);
        clock.pass(SECOND_MS);
      }
      await courier.stop();
      expect(statements).toBe(1);
    });
  });
