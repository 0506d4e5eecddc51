/**
 * Mail carried by the store: a mailbox is the deliveries in state `waiting` for one node.
 *
 * Must not: decide. The rules are those of domain/message.ts.
 */
import { UNDECIDED, accept, nodeNotFound } from "../domain/decision.ts";
import * as limit from "../domain/limits.ts";
import {
  acknowledge,
  broadcast,
  expireLeases,
  putBack,
  receive,
  send,
  type HandOut,
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
  readonly #store: Store;
  readonly #answers: Semaphore;

  /** @param answers bytes held of large answers: messages that may make one are loaded only when it has room for them */
  constructor(store: Store, answers: Semaphore = new Semaphore(limit.ANSWERS_HELD_MAX_BYTES)) {
    this.#store = store;
    this.#answers = answers;
  }

  get transport(): Transport {
    return this.#store.engine;
  }

  send(transact: Transact, message: Message, toNode: string): Promise<Sent> {
    const { transport } = this;
    return transact({ recipient: mailboxOwner(toNode) }, ({ recipient }) => {
      const decision = send(message, recipient, toNode);
      if (decision.kind === "rejected") return decision;
      return accept({ messageId: message.messageId, receivers: [toNode], transport }, decision.changes);
    });
  }

  broadcast(transact: Transact, message: Message): Promise<Sent> {
    const { transport } = this;
    return transact({ nodeIds: onlineNodeIds() }, ({ nodeIds }) => {
      const { answer: receivers, changes } = broadcast(message, nodeIds);
      return accept({ messageId: message.messageId, receivers, transport }, changes);
    });
  }

  async take(
    transact: Transact,
    nodeId: string,
    count: number,
    steady: number,
    signal?: AbortSignal,
  ): Promise<Taken | undefined> {
    const small = await this.#take(transact, nodeId, waitingDeliveriesIfSmall(nodeId, count), steady);
    if (small !== "large") return small;
    const mostBytes = Math.min(count * limit.CONTENT_MAX_BYTES, limit.MESSAGES_ANSWER_MAX_BYTES);
    await this.#answers.acquire(mostBytes, limit.ANSWER_WAIT_MS, signal);
    try {
      if (signal?.aborted) return undefined; // messages that are taken and put back may be overtaken meanwhile
      const taken = await this.#take(transact, nodeId, waitingDeliveries(nodeId, count), steady);
      return taken === "large" ? undefined : taken;
    } finally {
      this.#answers.release(mostBytes); // the answer itself is accounted for from here on
    }
  }

  /** Takes the messages that a query finds; "large" when they are too large to load without a share of the memory. */
  async #take(
    transact: Transact,
    nodeId: string,
    waiting: Query<readonly Delivery[] | null>,
    steady: number,
  ): Promise<Taken | "large" | undefined> {
    const { transport } = this;
    let isLarge = false;
    const taken = await transact({ node: mailboxOwner(nodeId), waiting }, (rows) => {
      isLarge = rows.node !== null && rows.waiting === null;
      if (isLarge) return UNDECIDED;
      const decision = receive(rows.node, nodeId, rows.waiting ?? [], steady);
      if (decision.kind !== "accepted") return decision;
      return accept({ deliveries: decision.answer, transport }, decision.changes);
    });
    return isLarge ? "large" : taken;
  }

  takeNothing(transact: Transact, nodeId: string): Promise<Taken> {
    const { transport } = this;
    return transact({ node: mailboxOwner(nodeId) }, ({ node }) =>
      node ? accept({ deliveries: [], transport }) : nodeNotFound(nodeId),
    );
  }

  async putBack(nodeId: string, taken: readonly HandOut[]): Promise<void> {
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
}
