/**
 * The endpoints of messages: message/* comes from variant B and agent/* from A, on the same mailboxes. agent/sse is in
 * stream.ts.
 */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { BROADCAST_TYPES, SEND_TYPES, type KeyRecord, type MessageType } from "../domain/model.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Sent, Taken } from "../mail/mail.ts";
import { type Endpoint, BY_NODE, MUST_NOT_WAIT, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import {
  count,
  deliverySchema,
  encodeDelivery,
  encodeFate,
  encodePage,
  fateSchema,
  pageSchema,
} from "./response-schemas.ts";
import { about, optional, whole } from "./about.ts";

const conversation = () => ({ reply_to: z.optional(field.id()), thread: z.optional(field.thread()) });

type Sending = z.infer<z.ZodMiniObject<ReturnType<typeof conversation>>> & {
  readonly from_node: string;
  readonly content: string;
  readonly type: MessageType;
};

function draftOf(message: Sending, key: KeyRecord | null) {
  const { from_node: fromNode, content, type, reply_to: replyTo = null, thread = null } = message;
  return { fromNode, content, type, replyTo, thread, verified: key?.nodeId === fromNode };
}

function sendEndpoint(path: string): Endpoint {
  return writeEndpoint({
    path,
    auth: "secret",
    strict: "bound",
    summary: "Sends a message to one node",
    rejections: ["node_not_found", "message_not_found", "not_your_message"],
    input: () =>
      z.object({
        from_node: field.nodeId(),
        to_node: field.nodeId(),
        content: field.content(),
        type: z._default(field.word(SEND_TYPES), "text"),
        require_ack: z._default(z.boolean(), false),
        ...conversation(),
      }),
    actsFor: (input) => [input.from_node],
    answer: () => z.strictObject({ message_id: z.string(), transport: z.string() }),
    handle: ({ services, transact, key }, input) =>
      services.messages.send(transact, {
        ...draftOf(input, key),
        toNode: input.to_node,
        requireAck: input.require_ack,
      }),
    encode: ({ messageId, transport: carrier }: Sent) => ({ message_id: messageId, transport: carrier }),
  });
}

function broadcastEndpoint(path: string): Endpoint {
  return writeEndpoint({
    path,
    auth: "secret",
    strict: "bound",
    summary: "Sends a message to all online nodes, or to the nodes for a task type",
    rejections: ["message_not_found", "not_your_message"],
    notInBatch: "must be sent alone: a broadcast is written in several commits",
    input: () =>
      z.object({
        from_node: field.nodeId(),
        content: field.content(),
        type: z._default(field.word(BROADCAST_TYPES), "broadcast"),
        capability: optional(
          field.taker(),
          "Only to nodes that take tasks of this type: nodes with this capability, or without any.",
        ),
        ...conversation(),
      }),
    actsFor: (input) => [input.from_node],
    answer: () =>
      z.strictObject({ receivers: z.array(z.string()), message_id: z.string(), transport: z.string() }),
    handle: ({ services, transact, key }, { capability = null, ...input }) => {
      const draft = { ...draftOf(input, key), toNode: null, requireAck: false };
      return services.messages.send(transact, draft, capability);
    },
    encode: ({ receivers, messageId, transport: carrier }: Sent) => ({
      receivers,
      message_id: messageId,
      transport: carrier,
    }),
  });
}

function ackEndpoint(path: string): Endpoint {
  return writeEndpoint({
    ...BY_NODE,
    path,
    summary: "Acknowledges a message",
    rejections: ["node_not_found", "message_not_found", "not_your_message"],
    input: () => z.object({ node_id: field.nodeId(), message_id: field.id() }),
    answer: () => z.strictObject({}),
    handle: ({ services, transact }, { node_id, message_id }) =>
      services.messages.acknowledge(transact, { nodeId: node_id, messageId: message_id }),
    encode: () => ({}),
  });
}

const receive = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/message/receive",
  summary: "Takes messages out of a mailbox, oldest first; may wait for the first",
  rejections: ["node_not_found"],
  input: () =>
    z.object({
      node_id: field.nodeId(),
      count: z._default(field.itemCount(limit.MESSAGES_MAX), limit.RECEIVE_DEFAULT),
      blocking: about(z._default(z.boolean(), false), "Whether to wait for the first message."),
      timeout: z._default(field.waitSeconds(), limit.RECEIVE_TIMEOUT_DEFAULT_SECONDS * SECOND_MS),
    }),
  notInBatch: ({ blocking, timeout }) => (blocking && timeout > 0 ? MUST_NOT_WAIT : null),
  answer: () =>
    z.strictObject({ count: z.int(), messages: z.array(deliverySchema()), transport: z.string() }),
  handle: (call, input) => {
    const { services, transact, exchange, repeatable, inBatch, hold, backpressure } = call;
    const { node_id, count, blocking, timeout } = input;
    if (inBatch)
      return services.messages.receiveAtOnce(transact, node_id, count, exchange.request.signal, repeatable);
    const waitMs = blocking ? timeout : 0;
    const room = backpressure.roomFor(call);
    const receive = (signal: AbortSignal) =>
      services.messages.receive(transact, node_id, count, { waitMs, signal, repeatable, room });
    return waitMs > 0 ? hold(receive) : receive(exchange.request.signal);
  },
  encode: ({ deliveries, transport: carrier }: Taken) => ({
    count: deliveries.length,
    messages: deliveries.map(encodeDelivery),
    transport: carrier,
  }),
});

