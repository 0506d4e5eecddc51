/**
 * Two hubs in one process over one store, with the mail of each carried by one Redis: what several hubs on one database
 * are, without HTTP. Who waits at one is woken by bells alone, for nobody here hears the store's commits.
 */
import { RedisClient } from "bun";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Decision, type Undecided, accept } from "../../src/domain/decision.ts";
import type { Message } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { openLog } from "../../src/lib/log.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { FallbackMail } from "../../src/mail/fallback.ts";
import type { Taken } from "../../src/mail/mail.ts";
import { RedisMail } from "../../src/mail/redis.ts";
import { type MessageDraft, MessageService } from "../../src/service/messages.ts";
import { Waiters } from "../../src/service/wait-queue.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { databaseId } from "../../src/store/sql/messages.ts";
import type { Load, Loaded, Store, Transact } from "../../src/store/store.ts";
import type { RedisServer } from "../support/redis.ts";
import { STEADY, message, node } from "../domain/samples.ts";

const NODES = ["n1", "n2", "n3"];

/** One of the hubs. */
export class Desk {
  readonly mail: FallbackMail;
  readonly waiters: Waiters;
  readonly #messages: MessageService;
  readonly #store: Store;

  constructor(store: Store, mail: FallbackMail, waiters: Waiters) {
    this.#store = store;
    this.mail = mail;
    this.waiters = waiters;
    this.#messages = new MessageService(store, mail, systemClock(), newId, waiters);
  }

  /** Sends messages that are named, one after the other; each says its own name. What carried the last. */
  async send(ids: readonly string[], patch: Partial<Message> = {}): Promise<string> {
    const toNode = patch.toNode ?? "n1";
    let transport = "";
    for (const id of ids) {
      const sent = message(id, { content: id, ...patch, toNode });
      ({ transport } = await this.mail.send(this.#store.transact, sent, toNode));
    }
    return transport;
  }

  /** Takes without waiting; the names. */
  async take(
    count = 10,
    transact: Transact = this.#store.transact,
    nodeId = "n1",
  ): Promise<readonly string[]> {
    return namesOf(await this.mail.take(transact, nodeId, count, STEADY));
  }

  /** Waits for one message; its name, "" when none came. */
  async receive(
    waitMs: number,
    nodeId = "n1",
    count = 1,
    transact: Transact = this.#store.transact,
  ): Promise<string> {
    const { signal } = new AbortController();
    const taken = await this.#messages.receive(transact, nodeId, count, { waitMs, signal });
    return namesOf(taken).join();
  }

  post(draft: Partial<MessageDraft>): Promise<unknown> {
    const whole = { fromNode: "op", toNode: "n1", type: "text", content: "", requireAck: false } as const;
    return this.#messages.send(this.#store.transact, { ...whole, ...draft });
  }
}

const namesOf = (taken: Taken | undefined): readonly string[] =>
  taken?.deliveries.map((delivery) => delivery.message.content) ?? [];

export class Office implements AsyncDisposable {
  readonly store: Store;
  readonly logged: string[] = [];
  readonly #dir = mkdtempSync(join(tmpdir(), "luxhub-mail-"));
  readonly #desks: Desk[] = [];

  private constructor() {
    this.store = openSqlite(join(this.#dir, "db"), (error) => {
      throw error;
    });
  }

  /** With a desk for each URL; n1, n2 and n3 are online. */
  static async open(...urls: readonly string[]): Promise<Office> {
    const office = new Office();
    const nodes = NODES.flatMap((id) => saved(node(id)));
    await office.store.transact({}, () => accept(null, nodes));
    for (const url of urls) await office.addDesk(url);
    return office;
  }

  get desks(): readonly Desk[] {
    return this.#desks;
  }

  /** The first and the second desk. */
  get both(): readonly [Desk, Desk] {
    const [a, b] = this.#desks;
    if (!a || !b) throw new Error("two desks are wanted");
    return [a, b];
  }

  async addDesk(url: string): Promise<Desk> {
    const clock = systemClock();
    const waiters = new Waiters();
    const onBell = (nodeId: string): void => waiters.wakeOne(nodeId);
    const remote = await RedisMail.over(this.store, { url, clock, onBell });
    const log = openLog("json", clock.now, (text) => this.logged.push(text));
    const mail = new FallbackMail(remote, new EmbeddedMail(this.store), this.store, clock, log);
    await mail.start();
    const desk = new Desk(this.store, mail, waiters);
    this.#desks.push(desk);
    return desk;
  }

  /** The keys of this office's database in a Redis, what follows their prefix. */
  async keysIn(redis: RedisServer): Promise<readonly string[]> {
    const prefix = await this.prefix();
    const found = await redis.ask("KEYS", `${prefix}*`);
    return Array.isArray(found) ? found.map((key) => String(key).slice(prefix.length)) : [];
  }

  /** Hears the bells that go to its hubs from now on: the mailbox of the first. */
  async listen(redis: RedisServer): Promise<AsyncDisposable & { readonly heard: Promise<string> }> {
    const client = new RedisClient(redis.url, { autoReconnect: false });
    const first = Promise.withResolvers<string>();
    await client.connect();
    await client.subscribe(`${await this.prefix()}bell`, (text) => first.resolve(text.split(" ")[1] ?? ""));
    return { heard: first.promise, [Symbol.asyncDispose]: async () => client.close() };
  }

  /** What its keys begin with. */
  async prefix(): Promise<string> {
    return `luxhub:${await this.store.read(databaseId())}:`;
  }

  /** Where the events transport.changed led, oldest first. */
  async changes(): Promise<readonly string[]> {
    const events = await this.store.read(eventsAfter(0, ["transport.changed"], 1_000));
    return events.map(({ data }) => `${String(data["from"])} ${String(data["to"])}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { mail, waiters } of this.#desks) {
      waiters.drain();
      await mail.close();
    }
    await this.store.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** A transact whose commit never comes: as of a hub that died between Redis and the store. */
export const died: Transact = () => new Promise<never>(() => {});

/** A transact that is refused: nothing was written. */
export const refused: Transact = () => Promise.reject(new Error("refused"));

/** A transact that is held up before it comes to the store, and then goes on as `then` does. */
export function heldUp(then: Transact): { readonly transact: Transact; readonly letGo: () => void } {
  const gate = Promise.withResolvers<void>();
  const transact = async <L extends Load, A>(
    load: L,
    decide: (rows: Loaded<L>) => Decision<A> | Undecided,
  ) => {
    await gate.promise;
    return then(load, decide);
  };
  return { transact: transact as Transact, letGo: gate.resolve }; // both forms of it at once, as the store's own
}
