/** The endpoints of nodes: node/*. */
import * as z from "zod/mini";
import { LIST_SCANNED_MAX, PER_PAGE_DEFAULT, SWEEP_BATCH } from "../domain/limits.ts";
import type { Node } from "../domain/model.ts";
import { isTls } from "../http/exchange.ts";
import { SECOND_MS, isoTime } from "../lib/clock.ts";
import { type PageRequest, Rows } from "../service/list-pages.ts";
import type { NodeLists, NodePage, NodeQuery } from "../service/node-lists.ts";
import type { HeartbeatResult, Left, Registration } from "../service/nodes.ts";
import { INTERVALS } from "../variant/by-name.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { invalidField } from "./input.ts";
import * as field from "./request-fields.ts";
import { encodeNode, encodeTaskSummary, nodeSchema, taskSummarySchema, time } from "./response-schemas.ts";
import { about, flag, number, optional, whole } from "./about.ts";

const hubs = () =>
  optional(
    z.array(z.string()),
    "The base URLs of the hub and of its copies, the one that accepts writes first; left out while there is no copy.",
  );

const register = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/node/register",
  summary: "Registers a node, or updates it, and puts it online",
  rejections: ["nodes_limit"],
  input: () =>
    z.object({
      node_id: about(
        field.newNodeId(),
        "The id that the node chooses: 1 to 128 characters of `A-Z a-z 0-9 . _ : -`.",
      ),
      name: field.nodeName(),
      host: z.optional(field.host()),
      port: z.optional(field.port()),
      capabilities: optional(
        field.capabilities(),
        "The task types that the node takes; a node without any takes all. Comma-separated, or an array.",
      ),
      resources: optional(
        field.resources(),
        "What the node has, as up to 16 amounts by name (at most 64 characters), rounded to three decimals; tasks may require a part of each.",
      ),
      max_tasks: z.optional(field.maxTasks()),
      auto_assign: z.optional(z.boolean()),
    }),
  answer: (variant) =>
    z.strictObject({
      node_id: z.string(),
      status: about(z.literal("online"), "The node is online from now on."),
      created: flag("False if the node was registered before."),
      heartbeat_interval: z.number(),
      offline_after: number("Seconds without a heartbeat after which the node is offline."),
      node: nodeSchema(variant),
      hubs: hubs(),
    }),
  handle: (
    { services, variant, exchange, transact },
    { node_id: nodeId, name, host = null, port = null, ...input },
  ) => {
    const { capabilities = [], resources = {}, max_tasks: maxTasks = null } = input;
    const { auto_assign: autoAssign = variant.autoAssign } = input;
    const offer = { capabilities, resources, maxTasks, autoAssign };
    const node = { nodeId, name, host, port, variant: variant.joins, ...offer };
    return services.nodes.register(
      transact,
      node,
      variant.offlineAfterMs,
      services.copies.hubs({ variant: variant.name, isTls: isTls(exchange) }),
    );
  },
  encode: ({ node, created, hubs }: Registration, variant: Variant) => ({
    node_id: node.nodeId,
    status: "online",
    created,
    heartbeat_interval: variant.heartbeatIntervalMs / SECOND_MS,
    offline_after: variant.offlineAfterMs / SECOND_MS,
    node: encodeNode(node, variant),
    ...(hubs.length > 0 && { hubs }),
  }),
});

const heartbeat = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/node/heartbeat",
  summary: "Keeps a node online; returns the number of its tasks and messages",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId() }),
  answer: () =>
    z.strictObject({
      node_id: z.string(),
      status: about(z.literal("online"), "The node is online."),
      last_heartbeat: time(),
      heartbeat_interval: z.number(),
      tasks_assigned: z.int(),
      messages_waiting: whole("How many messages are in the node's mailbox."),
      drain: z.boolean(),
      hubs: hubs(),
    }),
  handle: ({ services, variant, exchange, transact }, { node_id }) =>
    services.nodes.heartbeat(
      transact,
      node_id,
      (node) => INTERVALS[node.variant].offlineAfterMs, // even if this request uses another variant
      services.copies.hubs({ variant: variant.name, isTls: isTls(exchange) }),
    ),
  encode: (node: HeartbeatResult) => ({
    node_id: node.nodeId,
    status: "online",
    last_heartbeat: isoTime(node.lastHeartbeatAt),
    heartbeat_interval: INTERVALS[node.variant].heartbeatIntervalMs / SECOND_MS,
    tasks_assigned: node.tasksAssigned,
    messages_waiting: node.messagesWaiting,
    drain: node.draining,
    ...(node.hubs.length > 0 && { hubs: node.hubs }),
  }),
});

const leave = writeEndpoint({
  ...BY_NODE,
  path: "/api/v1/node/leave",
  summary: "Puts a node offline at once and gives its tasks back",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId() }),
  answer: () =>
    z.strictObject({
      node_id: z.string(),
      status: about(z.literal("offline"), "The node is offline."),
      tasks_released: whole("How many tasks the node gave back."),
    }),
  handle: async ({ services, transact, inBatch }, { node_id }) => {
    const departure = await services.nodes.leave(transact, node_id, inBatch);
    if (departure) return departure;
    throw invalidField("path", `must be sent alone: the node holds ${SWEEP_BATCH} tasks or more`);
  },
  encode: ({ nodeId, tasksReleased }: Left) => ({
    node_id: nodeId,
    status: "offline",
    tasks_released: tasksReleased,
  }),
});

