/**
 * The use cases of messages: one mailbox a node, the same for both variants.
 *
 * A receive is a long poll: when the mailbox is empty it waits, first come first served, for the wake-up of a send. A
 * caller who hangs up while messages are taken for it loses none: they are put back (blocked-calls.ts).
 *
 * Must not: answer a receive before its commit.
 */
import { Rejection } from "../domain/decision.ts";
import {
  MESSAGES_ANSWER_MAX_BYTES,
  PARKED_COUNTED_MAX,
  PARKED_NODES_MAX,
  STORED_RECEIVE_MAX_BYTES,
} from "../domain/limits.ts";
import { type HandOut, messageNotFound, seenBy, threadOf } from "../domain/message.ts";
import type { Delivery, Message, MessageFate } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import type { Mail, Receiver, Sent, TakerFilter, Taken, Transport } from "../mail/mail.ts";
import type { Sized } from "../store/sql/query.ts";
import {
  type PlacedMessage,
  deliveryOf,
  hasEmptyMailbox,
  historySizes,
  mailboxSizes,
  messageById,
  messageFates,
  allParkedCount,
  allParkedSizes,
  parkedByNode,
  parkedCount,
  parkedSizes,
  waitingAfter,
  waitingDeliveries,
} from "../store/sql/messages.ts";
import type { Answer, Committed, Query, Store, Transact } from "../store/store.ts";
import { type Patience, type TakerPatience, type Takes, untilFound } from "./blocked-calls.ts";
import { getNodeOrDeleted } from "./known-node.ts";
import { ListPages, type Page, type PageRequest, type Rows, loadRows, upToBytes } from "./list-pages.ts";
import type { Waiters } from "./waiters.ts";

export type MessageDraft = Omit<Message, "messageId" | "sentAt">;

/** As many as one answer carries. */
type MessageList = {
  readonly rows: Rows<MessageFate>;
  /** In all parts. */
  readonly count: number;
  readonly transport: Transport;
};

export class MessageService {
  readonly #store: Store;
  readonly #mail: Mail;
  readonly #clock: Clock;
  readonly #newId: NewId;
  readonly #receivers: Waiters;
  readonly #takes: Takes;
  readonly #pages: ListPages;
  constructor(store: Store, mail: Mail, clock: Clock, newId: NewId, receivers: Waiters, takes: Takes) {
    this.#takes = takes;
    this.#store = store;
    this.#mail = mail;
    this.#clock = clock;
    this.#newId = newId;
    this.#receivers = receivers;
    this.#pages = new ListPages(store);
  }

  /**
   * `toNode` null: to every node that is online, or to those that take a type of tasks. A reply continues the thread of
   * the message that it answers, unless the draft names a thread.
   * @throws {Rejection} node_not_found; message_not_found, not_your_message: it answers what its sender never saw
   */
  async send(
    transact: Transact<Sent>,
    draft: MessageDraft,
    taking: TakerFilter = null,
  ): Promise<Answer<Sent>> {
    const { fromNode, toNode, replyTo } = draft;
    const answered = replyTo === null ? null : await this.#seen(fromNode, replyTo);
    const thread = draft.thread ?? (answered && threadOf(answered.message));
    const message: Message = { ...draft, thread, messageId: this.#newId(), sentAt: this.#clock.now() };
    return toNode === null
      ? this.#mail.broadcast(transact, message, () => this.#clock.steady(), taking)
      : this.#mail.send(transact, message, toNode);
  }

  /** With its place. @throws {Rejection} message_not_found, not_your_message */
  async #seen(nodeId: string, messageId: string): Promise<PlacedMessage> {
    const [placed, delivery] = await Promise.all([
      this.#store.read(messageById(messageId)),
      this.#store.read(deliveryOf(messageId, nodeId)),
    ]);
    const seen = seenBy(placed?.message ?? null, delivery, { messageId, nodeId });
    if (seen.kind === "rejected") throw new Rejection(seen);
    return must(placed, "a message that was seen is there");
  }

