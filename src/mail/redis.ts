/**
 * Mail over several hubs with Redis as the wake-up channel (publish/subscribe). The mailboxes stay in the store, which
 * is the authority: sends, takes, acknowledgements and the visibility timeout work as in EmbeddedMail.
 *
 *   send:  COMMIT of the message;  PUBLISH of a wake-up;  answer
 *   take:  COMMIT, as without Redis, after a wake-up or at once
 *
 * Redis stores nothing. A lost wake-up costs time and no message: the next receive finds the waiting messages, in order,
 * and PostgreSQL's own notifications wake the other hubs too.
 *
 * There are no claim tokens: the store runs one transaction at a time over all hubs, so two takes never compete for a
 * row.
 *
 * `transport` in the answer to a send is "redis" only when Redis acknowledged its wake-up; in other answers, while Redis
 * is available. Otherwise it names the store: a failing Redis fails no request. (The answer stored for an
 * Idempotency-Key is part of the commit, so it names the transport from before the PUBLISH.) A change is one event
 * `transport.changed`, however many hubs notice it, and a line in the log of each with the reason.
 *
 * Must not: be trusted for correctness.
 */
import type { Message } from "../domain/model.ts";
import { changeTransport } from "../domain/transport.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { newestEvents } from "../store/sql/events.ts";
import { databaseId } from "../store/sql/messages.ts";
import { type Answer, type Store, type Transact, uncommitted } from "../store/store.ts";
import { EmbeddedMail } from "./embedded.ts";
import type { Sent, TakerFilter, Transport } from "./mail.ts";
import { RedisConnection } from "./redis-connection.ts";

const REDIS: Transport = "redis";

export type RedisMailParts = {
  readonly clock: Clock;
  readonly log: Log;
};

export type RedisMailOptions = RedisMailParts & {
  readonly url: string;
  readonly onWakeUp: (nodeId: string) => void;
};

export type WakeUpChannel = Pick<RedisConnection, "isAvailable" | "start" | "publish" | "close">;

export class RedisMail extends EmbeddedMail {
  readonly #store: Store;
  readonly #channel: WakeUpChannel;
  readonly #clock: Clock;
  readonly #log: Log;
  /** The transport that the newest event names; null until this hub has read it. */
  #recorded: Transport | null = null;
  #recording: Promise<void> = Promise.resolve();

  constructor(store: Store, channel: WakeUpChannel, { clock, log }: RedisMailParts) {
    super(store);
    this.#store = store;
    this.#channel = channel;
    this.#clock = clock;
    this.#log = log;
  }

  static async open(store: Store, { url, onWakeUp, ...parts }: RedisMailOptions): Promise<RedisMail> {
    const channel = `luxhub:${await store.read(databaseId())}:wake-up`; // hubs of other databases have their own
    const connection = new RedisConnection({ url, channel, clock: parts.clock, onWakeUp });
    const mail = new RedisMail(store, connection, parts);
    await mail.start();
    return mail;
  }

  async start(): Promise<void> {
    await this.#channel.start((unavailable) => this.#changed(unavailable));
    await this.#recording;
  }

  async close(): Promise<void> {
    await this.#channel.close();
    await this.#recording;
  }

  override get transport(): Transport {
    return this.#channel.isAvailable ? REDIS : super.transport;
  }

  override async send(transact: Transact<Sent>, message: Message, toNode: string): Promise<Answer<Sent>> {
    return this.#published(await super.send(transact, message, toNode));
  }

  override async broadcast(
    transact: Transact<Sent>,
    message: Message,
    steady: () => number,
    taking: TakerFilter = null,
  ): Promise<Answer<Sent>> {
    return this.#published(await super.broadcast(transact, message, steady, taking));
  }

  override async expireSome(now: number, steady: number): Promise<number> {
    await this.#record(); // retries a change that the store could not write
    return super.expireSome(now, steady);
  }

  async #published(sent: Answer<Sent>): Promise<Answer<Sent>> {
    if (sent.transport !== REDIS || (await this.#channel.publish(sent.receivers))) return sent;
    return uncommitted<Sent>({ ...sent, transport: super.transport });
  }

  #changed(unavailable: string | null): void {
    if (unavailable === null) this.#log.info("messages use redis");
    else this.#log.warn(`redis is unavailable; messages use ${super.transport}`, { cause: unavailable });
    void this.#record();
  }

  /** Unless the newest event names the current transport. Never rejects. */
  #record(): Promise<void> {
    this.#recording = this.#recording.then(async () => {
      const to = this.transport;
      if (to === this.#recorded) return;
      const seen = { from: this.#recorded ?? REDIS, to, at: this.#clock.now() };
      try {
        await this.#store.transact({ newest: newestEvents(["transport.changed"], 1) }, ({ newest }) =>
          changeTransport(newest[0] ?? null, seen),
        );
        this.#recorded = to;
      } catch (error) {
        this.#log.error("the event transport.changed could not be written", { cause: String(error) });
      }
    });
    return this.#recording;
  }
}
