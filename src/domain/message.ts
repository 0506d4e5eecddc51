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
 *   parked --redrive--> waiting                              (deliveries from 0)
 *
 * Retention removes a message whatever its state; an event names each recipient that never received or confirmed it.
 *
 * A broadcast to many nodes is written in several commits (begin and continueBroadcast), and no reader sees it before
 * the last commit (publish). Until then it has a lease, `writeUntil`: when that runs out, or no hub is left, it is
 * removed.
 *
 * Must not: load or write anything; every function here is pure.
 */
import type { Change } from "./change.ts";
import {
  type Accepted,
  type Decision,
  UNDECIDED,
  type Undecided,
  type Rejected,
  accept,
  nodeNotFound,
  reject,
} from "./decision.ts";
import type { EventKind } from "./event.ts";
import { messageBytes } from "./quota.ts";
import { ACK_LEASE_MS, MESSAGES_ANSWER_MAX_BYTES, REDELIVERIES_MAX } from "./limits.ts";
import type { BroadcastTally, Delivery, DeliveryState, DeliveryStub, Message, Node } from "./model.ts";
import { assert, must } from "../lib/assert.ts";

/** putBack() distinguishes it from a later dispatch by its count. */
export type HandOut = Pick<Delivery, "seq" | "state" | "deliveries">;

/** Of a node, only that it exists matters here. */
export type Registered = Pick<Node, "nodeId">;

export function send(message: Message, recipient: Registered | null, toNode: string): Decision<Message> {
  if (!recipient) return nodeNotFound(toNode);
  return accept(message, [
    { kind: "message.stored", message, keptBytes: keptOf(message, 1) },
    { kind: "delivery.queued", messageId: message.messageId, toNode: recipient.nodeId },
    sent(message, recipient.nodeId, {}),
  ]);
}

/** In one commit. The answer lists the recipients. */
export function broadcast(message: Message, recipients: readonly string[]): Accepted<readonly string[]> {
  const { answer, changes } = queuedFor(message, recipients);
  return accept(answer, [
    { kind: "message.stored", message, keptBytes: keptOf(message, answer.length) },
    ...changes,
    ...published(message, answer.length),
  ]);
}

/** Its hub must continue until `writeUntil` (steady clock); 0: given up. */
export type UnfinishedBroadcast = {
  readonly messageId: string;
  readonly seq: number;
  readonly writeUntil: number;
};

/** The answer lists the recipients in this part. */
export function beginBroadcast(
  message: Message,
  recipients: readonly string[],
  writeUntil: number,
): Accepted<readonly string[]> {
  const { answer, changes } = queuedFor(message, recipients);
  return accept(answer, [
    { kind: "message.stored", message },
    ...changes,
    { kind: "broadcast.saved", messageId: message.messageId, writeUntil, waiting: answer.length },
  ]);
}

/** `before`: recipients so far. Undecided when the broadcast was given up. */
export function continueBroadcast(
  message: Message,
  recipients: readonly string[],
  unfinished: UnfinishedBroadcast | null,
  before: number,
  writeUntil: number,
): Accepted<readonly string[]> | Undecided {
  if (!unfinished || unfinished.writeUntil === 0) return UNDECIDED;
  const { answer, changes } = queuedFor(message, recipients);
  const waiting = before + answer.length;
  return accept(answer, [
    ...changes,
    { kind: "broadcast.saved", messageId: message.messageId, writeUntil, waiting },
  ]);
}

/** It then counts against the quota of its sender. Undecided when it was given up. */
export function publish(
  message: Message,
  receivers: readonly string[],
  unfinished: UnfinishedBroadcast | null,
): Accepted<readonly string[]> | Undecided {
  if (!unfinished || unfinished.writeUntil === 0) return UNDECIDED;
  const keptBytes = keptOf(message, receivers.length);
  const charged: Change = { kind: "message.charged", messageId: message.messageId, keptBytes };
  return accept(receivers, [...published(message, receivers.length), ...(keptBytes > 0 ? [charged] : [])]);
}

/** Nothing if it came without a bound key. */
function keptOf({ verified, content }: Message, recipients: number): number {
  return verified ? messageBytes(content, recipients) : 0;
}

/** `limit` deliveries at a time. The answer is whether all are removed. */
export function dropBroadcast(
  unfinished: UnfinishedBroadcast,
  deliveryCount: number,
  limit: number,
): Accepted<boolean> {
  assert(deliveryCount <= limit, "no more deliveries are counted than one step removes");
  const { messageId, seq } = unfinished;
  const isLast = deliveryCount < limit;
  const trimmed: Change = { kind: "broadcast.trimmed", seq, limit };
  if (!isLast)
    return accept(false, [{ kind: "broadcast.saved", messageId, writeUntil: 0, waiting: 0 }, trimmed]);
  return accept(true, [trimmed, { kind: "broadcast.removed", seq }, { kind: "message.removed", messageId }]);
}

