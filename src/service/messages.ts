/**
 * The use cases of messages: one mailbox a node, the same for both variants.
 *
 * A receive is a long poll: when the mailbox is empty it waits, first come first served, for the wake-up that follows a
 * commit. A caller who hangs up while messages are taken for it loses none: they are put back, at once or, when the
 * disk refuses that, by the periodic work.
 *
 * Must not: answer a receive before its commit.
 */
import { Rejection, reject } from "../domain/decision.ts";
import { MESSAGES_ANSWER_MAX_BYTES } from "../domain/limits.ts";
import type { HandOut } from "../domain/message.ts";
import type { Message } from "../domain/model.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import type { Mail, Sent, Taken, Transport } from "../mail/mail.ts";
import type { Sized } from "../store/sql/query.ts";
import { historySizes, mailboxSizes, messageById, messagesBySeq } from "../store/sql/messages.ts";
import type { Query, Store, Transact } from "../store/store.ts";
import { knownNode } from "./known-node.ts";
import { type Rows, loadRows, upToBytes } from "./list-pages.ts";
import type { WaitQueue } from "./wait-queue.ts";

/** The part of a message that its sender decides. */
export type MessageDraft = Omit<Message, "messageId" | "sentAt">;

/** How long a receive may wait, and the signal that its caller hung up. */
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
  readonly #receivers: WaitQueue;
  /** Hand-outs that could not be put back yet. Few: messages are taken only while the disk accepts writes. */
  readonly #failedPutBacks: { readonly nodeId: string; readonly taken: readonly HandOut[] }[] = [];

  constructor(store: Store, mail: Mail, clock: Clock, newId: NewId, receivers: WaitQueue) {
    this.#store = store;
    this.#mail = mail;
    this.#clock = clock;
    this.#newId = newId;
    this.#receivers = receivers;
  }

  /** Sends to `draft.toNode`; when that is null, to every node that is online. */
  send(transact: Transact, draft: MessageDraft): Promise<Sent> {
    const message: Message = { ...draft, messageId: this.#newId(), sentAt: this.#clock.now() };
    return draft.toNode === null
      ? this.#mail.broadcast(transact, message)
      : this.#mail.send(transact, message, draft.toNode);
  }

  /** Takes up to `count` messages, oldest first; waits for the first of them for at most `patience.waitMs`. */
  async receive(transact: Transact, nodeId: string, count: number, patience: Patience): Promise<Taken> {
    const { signal } = patience;
    const start = this.#clock.steady();
    const waiter = this.#receivers.join(nodeId); // before the first take, so that no wake-up is missed
    try {
      for (let isAgain = false; !signal.aborted; isAgain = true) {
        const taken = await this.#mail.take(transact, nodeId, count, this.#clock.steady(), signal);
        if (taken) await socketsPolled(); // to notice a caller who hung up during the commit
        if (taken && !signal.aborted) {
          waiter.markServed(); // each message has a wake-up of its own, so this one is used up
          return taken;
        }
        if (taken) await this.#putBack(nodeId, taken);
        const leftMs = start + patience.waitMs - this.#clock.steady();
        if (isAgain && leftMs <= 0) break; // leave() passes the wake-up on to the next waiter
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

  /** The messages that a node sent or received, newest first. @throws {Rejection} node_not_found */
  async history(nodeId: string, count: number): Promise<MessageList> {
    await knownNode(this.#store, nodeId);
    return this.#load(await this.#measure(historySizes(nodeId, count)));
  }

  /**
   * The messages that a node received, newest first, without taking any: the newest, or the first `limit` after the
   * message `since`.
   * @throws {Rejection} node_not_found, message_not_found
   */
  async mailbox(nodeId: string, since: string | null, limit: number): Promise<MessageList> {
    await knownNode(this.#store, nodeId);
    const mark = since === null ? null : await this.#store.read(messageById(since));
    if (since !== null && !mark) {
      const detail = `There is no message ${since}: it never existed, or was deleted after its retention time. Leave since out to start with the newest.`;
      throw new Rejection(reject("message_not_found", detail));
    }
    const sizes = await this.#measure(mailboxSizes(nodeId, mark?.seq ?? null, limit));
    return this.#load(mark ? sizes.toReversed() : sizes);
  }

  async #measure(query: Query<readonly Sized[]>): Promise<readonly Sized[]> {
    return upToBytes(await this.#store.read(query), MESSAGES_ANSWER_MAX_BYTES);
  }

  /** A message never changes; one that is deleted while the list is being sent is left out. */
  async #load(sizes: readonly Sized[]): Promise<MessageList> {
    const rows = await loadRows(sizes, messagesBySeq, (query) => this.#store.read(query));
    return { rows, count: sizes.length, transport: this.#store.engine };
  }

  /** Redelivers or parks messages after their visibility timeout, in one bounded step. Returns how many. */
  expireSome(): Promise<number> {
    return this.#mail.expireSome(this.#clock.now(), this.#clock.steady());
  }

  /** Retries failed put-backs. Throws at the first failure, and keeps that one and the rest for the next call. */
  async retryPutBacks(): Promise<void> {
    for (let failed = this.#failedPutBacks[0]; failed; failed = this.#failedPutBacks[0]) {
      await this.#mail.putBack(failed.nodeId, failed.taken);
      this.#failedPutBacks.shift();
    }
  }

  async #putBack(nodeId: string, { deliveries: delivered }: Taken): Promise<void> {
    const taken = delivered.map(({ seq, state, deliveries }): HandOut => ({ seq, state, deliveries })); // no contents
    try {
      await this.#mail.putBack(nodeId, taken);
    } catch {
      this.#failedPutBacks.push({ nodeId, taken }); // the periodic work reports it if it fails there too
    }
  }
}

/** Resolves after the event loop has polled the sockets once more. */
function socketsPolled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
