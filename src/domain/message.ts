/**
 * Mailbox rules: a queue for each node, first in first out, the same for agent/* (A) and message/* (B). Delivery is at
 * most once without an ACK, and at least once with one: the visibility timeout (ACK_LEASE_MS) redelivers a message that
 * is not acknowledged in time, and a message that keeps failing is parked (a dead letter).
 *
 * A message is stored once; a delivery is its state with one recipient:
 *
 *   waiting --receive--> gone                                     (no ACK required)
 *   waiting --receive--> leased --ack--> acked                    (ACK required)
 *                        leased --visibility timeout--> waiting   (redelivery, at most REDELIVERIES_MAX times)
 *                        leased --visibility timeout--> parked    (after the last one: it stays in history, an event says so)
 *   any --ack--> acked
 *
 * Must not: load or write anything; every function here is pure.
 */
import type { Change } from "./change.ts";
import {
  type Accepted,
  type Decision,
  UNDECIDED,
  type Undecided,
  accept,
  nodeNotFound,
  reject,
} from "./decision.ts";
import type { EventKind } from "./event.ts";
import { ACK_LEASE_MS, REDELIVERIES_MAX } from "./limits.ts";
import type { Delivery, DeliveryStub, Message, Node } from "./model.ts";

/** One hand-out of a delivery: putBack() distinguishes it from a later one by its count. */
export type HandOut = Pick<Delivery, "seq" | "state" | "deliveries">;

/** Of a node, only that it exists matters here. */
export type Registered = Pick<Node, "nodeId">;

/** Stores a message for one registered node. */
export function send(message: Message, recipient: Registered | null, toNode: string): Decision<Message> {
  if (!recipient) return nodeNotFound(toNode);
  return accept(message, [{ kind: "message.stored", message }, ...queue(message, recipient.nodeId)]);
}

/** Stores a message for each of `recipients` except its sender. The answer is who gets it. */
export function broadcast(message: Message, recipients: readonly string[]): Accepted<readonly string[]> {
  const receivers = recipients.filter((nodeId) => nodeId !== message.fromNode);
  return accept(receivers, [
    { kind: "message.stored", message },
    ...receivers.flatMap((nodeId) => queue(message, nodeId)),
  ]);
}

/** Takes all of `waiting`, oldest first; undecided when it is empty. Answers the deliveries in their new state. */
export function receive(
  node: Registered | null,
  nodeId: string,
  waiting: readonly Delivery[],
  steady: number,
): Decision<readonly Delivery[]> | Undecided {
  if (!node) return nodeNotFound(nodeId);
  if (waiting.length === 0) return UNDECIDED;
  const taken = waiting.map((delivery): Delivery => {
    const { requireAck } = delivery.message;
    return {
      ...delivery,
      state: requireAck ? "leased" : "gone",
      deliveries: delivery.deliveries + 1,
      leaseUntil: requireAck ? steady + ACK_LEASE_MS : null,
    };
  });
  return accept(
    taken,
    taken.map((delivery) => moved({ ...delivery, messageId: delivery.message.messageId })),
  );
}

/** Undoes a receive whose caller hung up before the answer left; deliveries that changed since stay as they are. */
export function putBack(taken: readonly HandOut[], current: readonly DeliveryStub[]): Accepted<number> {
  const handOuts = new Map(taken.map((handOut) => [handOut.seq, handOut]));
  const untouched = current.filter((stub) => {
    const ours = handOuts.get(stub.seq);
    return ours !== undefined && ours.state === stub.state && ours.deliveries === stub.deliveries;
  });
  const changes = untouched.map((stub) =>
    moved({ ...stub, state: "waiting", deliveries: stub.deliveries - 1, leaseUntil: null }),
  );
  return accept(changes.length, changes);
}

/** Acknowledges a message; a repeat is a success too. */
export function acknowledge(
  message: Pick<Message, "messageId"> | null,
  delivery: DeliveryStub | null,
  node: Registered | null,
  asked: { messageId: string; nodeId: string },
  now: number,
): Decision<null> {
  if (!node) return nodeNotFound(asked.nodeId);
  if (!message) {
    return reject(
      "message_not_found",
      `There is no message ${asked.messageId}: it never existed, or was deleted after its retention time.`,
    );
  }
  if (!delivery) {
    return reject(
      "not_your_message",
      `Message ${asked.messageId} is not for ${asked.nodeId}; its recipient acks it.`,
    );
  }
  if (delivery.state === "acked") return accept(null);
  return accept(null, [
    moved({ ...delivery, state: "acked", leaseUntil: null }),
    messageEvent("message.acked", asked.nodeId, asked.messageId, now),
  ]);
}

/** Deliveries whose visibility timeout is over wait again, or are parked. */
export function expireLeases(expired: readonly DeliveryStub[], now: number): Accepted<number> {
  const changes = expired.flatMap((delivery): Change[] => {
    const isRedelivered = delivery.deliveries <= REDELIVERIES_MAX;
    const next = moved({ ...delivery, state: isRedelivered ? "waiting" : "parked", leaseUntil: null });
    if (isRedelivered) return [next];
    return [next, messageEvent("message.parked", delivery.toNode, delivery.messageId, now)];
  });
  return accept(expired.length, changes);
}

function queue(message: Message, toNode: string): Change[] {
  const { messageId, fromNode, type, sentAt } = message;
  const data = { message_id: messageId, from_node: fromNode, type };
  return [
    { kind: "delivery.queued", messageId, toNode, broadcast: message.toNode === null },
    {
      kind: "event.logged",
      event: { kind: "message.sent", at: sentAt, nodeId: toNode, taskId: null, data },
    },
  ];
}

function moved(delivery: DeliveryStub): Change {
  const { messageId, seq, toNode, state, deliveries, leaseUntil } = delivery;
  return { kind: "delivery.moved", messageId, seq, toNode, state, deliveries, leaseUntil };
}

function messageEvent(kind: EventKind, nodeId: string, messageId: string, at: number): Change {
  return { kind: "event.logged", event: { kind, at, nodeId, taskId: null, data: { message_id: messageId } } };
}