/** Of JSON for one byte of text: a control character becomes \u0000. */
const JSON_BYTES_MAX = 6;

/** The first whose JSON fits into `maxBytes`, at least one. */
function fitting(waiting: readonly Delivery[], maxBytes: number): readonly Delivery[] {
  const chars = waiting.reduce((sum, { message }) => sum + message.content.length, 0);
  if (chars * JSON_BYTES_MAX <= maxBytes) return waiting;
  let bytes = 0;
  return waiting.filter(({ message }) => {
    const fits = bytes < maxBytes;
    if (fits) bytes += Buffer.byteLength(JSON.stringify(message.content));
    return fits;
  });
}

/**
 * Oldest first, as many as fit into one answer; undecided when `waiting` is empty. Answers the deliveries in their new
 * state.
 */
export function receive(
  node: Registered | null,
  nodeId: string,
  waiting: readonly Delivery[],
  steady: number,
  maxBytes = MESSAGES_ANSWER_MAX_BYTES,
): Decision<readonly Delivery[]> | Undecided {
  if (!node) return nodeNotFound(nodeId);
  if (waiting.length === 0) return UNDECIDED;
  const taken = fitting(waiting, maxBytes).map((delivery): Delivery => {
    const { requireAck } = delivery.message;
    return {
      ...delivery,
      state: requireAck ? "leased" : "gone",
      deliveries: delivery.deliveries + 1,
      leaseUntil: requireAck ? steady + ACK_LEASE_MS : null,
    };
  });
  const steps = taken.map((delivery, i): DeliveryMove => {
    const { messageId, fromNode, toNode } = delivery.message;
    const stub = { ...delivery, messageId, fromNode, broadcast: toNode === null };
    return { stub, from: must(waiting[i], "what is taken waits").state };
  });
  return accept(taken, moves(steps));
}

/** The caller hung up before the answer left; deliveries that changed since stay as they are. */
export function putBack(taken: readonly HandOut[], current: readonly DeliveryStub[]): Accepted<number> {
  const handOuts = new Map(taken.map((handOut) => [handOut.seq, handOut]));
  const untouched = current.filter((stub) => {
    const ours = handOuts.get(stub.seq);
    return ours !== undefined && ours.state === stub.state && ours.deliveries === stub.deliveries;
  });
  const steps = untouched.map((stub): DeliveryMove => {
    const back: DeliveryStub = {
      ...stub,
      state: "waiting",
      deliveries: stub.deliveries - 1,
      leaseUntil: null,
    };
    return { stub: back, from: stub.state };
  });
  return accept(steps.length, moves(steps));
}

/** A repeat is a success too. */
export function acknowledge(
  message: Pick<Message, "messageId"> | null,
  delivery: DeliveryStub | null,
  node: Registered | null,
  request: { messageId: string; nodeId: string },
  now: number,
): Decision<null> {
  const stub = ownDelivery(message, delivery, node, request);
  if ("kind" in stub) return stub;
  if (stub.state === "acked") return accept(null);
  const acked: DeliveryStub = { ...stub, state: "acked", leaseUntil: null };
  return accept(null, [...moves([{ stub: acked, from: stub.state }]), fate("message.acked", acked, now)]);
}

/** With no deliveries counted. */
export function redrive(
  message: Pick<Message, "messageId"> | null,
  delivery: DeliveryStub | null,
  node: Registered | null,
  request: { messageId: string; nodeId: string },
): Decision<null> {
  const stub = ownDelivery(message, delivery, node, request);
  if ("kind" in stub) return stub;
  if (stub.state !== "parked") {
    return reject(
      "message_not_parked",
      `Message ${request.messageId} is not parked. List the parked messages with GET /api/v1/message/parked.`,
    );
  }
  const waiting: DeliveryStub = { ...stub, state: "waiting", deliveries: 0, leaseUntil: null };
  return accept(null, moves([{ stub: waiting, from: stub.state }]));
}

function ownDelivery(
  message: Pick<Message, "messageId"> | null,
  delivery: DeliveryStub | null,
  node: Registered | null,
  request: { messageId: string; nodeId: string },
): DeliveryStub | Rejected {
  if (!node) return nodeNotFound(request.nodeId);
  if (!message) return messageNotFound(request.messageId);
  if (delivery) return delivery;
  const detail = `Message ${request.messageId} is not for ${request.nodeId}. Name its recipient as node_id.`;
  return reject("not_your_message", detail);
}

