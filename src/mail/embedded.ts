/**
 * Mail carried by the store: a mailbox is the deliveries in state `waiting` for one node.
 *
 * Must not: decide. The rules are those of domain/message.ts.
 */
import { UNDECIDED, accept, also, nodeNotFound } from "../domain/decision.ts";
import * as limit from "../domain/limits.ts";
import {
  acknowledge,
  beginBroadcast,
  broadcast,
  continueBroadcast,
  dropBroadcast,
  expireLeases,
  publish,
  putBack,
  receive,
  redrive,
  send,
  type HandOut,
} from "../domain/message.ts";
import type { Delivery, Message } from "../domain/model.ts";
import {
  deliveriesOf,
  deliveryOf,
  expiredDeliveries,
  lateBroadcast,
  mailboxOwner,
  messageById,
  queuedDeliveries,
  unfinishedBroadcast,
  waitingDeliveries,
  waitingDeliveriesIfSmall,
} from "../store/sql/messages.ts";
import { type NodePart, nodePart } from "../store/sql/nodes.ts";
import { Semaphore } from "../lib/semaphore.ts";
import {
  type Answer,
  type Committed,
  type Query,
  type Store,
  type Transact,
  transactAlso,
} from "../store/store.ts";
import {
  type Mail,
  MailBusy,
  type Receiver,
  type Sent,
  type TakerFilter,
  type Taken,
  type Transport,
} from "./mail.ts";

const TOO_SLOW = "The broadcast took too long and reached no node.";

export class EmbeddedMail implements Mail {
  readonly #store: Store;
  /** However many are requested, other requests wait for one step. */
  readonly #broadcasting = new Semaphore(1);

  constructor(store: Store) {
    this.#store = store;
  }

  get transport(): Transport {
    return this.#store.engine;
  }

  send(transact: Transact<Sent>, message: Message, toNode: string): Promise<Answer<Sent>> {
    const { transport } = this;
    return transact({ recipient: mailboxOwner(toNode) }, ({ recipient }) => {
      const decision = send(message, recipient, toNode);
      if (decision.kind === "rejected") return decision;
      return accept({ messageId: message.messageId, receivers: [toNode], transport }, decision.changes);
    });
  }

  async broadcast(
    transact: Transact<Sent>,
    message: Message,
    steady: () => number,
    taking: TakerFilter = null,
  ): Promise<Answer<Sent>> {
    const { transport } = this;
    const { messageId } = message;
    const load = { nodes: nodePart("", limit.BROADCAST_STEP_NODES, taking) };
    const sent = await transact(load, ({ nodes }) => {
      if (nodes.next !== null) return UNDECIDED; // it takes more than one step
      const { answer, changes } = broadcast(message, nodes.online);
      return accept({ messageId, receivers: answer.toSorted(), transport }, changes);
    });
    if (sent) return sent;
    if (this.#broadcasting.waiting >= limit.BROADCASTS_WAITING_MAX)
      throw new MailBusy("Too many broadcasts are waiting.");
    await this.#broadcasting.acquire(1);
    try {
      return await this.#broadcastInSteps(transact, message, steady, taking);
    } finally {
      this.#broadcasting.release(1);
    }
  }

  /** A failing step leaves an invisible broadcast, which dropUnfinished() removes. */
  async #broadcastInSteps(
    transact: Transact<Sent>,
    message: Message,
    steady: () => number,
    taking: TakerFilter,
  ): Promise<Committed<Sent>> {
    const { transport } = this;
    const { messageId } = message;
    const receivers: string[] = [];
    for (let from: string | null = ""; from !== null;) {
      const nodes = nodePart(from, limit.BROADCAST_STEP_NODES, taking);
      const part: NodePart = await this.#queueSome(message, nodes, from === "", receivers.length, steady());
      receivers.push(...part.online);
      from = part.next;
    }
    receivers.sort();
    const sent = await transact({ unfinished: unfinishedBroadcast(messageId) }, ({ unfinished }) => {
      const decision = publish(message, receivers, unfinished);
      if (decision.kind === "undecided") return decision;
      return accept<Sent>({ messageId, receivers, transport }, decision.changes);
    });
    if (!sent) throw new MailBusy(TOO_SLOW);
    return sent;
  }

