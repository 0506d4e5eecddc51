/** The endpoints of advisory leases: lease/*. */
import * as z from "zod/mini";
import { LEASE_OF_TASK_SECONDS, LEASE_TTL_DEFAULT_SECONDS, PER_PAGE_DEFAULT } from "../domain/limits.ts";
import type { Lease, Moment } from "../domain/model.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Released } from "../service/leases.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, BY_NODE, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { advisoryLeaseSchema, encodeAdvisoryLease } from "./response-schemas.ts";
import { about, optional, whole } from "./about.ts";

const LEASE_ANSWER = {
  answer: () => z.strictObject({ lease: about(advisoryLeaseSchema(), "The lease.") }),
  encode: (lease: Lease, _: Variant, at: Moment) => ({ lease: encodeAdvisoryLease(lease, at) }),
} as const;

const acquire = writeEndpoint({
  ...LEASE_ANSWER,
  ...BY_NODE,
  path: "/api/v1/lease/acquire",
  summary: "Takes an advisory lease on a name or a glob of paths, or renews it",
  rejections: [
    "node_not_found",
    "node_offline",
    "lease_conflict",
    "leases_limit",
    "task_not_found",
    "task_not_assigned",
    "task_completed",
    "task_failed",
    "not_assigned_to_node",
    "stale_lease",
  ],
  input: () =>
    z.object({
      name: about(
        field.leaseName(),
        "A name, or a path or glob of paths: `*` stands for characters within a segment, a segment `**` for any segments; `src/` is `src/**`.",
      ),
      node_id: about(field.nodeId(), "The node that takes the lease; it must be online."),
      ttl_s: optional(
        field.leaseTtl(),
        "Seconds until the deadline, at most 86,400; if left out 300, or 30 days with `task_id`.",
      ),
      shared: about(
        z._default(z.boolean(), false),
        "Whether other nodes may have a shared lease on the same name; false if left out.",
      ),
      task_id: optional(field.id(), "A task that the node holds: the lease ends with it."),
      epoch: optional(
        field.epoch(),
        "The `epoch` of the task's lease: an old epoch returns 409 `stale_lease`.",
      ),
    }),
  handle: (
    { services, transact },
    { name, node_id: nodeId, task_id: taskId = null, epoch = null, shared, ttl_s },
  ) => {
    const seconds = taskId === null ? LEASE_TTL_DEFAULT_SECONDS : LEASE_OF_TASK_SECONDS;
    const ttlMs = ttl_s ?? seconds * SECOND_MS;
    return services.leases.acquire(transact, { name, nodeId, taskId, epoch, shared, ttlMs });
  },
});

const held = () => ({
  name: about(field.leaseName(), "The name or glob of lease/acquire."),
  node_id: about(field.nodeId(), "The node that has the lease."),
  task_id: optional(field.id(), "Only the lease for this task."),
  fencing: z.optional(field.fencing()),
});

type Held = z.infer<z.ZodMiniObject<ReturnType<typeof held>>>;

function holderOf(held: Held) {
  const { name, node_id: nodeId, task_id: taskId = null, fencing = null } = held;
  return { name, nodeId, taskId, fencing };
}

const renew = writeEndpoint({
  ...LEASE_ANSWER,
  ...BY_NODE,
  path: "/api/v1/lease/renew",
  summary: "Moves the deadline of an advisory lease",
  rejections: ["lease_lost"],
  input: () =>
    z.object({
      ...held(),
      ttl_s: optional(
        field.leaseTtl(),
        "Seconds until the deadline; if left out, the last `ttl_s` of the lease.",
      ),
    }),
  handle: ({ services, transact }, { ttl_s: ttlMs = null, ...holder }) =>
    services.leases.renew(transact, { ...holderOf(holder), ttlMs }),
});

const release = writeEndpoint({
  path: "/api/v1/lease/release",
  auth: "secret",
  strict: "administrator",
  summary: "Ends an advisory lease",
  input: () => z.object(held()),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ released: whole("How many leases ended: 0 for a repeat.") }),
  handle: ({ services, transact }, input) => services.leases.release(transact, holderOf(input)),
  encode: ({ released }: Released) => ({ released }),
});

const list = readEndpoint({
  path: "/api/v1/lease/list",
  readsMany: true,
  auth: "secret",
  summary: "The advisory leases that nodes have now, oldest first",
  input: () =>
    z.object({
      node_id: optional(field.nodeId(), "Only leases of this node."),
      task_id: optional(field.id(), "Only leases for this task."),
      cursor: optional(
        field.numberCursor(15),
        "The `next_cursor` of the previous page, with the same filter.",
      ),
      per_page: field.paging().per_page,
    }),
  answer: () =>
    z.strictObject({
      leases: about(z.array(advisoryLeaseSchema()), "The leases, oldest first."),
      next_cursor: z.nullable(z.string()),
    }),
  handle: (
    { services },
    { node_id: nodeId = null, task_id: taskId = null, cursor = 0, per_page = PER_PAGE_DEFAULT },
  ) => services.leases.list({ nodeId, taskId }, cursor, per_page),
  encode: ({ leases, next }, _, at) => ({
    leases: leases.map((lease) => encodeAdvisoryLease(lease, at)),
    next_cursor: next === null ? null : String(next),
  }),
});

export const LEASE_ENDPOINTS: readonly Endpoint[] = [acquire, renew, release, list];
