/**
 * Mail that falls back: carried by Redis while it is there, by the store while it is not, and by Redis again when it is
 * back. A call that finds Redis away goes to the store within itself: nobody is told to try again. Because both keep
 * their mailboxes in the store, nothing is moved between them, and what one has been sent the other hands out, in order.
 *
 * Every change is an event `transport.changed`, one for all the hubs that notice it (domain/transport.ts), and a line in
 * the log of each, with the reason.
 */
import type { Message } from "../domain/model.ts";
import { changeTransport } from "../domain/transport.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { newestEvents } from "../store/sql/events.ts";
import type { Store, Transact } from "../store/store.ts";
import { type Mail, MailAway, type Sent, type Taken, type Transport } from "./mail.ts";

/** Mail that may be away. What it then refuses with MailAway it has not begun. */
export type RemoteMail = Mail & {
  readonly isUp: boolean;
  /** Resolves when it is known whether it is there; tells the listener then, and at each change (null: it is there). */
  start(listener: (away: string | null) => void): Promise<void>;
  close(): Promise<void>;
};

export class FallbackMail implements Mail {
  readonly #remote: RemoteMail;
  readonly #local: Mail;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  /** What the event log says carries messages; null until this hub has looked. */
  #recorded: Transport | null = null;
  #recording: Promise<void> = Promise.resolve();

  /** `local` is the mail that the store itself carries. */
  constructor(remote: RemoteMail, local: Mail, store: Store, clock: Clock, log: Log) {
    this.#remote = remote;
    this.#local = local;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Resolves when it is known what carries messages. */
  async start(): Promise<void> {
    await this.#remote.start((away) => this.#changed(away));
    await this.#recording;
  }

  async close(): Promise<void> {
    await this.#remote.close();
    await this.#recording;
  }

  get transport(): Transport {
    return this.#carrier.transport;
  }

  send(transact: Transact, message: Message, toNode: string): Promise<Sent> {
    return this.#carry((mail) => mail.send(transact, message, toNode));
  }

  broadcast(transact: Transact, message: Message): Promise<Sent> {
    return this.#carry((mail) => mail.broadcast(transact, message));
  }

  take(...asked: Parameters<Mail["take"]>): Promise<Taken | undefined> {
    return this.#carry((mail) => mail.take(...asked));
  }

  takeNothing(transact: Transact, nodeId: string): Promise<Taken> {
    return this.#carry((mail) => mail.takeNothing(transact, nodeId));
  }

  putBack(...asked: Parameters<Mail["putBack"]>): Promise<void> {
    return this.#carry((mail) => mail.putBack(...asked));
  }

  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }, now: number): Promise<null> {
    return this.#carry((mail) => mail.acknowledge(transact, asked, now));
  }

  async expireSome(now: number, steady: number): Promise<number> {
    await this.#record(); // in case the store could not take it when it happened
    return this.#carry((mail) => mail.expireSome(now, steady));
  }

  get #carrier(): Mail {
    return this.#remote.isUp ? this.#remote : this.#local;
  }

  async #carry<T>(use: (mail: Mail) => Promise<T>): Promise<T> {
    try {
      return await use(this.#carrier);
    } catch (error) {
      if (!(error instanceof MailAway)) throw error;
      return use(this.#local);
    }
  }

  #changed(away: string | null): void {
    if (away === null) this.#log.info("redis carries the messages");
    else this.#log.warn(`redis is away, ${this.#local.transport} carries the messages`, { cause: away });
    void this.#record();
  }

  /** Says in the event log what carries messages now, if it does not say so yet. Never rejects. */
  #record(): Promise<void> {
    this.#recording = this.#recording.then(async () => {
      const to = this.transport;
      if (to === this.#recorded) return;
      const seen = { from: this.#recorded ?? this.#remote.transport, to, at: this.#clock.now() };
      try {
        await this.#store.transact({ newest: newestEvents("transport.changed", 1) }, ({ newest }) =>
          changeTransport(newest[0] ?? null, seen),
        );
        this.#recorded = to;
      } catch (error) {
        this.#log.error("a change of transport could not be logged", { cause: String(error) });
      }
    });
    return this.#recording;
  }
}
