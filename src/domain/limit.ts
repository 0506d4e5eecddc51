/**
 * Requests about pauses and limits: what they write, and what they refuse. What they close is gate.ts.
 *
 * A limit and a hold of one key are one row. A row with neither `running` nor `perMinute` is there only for its hold, and
 * is removed with the next write after it is over. Such rows are counted apart from limits: whoever has a secret may hold
 * keys, and must not take the room of the administrator's limits. A node has a share of the holds.
 */
import { SECOND_MS } from "../lib/clock.ts";
import type { Change } from "./change.ts";
import { type Decision, accept, reject } from "./decision.ts";
import type { EventData, EventKind } from "./event.ts";
import type { Gate, Limit, LimitState, Pause, PauseKey } from "./model.ts";
import { lasts, namePause } from "./gate.ts";
import { HUB_LIMITS, refusesMore } from "./shares.ts";

// ---- Pauses

/** Or replaces the reason. */
export function pause(
  gate: Gate,
  asked: PauseKey & { readonly reason: string | null },
  at: number,
): Decision<Pause> {
  const known = gate.pauses.find((pause) => isSame(pause, asked));
  const full = known ? null : refusesMore(HUB_LIMITS.pauses, { all: gate.pauses.length, ofNode: 0 }, null);
  if (full) return full;
  if (known?.reason === asked.reason) return accept(known);
  const paused: Pause = { ...asked, at: known?.at ?? at };
  const data = { scope: asked.scope, value: asked.value || null, reason: asked.reason };
  return accept(paused, [{ kind: "pause.saved", pause: paused }, logged("hub.paused", data, at)]);
}

export function resume(gate: Gate, { scope, value }: PauseKey, at: number): Decision<Pause> {
  const known = gate.pauses.find((pause) => isSame(pause, { scope, value }));
  if (!known) {
    const detail = `${capitalised(namePause({ scope, value }))} is not paused. GET /api/v1/hub/pauses shows what is.`;
    return reject("pause_not_found", detail);
  }
  const data = { scope, value: value || null };
  return accept(known, [{ kind: "pause.deleted", key: { scope, value } }, logged("hub.resumed", data, at)]);
}

function isSame(a: PauseKey, b: PauseKey): boolean {
  return a.scope === b.scope && a.value === b.value;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// ---- Limits

/** A hold stays. */
export function setLimit(gate: Gate, asked: Omit<Limit, "hold">, at: number): Decision<LimitState> {
  const known = gate.limits.find(({ key }) => key === asked.key);
  const otherCount = known && isSet(known) ? 0 : gate.limits.filter(isSet).length;
  const full = refusesMore(HUB_LIMITS.limits, { all: otherCount, ofNode: 0 }, null);
  if (full) return full;
  const limit: Limit = { ...asked, hold: known?.hold ?? null };
  const { key, running, perMinute } = limit;
  const data = { key: key || null, running, per_minute: perMinute };
  return accept({ inUse: 0, uses: [], ...known, ...limit }, [
    ...outdated(gate, at),
    { kind: "limit.saved", limit },
    ...(running === null ? [] : [{ kind: "tasks.counted", key } as const]),
    logged("limit.set", data, at),
  ]);
}

/** And ends its hold. */
export function deleteLimit(gate: Gate, key: string, at: number): Decision<LimitState> {
  const known = gate.limits.find((limit) => limit.key === key);
  if (!known) {
    const detail = `The limit key ${key || "(none)"} has no limit. GET /api/v1/limit/list shows those that have one.`;
    return reject("limit_not_found", detail);
  }
  return accept(known, [
    { kind: "limit.deleted", key },
    { kind: "limit.uses.removed", key, before: Number.MAX_SAFE_INTEGER },
    logged("limit.deleted", { key: key || null }, at),
  ]);
}

/** `taskId`: the task with which the holder gives the key a rest. */
export type HoldRequest = {
  readonly key: string;
  readonly forMs: number;
  readonly nodeId: string | null;
  readonly taskId?: string;
};

/** With a key that is bound to a node: the node must have a task of the limit key. */
export function holdOwn(
  gate: Gate,
  hasTask: true | null,
  asked: HoldRequest,
  at: number,
): Decision<LimitState> {
  if (hasTask) return hold(gate, asked, at);
  const detail = `Node ${asked.nodeId} has no task of the limit key ${asked.key || "(none)"}. A key that is bound to a node holds only the limit keys of tasks that the node has now.`;
  return reject("not_assigned_to_node", detail);
}

/**
 * A hold that lasts longer stays. What adds less than a second has no event, so that holds without end do not fill the
 * log.
 */
export function hold(
  gate: Gate,
  { key, forMs, nodeId, taskId }: HoldRequest,
  at: number,
): Decision<LimitState> {
  const known = gate.limits.find((limit) => limit.key === key);
  const isOnlyHeld = (limit: Limit): boolean => !isSet(limit) && !isOver(limit, at);
  const isOfNode = (limit: Limit): boolean => lasts(limit.hold, at) && limit.hold.by === nodeId;
  const counts = {
    all: !known || isOver(known, at) ? gate.limits.filter(isOnlyHeld).length : 0,
    ofNode: known && isOfNode(known) ? 0 : gate.limits.filter(isOfNode).length,
  };
  const full = refusesMore(HUB_LIMITS.holds, counts, nodeId);
  if (full) return full;
  const before = known && lasts(known.hold, at) ? known.hold.until : at;
  const until = at + forMs;
  if (known && until < before) return accept(known);
  const limit: Limit = {
    key,
    running: known?.running ?? null,
    perMinute: known?.perMinute ?? null,
    hold: { at, until, by: nodeId },
  };
  const data = { key: key || null, for_s: Math.ceil(forMs / SECOND_MS), held_by: nodeId };
  return accept({ inUse: 0, uses: [], ...known, ...limit }, [
    ...outdated(gate, at),
    { kind: "limit.saved", limit },
    ...(until - before < SECOND_MS ? [] : [logged("limit.held", data, at, taskId)]),
  ]);
}

function outdated(gate: Gate, at: number): readonly Change[] {
  return gate.limits.flatMap((limit): Change[] =>
    isOver(limit, at) ? [{ kind: "limit.deleted", key: limit.key }] : [],
  );
}

/** It was only for a hold. */
export function isOver(limit: Limit, at: number): boolean {
  return !isSet(limit) && !lasts(limit.hold, at);
}

/** Not only a hold. */
function isSet({ running, perMinute }: Limit): boolean {
  return running !== null || perMinute !== null;
}

function logged(kind: EventKind, data: EventData, at: number, taskId: string | null = null): Change {
  return { kind: "event.logged", event: { kind, at, nodeId: null, taskId, data } };
}
