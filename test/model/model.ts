/**
 * The reference model of the hub: its rules without a store, HTTP or concurrency. run.ts compares the hub with it, command
 * by command.
 *
 * Every method is one command. It changes the model, notes the events that the hub must log, and returns the facts that
 * the answer must have; or it rejects with the code that the hub must reject with, and changes nothing.
 */
import type { RejectionCode } from "../../src/domain/decision.ts";
import type { EventKind } from "../../src/domain/event.ts";
import { DAY_MS, SECOND_MS, utcDayStart } from "../../src/lib/clock.ts";

export type VariantName = "A" | "B";

export type Node = {
  readonly id: string;
  variant: VariantName;
  capabilities: readonly string[];
  maxTasks: number;
  autoAssign: boolean;
  online: boolean;
  draining: boolean;
  leaseUntil: number;
  idleSince: number;
  readonly ledger: Payment[];
  signedInOn: number | null;
};

export type Payment = {
  readonly micro: number;
  readonly kind: "reward" | "signin" | "hold" | "return";
  readonly taskId: string | null;
};

export type Draft = {
  readonly type: string;
  priority: 0 | 1 | 2 | 5;
  readonly rewardMicro: number;
  readonly maxAttempts: number | null;
  readonly backoffMs: number;
  readonly timeoutMs: number | null;
  readonly maxRunMs: number | null;
  readonly delayMs: number | null;
  readonly expiresInMs: number | null;
  readonly dependsOn: readonly string[];
  /** All that it depends on must have ended, however. */
  readonly runsAnyway: boolean;
  readonly maxCostMicro: number | null;
  /** In time; null: it is not reviewed. */
  readonly reviewed: "pay" | "reject" | null;
  readonly group: string | null;
  /** Also so long after the creation of such a task. */
  readonly uniqueKey: string | null;
  readonly uniqueForMs: number | null;
};

export type Task = Draft & {
  review: { state: "pending" | "passed" | "rejected"; readonly until: number; timedOut: boolean } | null;
  readonly id: string;
  /** Created through B. */
  readonly balanced: boolean;
  status: "open" | "assigned" | "completed" | "failed";
  node: string | null;
  /** The balancer does not give it straight back. */
  revokedFrom: string | null;
  attempts: number;
  failures: number;
  restarts: number;
  epoch: number;
  leaseUntil: number | null;
  runUntil: number | null;
  /** When its node said that it works on it; without that, an assigned one is a gift. */
  startedAt: number | null;
  notBefore: number | null;
  expiresAt: number | null;
  readonly uniqueUntil: number | null;
  readonly scheduled: boolean;
  readonly unmet: Set<string>;
  failure: FailureKind | null;
  /** Of a task that failed through its dependencies: the one at the root of it, which failed in another way. */
  root: string | null;
  result: string | null;
  receipt?: unknown;
  checkpoint: { readonly data: string; readonly epoch: number; readonly node: string } | null;
  questions: Question[];
  parked: boolean;
  outputs: readonly { readonly epoch: number; readonly node: string; readonly text: string }[];
  attemptsFailed: readonly FailureKind[];
  readonly usage: Map<string, Report>;
};

/** Creates a task at an interval, unless one of its tasks is unfinished. */
export type Schedule = {
  readonly everyMs: number;
  readonly catchUp: "none" | "one";
  readonly paused: boolean;
  /** Null: it is paused. */
  nextAt: number | null;
  lastTaskId: string | null;
  /** The last time whose skip has an event. */
  skipLoggedAt: number | null;
};

/** Warns of costs: what it keeps back when it pauses is in api/budgets.test.ts. */
export type Budget = {
  readonly scope: "hub" | "type";
  readonly value: string;
  readonly per: "day" | "total";
  readonly limitMicro: number;
  warnedIn: number | null;
  exceededIn: number | null;
};

export type Report = { readonly seq: number; readonly tokens: number; readonly micro: number | null };

export type Question = {
  readonly id: string;
  readonly text: string;
  readonly askedBy: string;
  readonly epoch: number;
  readonly until: number;
  state: "open" | "answered" | "timed_out";
  answer: string | null;
};

type FailureKind =
  "failed" | "timed_out" | "offline" | "cancelled" | "expired" | "dependency" | "budget" | "rejected";

export const REVIEW_MS = 45_000;

type Delivery = {
  state: "waiting" | "leased" | "gone" | "acked" | "parked";
  times: number;
  leaseUntil: number;
};

export type Message = {
  readonly id: string;
  readonly from: string;
  readonly content: string;
  readonly requireAck: boolean;
  readonly broadcast: boolean;
  readonly to: ReadonlyMap<string, Delivery>;
};

export type Note = { readonly text: string; readonly version: number; readonly node: string };