  /** `before`: for how many it is queued already. */
  async #queueSome(
    message: Message,
    nodes: Query<NodePart>,
    isFirst: boolean,
    before: number,
    steady: number,
  ): Promise<NodePart> {
    const load = { unfinished: unfinishedBroadcast(message.messageId), nodes };
    const writeUntil = steady + limit.BROADCAST_LEASE_MS;
    const part = await this.#store.transact(load, ({ unfinished, nodes }) => {
      const step = isFirst
        ? beginBroadcast(message, nodes.online, writeUntil)
        : continueBroadcast(message, nodes.online, unfinished, before, writeUntil);
      if (step.kind === "undecided") return step;
      return accept<NodePart>({ next: nodes.next, online: step.answer }, step.changes);
    });
    if (!part) throw new MailBusy(TOO_SLOW);
    return part;
  }

  async dropUnfinished(steady: number): Promise<boolean> {
    const late = await this.#store.read(lateBroadcast(steady));
    if (!late) return false;
    const load = {
      late: unfinishedBroadcast(late.messageId),
      deliveries: queuedDeliveries(late.seq, limit.SWEEP_BATCH),
    };
    await this.#store.transact(load, (rows) => {
      if (!rows.late || rows.late.writeUntil > steady) return UNDECIDED; // its hub has continued it
      return dropBroadcast(rows.late, rows.deliveries, limit.SWEEP_BATCH);
    });
    return true;
  }

  async take(
    transact: Transact<Taken>,
    nodeId: string,
    count: number,
    steady: () => number,
    receiver?: Receiver,
  ): Promise<Committed<Taken> | undefined> {
    const maxBytes = receiver?.maxBytes ?? limit.MESSAGES_ANSWER_MAX_BYTES;
    const small = await this.#take(
      transact,
      nodeId,
      waitingDeliveriesIfSmall(nodeId, count),
      steady,
      maxBytes,
    );
    if (small !== "large") return small;
    const mostBytes = Math.min(count * limit.CONTENT_MAX_BYTES, maxBytes);
    await receiver?.room?.acquire(mostBytes, limit.ANSWER_WAIT_MS, receiver.signal);
    try {
      if (receiver?.signal.aborted) return undefined; // newer messages could overtake those that are taken and put back
      const waiting = waitingDeliveries(nodeId, count, maxBytes);
      const taken = await this.#take(transact, nodeId, waiting, steady, maxBytes);
      return taken === "large" ? undefined : taken;
    } finally {
      receiver?.room?.release(mostBytes); // from here on response backpressure counts the answer
    }
  }

  /** "large": only loaded once there is room. */
  async #take(
    transact: Transact<Taken>,
    nodeId: string,
    waiting: Query<readonly Delivery[] | null>,
    steady: () => number,
    maxBytes: number,
  ): Promise<Committed<Taken> | "large" | undefined> {
    const { transport } = this;
    const load = { node: mailboxOwner(nodeId), waiting };
    const { answer, also: isLarge } = await transactAlso(transact, load, (rows) => {
      if (rows.node !== null && rows.waiting === null) return also(UNDECIDED, true);
      const decision = receive(rows.node, nodeId, rows.waiting ?? [], steady(), maxBytes);
      if (decision.kind !== "accepted") return decision;
      return accept({ deliveries: decision.answer, transport }, decision.changes);
    });
    return isLarge ? "large" : answer;
  }

  takeAtOnce(
    transact: Transact<Taken>,
    nodeId: string,
    count: number,
    steady: () => number,
  ): Promise<Committed<Taken>> {
    const { transport } = this;
    const waiting = waitingDeliveries(nodeId, count, limit.BATCH_RECEIVE_BYTES);
    return transact({ node: mailboxOwner(nodeId), waiting }, (rows) => {
      const decision = receive(rows.node, nodeId, rows.waiting, steady());
      if (decision.kind === "rejected") return decision;
      if (decision.kind === "undecided") return accept<Taken>({ deliveries: [], transport });
      return accept<Taken>({ deliveries: decision.answer, transport }, decision.changes);
    });
  }

  takeNothing(transact: Transact<Taken>, nodeId: string): Promise<Committed<Taken>> {
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

  acknowledge(
    transact: Transact,
    request: { messageId: string; nodeId: string },
    now: () => number,
  ): Promise<null> {
    const load = {
      node: mailboxOwner(request.nodeId),
      placed: messageById(request.messageId),
      delivery: deliveryOf(request.messageId, request.nodeId),
    };
    return transact(load, ({ node, placed, delivery }) =>
      acknowledge(placed?.message ?? null, delivery, node, request, now()),
    );
  }

  redrive(transact: Transact, request: { messageId: string; nodeId: string }): Promise<null> {
    const load = {
      node: mailboxOwner(request.nodeId),
      placed: messageById(request.messageId),
      delivery: deliveryOf(request.messageId, request.nodeId),
    };
    return transact(load, ({ node, placed, delivery }) =>
      redrive(placed?.message ?? null, delivery, node, request),
    );
  }

  expireSome(now: number, steady: number): Promise<number> {
    const load = { expired: expiredDeliveries(steady, limit.SWEEP_BATCH) };
    return this.#store.transact(load, ({ expired }) => expireLeases(expired, now));
  }
}