  /**
   * With what became of it.
   * @throws {Rejection} message_not_found, not_your_message
   */
  async one(nodeId: string, messageId: string): Promise<MessageFate> {
    const { seq } = await this.#seen(nodeId, messageId);
    const [fate] = await this.#store.read(messageFates(nodeId, [seq], "newest first"));
    if (!fate) throw new Rejection(messageNotFound(messageId)); // it was removed meanwhile
    return fate;
  }

  /**
   * Waits for the first of them for at most `patience.waitMs`.
   * @throws {WaitAborted} when the caller is gone before anything was taken permanently
   */
  async receive(
    transact: Transact<Taken>,
    nodeId: string,
    count: number,
    patience: TakerPatience & Receiver,
  ): Promise<Committed<Taken>> {
    const { signal, repeatable } = patience;
    const waiter = this.#receivers.join(nodeId); // before the first take, so that no wake-up is missed
    const maxBytes = repeatable ? STORED_RECEIVE_MAX_BYTES : MESSAGES_ANSWER_MAX_BYTES;
    const receiver = { ...patience, maxBytes };
    // A receive that may wait mostly finds nothing, and a read costs less than a transaction.
    let readsFirst = patience.waitMs > 0;
    const take = async (): Promise<Committed<Taken> | null> => {
      const isEmpty = readsFirst && (await this.#store.read(hasEmptyMailbox(nodeId)));
      readsFirst = false;
      if (isEmpty || signal.aborted) return null;
      const taken = await this.#mail.take(transact, nodeId, count, () => this.#clock.steady(), receiver);
      if (taken) waiter.markServed(nodeId); // each message has a wake-up of its own, so this one is used up
      return taken ?? null;
    };
    const taken = await this.#takes.untilTaken(waiter, take, patience);
    if (!taken) return this.#mail.takeNothing(transact, nodeId);
    return this.#deliver(nodeId, taken, patience);
  }

  /**
   * For a batch: what waits now, and less of large messages.
   * @throws {WaitAborted} when the caller is gone: what was taken is put back
   */
  async receiveAtOnce(
    transact: Transact<Taken>,
    nodeId: string,
    count: number,
    signal: AbortSignal,
    repeatable: boolean,
  ): Promise<Committed<Taken>> {
    const taken = await this.#mail.takeAtOnce(transact, nodeId, count, () => this.#clock.steady());
    if (taken.deliveries.length === 0) return taken;
    return this.#deliver(nodeId, taken, { signal, repeatable });
  }

  /**
   * Leaves them there; waits for the first of them. `after`: a message id. `maxBytes`: of their contents together, but
   * one message is always answered.
   * @throws {Rejection} message_not_found: there is no message `after`
   * @throws {WaitAborted} when the caller is gone
   */
  async peek(
    nodeId: string,
    most: { readonly count: number; readonly maxBytes: number; readonly after: string | null },
    patience: Patience,
  ): Promise<readonly Delivery[]> {
    const { count, maxBytes } = most;
    const after = await this.#placeOf(most.after, "cursor");
    const query =
      after === null
        ? waitingDeliveries(nodeId, count, maxBytes)
        : waitingAfter(nodeId, after, count, maxBytes);
    const waiter = this.#receivers.join(nodeId); // before the first read, so that no wake-up is missed
    const read = async (): Promise<readonly Delivery[] | null> => {
      const waiting = await this.#store.read(query);
      return waiting.length > 0 ? waiting : null; // leave() passes the wake-up on: nothing was taken
    };
    return (await untilFound(waiter, read, patience, this.#clock)) ?? [];
  }

  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }): Promise<null> {
    return this.#mail.acknowledge(transact, asked, () => this.#clock.now());
  }

  /**
   * Newest first; `before` and `thread` restrict them.
   * @throws {Rejection} node_not_found, message_not_found
   */
  async history(
    nodeId: string,
    asked: { readonly before: string | null; readonly thread: string | null },
    count: number,
  ): Promise<MessageList> {
    await getNodeOrDeleted(this.#store, nodeId);
    const before = await this.#placeOf(asked.before, "before");
    return this.#load(nodeId, await this.#measure(historySizes(nodeId, before, count, asked.thread)));
  }

  /**
   * Newest first, without taking any: the newest, or the first `limit` after the message `since`; with `before`, only
   * those before that message.
   * @throws {Rejection} node_not_found, message_not_found
   */
  async mailbox(
    nodeId: string,
    asked: { readonly since: string | null; readonly before: string | null },
    limit: number,
  ): Promise<MessageList> {
    await getNodeOrDeleted(this.#store, nodeId);
    const since = await this.#placeOf(asked.since, "since");
    const before = await this.#placeOf(asked.before, "before");
    const sizes = await this.#measure(mailboxSizes(nodeId, { since, before }, limit));
    return this.#load(nodeId, since === null ? sizes : sizes.toReversed());
  }

  /** Oldest first. @throws {Rejection} node_not_found */
  async parked(nodeId: string, page: PageRequest): Promise<Page<MessageFate>> {
    await getNodeOrDeleted(this.#store, nodeId);
    return this.#pages.load(page, async (read) => ({
      total: await read(parkedCount(nodeId)),
      sizes: (slice) => parkedSizes(nodeId, slice),
      rowsBySeq: (seqs) => messageFates(nodeId, seqs, "oldest first"),
    }));
  }

  /** Oldest first, with the nodes that have the most. */
  async allParked(
    page: PageRequest,
  ): Promise<
    Page<MessageFate> & { readonly byNode: readonly { readonly nodeId: string; readonly count: number }[] }
  > {
    const parked = await this.#pages.load(page, async (read) => ({
      total: await read(allParkedCount(PARKED_COUNTED_MAX)),
      sizes: allParkedSizes,
      rowsBySeq: (seqs) => messageFates("", seqs, "oldest first"), // each has one recipient, whose delivery it shows
    }));
    const byNode = await this.#store.read(parkedByNode(PARKED_COUNTED_MAX, PARKED_NODES_MAX));
    return { ...parked, byNode };
  }

  /** @throws {Rejection} as Mail.redrive() */
  redrive(transact: Transact, asked: { messageId: string; nodeId: string }): Promise<null> {
    return this.#mail.redrive(transact, asked);
  }

  /** @throws {Rejection} message_not_found */
  async #placeOf(messageId: string | null, field: string): Promise<number | null> {
    if (messageId === null) return null;
    const placed = await this.#store.read(messageById(messageId));
    if (placed) return placed.seq;
    throw new Rejection(messageNotFound(messageId, ` Leave ${field} out to start with the newest.`));
  }

  async #measure(query: Query<readonly Sized[]>): Promise<readonly Sized[]> {
    return upToBytes(await this.#store.read(query), MESSAGES_ANSWER_MAX_BYTES);
  }

  /** A message that is deleted while the list is being sent is left out. */
  async #load(nodeId: string, sizes: readonly Sized[]): Promise<MessageList> {
    const rowsBySeq = (seqs: readonly number[]) => messageFates(nodeId, seqs, "newest first");
    const rows = await loadRows(sizes, rowsBySeq, (query) => this.#store.read(query));
    return { rows, count: sizes.length, transport: this.#mail.transport };
  }

  /** After their visibility timeout, in one bounded step. Returns how many. */
  expireSome(): Promise<number> {
    return this.#mail.expireSome(this.#clock.now(), this.#clock.steady());
  }

  /** Of broadcasts that failed or whose hub is gone, in one bounded step. True if there is more to do. */
  dropUnfinished(): Promise<boolean> {
    return this.#mail.dropUnfinished(this.#clock.steady());
  }

  #deliver(
    nodeId: string,
    taken: Committed<Taken>,
    patience: Omit<TakerPatience, "waitMs">,
  ): Promise<Committed<Taken>> {
    const handedOut = taken.deliveries.map(({ seq, state, deliveries }): HandOut => ({
      seq,
      state,
      deliveries,
    })); // no contents
    return this.#takes.deliver(taken, patience, () => this.#mail.putBack(nodeId, handedOut));
  }
}