/** The sender's name for it, else the id of its first message. */
export function threadOf({ thread, messageId }: Pick<Message, "thread" | "messageId">): string {
  return thread ?? messageId;
}

/**
 * The node sent or received it.
 * @param delivery of this message to the node
 */
export function seenBy(
  message: Message | null,
  delivery: DeliveryStub | null,
  request: { messageId: string; nodeId: string },
): Decision<Message> {
  if (!message) return messageNotFound(request.messageId);
  if (message.fromNode === request.nodeId || delivery) return accept(message);
  const detail = `Message ${request.messageId} was neither sent nor received by ${request.nodeId}.`;
  return reject("not_your_message", detail);
}

export function messageNotFound(messageId: string, advice = ""): Rejected {
  const detail = `There is no message ${messageId}: it never existed, or was deleted after its retention time.`;
  return reject("message_not_found", `${detail}${advice}`);
}

/** They wait again, or are parked. */
export function expireLeases(expired: readonly DeliveryStub[], now: number): Accepted<number> {
  const changes = expired.flatMap((delivery): Change[] => {
    const isRedelivered = delivery.deliveries <= REDELIVERIES_MAX;
    const stub: DeliveryStub = { ...delivery, state: isRedelivered ? "waiting" : "parked", leaseUntil: null };
    const next = moves([{ stub, from: delivery.state }]);
    return isRedelivered ? [...next] : [...next, fate("message.parked", delivery, now)];
  });
  return accept(expired.length, changes);
}

/** For each recipient that never received or confirmed a message that retention is about to remove. */
export function expire(old: readonly DeliveryStub[], now: number): readonly Change[] {
  const lost = old.filter(({ state }) => state !== "gone" && state !== "acked");
  return [
    ...tallies(old.map((stub) => ({ stub, from: stub.state, isRemoved: true }))),
    ...lost.map((delivery) => fate("message.expired", delivery, now)),
  ];
}

function queuedFor(message: Message, recipients: readonly string[]): Accepted<readonly string[]> {
  const receivers = recipients.filter((nodeId) => nodeId !== message.fromNode);
  if (receivers.length === 0) return accept(receivers);
  return accept(receivers, [{ kind: "deliveries.queued", messageId: message.messageId, toNodes: receivers }]);
}

function published(message: Message, receivers: number): readonly Change[] {
  return [
    { kind: "broadcast.saved", messageId: message.messageId, writeUntil: null, waiting: receivers },
    sent(message, null, { receivers }),
  ];
}

function sent(message: Message, nodeId: string | null, counts: Readonly<Record<string, number>>): Change {
  const data = { message_id: message.messageId, from_node: message.fromNode, type: message.type, ...counts };
  return {
    kind: "event.logged",
    event: {
      kind: "message.sent",
      at: message.sentAt,
      nodeId,
      taskId: null,
      data,
      verified: message.verified,
    },
  };
}

/** `from`: the state before. */
type DeliveryMove = { readonly stub: DeliveryStub; readonly from: DeliveryState; readonly isRemoved?: true };

function moves(steps: readonly DeliveryMove[]): readonly Change[] {
  return [...steps.map(({ stub }) => moved(stub)), ...tallies(steps)];
}

function moved(delivery: DeliveryStub): Change {
  const { messageId, seq, toNode, state, deliveries, leaseUntil } = delivery;
  return { kind: "delivery.moved", messageId, seq, toNode, state, deliveries, leaseUntil };
}

function tallies(steps: readonly DeliveryMove[]): readonly Change[] {
  const sums = new Map<number, Record<keyof BroadcastTally, number>>();
  for (const { stub, from, isRemoved } of steps) {
    if (!stub.broadcast) continue;
    const sum = sums.get(stub.seq) ?? { waiting: 0, delivered: 0, acked: 0 };
    sum[TALLIED[from]]--;
    if (!isRemoved) sum[TALLIED[stub.state]]++;
    sums.set(stub.seq, sum);
  }
  return Array.from(sums, ([seq, sum]): Change => ({ kind: "broadcast.tallied", seq, ...sum }));
}

/** A broadcast requires no ACK: it is never leased or parked. */
const TALLIED: Readonly<Record<DeliveryState, keyof BroadcastTally>> = {
  waiting: "waiting",
  leased: "delivered",
  gone: "delivered",
  parked: "delivered",
  acked: "acked",
};

function fate(kind: EventKind, { toNode, messageId, fromNode }: DeliveryStub, now: number): Change {
  const data = { message_id: messageId, from_node: fromNode };
  return { kind: "event.logged", event: { kind, at: now, nodeId: toNode, taskId: null, data } };
}
