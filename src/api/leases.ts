/** The endpoints of advisory leases: lease/*. */
import * as z from "zod/mini";
import { LEASE_TTL_DEFAULT_SECONDS, PER_PAGE_DEFAULT } from "../domain/limits.ts";
import type { Lease, Moment } from "../domain/model.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { Released } from "../service/leases.ts";
import type { Variant } from "../variant/variant.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { advisoryLeaseSchema, encodeAdvisoryLease } from "./response-schemas.ts";

const acquire = writeEndpoint({
  method: "POST",
  path: "/api/v1/lease/acquire",
  auth: "secret",
  strict: "bound",
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
      name: field.leaseName(),
      node_id: field.nodeId(),
      ttl_s: z._default(field.leaseTtl(), LEASE_TTL_DEFAULT_SECONDS * SECOND_MS),
      shared: z._default(z.boolean(), false),
      task_id: z.optional(field.id()),
      epoch: z.optional(field.epoch()),
    }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ lease: advisoryLeaseSchema() }),
  handle: ({ services, transact }, input) =>
    services.leases.acquire(transact, {
      name: input.name,
      nodeId: input.node_id,
      taskId: input.task_id ?? null,
      epoch: input.epoch ?? null,
      shared: input.shared,
      ttlMs: input.ttl_s,
    }),
  encode: (lease: Lease, _: Variant, at: Moment) => ({ lease: encodeAdvisoryLease(lease, at) }),
});

const held = () => ({
  name: field.leaseName(),
  node_id: field.nodeId(),
  task_id: z.optional(field.id()),
  fencing: z.optional(field.fencing()),
});

type Held = {
  readonly name: string;
  readonly node_id: string;
  readonly task_id?: string | undefined;
  readonly fencing?: number | undefined;
};

const holderOf = ({ name, node_id, task_id, fencing }: Held) => ({
  name,
  nodeId: node_id,
  taskId: task_id ?? null,
  fencing: fencing ?? null,
});

const renew = writeEndpoint({
  method: "POST",
  path: "/api/v1/lease/renew",
  auth: "secret",
  strict: "bound",
  summary: "Moves the deadline of an advisory lease",
  rejections: ["lease_lost"],
  input: () => z.object({ ...held(), ttl_s: z.optional(field.leaseTtl()) }),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ lease: advisoryLeaseSchema() }),
  handle: ({ services, transact }, input) =>
    services.leases.renew(transact, { ...holderOf(input), ttlMs: input.ttl_s ?? null }),
  encode: (lease: Lease, _: Variant, at: Moment) => ({ lease: encodeAdvisoryLease(lease, at) }),
});

const release = writeEndpoint({
  method: "POST",
  path: "/api/v1/lease/release",
  auth: "secret",
  strict: "administrator",
  summary: "Ends an advisory lease",
  rejections: [],
  input: () => z.object(held()),
  actsFor: (input) => [input.node_id],
  answer: () => z.strictObject({ released: z.int() }),
  handle: ({ services, transact }, input) => services.leases.release(transact, holderOf(input)),
  encode: ({ released }: Released) => ({ released }),
});

const list = readEndpoint({
  path: "/api/v1/lease/list",
  readsMany: true,
  auth: "secret",
  summary: "The advisory leases that nodes have now, oldest first",
  rejections: [],
  input: () =>
    z.object({
      node_id: z.optional(field.nodeId()),
      task_id: z.optional(field.id()),
      cursor: z.optional(field.fencingCursor()),
      per_page: field.paging().per_page,
    }),
  answer: () =>
    z.strictObject({ leases: z.array(advisoryLeaseSchema()), next_cursor: z.nullable(z.string()) }),
  handle: ({ services }, { node_id, task_id, cursor, per_page }) => {
    const filter = { nodeId: node_id ?? null, taskId: task_id ?? null };
    return services.leases.list(filter, cursor ?? 0, per_page ?? PER_PAGE_DEFAULT);
  },
  encode: ({ leases, next }, _, at) => ({
    leases: leases.map((lease) => encodeAdvisoryLease(lease, at)),
    next_cursor: next === null ? null : String(next),
  }),
});

export const LEASE_ENDPOINTS: readonly Endpoint[] = [acquire, renew, release, list];