const drain = writeEndpoint({
  path: "/api/v1/node/drain",
  auth: "secret",
  strict: "administrator",
  summary: "Drains a node, so that it gets no new tasks, or ends a drain",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId(), drain: z.boolean() }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ node_id: z.string(), drain: z.boolean(), tasks_assigned: z.int() }),
  handle: ({ services, transact }, { node_id, drain }) =>
    services.nodes.drain(transact, { nodeId: node_id, draining: drain }),
  encode: (node: Node) => ({
    node_id: node.nodeId,
    drain: node.draining,
    tasks_assigned: node.tasksAssigned,
  }),
});

const list = readEndpoint({
  path: "/api/v1/node/list",
  readsMany: true,
  auth: "public",
  summary: "All nodes, or a page; filters by state, name and capability",
  input: () =>
    z.object({
      status: optional(
        field.word(["online", "draining", "offline"]),
        "Only nodes in this state; `online` includes draining nodes.",
      ),
      q: optional(
        field.nodePrefix(),
        "Only nodes whose node_id, name or host begins with this, ignoring case.",
      ),
      capability: optional(
        field.taker(),
        "Only nodes that take tasks of this type: nodes with this capability, or without any.",
      ),
      order: optional(
        field.nodeOrder(),
        "`id` (the default); `busy`: most unfinished tasks first, offline nodes last; `lux`: highest balance first.",
      ),
      tasks: optional(
        field.queryFlag(),
        "In the query `1`: the response also has the first 3 tasks that each node of the page holds, the oldest first.",
      ),
      ...field.paging(),
      cursor: optional(
        field.nodeCursor(),
        "The `next_cursor` of the previous page, with the same filters and order and without `page`.",
      ),
    }),
  answer: (variant) =>
    z.strictObject({
      nodes: about(z.array(nodeSchema(variant)), "All nodes."),
      tasks: z.optional(z.array(taskSummarySchema(variant))),
      page: z.optional(z.nullable(z.int())),
      per_page: z.optional(z.int()),
      total: optional(z.nullable(z.int()), "How many nodes match; null if the hub did not count the nodes."),
      pages: optional(
        z.nullable(z.int()),
        "How many pages there are; null if the hub did not count the nodes.",
      ),
      next_cursor: z.optional(z.nullable(z.string())),
    }),
  handle: async ({ services }, input) => {
    const { tasks, cursor } = input;
    if (Object.values(input).every((value) => value === undefined))
      return { order: null, page: null, rows: await services.nodes.list(), held: null };
    const { status: state = null, q: prefix = "", capability: taking = null, order = "id" } = input;
    const query = { state, prefix, taking, order };
    const request = field.pageRequest(input, PER_PAGE_DEFAULT);
    const page = await pageOf(services.nodes.lists, query, request, cursor, input.page !== undefined);
    const held = tasks === true ? await services.nodes.lists.tasksOf(page.nodes) : null;
    return { order: query.order, page, rows: new Rows(page.nodes), held };
  },
  encode: ({ order, page, rows, held }, variant, at) => ({
    nodes: rows.map((node) => encodeNode(node, variant)),
    ...(held && { tasks: held.map((task) => encodeTaskSummary(task, variant, at)) }),
    ...(page && {
      page: page.page,
      per_page: page.perPage,
      total: page.total,
      pages: page.total === null ? null : Math.ceil(page.total / page.perPage),
      next_cursor: page.next && field.encodeNodeCursor(order, page.next),
    }),
  }),
});

function pageOf(
  lists: NodeLists,
  query: NodeQuery,
  request: PageRequest,
  cursor: field.NodeCursor | undefined,
  isByNumber: boolean,
): Promise<NodePage> {
  if (cursor !== undefined) {
    if (isByNumber) throw invalidField("page", "must not be sent together with cursor");
    if (cursor.order !== query.order) throw invalidField("cursor", `is of a list with order=${cursor.order}`);
    return lists.after(query, cursor.position, request.perPage);
  }
  const most = Math.floor(LIST_SCANNED_MAX / request.perPage);
  if (request.page > most) throw invalidField("page", `must be at most ${most}: go on with cursor`);
  return lists.page(query, request);
}

const get = readEndpoint({
  path: "/api/v1/node/:node_id",
  auth: "public",
  summary: "One node",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: z.string() }),
  answer: (variant) => z.strictObject({ node: nodeSchema(variant) }),
  handle: ({ services }, { node_id }) => services.nodes.get(node_id),
  encode: (node, variant) => ({ node: encodeNode(node, variant) }),
});

const remove = writeEndpoint({
  path: "/api/v1/node/delete",
  auth: "admin",
  summary: "Deletes a node; its tasks are open again, its ledger and messages stay",
  rejections: ["node_not_found"],
  input: () => z.object({ node_id: field.nodeId() }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ node_id: z.string() }),
  handle: ({ services, transact }, { node_id }) => services.nodes.remove(transact, node_id),
  encode: ({ nodeId }: Node) => ({ node_id: nodeId }),
});

export const NODE_ENDPOINTS: readonly Endpoint[] = [register, heartbeat, leave, drain, remove, list, get];
