/**
 * Messages: one mailbox a node, spoken by agent/* (A) and message/* (B) alike (decisions.md Messages).
 * A message is stored once; a delivery says how far it got with one recipient:
 *
 *   waiting --receive--> gone                        (no ACK asked)
 *   waiting --receive--> leased --ack--> acked       (ACK asked)
 *                        leased --30 s--> waiting    (comes back, at most REDELIVERIES_MAX times)
 *                        leased --30 s--> parked     (then it stays in history, and an event says so)
 *   any --ack--> acked
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

/** What is known of a delivery by who took it, and is enough to put it back. */
export type Handed = Pick<Delivery, "seq" | "state" | "deliveries">;

/** All that is looked at of a node here: that there is one. */
export type Registered = Pick<Node, "nodeId">;

/** Stores a message for one registered node. */
export function send(message: Message, recipient: Registered | null, toNode: string): Decision<Message> {
  if (!recipient) return nodeNotFound(toNode);
  return accept(message, [{ kind: "message.stored", message }, ...queue(message, recipient.nodeId)]);
}

/** Stores a message for each of `recipients` but its sender. The answer is who gets it. */
export function broadcast(message: Message, recipients: readonly string[]): Accepted<readonly string[]> {
  const receivers = recipients.filter((nodeId) => nodeId !== message.fromNode);
  return accept(receivers, [
    { kind: "message.stored", message },
    ...receivers.flatMap((nodeId) => queue(message, nodeId)),
  ]);
}

/** Hands out what waits, oldest first; undecided when nothing does. Answers the deliveries as they are now. */
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

/** Puts back what was handed to a caller who was gone before the answer left: as if it had not been taken. */
export function putBack(taken: readonly Handed[], current: readonly DeliveryStub[]): Accepted<number> {
  const handed = new Map(taken.map((delivery) => [delivery.seq, delivery]));
  const untouched = current.filter((stub) => {
    const mine = handed.get(stub.seq);
    return mine !== undefined && mine.state === stub.state && mine.deliveries === stub.deliveries;
  });
  const changes = untouched.map((stub) =>
    moved({ ...stub, state: "waiting", deliveries: stub.deliveries - 1, leaseUntil: null }),
  );
  return accept(changes.length, changes);
}

/** Confirms a message; a repeat is a success too. */
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
      `There is no message ${asked.messageId}: it never was, or is past its time.`,
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

/** What becomes of deliveries whose 30 seconds are over: they come back, or are parked. */
export function expireLeases(expired: readonly DeliveryStub[], now: number): Accepted<number> {
  const changes = expired.flatMap((delivery): Change[] => {
    const comesBack = delivery.deliveries <= REDELIVERIES_MAX;
    const next = moved({ ...delivery, state: comesBack ? "waiting" : "parked", leaseUntil: null });
    if (comesBack) return [next];
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