export const LEASED = {
  a: ["a"],
  "a/b": ["a/b"],
  "a/*": ["a/b", "a/c"],
  "a/**": ["a", "a/b", "a/c", "a/b/c"],
  "**/c": ["c", "a/c", "a/b/c"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type LeaseName = keyof typeof LEASED;

export type Lease = {
  readonly name: LeaseName;
  readonly node: string;
  readonly taskId: string | null;
  readonly shared: boolean;
  readonly fencing: number;
  ttlMs: number;
  until: number;
};

export type File = { readonly id: string; taskId: string | null; readonly isOutput: boolean };

/** An event that must be logged. Those of one `batch` are logged together, in an order that nobody promises. */
export type Event = {
  readonly kind: EventKind;
  readonly node: string | null;
  readonly task: string | null;
  readonly batch: number | null;
  readonly message: Message | null;
};

/** `from`: how many events the log had. */
export type Webhook = {
  readonly url: string;
  readonly kinds: readonly EventKind[];
  readonly node: string | null;
  readonly task: string | null;
  readonly from: number;
};

export function isWanted(
  { kind, node, task }: Event,
  wanted: Pick<Webhook, "kinds" | "node" | "task">,
): boolean {
  const isOfKind = wanted.kinds.length === 0 || wanted.kinds.includes(kind);
  return isOfKind && [null, node].includes(wanted.node) && [null, task].includes(wanted.task);
}

const SCHEDULED: Draft = {
  type: "x",
  priority: 1,
  rewardMicro: 0,
  maxAttempts: null,
  backoffMs: 5 * SECOND_MS,
  timeoutMs: null,
  maxRunMs: null,
  delayMs: null,
  expiresInMs: null,
  dependsOn: [],
  runsAnyway: false,
  maxCostMicro: null,
  group: null,
  uniqueKey: null,
  uniqueForMs: null,
  reviewed: null,
};
const SCHEDULE_LATE_MS = 60 * SECOND_MS;
const SCHEDULE_SKIPS_LOGGED_MS = 60 * SECOND_MS;
const OFFLINE_AFTER_MS = { A: 180 * SECOND_MS, B: 90 * SECOND_MS } as const;
const ACK_LEASE_MS = 30 * SECOND_MS;
const HANDED_OUT_MAX = 6;
const SIGNIN_MICRO = 10_000_000;
const FAILURES_MAX = 10;
const FAILED_ATTEMPTS_KEPT = 5;
const BACKOFF_MAX_MS = 3_600 * SECOND_MS;
const ATTEMPT_EVENTS = {
  failed: "task.attempt_failed",
  timed_out: "task.timed_out",
  offline: "task.requeued",
  rejected: "task.review_rejected",
} as const;

export function isInReview({ review, status }: Task): boolean {
  return status === "completed" && review?.state === "pending";
}

export class Refused extends Error {
  readonly code: RejectionCode;

  constructor(code: RejectionCode) {
    super(code);
    this.code = code;
  }
}

function refuse(code: RejectionCode): never {
  throw new Refused(code);
}

export class Model {
  now: number;
  readonly nodes = new Map<string, Node>();
  readonly former = new Map<string, Node>();
  tasks: Task[] = [];
  /** `nodeId`: whom it pays. */
  readonly payments: {
    readonly nodeId: string | null;
    readonly from: string;
    readonly to: string;
    readonly payment: Payment;
  }[] = [];
  readonly messages: Message[] = [];
  files: File[] = [];
  readonly events: Event[] = [];
  readonly notes = new Map<string, Note>();
  leases: Lease[] = [];
  /** Of deleted tasks too. */
  readonly spent: (Report & { readonly node: string; readonly type: string; readonly at: number })[] = [];
  readonly budgets = new Map<string, Budget>();
  schedule: Schedule | null = null;
  webhook: Webhook | null = null;
  webhooks = 0;
  #fencing = 0;
  #batches = 0;

  constructor(now: number) {
    this.now = now;
    this.#log("hub.started", null, null);
  }

  // ---- Nodes

  register(
    id: string,
    variant: VariantName,
    capabilities: readonly string[],
    maxTasks: number,
    autoAssign: boolean,
  ): Node & { created: boolean } {
    const known = this.nodes.get(id);
    const before = known && { ...known };
    const fresh = { id, online: false, leaseUntil: 0, idleSince: this.now, ledger: [], signedInOn: null };
    const profile = { variant, capabilities, maxTasks, autoAssign, draining: known?.draining ?? false };
    const node: Node = Object.assign(known ?? this.former.get(id) ?? fresh, profile);
    this.former.delete(id);
    this.nodes.set(id, node);
    if (!before) this.#log("node.registered", id, null);
    else if (!isSameProfile(before, node)) this.#log("node.updated", id, null);
    this.#comeOnline(node);
    return { ...node, created: !known };
  }

  heartbeat(id: string): Node {
    const node = this.node(id);
    this.#comeOnline(node);
    return node;
  }

  deleteNode(id: string): void {
    const node = this.node(id);
    const held = this.tasks.filter((task) => task.status === "assigned" && task.node === id);
    for (const task of held) {
      this.#free(task, node);
      this.#log("task.released", id, task);
    }
    node.online = false;
    this.#endLeases((lease) => lease.node === id);
    this.nodes.delete(id);
    this.former.set(id, node);
    this.#log("node.deleted", id, null);
    if (held.length > 0) this.#balance(this.pool().filter(({ balanced }) => balanced));
  }

  /** Others get its tasks. */
  leave(id: string): void {
    const node = this.node(id);
    const held = this.tasks.filter((task) => task.status === "assigned" && task.node === id);
    const together = this.#batch();
    for (const task of held) {
      this.#free(task, node);
      this.#log("task.released", id, task, together);
    }
    node.draining = false;
    this.#endLeases((lease) => lease.node === id);
    if (node.online) {
      node.online = false;
      this.#log("node.left", id, null);
      this.#log("node.offline", id, null);
    }
    if (held.length > 0) this.#balance(this.pool().filter(({ balanced }) => balanced));
  }

  drain(id: string, draining: boolean): void {
    const node = this.node(id);
    if (node.draining !== draining) this.#log("node.draining", id, null);
    node.draining = draining;
    if (!draining) this.#fill(node);
  }

  /** Whoever was away gets what waits for him. */
  #comeOnline(node: Node): void {
    node.leaseUntil = this.now + OFFLINE_AFTER_MS[node.variant];
    if (!node.online) this.#log("node.online", node.id, null);
    node.online = true;
    this.#fill(node);
  }

  // ---- Tasks

  create(
    variant: VariantName,
    draft: Draft,
    id: string,
    fileIds: readonly string[] = [],
    scheduled = false,
  ): Task {
    const balanced = variant === "B";
    const none = { node: null, revokedFrom: null, result: null, failure: null, root: null } as const;
    const context = { checkpoint: null, attemptsFailed: [], outputs: [], questions: [], parked: false };
    const unheld = { leaseUntil: null, runUntil: null, startedAt: null } as const;
    const counts = { attempts: 0, failures: 0, restarts: 0, epoch: 0 };
    const times = {
      notBefore: draft.delayMs === null ? null : this.now + draft.delayMs,
      expiresAt: draft.expiresInMs === null ? null : this.now + draft.expiresInMs,
      uniqueUntil: draft.uniqueForMs === null ? null : this.now + draft.uniqueForMs,
    };
    const task: Task = {
      ...draft,
      ...none,
      ...context,
      ...unheld,
      ...counts,
      ...times,
      id,
      balanced,
      scheduled,
      status: "open",
      unmet: new Set(),
      usage: new Map(),
      review: null,
    };
    this.tasks.push(task);
    for (const file of this.files) if (fileIds.includes(file.id)) file.taskId = id;
    this.#log("task.created", null, task);
    if (!this.#waitForOthers(task)) this.#end(task, "dependency");
    else if (balanced) this.#balance([task]);
    return task;
  }

  /** Without a change there is no event; the next time moves only with another interval, or after a pause. */
  putSchedule(wanted: Pick<Schedule, "everyMs" | "catchUp" | "paused">): Schedule {
    const { everyMs, catchUp, paused } = wanted;
    const before = this.schedule;
    const keeps = before?.everyMs === everyMs && before.nextAt !== null;
    const nextAt = paused ? null : keeps ? before.nextAt : this.now + everyMs;
    const isSame = before && keeps && before.catchUp === catchUp && before.paused === paused;
    const isSamePause = before?.paused && paused && before.everyMs === everyMs && before.catchUp === catchUp;
    if (isSame || isSamePause) return before;
    const { lastTaskId = null, skipLoggedAt = null } = before ?? {};
    this.schedule = { everyMs, catchUp, paused, nextAt, lastTaskId, skipLoggedAt };
    this.#log("schedule.saved", null, null);
    return this.schedule;
  }

  deleteSchedule(): void {
    if (!this.schedule) refuse("schedule_not_found");
    this.schedule = null;
    this.#log("schedule.deleted", null, null);
  }

  runSchedule(id: string): Task {
    const schedule = this.schedule ?? refuse("schedule_not_found");
    schedule.lastTaskId = id;
    return this.create("A", SCHEDULED, id, [], true);
  }

  /** Handles the times that have come: at most one creates a task, because its task keeps the others from it. */
  #fire(newId: () => string): void {
    const { schedule } = this;
    if (!schedule) return;
    const { everyMs, catchUp } = schedule;
    const missed = this.now - SCHEDULE_LATE_MS;
    while (schedule.nextAt !== null && schedule.nextAt <= this.now) {
      const isSkipped = schedule.nextAt < missed && catchUp === "none";
      const isRunning = this.tasks.some(
        ({ scheduled, status }) => scheduled && (status === "open" || status === "assigned"),
      );
      if (isSkipped || isRunning) this.#skip(schedule, schedule.nextAt);
      else this.runSchedule(newId());
      const after = Math.max(schedule.nextAt, missed - 1);
      schedule.nextAt += (Math.floor((after - schedule.nextAt) / everyMs) + 1) * everyMs;
    }
  }

  /** Of skips there is an event at most once a minute of their times; after the clock was set back, at once. */
  #skip(schedule: Schedule, at: number): void {
    const since = schedule.skipLoggedAt === null ? Infinity : at - schedule.skipLoggedAt;
    if (since >= 0 && since < SCHEDULE_SKIPS_LOGGED_MS) return;
    schedule.skipLoggedAt = at;
    this.#log("schedule.skipped", null, null);
  }

  holderOf(uniqueKey: string | null): Task | null {
    if (uniqueKey === null) return null;
    const all = this.tasks.filter((task) => task.uniqueKey === uniqueKey);
    const longest = all.toSorted((a, b) => (b.uniqueUntil ?? 0) - (a.uniqueUntil ?? 0))[0];
    const isUnfinished = (task: Task): boolean =>
      task.status === "open" || task.status === "assigned" || isInReview(task);
    const first = (status: Task["status"]) => all.find((task) => task.status === status);
    const candidates = [first("open"), first("assigned"), all.find(isInReview), longest].filter(
      (task) => task !== undefined,
    );
    return (
      candidates
        .toSorted((a, b) => this.tasks.indexOf(a) - this.tasks.indexOf(b))
        .find((task) => isUnfinished(task) || (task.uniqueUntil ?? 0) > this.now) ?? null
    );
  }

  group(name: string): ReadonlyMap<Task["status"], number> {
    const own = this.tasks.filter(({ group }) => group === name);
    if (own.length === 0) refuse("group_not_found");
    return new Map(
      [...Map.groupBy(own, ({ status }) => status)].map(([status, tasks]) => [status, tasks.length]),
    );
  }

  /** Assign and claim: of whoever asks, the first gets it; who has it already is told so. A claim starts it. */
  take(taskId: string, nodeId: string, by: "assign" | "claim"): Task {
    const task = this.task(taskId);
    const node = this.node(nodeId);
    refuseFinished(task);
    if (task.node === nodeId) {
      if (by === "claim") task.startedAt ??= this.now;
      return task;
    }
    if (task.status === "assigned") refuse("task_not_open");
    if (!this.isReady(task)) refuse("task_not_ready");
    refuseAway(node);
    this.#assign(task, node);
    if (by === "claim") task.startedAt = this.now;
    return task;
  }

  /** With `resume` what the node has started, oldest first; else its best gift; else the best open one. */
  next(nodeId: string, types: readonly string[] | null, resume: boolean): { task: Task | null; node: Node } {
    const node = this.node(nodeId);
    this.#comeOnline(node);
    const mine = this.tasks.filter((task) => task.status === "assigned" && task.node === nodeId);
    const started = mine
      .filter(({ startedAt }) => startedAt !== null)
      .toSorted((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0));
    const gifts = mine.filter(({ startedAt }) => startedAt === null).toSorted(byPriority);
    const again = resume ? started[0] : undefined;
    if (again) this.#restart(again, node);
    const held = again?.status === "assigned" ? again : gifts[0];
    if (held && held !== again) this.#handOut(held);
    const mayTake = !node.draining && this.held(nodeId, "assigned") < node.maxTasks;
    const open = this.pool().find((task) => fits(node, task) && (types?.includes(task.type) ?? true));
    if (!held && mayTake && open) this.#assign(open, node);
    const task = held ?? (mayTake ? open : undefined) ?? null;
    if (task) task.startedAt = this.now;
    if (again?.status === "failed") this.#settle([[again, "failed"]]);
    return { task, node };
  }

  /** The worker of the node has ended: with `maxAttempts` an attempt has, too. */
  #restart(task: Task, node: Node): void {
    task.restarts += 1;
    if (task.maxAttempts === null) {
      const { runUntil } = task; // it is the same attempt
      this.#handOut(task);
      task.runUntil = runUntil;
      task.leaseUntil = this.#leaseOf(task);
      this.#log("task.assigned", node.id, task);
      return;
    }
    this.#endAttempt(task, "offline", true);
    if (task.status === "open") this.#assign(task, node);
  }

  /** Only who holds a task completes it, and is paid once. B, which has no claim, takes an open one on the way. */
  complete(
    variant: VariantName,
    taskId: string,
    nodeId: string,
    result: string,
    epoch: number | null = null,
    usage: readonly Report[] = [],
  ): Task {
    const task = this.task(taskId);
    const node = this.node(nodeId);
    if (task.status === "failed") refuse("task_failed");
    if (epoch !== null && epoch !== task.epoch) refuse("stale_lease");
    if (task.status !== "open" && task.node !== nodeId) refuse("not_assigned_to_node");
    if (task.status === "completed") return task.result === result ? task : refuse("task_completed");
    if (task.status === "open" && variant === "A") refuse("task_not_assigned");
    if (task.status === "open" && !this.isReady(task)) refuse("task_not_ready");
    if (task.status === "open") this.#assign(task, node);
    this.#spend(task, usage);
    this.#endLeases((lease) => lease.taskId === taskId);
    task.status = "completed";
    task.result = result;
    task.checkpoint = null;
    closeQuestions(task);
    task.leaseUntil = null;
    node.idleSince = this.now;
    this.#log("task.completed", nodeId, task);
    if (task.reviewed !== null) {
      task.review = { state: "pending", until: this.now + REVIEW_MS, timedOut: false };
      this.#log("task.review_requested", null, task);
      this.#move("hold", "treasury", `held:${taskId}`, task);
    } else {
      this.#reward(task, node, "treasury");
      this.#settle([[task, "completed"]]);
    }
    this.#fill(node);
    return task;
  }

  #reward(task: Task, node: Node, from: string): void {
    if (task.rewardMicro === 0) return;
    this.#pay(node, { micro: task.rewardMicro, kind: "reward", taskId: task.id }, from);
    this.#log("lux.paid", node.id, task);
  }

  #move(kind: "hold" | "return", from: string, to: string, { id: taskId, rewardMicro: micro }: Task): void {
    if (micro > 0) this.payments.push({ nodeId: null, from, to, payment: { micro, kind, taskId } });
  }

  /** A person passes or rejects the result that waits; the same verdict again changes nothing. */
  judge(taskId: string, verdict: "pass" | "reject"): Task {
    const task = this.task(taskId);
    const { review } = task;
    if (review === null) refuse("not_in_review");
    const state = verdict === "pass" ? "passed" : "rejected";
    if (review.state !== "pending")
      return review.state === state && !review.timedOut ? task : refuse("review_decided");
    const best = this.#bestFor(task);
    this.#verdict(task, review, verdict);
    if (best && task.balanced && this.isReady(task)) this.#assign(task, best);
    const answer = { ...task };
    if (answer.status !== "open" && answer.status !== "assigned") this.#settle([[task, answer.status]]);
    return answer;
  }

  #verdict(
    task: Task,
    review: NonNullable<Task["review"]>,
    verdict: "pass" | "reject",
    batch: number | null = null,
  ): void {
    const worker = this.nodeOrFormer(task.node ?? "");
    if (verdict === "pass") {
      task.review = { ...review, state: "passed", timedOut: batch !== null };
      worker.idleSince = this.now;
      this.#log("task.review_passed", worker.id, task, batch);
      this.#reward(task, worker, `held:${task.id}`);
      return;
    }
    task.review = { ...review, state: "rejected", timedOut: batch !== null };
    task.result = null;
    delete task.receipt;
    this.#endAttempt(task, "rejected", true, batch);
    this.#move("return", `held:${task.id}`, "treasury", task);
  }

  #heldBy(taskId: string, nodeId: string, epoch: number | null): { task: Task; node: Node } {
    const task = this.task(taskId);
    const node = this.node(nodeId);
    if (task.status === "failed") refuse("task_failed");
    if (epoch !== null && epoch !== task.epoch) refuse("stale_lease");
    if (task.status === "open") refuse("task_not_assigned");
    if (task.node !== nodeId) refuse("not_assigned_to_node");
    if (task.status === "completed") refuse("task_completed");
    return { task, node };
  }

  /** Back to the pool, or to another node that the balancer finds. The answer is of this moment, as those below. */
  release(
    taskId: string,
    nodeId: string,
    epoch: number | null,
    checkpoint: string | null,
    usage: readonly Report[],
  ): Task {
    const { task, node } = this.#heldBy(taskId, nodeId, epoch);
    leave(task, nodeId, checkpoint);
    if (this.#spend(task, usage)) return this.#endOverspent(task, node);
    this.#free(task, node);
    task.revokedFrom = nodeId;
    this.#log("task.released", nodeId, task);
    if (task.balanced) this.#balance([task]);
    const answer = { ...task };
    this.#fill(node);
    return answer;
  }

  /** One attempt more; the last one ends the task. */
  fail(
    taskId: string,
    nodeId: string,
    epoch: number | null,
    retry: boolean,
    checkpoint: string | null,
    usage: readonly Report[],
  ): Task {
    const { task, node } = this.#heldBy(taskId, nodeId, epoch);
    leave(task, nodeId, checkpoint);
    if (this.#spend(task, usage)) return this.#endOverspent(task, node);
    const best = this.#bestFor(task); // while it is held: a node that is full with it has no room
    this.#endAttempt(task, "failed", retry);
    if (best && task.balanced && this.isReady(task)) this.#assign(task, best);
    const answer = { ...task };
    if (answer.status === "failed") this.#settle([[task, "failed"]]);
    this.#fill(node);
    return answer;
  }

  extend(
    taskId: string,
    nodeId: string,
    epoch: number | null,
    note: boolean,
    checkpoint: string | null,
    usage: readonly Report[],
  ): Task {
    const { task, node } = this.#heldBy(taskId, nodeId, epoch);
    leave(task, nodeId, checkpoint);
    if (this.#spend(task, usage)) return this.#endOverspent(task, node);
    task.leaseUntil = this.#leaseOf(task);
    if (note) this.#log("task.progress", nodeId, task);
    return task;
  }

  #spend(task: Task, usage: readonly Report[]): boolean {
    for (const report of usage) {
      const key = `${task.epoch} ${report.seq}`;
      if (task.usage.has(key)) continue;
      task.usage.set(key, report);
      this.spent.push({ ...report, node: task.node ?? "", type: task.type, at: this.now });
    }
    this.#announce();
    return isOverspent(task);
  }

  /** The attempt that passes what a task may cost is its last. */
  #endOverspent(task: Task, node: Node): Task {
    task.attempts += 1;
    task.failures += 1;
    task.attemptsFailed = [...task.attemptsFailed, "budget" as const].slice(-FAILED_ATTEMPTS_KEPT);
    this.#log("task.attempt_failed", node.id, task);
    this.#end(task, "budget");
    const answer = { ...task };
    this.#settle([[task, "failed"]]);
    this.#fill(node);
    return answer;
  }

  output(taskId: string, nodeId: string, epoch: number | null, offset: number, data: string) {
    const { task } = this.#heldBy(taskId, nodeId, epoch);
    const before = task.outputs.find((one) => one.epoch === task.epoch)?.text ?? "";
    if (offset > before.length) refuse("wrong_offset");
    const text = before + data.slice(before.length - offset);
    const others = task.outputs.filter((one) => one.epoch !== task.epoch);
    task.outputs = [...others, { epoch: task.epoch, node: nodeId, text }].slice(-ATTEMPTS_WITH_OUTPUT);
    return { attempt: task.epoch, next: text.length };
  }

  /** The same question is the open one. Without a clock until it is settled; parked, it is anybody's after that. */
  ask(
    asked: { taskId: string; nodeId: string; epoch: number | null; text: string; park: boolean },
    withinMs: number,
    id: string,
  ): Question {
    const { taskId, nodeId, epoch, text, park } = asked;
    const known = this.tasks.find((task) => task.id === taskId);
    const same = known?.questions.find((one) => one.state === "open" && one.text === text);
    const isOwn = same?.askedBy === nodeId && same.epoch === (epoch ?? same.epoch);
    if (same && isOwn && known?.parked === true) return same;
    const { task, node } = this.#heldBy(taskId, nodeId, epoch);
    if (same && !park) return same;
    const until = this.now + withinMs;
    const question = same ?? {
      id,
      text,
      askedBy: nodeId,
      epoch: task.epoch,
      until,
      state: "open",
      answer: null,
    };
    if (!same) {
      task.questions.push(question);
      this.#log("task.asked", nodeId, task);
    }
    task.leaseUntil = null;
    task.runUntil = null;
    if (park) {
      this.#free(task, node);
      task.parked = true;
      task.notBefore = null;
      this.#log("task.released", nodeId, task);
      this.#fill(node);
    }
    return question;
  }

  /** The first answer counts. */
  answer(taskId: string, questionId: string, answer: string): Question {
    const task = this.task(taskId);
    const question = task.questions.find(({ id }) => id === questionId) ?? refuse("question_not_found");
    if (question.state === "answered" && question.answer === answer) return question;
    if (question.state === "answered") refuse("question_answered");
    if (question.state === "timed_out" || question.until <= this.now) refuse("question_timed_out");
    question.state = "answered";
    question.answer = answer;
    this.#log("task.answered", task.node ?? question.askedBy, task);
    this.#settled(task);
    if (task.balanced) this.#balance([task]);
    return question;
  }

  #settled(task: Task): void {
    if (isAsking(task)) return;
    task.parked = false;
    if (task.status === "assigned") this.#startLease(task);
  }

  /** `start`: its time stays, is past, or is none; `staysOn`: it expires no more. */
  update(
    taskId: string,
    priority: Task["priority"],
    start: "keep" | "past" | "none",
    staysOn: boolean,
  ): Task {
    const task = this.task(taskId);
    refuseFinished(task);
    if (task.status === "assigned") refuse("task_not_open");
    const isCleared = (start === "none" && task.notBefore !== null) || (staysOn && task.expiresAt !== null);
    const isSame = task.priority === priority && start !== "past" && !isCleared;
    if (isSame) return task;
    task.priority = priority;
    if (start !== "keep") task.notBefore = start === "none" ? null : this.now - SECOND_MS;
    if (staysOn) task.expiresAt = null;
    this.#log("task.updated", null, task);
    if (task.balanced) this.#balance([task]);
    return task;
  }

  cancel(taskId: string): Task {
    const task = this.task(taskId);
    refuseFinished(task);
    const holder = task.node === null ? null : this.node(task.node);
    this.#end(task, "cancelled");
    this.#settle([[task, "failed"]]);
    if (holder) this.#fill(holder);
    return task;
  }

  retryAll(taskId: string): { task: Task; opened: number; left: number } {
    const task = this.task(taskId);
    const root = task.root ?? task.id;
    const after = this.tasks.slice(this.tasks.indexOf(task) + 1);
    const dependents = after.filter((one) => one.root === root);
    if (task.status === "failed" && isOverspent(task)) refuse("budget_exceeded");
    if (task.status !== "failed" && dependents.length === 0) refuse("task_not_failed");
    const answer = task.status === "failed" ? this.retry(taskId) : { ...task };
    if (answer.status === "failed") return { task: answer, opened: 0, left: dependents.length };
    let opened = 0;
    for (const one of dependents) {
      one.root = this.#rootOfFailure(one);
      if (one.root !== null) continue;
      this.#reopen(one);
      this.#waitForOthers(one);
      opened++;
    }
    if (opened > 0) this.#balance(this.pool().filter(({ balanced }) => balanced));
    return { task: answer, opened, left: 0 };
  }

  #reopen(task: Task): void {
    const fresh = { status: "open", attempts: 0, failures: 0, restarts: 0, startedAt: null } as const;
    Object.assign(task, fresh, { epoch: task.epoch + 1 });
    if (task.expiresAt !== null && task.expiresAt <= this.now) task.expiresAt = null;
    this.#log("task.retried", null, task);
  }

  /** As if it had not been tried; it waits again for what it depends on. */
  retry(taskId: string, keepsCheckpoint = true): Task {
    const task = this.task(taskId);
    if (task.status !== "failed") refuse("task_not_failed");
    if (isOverspent(task)) refuse("budget_exceeded");
    if (!keepsCheckpoint) task.checkpoint = null;
    this.#reopen(task);
    const canWait = this.#waitForOthers(task);
    if (!canWait) this.#end(task, "dependency");
    else if (task.balanced) this.#balance([task]);
    const answer = { ...task };
    if (!canWait) this.#settle([[task, "failed"]]);
    return answer;
  }

  revoke(taskId: string, toId: string | null): Task {
    const task = this.task(taskId);
    const to = toId === null ? null : this.node(toId);
    refuseFinished(task);
    if (task.node === null) refuse("task_not_assigned");
    if (to && task.node === to.id) return task;
    if (to) refuseAway(to);
    const from = this.node(task.node);
    this.#free(task, from);
    task.revokedFrom = from.id;
    this.#log("task.revoked", from.id, task);
    if (to) this.#assign(task, to);
    else if (task.balanced) this.#balance([task]);
    this.#fill(from);
    return task;
  }

  delete(taskId: string): void {
    const task = this.task(taskId);
    this.tasks = this.tasks.filter((one) => one !== task);
    this.#endLeases((lease) => lease.taskId === taskId);
    this.#log("task.deleted", task.node, task);
    const holder = task.node === null ? null : this.nodeOrFormer(task.node);
    if (holder) holder.idleSince = this.now;
    if (isInReview(task)) this.#move("return", `held:${taskId}`, "treasury", task);
    if (task.status === "open" || task.status === "assigned" || isInReview(task))
      this.#settle([[task, "deleted"]]);
    if (holder && task.status === "assigned") this.#fill(holder);
  }

  /** A: each pair by itself, in order. */
  assignListed(pairs: readonly { taskId: string; nodeId: string }[]): (RejectionCode | null)[] {
    return pairs.map(({ taskId, nodeId }) => {
      try {
        this.take(taskId, nodeId, "assign");
        return null;
      } catch (error) {
        if (error instanceof Refused) return error.code;
        throw error;
      }
    });
  }

  runBalancer(): { assigned: Task[]; pending: number } {
    const assigned = this.#balance(this.pool());
    return { assigned, pending: this.tasks.filter(({ status }) => status === "open").length };
  }

  pull(nodeId: string): Task[] {
    const node = this.node(nodeId);
    if (node.draining) return [];
    return this.pool().filter((task) => fits(node, task));
  }

  pool(): Task[] {
    return this.tasks.filter((task) => this.isReady(task)).toSorted(byPriority);
  }

  isReady({ status, unmet, notBefore, parked }: Task): boolean {
    return !parked && status === "open" && unmet.size === 0 && (notBefore === null || notBefore <= this.now);
  }

  /** What it depends on and is not completed; false if some of that has failed or is gone. */
  #waitForOthers(task: Task): boolean {
    task.root = task.runsAnyway ? null : this.#rootOfFailure(task);
    if (task.root !== null) return false;
    for (const id of task.dependsOn) {
      const other = this.tasks.find((one) => one.id === id);
      if (other && (other.status === "open" || other.status === "assigned" || isInReview(other)))
        task.unmet.add(id);
    }
    return true;
  }

  #rootOfFailure(task: Task): string | null {
    for (const id of task.dependsOn) {
      const other = this.tasks.find((one) => one.id === id);
      if (!other) return id;
      if (other.status === "failed") return other.root ?? id;
    }
    return null;
  }

  #endAttempt(
    task: Task,
    kind: keyof typeof ATTEMPT_EVENTS,
    retry: boolean,
    batch: number | null = null,
  ): void {
    const holder = this.nodeOrFormer(task.node ?? "");
    task.attempts += 1;
    if (kind !== "offline") task.failures += 1;
    task.failure = kind;
    task.attemptsFailed = [...task.attemptsFailed, kind].slice(-FAILED_ATTEMPTS_KEPT);
    this.#log(ATTEMPT_EVENTS[kind], holder.id, task, batch);
    const { maxAttempts, attempts, failures } = task;
    const isUsedUp = maxAttempts === null ? failures >= FAILURES_MAX : attempts >= maxAttempts;
    if (!retry || isUsedUp) return this.#end(task, kind, batch);
    this.#free(task, holder);
    if (kind !== "offline")
      task.notBefore = this.now + Math.min(task.backoffMs * 2 ** (attempts - 1), BACKOFF_MAX_MS);
  }

  #end(task: Task, kind: FailureKind, batch: number | null = null): void {
    const holder = task.node === null ? null : this.nodeOrFormer(task.node);
    if (holder) holder.idleSince = this.now;
    this.#endLeases((lease) => lease.taskId === task.id);
    Object.assign(task, { status: "failed", node: null, leaseUntil: null, failure: kind });
    task.unmet.clear();
    closeQuestions(task);
    this.#log("task.failed", holder?.id ?? null, task, batch);
  }

  /**
   * Updates those that wait for tasks which have ended, and those that wait for these. Nobody promises their order. After
   * a request the balancer looks at once for nodes that take what is ready now; in the periodic work it does so at the end.
   */
  #settle(ended: (readonly [Task, "completed" | "failed" | "deleted"])[], isPeriodic = false): void {
    const together = this.#batch();
    let updated = 0;
    const left = [...ended];
    for (;;) {
      left.sort(([a], [b]) => (a.id < b.id ? -1 : 1)); // the hub handles the oldest first
      const next = left.shift();
      if (!next) break;
      const [{ id, root }, outcome] = next;
      for (const task of this.tasks.filter(({ unmet }) => unmet.has(id))) {
        updated++;
        if (outcome === "completed" || task.runsAnyway) task.unmet.delete(id);
        else {
          this.#end(task, "dependency", together);
          task.root = outcome === "deleted" ? id : (root ?? id);
          left.push([task, "failed"]);
        }
      }
    }
    if (updated > 0 && !isPeriodic) this.#balance(this.pool().filter(({ balanced }) => balanced));
  }

  // ---- Budgets

  setBudget(key: Pick<Budget, "scope" | "value" | "per">, limitMicro: number): Budget {
    const budget = { ...key, limitMicro, warnedIn: null, exceededIn: null };
    this.budgets.set(budgetKey(key), budget);
    this.#log("budget.set", null, null);
    this.#announce();
    return budget;
  }

  deleteBudget(key: Pick<Budget, "scope" | "value" | "per">): Budget {
    const budget = this.budgets.get(budgetKey(key)) ?? refuse("budget_not_found");
    this.budgets.delete(budgetKey(key));
    this.#log("budget.deleted", null, null);
    return budget;
  }

  #periodOf({ per }: Budget): number {
    return per === "total" ? 0 : utcDayStart(this.now);
  }

  spentOf(budget: Budget): (typeof this.spent)[number][] {
    const isAbout = ({ type }: { type: string }): boolean => budget.scope === "hub" || budget.value === type;
    return this.spent.filter((report) => isAbout(report) && report.at >= this.#periodOf(budget));
  }

  stateOf(budget: Budget): "open" | "warning" | "exceeded" {
    const used = this.spentOf(budget).reduce((sum, { micro }) => sum + (micro ?? 0), 0) / budget.limitMicro;
    return used >= 1 ? "exceeded" : used >= 0.8 ? "warning" : "open";
  }

  /** Each budget says once in a period that it is nearly used up, or used up. */
  #announce(): void {
    const together = this.#batch();
    for (const budget of this.budgets.values()) {
      const period = this.#periodOf(budget);
      const isNew = (said: number | null): boolean => said === null || said < period;
      const state = this.stateOf(budget);
      if (state === "open" || !isNew(budget.exceededIn)) continue;
      if (state === "warning" && !isNew(budget.warnedIn)) continue;
      if (state === "warning") budget.warnedIn = period;
      else budget.exceededIn = period;
      this.#log(`budget.${state}`, null, null, together);
    }
  }

  // ---- LUX

  signIn(nodeId: string): { earnedMicro: number; node: Node } {
    const node = this.node(nodeId);
    const today = utcDayStart(this.now);
    if (node.signedInOn === today) return { earnedMicro: 0, node };
    node.signedInOn = today;
    this.#pay(node, { micro: SIGNIN_MICRO, kind: "signin", taskId: null });
    this.#log("lux.signin", nodeId, null);
    return { earnedMicro: SIGNIN_MICRO, node };
  }

  #pay(node: Node, payment: Payment & { readonly kind: "reward" | "signin" }, from = "treasury"): void {
    node.ledger.push(payment);
    this.payments.push({ nodeId: node.id, from, to: `node:${node.id}`, payment });
  }

  // ---- Messages

  send(from: string, to: string, content: string, requireAck: boolean, id: string): void {
    this.node(to);
    this.#store({ id, from, content, requireAck, broadcast: false, to: toAll([to]) });
  }

  broadcast(from: string, content: string, id: string): string[] {
    const online = [...this.nodes.values()].filter((node) => node.online && node.id !== from);
    const receivers = online.map((node) => node.id).toSorted();
    this.#store({ id, from, content, requireAck: false, broadcast: true, to: toAll(receivers) });
    return receivers;
  }

  /** Takes messages, oldest first. One that requires an ACK is redelivered after 30 s without it. */
  receive(nodeId: string, count: number): { message: Message; times: number }[] {
    this.node(nodeId);
    const waiting = this.messages
      .filter((message) => message.to.get(nodeId)?.state === "waiting")
      .slice(0, count);
    return waiting.map((message) => {
      const delivery = deliveryTo(message, nodeId);
      delivery.times += 1;
      delivery.state = message.requireAck ? "leased" : "gone";
      delivery.leaseUntil = this.now + ACK_LEASE_MS;
      return { message, times: delivery.times };
    });
  }

  /** Taken at any time, as often as one likes; what was not handed out yet is not handed out any more. */
  acknowledge(nodeId: string, messageId: string): void {
    this.node(nodeId);
    const message = this.messages.find(({ id }) => id === messageId) ?? refuse("message_not_found");
    const delivery = message.to.get(nodeId) ?? refuse("not_your_message");
    if (delivery.state === "acked") return;
    delivery.state = "acked";
    this.#log("message.acked", nodeId, null, null, message);
  }

  parked(nodeId: string): Message[] {
    this.nodeOrFormer(nodeId);
    return this.messages.filter(({ to }) => to.get(nodeId)?.state === "parked");
  }

  redrive(nodeId: string, messageId: string): void {
    this.node(nodeId);
    const message = this.messages.find(({ id }) => id === messageId) ?? refuse("message_not_found");
    const delivery = message.to.get(nodeId) ?? refuse("not_your_message");
    if (delivery.state !== "parked") refuse("message_not_parked");
    delivery.state = "waiting";
    delivery.times = 0;
  }

  history(nodeId: string, before: string | null, count: number): Message[] {
    this.nodeOrFormer(nodeId);
    return this.#before(before)
      .filter(({ from, to }) => from === nodeId || to.has(nodeId))
      .toReversed()
      .slice(0, count);
  }

  #before(messageId: string | null): Message[] {
    if (messageId === null) return this.messages;
    const at = this.messages.findIndex(({ id }) => id === messageId);
    if (at === -1) refuse("message_not_found");
    return this.messages.slice(0, at);
  }

  mailbox(nodeId: string, since: string | null, before: string | null, limit: number): Message[] {
    this.nodeOrFormer(nodeId);
    if (since === null && before !== null) {
      return this.#before(before)
        .filter(({ to }) => to.has(nodeId))
        .toReversed()
        .slice(0, limit);
    }
    const got = (messages: readonly Message[]) => messages.filter(({ to }) => to.has(nodeId));
    if (since === null) return got(this.messages).toReversed().slice(0, limit);
    const at = this.messages.findIndex(({ id }) => id === since);
    if (at === -1) refuse("message_not_found");
    return got(this.messages.slice(at + 1))
      .slice(0, limit)
      .toReversed();
  }

  #store(message: Message): void {
    this.messages.push(message);
    const [only = null] = message.broadcast ? [] : message.to.keys();
    this.#log("message.sent", only, null, null, message);
  }

  // ---- Notes and leases

  /** With a condition only if the note has that version (0: none). */
  putNote(key: string, text: string, node: string, ifVersion: number | null): Note {
    const known = this.notes.get(key);
    const version = known?.version ?? 0;
    const isSame = known !== undefined && known.text === text && known.node === node;
    if (isSame && (ifVersion === null || ifVersion === version - 1)) return known;
    if (ifVersion !== null && ifVersion !== version) refuse("note_version_conflict");
    const note = { text, version: version + 1, node };
    this.notes.set(key, note);
    this.#log("note.changed", node, null);
    return note;
  }

  deleteNote(key: string, node: string): Note {
    const note = this.notes.get(key) ?? refuse("note_not_found");
    this.notes.delete(key);
    this.#log("note.deleted", node, null);
    return note;
  }

  acquire(
    name: LeaseName,
    nodeId: string,
    { taskId, shared, ttlMs }: Pick<Lease, "taskId" | "shared" | "ttlMs">,
  ): Lease {
    if (!this.node(nodeId).online) refuse("node_offline");
    if (taskId !== null) this.#heldBy(taskId, nodeId, null);
    const asked = { name, node: nodeId, taskId, shared };
    const own = this.leases.find(
      (lease) => lease.name === name && lease.node === nodeId && lease.taskId === taskId,
    );
    if (this.leases.some((lease) => lease !== own && exclude(lease, asked))) refuse("lease_conflict");
    const until = this.now + ttlMs;
    if (own?.shared === shared) return Object.assign(own, { ttlMs, until });
    const lease = { ...asked, fencing: ++this.#fencing, ttlMs, until };
    this.leases = [...this.leases.filter((one) => one !== own), lease];
    return lease;
  }

  renew(name: LeaseName, nodeId: string): Lease {
    const held = this.leases.filter((lease) => lease.name === name && lease.node === nodeId);
    for (const lease of held) lease.until = this.now + lease.ttlMs;
    return held.at(-1) ?? refuse("lease_lost");
  }

  releaseLease(name: LeaseName, nodeId: string): number {
    return this.#endLeases((lease) => lease.name === name && lease.node === nodeId);
  }

  #endLeases(which: (lease: Lease) => boolean): number {
    const before = this.leases.length;
    this.leases = this.leases.filter((lease) => !which(lease));
    return before - this.leases.length;
  }

  // ---- Files

  /** Attaches it to the task and the node that are named, if there are such. */
  upload(named: { readonly task: string | null; readonly node: string | null }, id: string): File {
    const task = this.tasks.find((one) => one.id === named.task) ?? null;
    const node = this.nodes.get(named.node ?? "") ?? null;
    const file = { id, taskId: task?.id ?? null, isOutput: node !== null && task?.node === node.id };
    this.files.push(file);
    this.#log("file.uploaded", node?.id ?? null, task);
    return file;
  }

  deleteFile(id: string): void {
    const file = this.files.find((one) => one.id === id) ?? refuse("file_not_found");
    this.files = this.files.filter((one) => one !== file);
    this.#note({ kind: "file.deleted", node: null, task: file.taskId, batch: null, message: null });
  }

  // ---- Time

  /** @param newId the id of the task that the schedule creates */
  pass(ms: number, newId: () => string): void {
    this.now += ms;
    this.#endLeases(({ until }) => until <= this.now);
    const failedBefore = new Set(this.tasks.filter(({ status }) => status === "failed"));
    const silent = [...this.nodes.values()].filter((node) => node.online && node.leaseUntil <= this.now);
    const goes = this.#batch();
    for (const node of silent) {
      node.online = false;
      this.#endLeases((lease) => lease.node === node.id);
      this.#log("node.offline", node.id, null, goes);
    }
    const back = this.#batch();
    for (const task of this.tasks.filter(({ status }) => status === "assigned")) {
      const holder = silent.find(({ id }) => id === task.node);
      if (holder) this.#endAttempt(task, "offline", true, back);
    }
    this.#endLate(failedBefore);
    this.#fire(newId);
    this.#balance(this.pool().filter(({ balanced }) => balanced));
    const parks = this.#batch();
    for (const message of this.messages) {
      for (const [node, delivery] of message.to) {
        if (delivery.state !== "leased" || delivery.leaseUntil > this.now) continue;
        delivery.state = delivery.times < HANDED_OUT_MAX ? "waiting" : "parked";
        if (delivery.state === "parked") this.#log("message.parked", node, null, parks, message);
      }
    }
  }

  /** Tasks that have expired, then those that timed out, then those that depend on what has failed. */
  #endLate(failedBefore: ReadonlySet<Task>): void {
    const unfinished = this.tasks.filter(({ status }) => status === "open" || status === "assigned");
    const expires = this.#batch();
    for (const task of unfinished)
      if (task.expiresAt !== null && task.expiresAt <= this.now) this.#end(task, "expired", expires);
    const timesOut = this.#batch();
    for (const task of unfinished)
      if (task.leaseUntil !== null && task.leaseUntil <= this.now)
        this.#endAttempt(task, "timed_out", true, timesOut);
    this.#settle(
      this.tasks
        .filter((task) => task.status === "failed" && !failedBefore.has(task))
        .map((task) => [task, "failed"]),
      true,
    );
    const late = this.#batch();
    for (const task of this.tasks)
      for (const question of task.questions) {
        if (question.state !== "open" || question.until > this.now) continue;
        question.state = "timed_out";
        this.#log("task.question_timed_out", task.node ?? question.askedBy, task, late);
        this.#settled(task);
      }
    this.#endReviews();
  }

  #endReviews(): void {
    const due = this.tasks
      .filter((task) => isInReview(task) && (task.review?.until ?? 0) <= this.now)
      .toSorted((a, b) => (a.review?.until ?? 0) - (b.review?.until ?? 0));
    const together = this.#batch();
    for (const task of due)
      if (task.review)
        this.#verdict(task, task.review, task.reviewed === "pay" ? "pass" : "reject", together);
    this.#settle(
      due.flatMap((task) =>
        task.status === "completed" || task.status === "failed" ? [[task, task.status] as const] : [],
      ),
      true,
    );
  }

  /** The hub restarts: its absence is not counted against anybody. */
  restart(): void {
    for (const node of this.nodes.values()) node.leaseUntil = this.now + OFFLINE_AFTER_MS[node.variant];
    for (const { to } of this.messages)
      for (const delivery of to.values()) delivery.leaseUntil = this.now + ACK_LEASE_MS;
    for (const task of this.tasks) if (task.leaseUntil !== null) this.#startLease(task);
    for (const lease of this.leases) lease.until = this.now + lease.ttlMs;
    this.#log("hub.started", null, null);
  }

  get msToNextDay(): number {
    return utcDayStart(this.now) + DAY_MS - this.now;
  }

  // ---- What the answers tell of a node

  node(id: string): Node {
    return this.nodes.get(id) ?? refuse("node_not_found");
  }

  nodeOrFormer(id: string): Node {
    return this.nodes.get(id) ?? this.former.get(id) ?? refuse("node_not_found");
  }

  task(id: string): Task {
    return this.tasks.find((task) => task.id === id) ?? refuse("task_not_found");
  }

  held(nodeId: string, status: Task["status"]): number {
    return this.tasks.filter((task) => task.node === nodeId && task.status === status).length;
  }

  waiting(nodeId: string): number {
    return this.messages.filter(({ to }) => to.get(nodeId)?.state === "waiting").length;
  }

  // ---- The balancer

  #balance(tasks: readonly Task[]): Task[] {
    return tasks.filter((task) => {
      const best = this.isReady(task) ? this.#bestFor(task) : undefined;
      if (best) this.#assign(task, best);
      return best !== undefined;
    });
  }

  #bestFor(task: Task): Node | undefined {
    return [...this.nodes.values()].filter((node) => this.#mayGive(task, node)).toSorted(this.#byLoad)[0];
  }

  #fill(node: Node): void {
    for (const task of this.pool()) if (task.balanced && this.#mayGive(task, node)) this.#assign(task, node);
  }

  #mayGive(task: Task, node: Node): boolean {
    const hasRoom = this.held(node.id, "assigned") < node.maxTasks;
    return (
      node.online &&
      !node.draining &&
      node.autoAssign &&
      hasRoom &&
      fits(node, task) &&
      task.revokedFrom !== node.id
    );
  }

  readonly #byLoad = (a: Node, b: Node): number =>
    this.held(a.id, "assigned") - this.held(b.id, "assigned") ||
    a.idleSince - b.idleSince ||
    (a.id < b.id ? -1 : 1);

  #assign(task: Task, node: Node): void {
    task.status = "assigned";
    task.node = node.id;
    task.revokedFrom = null;
    this.#handOut(task);
    node.idleSince = this.now;
    this.#log("task.assigned", node.id, task);
  }

  #handOut(task: Task): void {
    task.epoch += 1;
    this.#startLease(task);
    task.startedAt = null;
  }

  #startLease(task: Task): void {
    task.runUntil = task.maxRunMs === null || isAsking(task) ? null : this.now + task.maxRunMs;
    task.leaseUntil = this.#leaseOf(task);
  }

  #leaseOf(task: Task): number | null {
    if (isAsking(task)) return null;
    const { timeoutMs, runUntil } = task;
    const ends = [runUntil, timeoutMs === null ? null : this.now + timeoutMs].filter((at) => at !== null);
    return ends.length === 0 ? null : Math.min(...ends);
  }

  #free(task: Task, from: Node): void {
    this.#endLeases((lease) => lease.taskId === task.id);
    task.status = "open";
    task.node = null;
    task.startedAt = null;
    task.epoch += 1;
    task.leaseUntil = null;
    from.idleSince = this.now;
  }

  // ---- Webhooks

  putWebhook(wanted: Omit<Webhook, "from">): void {
    this.webhooks++;
    this.webhook = { ...wanted, from: this.events.length };
    this.#log("webhook.saved", null, null);
  }

  deleteWebhook(): void {
    this.webhook = null;
    this.#log("webhook.deleted", null, null);
  }

  // ---- Events

  #log(
    kind: EventKind,
    node: string | null,
    task: Task | null,
    batch: number | null = null,
    message: Message | null = null,
  ): void {
    this.#note({ kind, node, task: task?.id ?? null, batch, message });
  }

  #note(event: Event): void {
    this.events.push(event);
  }

  #batch(): number {
    return ++this.#batches;
  }
}

