/**
 * How many of a thing the whole hub and one node may have, and how an administrator removes them. So no node can take
 * the room of all others.
 *
 * Must not: have a limit of the whole hub that a node's key can use up.
 */
import { type Rejected, type RejectionCode, reject } from "./decision.ts";
import * as limit from "./limits.ts";

export type HubLimit = {
  /** In the plural. */
  readonly what: string;
  readonly all: number;
  /** Null: only an administrator makes them. */
  readonly ofNode: number | null;
  readonly code: RejectionCode;
  /** The administrator's operation, and what to do to get room. */
  readonly undo: string;
  readonly advice: string;
};

export const HUB_LIMITS = {
  notes: {
    what: "notes",
    all: limit.NOTES_MAX,
    ofNode: limit.NOTES_OF_NODE_MAX,
    code: "notes_limit",
    undo: "note/delete",
    advice: "Delete notes that nobody needs with POST /api/v1/note/delete.",
  },
  noteBytes: {
    what: "bytes of notes",
    all: limit.NOTES_MAX_BYTES,
    ofNode: limit.NOTES_OF_NODE_MAX * (limit.NOTE_TEXT_MAX_BYTES + 4 * limit.NOTE_KEY_MAX_CHARS),
    code: "notes_limit",
    undo: "note/delete",
    advice: "Delete notes that nobody needs with POST /api/v1/note/delete.",
  },
  leases: {
    what: "advisory leases",
    all: limit.LEASES_MAX,
    ofNode: limit.LEASES_OF_NODE_MAX,
    code: "leases_limit",
    undo: "lease/release",
    advice: "Release some, take one on a glob instead, or wait until some of them end.",
  },
  holds: {
    what: "holds of limit keys",
    all: limit.HOLDS_MAX,
    ofNode: limit.HOLDS_OF_NODE_MAX,
    code: "limits_limit",
    undo: "limit/delete",
    advice: "Wait until one of them is over, or leave the hold out.",
  },
  schedules: {
    what: "schedules",
    all: limit.SCHEDULES_MAX,
    ofNode: limit.SCHEDULES_OF_NODE_MAX,
    code: "schedules_limit",
    undo: "schedule/delete",
    advice: "Delete one that is no longer needed.",
  },
  lanes: {
    what: "special lanes",
    all: limit.LANES_MAX,
    ofNode: limit.LANES_OF_NODE_MAX,
    code: "too_many_lanes",
    undo: "task/cancel",
    advice:
      "Each combination of type, requirements and limit key is a lane. Use fewer limit keys, or wait until some tasks have ended.",
  },
  limits: {
    what: "limits",
    all: limit.LIMITS_MAX,
    ofNode: null,
    code: "limits_limit",
    undo: "limit/delete",
    advice: "Delete one that you do not need.",
  },
  pauses: {
    what: "pauses",
    all: limit.PAUSES_MAX,
    ofNode: null,
    code: "pauses_limit",
    undo: "hub/resume",
    advice: "End one that you do not need with POST /api/v1/hub/resume.",
  },
  budgets: {
    what: "budgets",
    all: limit.BUDGETS_MAX,
    ofNode: null,
    code: "budgets_limit",
    undo: "budget/delete",
    advice: "Delete one that you do not need.",
  },
  webhooks: {
    what: "webhooks",
    all: limit.WEBHOOKS_MAX,
    ofNode: null,
    code: "webhooks_limit",
    undo: "webhook/delete",
    advice: "Delete one that is not needed.",
  },
  pushes: {
    what: "push configs of A2A",
    all: limit.PUSH_CONFIGS_MAX,
    ofNode: limit.PUSH_CONFIGS_OF_NODE_MAX,
    code: "webhooks_limit",
    undo: "webhook/delete",
    advice: "Stream the task instead, or wait until other tasks have ended.",
  },
  keys: {
    what: "keys",
    all: limit.KEYS_MAX,
    ofNode: null,
    code: "keys_limit",
    undo: "key/revoke",
    advice: "The number includes revoked keys.",
  },
  invitations: {
    what: "invitations",
    all: limit.INVITATIONS_MAX,
    ofNode: null,
    code: "invitations_limit",
    undo: "invitation/delete",
    advice: "The number includes those that ended in the last 7 days. Delete some (invitation/delete).",
  },
} as const satisfies Record<string, HubLimit>;

export type HubCounts = { readonly all: number; readonly ofNode: number };

/** `nodeId`: for which it would count. */
export function refusesMore(
  { what, all: most, ofNode, code, advice }: HubLimit,
  counts: HubCounts,
  nodeId: string | null,
): Rejected | null {
  if (counts.all >= most) return reject(code, `The hub has ${most} ${what}, which is the most. ${advice}`);
  if (nodeId === null || ofNode === null || counts.ofNode < ofNode) return null;
  return reject(code, `Node ${nodeId} has ${ofNode} ${what}, which is the most for one node. ${advice}`);
}
