/** Mail carried by the store itself: a mailbox is the rows that wait for a node. */
import { UNDECIDED, accept, nodeNotFound } from "../domain/decision.ts";
import * as limit from "../domain/limits.ts";
import {
  type Handed,
  acknowledge,
  broadcast,
  expireLeases,
  putBack,
  receive,
  send,
} from "../domain/message.ts";
import type { Delivery, Message } from "../domain/model.ts";
import {
  deliveriesOf,
  deliveryOf,
  expiredDeliveries,
  mailboxOwner,
  messageById,
  waitingDeliveries,
  waitingDeliveriesIfSmall,
} from "../store/sql/messages.ts";
import { onlineNodeIds } from "../store/sql/nodes.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { Query, Store, Transact } from "../store/store.ts";
import type { Mail, Sent, Taken, Transport } from "./mail.ts";

export class EmbeddedMail implements Mail {
  readonly transport: Transport;
  readonly #store: Store;
  readonly #answers: Semaphore;

  /**
   * @param answers bytes held of large answers: what may be one is loaded only when there is room for it
   * @param transport what answers name: the store, unless another engine builds on this one
   */
  constructor(
    store: Store,
    answers: Semaphore = new Semaphore(limit.ANSWERS_HELD_MAX_BYTES),
    transport: Transport = store.engine,
  ) {
    this.#store = store;
    this.#answers = answers;
    this.transport = transport;
  }

  send(transact: Transact, message: Message, toNode: string): Promise<Sent> {
    return transact({ recipient: mailboxOwner(toNode) }, ({ recipient }) => {
      const decision = send(message, recipient, toNode);
      if (decision.kind === "rejected") return decision;
      return accept(this.#sent(message, [toNode]), decision.changes);
    });
  }

  broadcast(transact: Transact, message: Message): Promise<Sent> {
    return transact({ nodeIds: onlineNodeIds() }, ({ nodeIds }) => {
      const decision = broadcast(message, nodeIds);
      return accept(this.#sent(message, decision.answer), decision.changes);
    });
  }

  /** `elsewhere`: message ids that are just being handed out by other hubs, see waitingDeliveries(). */
  async take(
    transact: Transact,
    nodeId: string,
    count: number,
    steady: number,
    signal?: AbortSignal,
    elsewhere: readonly string[] = [],
  ): Promise<Taken | undefined> {
    const small = waitingDeliveriesIfSmall(nodeId, count, elsewhere);
    const taken = await this.#hand(transact, nodeId, small, steady);
    if (taken !== "large") return taken;
    const mostBytes = Math.min(count * limit.CONTENT_MAX_BYTES, limit.MESSAGES_ANSWER_MAX_BYTES);
    await this.#answers.acquire(mostBytes, limit.ANSWER_WAIT_MS);
    try {
      if (signal?.aborted) return undefined; // what is taken and put back may be overtaken meanwhile
      const all = await this.#hand(transact, nodeId, waitingDeliveries(nodeId, count, elsewhere), steady);
      return all === "large" ? undefined : all;
    } finally {
      this.#answers.release(mostBytes); // from here on the answer is counted as what it is
    }
  }

  /** Takes out what a query finds; "large" when that is too much to be loaded before there is room for it. */
  async #hand(
    transact: Transact,
    nodeId: string,
    waiting: Query<readonly Delivery[] | null>,
    steady: number,
  ): Promise<Taken | "large" | undefined> {
    let isLarge = false;
    const taken = await transact({ node: mailboxOwner(nodeId), waiting }, (rows) => {
      isLarge = rows.node !== null && rows.waiting === null;
      if (isLarge) return UNDECIDED;
      const decision = receive(rows.node, nodeId, rows.waiting ?? [], steady);
      if (decision.kind !== "accepted") return decision;
      return accept({ deliveries: decision.answer, transport: this.transport }, decision.changes);
    });
    return isLarge ? "large" : taken;
  }

  takeNothing(transact: Transact, nodeId: string): Promise<Taken> {
    return transact({ node: mailboxOwner(nodeId) }, ({ node }) =>
      node ? accept({ deliveries: [], transport: this.transport }) : nodeNotFound(nodeId),
    );
  }

  async putBack(nodeId: string, taken: readonly Handed[]): Promise<void> {
    const seqs = taken.map(({ seq }) => seq);
    await this.#store.transact({ current: deliveriesOf(nodeId, seqs) }, ({ current }) =>
      putBack(taken, current),
    );
  }

  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }, now: number): Promise<null> {
    const load = {
      node: mailboxOwner(asked.nodeId),
      placed: messageById(asked.messageId),
      delivery: deliveryOf(asked.messageId, asked.nodeId),
    };
    return transact(load, ({ node, placed, delivery }) =>
      acknowledge(placed?.message ?? null, delivery, node, asked, now),
    );
  }

  expireSome(now: number, steady: number): Promise<number> {
    const load = { expired: expiredDeliveries(steady, limit.SWEEP_BATCH) };
    return this.#store.transact(load, ({ expired }) => expireLeases(expired, now));
  }

  #sent({ messageId }: Message, receivers: readonly string[]): Sent {
    return { messageId, receivers, transport: this.transport };
  }
}
