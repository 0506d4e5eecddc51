/**
 * The gate: what may be handed out now. Pauses, limits, holds and budgets each close something: the hub, a node, a
 * creator, a type, a group or a limit key. Every dispatch loads the gate in its own transaction, computed from rows, so
 * that no counter can leak.
 *
 * Dispatches ask isClosed(); closings() has the reasons: a task is closed exactly when there is one.
 */
import { MINUTE_MS, SECOND_MS } from "../lib/clock.ts";
import { announcements, isUsedUp, nameOf, periodOf, silenced } from "./budget.ts";
import type { Change } from "./change.ts";
import { CLOCK_JUMP_MS } from "./limits.ts";
import { type Decision, type Rejected, type RejectionCode, accept, reject } from "./decision.ts";
import { type Lane, type LaneTask, couldTake, hasFree, limitKeyOf, plainLane, typesFor } from "./lane.ts";
import type {
  BudgetState,
  Closed,
  Gate,
  Hold,
  LimitState,
  Moment,
  Node,
  Pause,
  Spending,
  SumKey,
  Task,
} from "./model.ts";
import {
  type NodeSum,
  type Spent,
  type VoidRequest,
  type Voided,
  payingGroup,
  plus,
  spend,
  voidUsage,
} from "./task/facet/spending.ts";

export type Subject = Pick<Task, "creatorNode" | "taskType" | "group" | "child" | "limitKey">;

type GateRows = Pick<Gate, "day" | "budgets" | "pauses" | "limits">;

export function gateAt(rows: GateRows, now: number): Gate {
  const budgets = rows.budgets.filter((state) => state.onLimit === "pause" && isUsedUp(state));
  const limits = rows.limits.filter((limit) => closedUntil(limit, now) !== null);
  const isOpen = budgets.length === 0 && limits.length === 0 && rows.pauses.length === 0;
  const { day, pauses } = rows;
  return {
    day,
    budgets: rows.budgets,
    pauses,
    limits: rows.limits,
    closed: isOpen ? null : closedBy(budgets, pauses, limits),
    opensAt: opensAt(rows.limits, now),
  };
}

function closedBy(
  budgets: readonly BudgetState[],
  pauses: readonly Pause[],
  limits: readonly LimitState[],
): Closed {
  const of = (scope: BudgetState["scope"] | Pause["scope"]): Set<string> =>
    new Set([...budgets, ...pauses].flatMap((state) => (state.scope === scope ? [state.value] : [])));
  return {
    hub: of("hub").size > 0,
    nodes: of("node"),
    creators: of("creator"),
    types: of("type"),
    groups: of("group"),
    keys: of("limit_key").union(new Set(limits.map(({ key }) => key))),
  };
}

export function isSameClosed(a: Closed | null, b: Closed | null): boolean {
  if (a === null || b === null) return a === b;
  const isEqual = (x: ReadonlySet<string>, y: ReadonlySet<string>): boolean =>
    x.size === y.size && [...x].every((value) => y.has(value));
  return (
    a.hub === b.hub &&
    isEqual(a.nodes, b.nodes) &&
    isEqual(a.creators, b.creators) &&
    isEqual(a.types, b.types) &&
    isEqual(a.groups, b.groups) &&
    isEqual(a.keys, b.keys)
  );
}

/** `nodeId` null: to any node. */
export function isClosed(closed: Closed | null | undefined, task: Subject, nodeId: string | null): boolean {
  if (!closed) return false;
  if (isLaneClosed(closed, task) || closed.creators.has(task.creatorNode ?? "")) return true;
  const group = payingGroup(task);
  if (group !== null && closed.groups.has(group)) return true;
  return nodeId !== null && closed.nodes.has(nodeId);
}

export function isLaneClosed(closed: Closed, lane: Pick<LaneTask, "taskType" | "limitKey">): boolean {
  if (closed.hub || closed.types.has(lane.taskType)) return true;
  return closed.keys.size > 0 && closed.keys.has(limitKeyOf(lane));
}

export type OpenLanes<L extends Lane = Lane> = {
  /** Of plain lanes; null: every type, without those that are closed to all. */
  readonly types: readonly string[] | null;
  readonly special: readonly L[];
  /** Whether an ended task of the node would open others. */
  readonly isShort: boolean;
};

/** `types` null: every type that the node takes. */
export function lanesOpenTo<L extends Lane>(
  node: Node,
  requestedTypes: readonly string[] | null,
  closed: Closed | null,
  lanes: Iterable<L>,
): OpenLanes<L> {
  if (closed !== null && (closed.hub || closed.nodes.has(node.nodeId))) return NO_LANES;
  const isOpen = (lane: LaneTask): boolean => closed === null || !isLaneClosed(closed, lane);
  const special: L[] = [];
  let isShort = false;
  for (const lane of lanes) {
    const isRequested = requestedTypes === null || requestedTypes.includes(lane.taskType);
    if (!isRequested || !couldTake(node, lane) || !isOpen(lane)) continue;
    if (hasFree(node, lane.requires)) special.push(lane);
    else isShort = true;
  }
  const types = typesFor(node, requestedTypes);
  return { types: types && types.filter((type) => isOpen(plainLane(type))), special, isShort };
}