/** Not if both are shared, nor those of one node but for two different tasks. */
function exclude(a: Lease, b: Pick<Lease, "name" | "node" | "taskId" | "shared">): boolean {
  if (a.shared && b.shared) return false;
  const isForOneTask = a.taskId === null || b.taskId === null || a.taskId === b.taskId;
  if (a.node === b.node && isForOneTask) return false;
  const others: readonly string[] = LEASED[b.name];
  return LEASED[a.name].some((name) => others.includes(name));
}
const ATTEMPTS_WITH_OUTPUT = 3;

function budgetKey({ scope, value, per }: Pick<Budget, "scope" | "value" | "per">): string {
  return `${scope} ${value} ${per}`;
}

function isOverspent({ maxCostMicro, usage }: Task): boolean {
  return (
    maxCostMicro !== null && usage.values().reduce((sum, { micro }) => sum + (micro ?? 0), 0) > maxCostMicro
  );
}

export function isAsking({ questions }: Task): boolean {
  return questions.some(({ state }) => state === "open");
}

function closeQuestions(task: Task): void {
  task.parked = false;
  for (const question of task.questions) if (question.state === "open") question.state = "timed_out";
}

function leave(task: Task, node: string, data: string | null): void {
  if (data !== null) task.checkpoint = { data, epoch: task.epoch, node };
}

function refuseFinished({ status }: Task): void {
  if (status === "completed") refuse("task_completed");
  if (status === "failed") refuse("task_failed");
}

function refuseAway({ online, draining }: Node): void {
  if (!online) refuse("node_offline");
  if (draining) refuse("node_draining");
}

function fits(node: Node, task: Task): boolean {
  return task.type === "" || node.capabilities.length === 0 || node.capabilities.includes(task.type);
}

const byPriority = (a: Task, b: Task): number => a.priority - b.priority;

function isSameProfile(a: Node, b: Node): boolean {
  const profile = ({ variant, capabilities, maxTasks, autoAssign }: Node): string =>
    [variant, capabilities.join(), maxTasks, autoAssign].join(" ");
  return profile(a) === profile(b);
}

function toAll(nodeIds: readonly string[]): Map<string, Delivery> {
  return new Map(nodeIds.map((id) => [id, { state: "waiting", times: 0, leaseUntil: 0 }]));
}

function deliveryTo(message: Message, nodeId: string): Delivery {
  return message.to.get(nodeId) ?? refuse("not_your_message");
}
