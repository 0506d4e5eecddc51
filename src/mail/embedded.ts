/** Mail carried by the store itself: a mailbox is the rows that wait for a node. */
import { accept, nodeNotFound } from "../domain/decision.ts";
import { SWEEP_BATCH } from "../domain/limits.ts";
import {
  type Handed,
  type Message,
  acknowledge,
  broadcast,
  expireLeases,
  putBack,
  receive,
  send,
} from "../domain/message.ts";
import {
  deliveriesOf,
  deliveryOf,
  expiredDeliveries,
  mailboxOwner,
  messageById,
  waitingBehind,
  waitingDeliveries,
} from "../store/mail-queries.ts";
import { onlineNodeIds } from "../store/queries.ts";
import type { Store, Transact } from "../store/store.ts";
import type { Mail, Sent, Taken, Transport } from "./mail.ts";

export class EmbeddedMail implements Mail {
  readonly transport: Transport;
  readonly #store: Store;

  /** `transport` is what answers name: the store, unless another engine builds on this one. */
  constructor(store: Store, transport: Transport = store.engine) {
    this.#store = store;
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

  /** `elsewhere`: message ids that are just being handed out by other hubs, see waitingBehind(). */
  take(
    transact: Transact,
    nodeId: string,
    count: number,
    steady: number,
    elsewhere: readonly string[] = [],
  ): Promise<Taken | undefined> {
    const waiting =
      elsewhere.length === 0 ? waitingDeliveries(nodeId, count) : waitingBehind(nodeId, count, elsewhere);
    const load = { node: mailboxOwner(nodeId), waiting };
    return transact(load, (rows) => {
      const decision = receive(rows.node, nodeId, rows.waiting, steady);
      if (decision.kind !== "accepted") return decision;
      return accept({ deliveries: decision.answer, transport: this.transport }, decision.changes);
    });
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
    const load = { expired: expiredDeliveries(steady, SWEEP_BATCH) };
    return this.#store.transact(load, ({ expired }) => expireLeases(expired, now));
  }

  #sent({ messageId }: Message, receivers: readonly string[]): Sent {
    return { messageId, receivers, transport: this.transport };
  }
}