const NO_LANES: OpenLanes<never> = { types: [], special: [], isShort: false };

/** The limit key of their tasks is their type. */
export function closedTypes({ types, keys }: Closed): ReadonlySet<string> {
  return keys.size === 0 ? types : types.union(keys);
}

/** `until`: when time alone opens it; null: nobody knows. */
export type Closing =
  | { readonly code: "paused"; readonly pause: Pause; readonly until: null }
  | { readonly code: "limit"; readonly limit: LimitState; readonly until: null }
  | { readonly code: "rate"; readonly limit: LimitState; readonly until: number; readonly isHeld: boolean }
  | { readonly code: "budget"; readonly budget: BudgetState; readonly until: null };

export function closings(gate: Gate, task: Subject, nodeId: string | null, now: number): readonly Closing[] {
  const about = (scope: string, value: string): boolean => isAbout(scope, value, task, nodeId);
  const reasons: Closing[] = [];
  for (const pause of gate.pauses)
    if (about(pause.scope, pause.value)) reasons.push({ code: "paused", pause, until: null });
  const limit = gate.limits.find(({ key }) => key === limitKeyOf(task));
  if (limit) reasons.push(...closingsOf(limit, now));
  for (const budget of gate.budgets)
    if (budget.onLimit === "pause" && isUsedUp(budget) && about(budget.scope, budget.value))
      reasons.push({ code: "budget", budget, until: null });
  return reasons;
}

function isAbout(scope: string, value: string, task: Subject, nodeId: string | null): boolean {
  if (scope === "hub") return true;
  if (scope === "node") return value === nodeId;
  if (scope === "group") return value === payingGroup(task);
  if (scope === "limit_key") return value === limitKeyOf(task);
  return value === (scope === "type" ? task.taskType : (task.creatorNode ?? ""));
}

// ---- Limits

function closingsOf(limit: LimitState, now: number): readonly Closing[] {
  const { running, perMinute, hold, inUse } = limit;
  const reasons: Closing[] = [];
  if (running !== null && inUse >= running) reasons.push({ code: "limit", limit, until: null });
  const rateUntil = perMinute === null ? null : rateOpensAt(limit, perMinute, now);
  if (rateUntil !== null) reasons.push({ code: "rate", limit, until: rateUntil, isHeld: false });
  if (lasts(hold, now)) reasons.push({ code: "rate", limit, until: hold.until, isHeld: true });
  return reasons;
}

/** Infinity: time alone does not open it; null: it is open. */
function closedUntil(limit: LimitState, now: number): number | null {
  const closed = closingsOf(limit, now);
  if (closed.length === 0) return null;
  return Math.max(...closed.map(({ until }) => until ?? Infinity));
}

/** Null: none. */
function opensAt(limits: readonly LimitState[], now: number): number | null {
  const times = limits.map((limit) => closedUntil(limit, now) ?? Infinity);
  const first = Math.min(...times);
  return first === Infinity ? null : first;
}

function secondOf(now: number): number {
  return Math.floor(now / SECOND_MS);
}

/** A hold that begins in the future is of another time: the wall clock was set back. */
export function lasts(hold: Hold | null, now: number): hold is Hold {
  return hold !== null && hold.until > now && hold.at <= now + CLOCK_JUMP_MS;
}

/**
 * A second more than a minute ahead is of another time: the wall clock was set back, and the key must not wait for it.
 */
function counts(second: number, now: number): boolean {
  return second >= secondOf(now - MINUTE_MS) && second <= secondOf(now + MINUTE_MS);
}

/** When a used up rate has room again; null: it has room. */
function rateOpensAt({ uses }: LimitState, perMinute: number, now: number): number | null {
  const counted = uses.filter(({ second }) => counts(second, now)).toSorted((a, b) => a.second - b.second);
  let usesLeft = counted.reduce((sum, { count }) => sum + count, 0);
  if (usesLeft < perMinute) return null;
  for (const { second, count } of counted) {
    usesLeft -= count;
    if (usesLeft < perMinute) return second * SECOND_MS + MINUTE_MS + SECOND_MS;
  }
  return null;
}

export function countedFor(
  gate: Gate | null | undefined,
  task: Subject,
  now: number,
): { readonly countsFor: string | null; readonly changes: readonly Change[] } {
  if (!gate || gate.limits.length === 0) return { countsFor: null, changes: [] };
  const key = limitKeyOf(task);
  const limit = gate.limits.find((limited) => limited.key === key);
  if (!limit) return { countsFor: null, changes: [] };
  return {
    countsFor: limit.running === null ? null : key,
    changes: limit.perMinute === null ? [] : [{ kind: "limit.used", key, second: secondOf(now) }],
  };
}