const history = readEndpoint({
  path: "/api/v1/message/history",
  readsMany: true,
  auth: "secret",
  showsMessages: true,
  summary: "The messages that a node sent or got, newest first",
  rejections: ["node_not_found", "message_not_found"],
  input: () =>
    z.object({
      node_id: field.nodeId(),
      before: z.optional(field.id()),
      thread: optional(field.thread(), "Only messages of this conversation, among its newest 2,000."),
      count: z.optional(field.queryCount(limit.MESSAGES_MAX)),
    }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ count: z.int(), messages: z.array(fateSchema()), transport: z.string() }),
  handle: ({ services }, { node_id, before = null, thread = null, count = limit.HISTORY_DEFAULT }) =>
    services.messages.history(node_id, { before, thread }, count),
  encode: ({ rows, count, transport: carrier }) => ({
    count,
    messages: rows.map(encodeFate),
    transport: carrier,
  }),
});

const parked = readEndpoint({
  path: "/api/v1/message/parked",
  readsMany: true,
  auth: "secret",
  showsMessages: true,
  summary: "Dead letters: the messages that nodes never acknowledged, oldest first",
  rejections: ["node_not_found"],
  input: () =>
    z.object({
      node_id: optional(
        field.nodeId(),
        "The node; if left out, all nodes, or the node that the key is bound to.",
      ),
      ...field.paging(),
    }),
  actsFor: (input) => [input.node_id],
  answer: () =>
    z.strictObject({
      messages: z.array(fateSchema()),
      ...pageSchema(),
      total: about(count(), "How many parked messages there are; of all nodes counted up to 100,000."),
      by_node: optional(
        z.array(
          z.strictObject({
            node_id: z.string(),
            count: whole("How many messages of the node are parked."),
          }),
        ),
        "Only without `node_id`: the 50 nodes with the most parked messages.",
      ),
    }),
  handle: async ({ services, variant, nodeOfKey }, { node_id, ...paging }) => {
    const page = field.pageRequest(paging, variant.unpaged);
    const nodeId = node_id ?? nodeOfKey; // a key that is bound to a node reads its mailbox alone
    if (nodeId === null) return services.messages.allParked(page);
    return { ...(await services.messages.parked(nodeId, page)), byNode: null };
  },
  encode: ({ byNode, ...page }) => ({
    ...encodePage("messages", page, encodeFate),
    ...(byNode && { by_node: byNode.map(({ nodeId, count }) => ({ node_id: nodeId, count })) }),
  }),
});

const redrive = writeEndpoint({
  path: "/api/v1/message/redrive",
  auth: "secret",
  strict: "administrator",
  summary: "Puts a parked message back into its mailbox, with deliveries 0",
  rejections: ["node_not_found", "message_not_found", "not_your_message", "message_not_parked"],
  input: () => z.object({ node_id: field.nodeId(), message_id: field.id() }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({}),
  handle: ({ services, transact }, { node_id, message_id }) =>
    services.messages.redrive(transact, { nodeId: node_id, messageId: message_id }),
  encode: () => ({}),
});

const agentMessages = readEndpoint({
  path: "/api/v1/agent/messages",
  readsMany: true,
  auth: "secret",
  showsMessages: true,
  summary: "The messages that a node got, newest first, without taking any out",
  rejections: ["node_not_found", "message_not_found"],
  input: () =>
    z.object({
      node_id: field.nodeId(),
      since: z.optional(field.id()),
      before: z.optional(field.id()),
      limit: z.optional(field.queryCount(limit.MESSAGES_MAX)),
    }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ count: z.int(), messages: z.array(fateSchema()) }),
  handle: ({ services }, { node_id, since = null, before = null, limit: most = limit.HISTORY_DEFAULT }) =>
    services.messages.mailbox(node_id, { since, before }, most),
  encode: ({ rows, count }) => ({ count, messages: rows.map(encodeFate) }),
});

export const MESSAGE_ENDPOINTS: readonly Endpoint[] = [
  sendEndpoint("/api/v1/message/send"),
  receive,
  broadcastEndpoint("/api/v1/message/broadcast"),
  ackEndpoint("/api/v1/message/ack"),
  history,
  parked,
  redrive,
  sendEndpoint("/api/v1/agent/message"),
  agentMessages,
  broadcastEndpoint("/api/v1/agent/broadcast"),
  ackEndpoint("/api/v1/agent/ack"),
];
