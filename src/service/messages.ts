/**
 * The use cases of messages: one mailbox a node, whichever variant's words are used for it.
 *
 * A receive that finds nothing waits in line until a commit puts something into the mailbox. It takes only what it can
 * still hand out: a caller who hung up meanwhile gets nothing, and what it was handed too late is put back, if not at
 * once (the disk may be full by then) then by the periodic work.
 */
import { Rejection, reject } from "../domain/decision.ts";
import { MESSAGES_ANSWER_MAX_BYTES, TICKET_HOLD_MS } from "../domain/limits.ts";
import type { Handed } from "../domain/message.ts";
import type { Message } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import type { Mail, Sent, Taken, Transport } from "../mail/mail.ts";
import type { Sized } from "../store/sql/query.ts";
import { historySizes, mailboxSizes, messageById, messagesBySeq } from "../store/sql/messages.ts";
import type { Query, Store, Transact } from "../store/store.ts";
import { knownNode } from "./known-node.ts";
import { type Rows, loadRows, upToBytes } from "./list-pages.ts";
import type { Waiters } from "./wait-queue.ts";

/** What a caller says of a message. */
export type MessageDraft = Omit<Message, "messageId" | "sentAt">;

/** How long a receive may wait, and how it learns that its caller is gone. */
export type Patience = { readonly waitMs: number; readonly signal: AbortSignal };

/** Messages, newest first, as many as one answer carries. */
export type MessageList = {
  readonly rows: Rows<Message>;
  /** How many there are in all parts. */
  readonly count: number;
  readonly transport: Transport;
};

export class MessageService {
  readonly #store: Store;
  readonly #mail: Mail;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #receivers: Waiters;
  /** What could not be put back yet. A message is taken only while the disk takes writes, so that this stays short. */
  readonly #owed: { readonly nodeId: string; readonly handed: readonly Handed[] }[] = [];

  constructor(store: Store, mail: Mail, clock: Clock, newId: NewId, receivers: Waiters) {
    this.#store = store;
    this.#mail = mail;
    this.#clock = clock;
    this.#newId = newId;
    this.#receivers = receivers;
  }

  /** To `draft.toNode`, or to every node that is online when that is null. */
  send(transact: Transact, draft: MessageDraft): Promise<Sent> {
    const message: Message = { ...draft, messageId: this.#newId(), sentAt: this.#clock.now() };
    return draft.toNode === null
      ? this.#mail.broadcast(transact, message)
      : this.#mail.send(transact, message, draft.toNode);
  }

  /**
   * Takes up to `count` messages out, oldest first; waits for the first as long as `patience` lasts, and for what another
   * hub has in its hands until it is known what becomes of it.
   */
  async receive(transact: Transact, nodeId: string, count: number, patience: Patience): Promise<Taken> {
    const { signal } = patience;
    const start = this.#clock.steady();
    const waiter = this.#receivers.join(nodeId); // before the first look, so that no wake-up falls in between
    try {
      for (let isAgain = false; !signal.aborted; isAgain = true) {
        const met = await this.#mail.take(transact, nodeId, count, this.#clock.steady(), signal);
        const isElsewhere = met?.deliveries.length === 0;
        const taken = isElsewhere ? undefined : met;
        if (taken) await socketsHeard(); // who hung up during the commit has not been noticed yet
        if (taken && !signal.aborted) {
          waiter.took(); // every row has a wake of its own: the next in line need not look for this one
          return taken;
        }
        if (taken) await this.#putBack(nodeId, taken);
        const waitMs = isElsewhere ? Math.max(patience.waitMs, TICKET_HOLD_MS) : patience.waitMs;
        const leftMs = start + waitMs - this.#clock.steady();
        if (isAgain && leftMs <= 0) break; // and leaves his wake to the next in line
        const outcome = await waiter.wait(leftMs, signal);
        if (outcome !== "woken") break;
      }
      return await this.#mail.takeNothing(transact, nodeId);
    } finally {
      waiter.leave();
    }
  }

  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }): Promise<null> {
    return this.#mail.acknowledge(transact, asked, this.#clock.now());
  }

  /** What a node sent or got, newest first. @throws {Rejection} node_not_found */
  async history(nodeId: string, count: number): Promise<MessageList> {
    await knownNode(this.#store, nodeId);
    return this.#load(await this.#measure(historySizes(nodeId, count)));
  }

  /**
   * What a node got, newest first, taking nothing out: the newest, or the first `limit` after the message `since`.
   * @throws {Rejection} node_not_found, message_not_found
   */
  async mailbox(nodeId: string, since: string | null, limit: number): Promise<MessageList> {
    await knownNode(this.#store, nodeId);
    const mark = since === null ? null : await this.#store.read(messageById(since));
    if (since !== null && !mark) {
      const detail = `There is no message ${since}: it never was, or is past its time. Leave since out to start with the newest.`;
      throw new Rejection(reject("message_not_found", detail));
    }
    const sizes = await this.#measure(mailboxSizes(nodeId, mark?.seq ?? null, limit));
    return this.#load(mark ? sizes.toReversed() : sizes);
  }

  async #measure(query: Query<readonly Sized[]>): Promise<readonly Sized[]> {
    return upToBytes(await this.#store.read(query), MESSAGES_ANSWER_MAX_BYTES);
  }

  /** A message never changes; one that is pruned before its part is loaded is left out. */
  async #load(sizes: readonly Sized[]): Promise<MessageList> {
    const rows = await loadRows(sizes, messagesBySeq, (query) => this.#store.read(query));
    return { rows, count: sizes.length, transport: this.#store.engine };
  }

  /** Brings back, or parks, what was not confirmed in time, one bounded step. The answer is how many. */
  expireSome(): Promise<number> {
    return this.#mail.expireSome(this.#clock.now(), this.#clock.steady());
  }

  /** Puts back what could not be put back at its time. What fails again is still owed. */
  async putBackOwed(): Promise<void> {
    for (let owed = this.#owed[0]; owed; owed = this.#owed[0]) {
      await this.#mail.putBack(owed.nodeId, owed.handed);
      this.#owed.shift();
    }
  }

  async #putBack(nodeId: string, { deliveries: taken }: Taken): Promise<void> {
    const handed = taken.map(({ seq, state, deliveries }): Handed => ({ seq, state, deliveries })); // no contents
    try {
      await this.#mail.putBack(nodeId, handed);
    } catch {
      this.#owed.push({ nodeId, handed }); // the periodic work reports it if it fails there too
    }
  }
}

/** Resolves when the event loop has looked at the sockets once more. */
function socketsHeard(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