/** For the next dispatch in the same decision. */
export function gateAfterHandOut(gate: Gate, task: Subject, now: number): Gate {
  const key = limitKeyOf(task);
  if (!gate.limits.some((limited) => limited.key === key)) return gate;
  const limits = gate.limits.map((limit): LimitState => {
    if (limit.key !== key) return limit;
    const inUse = limit.running === null ? 0 : limit.inUse + 1;
    const second = secondOf(now);
    const uses = limit.perMinute === null ? limit.uses : [...limit.uses, { second, count: 1 }];
    return { ...limit, inUse, uses };
  });
  return gateAt({ ...gate, limits }, now);
}

/** The task goes to another node: it is not one more of its key. */
export function gateWithout(gate: Gate, { countsFor }: Pick<Task, "countsFor">, now: number): Gate {
  if (countsFor === null) return gate;
  const limits = gate.limits.map((limit): LimitState =>
    limit.key === countsFor && limit.running !== null ? { ...limit, inUse: limit.inUse - 1 } : limit,
  );
  return gateAt({ ...gate, limits }, now);
}

export function gateAfter(gate: Gate, sum: SumKey & Spending, now = 0): Gate {
  const budgets = gate.budgets.map((state) => {
    const { scope, value, per, spent } = state;
    const isOfSum = scope === sum.scope && value === sum.value;
    if (!isOfSum || sum.day < periodOf(per, gate.day) || sum.day > gate.day) return state;
    return { ...state, spent: plus(spent, sum) };
  });
  return gateAt({ ...gate, budgets }, now);
}

// ---- Usage

/** As spend(), and says so when that uses up a budget. */
export function spendWithin(
  ...[task, nodeId, usage, known, moment]: Parameters<typeof spend>
): Spent | Rejected {
  const spent = spend(task, nodeId, usage, known, moment);
  if ("code" in spent) return spent;
  const { gate } = afterUsage(moment, spent.saved);
  return gate ? { ...spent, saved: [...spent.saved, ...announcements(gate, moment.now)] } : spent;
}

/** As voidUsage(). A budget with room again logs its events again. */
export function voidWithin(
  sums: readonly NodeSum[],
  request: VoidRequest,
  gate: Gate,
  now: number,
): Decision<Voided> {
  const voided = voidUsage(sums, request, now);
  if (voided.kind === "rejected") return voided;
  const after = afterUsage({ now, steady: 0, gate }, voided.changes).gate ?? gate;
  return accept(voided.answer, [...voided.changes, ...silenced(after)]);
}

/** What the request has used up is closed at once. */
export function afterUsage(moment: Moment, saved: readonly Change[]): Moment {
  if (!moment.gate || moment.gate.budgets.length === 0) return moment;
  let { gate } = moment;
  for (const change of saved)
    if (change.kind === "spending.summed") gate = gateAfter(gate, change, moment.now);
  return { ...moment, gate };
}

// ---- Refusals

export function usesIn({ uses }: LimitState, now: number): number {
  return uses.reduce((sum, { second, count }) => (counts(second, now) ? sum + count : sum), 0);
}

const CODES: Readonly<Record<Closing["code"], RejectionCode>> = {
  paused: "paused",
  limit: "limit_reached",
  rate: "limit_reached",
  budget: "budget_exceeded",
};

/** Null: the gate does not keep the task back. */
export function refusedByGate(gate: Gate, task: Task, nodeId: string, now: number): Rejected | null {
  const reasons = closings(gate, task, nodeId, now);
  const [first] = reasons;
  if (!first) return null;
  if (first.code === "budget") {
    const names = reasons
      .flatMap((reason) => (reason.code === "budget" ? [nameOf(reason.budget)] : []))
      .join(", ");
    const detail = `Task ${task.taskId} is not handed out: the budget of ${names} is used up. Wait for its next period, or ask the administrator for a larger reason.`;
    return reject("budget_exceeded", detail);
  }
  const what = reasons.map((reason) => sayClosing(reason, now)).join("; ");
  return reject(
    CODES[first.code],
    `Task ${task.taskId} is not handed out now: ${what}. GET /api/v1/task/${task.taskId}/explain says more.`,
  );
}

export function sayClosing(closing: Closing, now: number): string {
  switch (closing.code) {
    case "paused": {
      const { reason } = closing.pause;
      return `${namePause(closing.pause)} is paused${reason === null ? "" : ` (${reason})`}`;
    }
    case "limit":
      return `the limit key ${closing.limit.key || "(none)"} has ${closing.limit.inUse} running tasks, and ${closing.limit.running} are allowed`;
    case "rate":
      if (closing.isHeld)
        return `the limit key ${closing.limit.key || "(none)"} is held for ${Math.ceil((closing.until - now) / SECOND_MS)} s`;
      return `${usesIn(closing.limit, now)} tasks of the limit key ${closing.limit.key || "(none)"} were handed out in the last minute, and ${closing.limit.perMinute} are allowed`;
    case "budget":
      return `the budget of ${nameOf(closing.budget)} is used up`;
  }
}

export function namePause({ scope, value }: Pick<Pause, "scope" | "value">): string {
  if (scope === "hub") return "the hub";
  const names = { type: "the type", limit_key: "the limit key", creator: "the creator" } as const;
  return `${names[scope]} ${value || "(none)"}`;
}
