/**
 * Requests about pauses and limits: what they write, and what they refuse. What they close is gate.ts.
 *
 * A limit and a hold of one key are one row. A row with neither `running` nor `perMinute` is there only for its hold, and
 * is removed with the next write after it is over. Such rows are counted apart from limits: whoever has a secret may hold
 * keys, and must not take the room of the administrator's limits.
 */
import { SECOND_MS } from "../lib/clock.ts";
import type { Change } from "./change.ts";
import { type Decision, accept, reject } from "./decision.ts";
import type { EventData, EventKind } from "./event.ts";
import { HOLDS_MAX, LIMITS_MAX, PAUSES_MAX } from "./limits.ts";
import type { Gate, Limit, LimitState, Pause, PauseKey } from "./model.ts";
import { isHeld, namePause } from "./gate.ts";

// ---- Pauses

/** Pauses something, or replaces the reason for which it is paused. */
export function pause(
  gate: Gate,
  asked: PauseKey & { readonly reason: string | null },
  at: number,
): Decision<Pause> {
  const known = gate.pauses.find((one) => isSame(one, asked));
  if (!known && gate.pauses.length >= PAUSES_MAX) {
    const detail = `There are ${PAUSES_MAX} pauses, which is the most. End one that you do not need with POST /api/v1/hub/resume.`;
    return reject("pauses_limit", detail);
  }
  if (known?.reason === asked.reason) return accept(known);
  const paused: Pause = { ...asked, at: known?.at ?? at };
  const data = { scope: asked.scope, value: asked.value || null, reason: asked.reason };
  return accept(paused, [{ kind: "pause.saved", pause: paused }, logged("hub.paused", data, at)]);
}

/** Ends a pause. */
export function resume(gate: Gate, { scope, value }: PauseKey, at: number): Decision<Pause> {
  const known = gate.pauses.find((one) => isSame(one, { scope, value }));
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

/** Sets the limit of a key, or replaces it. A hold stays. */
export function setLimit(gate: Gate, asked: Omit<Limit, "heldUntil">, at: number): Decision<LimitState> {
  const known = gate.limits.find(({ key }) => key === asked.key);
  if (!(known && isSet(known)) && gate.limits.filter(isSet).length >= LIMITS_MAX) {
    const detail = `There are ${LIMITS_MAX} limits, which is the most. Delete one that you do not need.`;
    return reject("limits_limit", detail);
  }
  const limit: Limit = { ...asked, heldUntil: known?.heldUntil ?? null };
  const { key, running, perMinute } = limit;
  const data = { key: key || null, running, per_minute: perMinute };
  return accept({ inUse: 0, uses: [], ...known, ...limit }, [
    ...outdated(gate, at),
    { kind: "limit.saved", limit },
    ...(running === null ? [] : [{ kind: "tasks.counted", key } as const]),
    logged("limit.set", data, at),
  ]);
}

/** Deletes the limit of a key, and ends its hold. */
export function deleteLimit(gate: Gate, key: string, at: number): Decision<LimitState> {
  const known = gate.limits.find((one) => one.key === key);
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

/** Who holds a key, and for how long. `taskId`: the task with which the holder gives the key a rest. */
export type HoldRequest = {
  readonly key: string;
  readonly forMs: number;
  readonly nodeId: string | null;
  readonly taskId?: string;
};

/**
 * Holds a key: none of its tasks is handed out until then. A hold that lasts longer stays. What adds less than a second
 * has no event, so that holds without end do not fill the log.
 */
export function hold(
  gate: Gate,
  { key, forMs, nodeId, taskId }: HoldRequest,
  at: number,
): Decision<LimitState> {
  const known = gate.limits.find((one) => one.key === key);
  const isOnlyHeld = (limit: Limit): boolean => !isSet(limit) && !isOver(limit, at);
  const isMore = !known || isOver(known, at);
  if (isMore && gate.limits.filter(isOnlyHeld).length >= HOLDS_MAX) {
    const detail = `There are ${HOLDS_MAX} holds of keys that have no limit, which is the most. Wait until one is over, or leave the hold out.`;
    return reject("limits_limit", detail);
  }
  const before = known?.heldUntil ?? 0;
  const heldUntil = isHeld(before, at) ? Math.max(before, at + forMs) : at + forMs;
  if (known && heldUntil === before) return accept(known);
  const limit: Limit = {
    key,
    running: known?.running ?? null,
    perMinute: known?.perMinute ?? null,
    heldUntil,
  };
  const data = { key: key || null, for_s: Math.ceil(forMs / SECOND_MS), held_by: nodeId };
  return accept({ inUse: 0, uses: [], ...known, ...limit }, [
    ...outdated(gate, at),
    { kind: "limit.saved", limit },
    ...(heldUntil - Math.max(before, at) < SECOND_MS ? [] : [logged("limit.held", data, at, taskId)]),
  ]);
}

/** The rows that were only for a hold, which is over. */
function outdated(gate: Gate, at: number): readonly Change[] {
  return gate.limits.flatMap((limit): Change[] =>
    isOver(limit, at) ? [{ kind: "limit.deleted", key: limit.key }] : [],
  );
}

/** Whether it was only for a hold, which is over. */
export function isOver(limit: Limit, at: number): boolean {
  return !isSet(limit) && !isHeld(limit.heldUntil ?? 0, at);
}

/** Whether it is a limit, and not only a hold. */
function isSet({ running, perMinute }: Limit): boolean {
  return running !== null || perMinute !== null;
}

function logged(kind: EventKind, data: EventData, at: number, taskId: string | null = null): Change {
  return { kind: "event.logged", event: { kind, at, nodeId: null, taskId, data } };
}
