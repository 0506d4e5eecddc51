/**
 * Several hubs' mail in one process, over one store and one Redis, without HTTP. Receivers are woken by Redis alone: no
 * hub here listens for the store's commits.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import type { Message } from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/ids.ts";
import { openLog } from "../../src/lib/log.ts";
import type { Taken } from "../../src/mail/mail.ts";
import { RedisMail } from "../../src/mail/redis.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import { type MessageDraft, MessageService } from "../../src/service/messages.ts";
import { Waiters } from "../../src/service/waiters.ts";
import { eventsAfter } from "../../src/store/sql/events.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Store, Transact } from "../../src/store/store.ts";
import { STEADY, message, node } from "../domain/samples.ts";

const NODES = ["n1", "n2", "n3"];

/** The mail of one hub. */
export class MailHub {
  readonly mail: RedisMail;
  readonly waiters: Waiters;
  readonly #messages: MessageService;
  readonly #store: Store;

  constructor(store: Store, mail: RedisMail, waiters: Waiters) {
    this.#store = store;
    this.mail = mail;
    this.waiters = waiters;
    const clock = systemClock();
    const takes = new Takes(store, clock);
    this.#messages = new MessageService(store, mail, clock, newId, waiters, takes);
  }

  /** Sends one message for each name, one after the other; the content is the name. Answers the last transport. */
  async send(ids: readonly string[], patch: Partial<Message> = {}): Promise<string> {
    const toNode = patch.toNode ?? "n1";
    let transport = "";
    for (const id of ids) {
      const sent = message(id, { content: id, ...patch, toNode });
      ({ transport } = await this.mail.send(this.#store.transact, sent, toNode));
    }
    return transport;
  }

  /** Takes without waiting; answers the names. */
  async take(
    count = 10,
    transact: Transact = this.#store.transact,
    nodeId = "n1",
  ): Promise<readonly string[]> {
    return namesOf(await this.mail.take(transact, nodeId, count, () => STEADY));
  }

  /** Waits for one message; answers its name, "" when none came. */
  async receive(
    waitMs: number,
    nodeId = "n1",
    count = 1,
    transact: Transact = this.#store.transact,
  ): Promise<string> {
    const { signal } = new AbortController();
    const taken = await this.#messages.receive(transact, nodeId, count, {
      waitMs,
      signal,
      repeatable: false,
    });
    return namesOf(taken).join();
  }

  post(draft: Partial<MessageDraft>): Promise<unknown> {
    const whole = {
      fromNode: "op",
      toNode: "n1",
      type: "text",
      content: "",
      requireAck: false,
      replyTo: null,
      thread: null,
      verified: false,
    } as const;
    return this.#messages.send(this.#store.transact, { ...whole, ...draft });
  }
}

const namesOf = (taken: Taken | undefined): readonly string[] =>
  taken?.deliveries.map((delivery) => delivery.message.content) ?? [];

export class MailHubs implements AsyncDisposable {
  readonly store: Store;
  readonly logged: string[] = [];
  readonly #dir = mkdtempSync(join(tmpdir(), "luxhub-mail-"));
  readonly #hubs: MailHub[] = [];

  private constructor() {
    this.store = openSqlite(join(this.#dir, "db"), (error) => {
      throw error;
    });
  }

  /** One hub for each URL of a Redis; n1, n2 and n3 are online. */
  static async open(...urls: readonly string[]): Promise<MailHubs> {
    const hubs = new MailHubs();
    const nodes = NODES.flatMap((id) => saved(node(id)));
    await hubs.store.transact({}, () => accept(null, nodes));
    for (const url of urls) await hubs.add(url);
    return hubs;
  }

  get all(): readonly MailHub[] {
    return this.#hubs;
  }

  /** The first and the second hub. */
  get both(): readonly [MailHub, MailHub] {
    const [a, b] = this.#hubs;
    if (!a || !b) throw new Error("the test needs two hubs");
    return [a, b];
  }

  async add(url: string): Promise<MailHub> {
    const clock = systemClock();
    const waiters = new Waiters();
    const onWakeUp = (nodeId: string): void => waiters.wakeOne({ key: nodeId });
    const log = openLog({ format: "json", level: "debug" }, clock.now, (text) => this.logged.push(text));
    const mail = await RedisMail.open(this.store, { url, clock, log, onWakeUp });
    const hub = new MailHub(this.store, mail, waiters);
    this.#hubs.push(hub);
    return hub;
  }

  /** The events transport.changed as "from to", oldest first. */
  async changes(): Promise<readonly string[]> {
    const events = await this.store.read(eventsAfter(0, ["transport.changed"], 1_000));
    return events.map(({ data }) => `${String(data["from"])} ${String(data["to"])}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { mail, waiters } of this.#hubs) {
      waiters.drain();
      await mail.close();
    }
    await this.store.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
