/**
 * The connection to a Redis (or Valkey) that carries wake-ups between hubs, by publish/subscribe on one channel. Every
 * command has a timeout; a command that fails or times out makes Redis unavailable. Then the connection is retried with
 * exponential backoff, at least every REDIS_RETRY_MAX_MS.
 *
 * Each attempt opens two new connections, one to publish and one to subscribe: on Bun 1.4.5 a client that reconnects by
 * itself counts as connected but has no subscription. Redis is available only after a probe, a wake-up for no mailbox,
 * has come back over the subscription; the same probe is the health check that follows every REDIS_CHECK_EVERY_MS.
 *
 * Must not: know what a message is, or show the password to anything but Redis.
 */
import type { RedisClient } from "bun";
import {
  REDIS_BATCH,
  REDIS_CHECK_EVERY_MS,
  REDIS_COMMAND_MAX_MS,
  REDIS_CONNECT_MAX_MS,
  REDIS_RETRY_FIRST_MS,
  REDIS_RETRY_MAX_MS,
  REDIS_STEADY_MS,
} from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { diagnose } from "./redis-diagnosis.ts";

const CLIENT = {
  autoReconnect: false,
  enableOfflineQueue: false,
  connectionTimeout: REDIS_CONNECT_MAX_MS,
} as const;

export type RedisConnectionOptions = {
  readonly url: string;
  /** Of the hubs of one database, and of nobody else. */
  readonly channel: string;
  readonly clock: Clock;
  readonly onWakeUp: (nodeId: string) => void;
};

/** Null: available, else the reason; called also when the reason changes. */
export type AvailabilityListener = (unavailable: string | null) => void;

type Session = {
  readonly publisher: RedisClient;
  readonly subscriber: RedisClient;
  readonly since: number;
};

export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  /** Distinguishes our own wake-ups. */
  readonly #hubId = Bun.randomUUIDv7();
  #listener: AvailabilityListener = () => {};
  #session: Session | null = null;
  #unavailable: string | null = null;
  #retryMs = REDIS_RETRY_FIRST_MS;
  #timer: Timer | null = null;
  #working: Promise<void> = Promise.resolve();
  #closed = false;
  #abortAttempt: () => void = () => {};
  #onProbeReceived: () => void = () => {};

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
  }

  /** Resolves when the first outcome is known; then retries in the background until close(). */
  async start(listener: AvailabilityListener): Promise<void> {
    this.#listener = listener;
    this.#working = this.#connect();
    await this.#working;
  }

  get isAvailable(): boolean {
    return this.#session !== null;
  }

  /** At the other hubs. False: Redis is unavailable, or became so. Never rejects. */
  async publish(nodeIds: readonly string[]): Promise<boolean> {
    const session = this.#session;
    if (session === null) return false;
    const publishing: Promise<unknown>[] = [];
    for (let i = 0; i < nodeIds.length; i += REDIS_BATCH) {
      publishing.push(this.#publish(session.publisher, nodeIds.slice(i, i + REDIS_BATCH)));
    }
    try {
      await within(REDIS_COMMAND_MAX_MS, Promise.all(publishing));
      return true;
    } catch (error) {
      this.#end(session, reasonOf(error));
      return false;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const session = this.#session;
    this.#session = null;
    if (session) shut(session.publisher, session.subscriber);
    this.#abortAttempt();
    await this.#working;
  }

  #publish(publisher: RedisClient, nodeIds: readonly string[]): Promise<unknown> {
    return publisher.publish(this.#options.channel, `${this.#hubId} ${nodeIds.join(",")}`); // no node_id has a comma
  }

  #receive(text: string): void {
    const space = text.indexOf(" ");
    const nodeIds = text.slice(space + 1);
    if (text.slice(0, space) !== this.#hubId) {
      for (const nodeId of nodeIds.split(",")) this.#options.onWakeUp(nodeId);
    } else if (nodeIds === "") this.#onProbeReceived();
    // Receivers at this hub were woken by the commit.
  }

  /** Never rejects. */
  async #connect(): Promise<void> {
    const { url, clock } = this.#options;
    const publisher = new Bun.RedisClient(url, CLIENT);
    const subscriber = new Bun.RedisClient(url, CLIENT);
    this.#abortAttempt = () => shut(publisher, subscriber);
    try {
      await Promise.all([publisher.connect(), subscriber.connect()]);
      await within(REDIS_CONNECT_MAX_MS, this.#subscribe(publisher, subscriber));
      const session = { publisher, subscriber, since: clock.steady() };
      publisher.onclose = subscriber.onclose = () => this.#end(session, "the connection broke");
      if (this.#closed || !publisher.connected || !subscriber.connected)
        throw new Error("the connection broke");
      this.#session = session;
    } catch (error) {
      shut(publisher, subscriber);
      if (this.#closed) return;
      // The client says only "connection closed" when Redis refuses its greeting.
      const diagnosis = await diagnose(url, REDIS_CONNECT_MAX_MS);
      this.#scheduleRetry();
      this.#notify(diagnosis ?? reasonOf(error));
      return;
    }
    this.#scheduleCheck();
    this.#notify(null);
  }

  async #subscribe(publisher: RedisClient, subscriber: RedisClient): Promise<void> {
    await subscriber.subscribe(this.#options.channel, (text) => this.#receive(text));
    await this.#probe(publisher);
  }

  /** A wake-up for no mailbox; resolves when it has come back. */
  async #probe(publisher: RedisClient): Promise<void> {
    const received = Promise.withResolvers<void>();
    this.#onProbeReceived = received.resolve;
    await Promise.all([this.#publish(publisher, []), received.promise]);
  }

  /** A Redis that hangs closes no connection: only the probe notices it. */
  async #check(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    try {
      await within(REDIS_COMMAND_MAX_MS, this.#probe(session.publisher));
    } catch (error) {
      this.#end(session, reasonOf(error));
      return;
    }
    if (this.#session === session) this.#scheduleCheck();
  }

  #end(session: Session, reason: string): void {
    if (this.#session !== session) return;
    this.#session = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    shut(session.publisher, session.subscriber);
    if (this.#options.clock.steady() - session.since >= REDIS_STEADY_MS) this.#retryMs = REDIS_RETRY_FIRST_MS;
    this.#scheduleRetry();
    this.#notify(reason);
  }

  #scheduleCheck(): void {
    this.#schedule(REDIS_CHECK_EVERY_MS, () => this.#check());
  }

  #scheduleRetry(): void {
    this.#schedule(this.#retryMs, () => this.#connect());
    this.#retryMs = Math.min(2 * this.#retryMs, REDIS_RETRY_MAX_MS);
  }

  #schedule(delayMs: number, work: () => Promise<void>): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#working = work();
    }, delayMs);
  }

  #notify(unavailable: string | null): void {
    if (this.#closed || (unavailable !== null && unavailable === this.#unavailable)) return;
    this.#unavailable = unavailable;
    this.#listener(unavailable);
  }
}

function shut(...clients: readonly RedisClient[]): void {
  for (const client of clients) {
    client.onclose = null;
    client.close();
  }
}

async function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const reject = (): void => late.reject(new Error(`no response within ${limitMs} ms`));
  // Polls the sockets once more first: if this process was suspended, the answer may have arrived meanwhile.
  const timer = setTimeout(() => setImmediate(reject), limitMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
