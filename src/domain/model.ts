/**
 * The domain model: nodes, tasks, LUX, messages, files, keys. Types only; the rules are in the file of each resource.
 * Times are epoch milliseconds of the wall clock, unless a comment says that they are of the steady clock.
 */
import type { EventKind } from "./event.ts";
import { type SummaryName, TASK_FIELDS, type TaskFields, type TemplateName } from "./task/fields.ts";

/**
 * One moment on both clocks: the wall clock dates what people see, the steady clock ends leases. `gate`: what may be handed
 * out then (gate.ts); absent where nothing is handed out and no usage is reported, or nothing may be kept back.
 */
export type Moment = {
  readonly now: number;
  readonly steady: number;
  readonly gate?: Gate | null;
  /** Whether each creator has lanes of its own (lane.ts). Left out: no. */
  readonly isFair?: boolean;
};

// ---- Nodes

export type VariantName = "A" | "B";

/** How a node registered: through a variant of HTTP, or MCP. */
export const JOINED_THROUGH = ["A", "B", "MCP"] as const;
export type JoinedThrough = (typeof JOINED_THROUGH)[number];

export type Node = {
  readonly nodeId: string;
  readonly name: string;
  readonly host: string | null;
  readonly port: number | null;
  readonly capabilities: readonly string[];
  readonly resources: Resources;
  /** What its unfinished tasks use of them: computed from the tasks. */
  readonly used: Resources;
  /** How it registered, which determines the heartbeat interval. */
  readonly variant: JoinedThrough;
  /** How many unfinished tasks the balancer may give it; null is any number. */
  readonly maxTasks: number | null;
  /** Whether the balancer may give it tasks at all. */
  readonly autoAssign: boolean;
  /** Whether it gets no new tasks and finishes those that it has. */
  readonly draining: boolean;
  readonly online: boolean;
  readonly registeredAt: number;
  /** It has advisory leases (domain/lease.ts), or had some since it came online. */
  readonly hasLeases: boolean;
  readonly lastHeartbeatAt: number;
  /** Steady clock: without a heartbeat by then the node is offline. */
  readonly leaseUntil: number;
  readonly tasksAssigned: number;
  readonly tasksCompleted: number;
  /** Rewards of its completed tasks, in millionths of a LUX. */
  readonly luxEarnedMicro: bigint;
  /** When its set of tasks last changed: the balancer prefers the node that is idle longest. */
  readonly idleSince: number;
  /** How many entries it has in the LUX ledger, and their sum. */
  readonly entries: number;
  readonly balanceMicro: bigint;
};

/** Amounts of resources by name, in thousandths. */
export type Resources = Readonly<Record<string, number>>;

/** What a node must have for a task: all of these words among its capabilities, and enough of each resource. */
export type Requirements = { readonly capabilities: readonly string[]; readonly resources: Resources };

/** The fields of a node that a heartbeat reads. */
export type Pulse = Pick<Node, "nodeId" | "variant" | "online" | "draining" | "tasksAssigned">;

// ---- Tasks

export const TASK_STATUSES = ["open", "assigned", "completed", "failed"] as const;

export type TaskStatus = (typeof TASK_STATUSES)[number];

export const FAILURE_KINDS = [
  "failed",
  "stalled",
  "timed_out",
  "offline",
  "cancelled",
  "expired",
  "dependency",
  "budget",
  "rejected",
  "no_quorum",
] as const;

/** Whether a kind of failure is what people, or `expires_at`, asked for: no statistic counts it as failed. */
export function isCancelled(kind: unknown): boolean {
  return kind === "cancelled" || kind === "expired";
}

/** Why an attempt or a task failed. */
export type Failure = {
  readonly kind: (typeof FAILURE_KINDS)[number];
  readonly message: string | null;
  /** The node that held the task or, if it was cancelled, the node that cancelled it. */
  readonly nodeId: string | null;
  readonly at: number;
};

export const PRIORITIES = [0, 1, 2, 5] as const;

/** 0 is the highest; 5 is background work, after 2. */
export type Priority = (typeof PRIORITIES)[number];

export type TaskResult = {
  readonly problem: string;
  readonly improvement: string;
  readonly lesson: string;
  /** The further keys that the worker sent: the text of a JSON object, or null. */
  readonly extra: string | null;
};

export type Task = TaskTerms & {
  /** Its number in order of creation; 0 until it is stored. */
  readonly seq: number;
  readonly taskId: string;
  /** It was created with a key that is bound to `creatorNode`. */
  readonly creatorVerified: boolean;
  /** The key that it was created with, if the hub needs to know it (domain/mint.ts, --self-reward off); else null. */
  readonly creatorKey: string | null;
  readonly status: TaskStatus;
  readonly assignedNode: string | null;
  readonly result: TaskResult | null;
  /** The result came with a key that is bound to the node that completed it. */
  readonly resultVerified: boolean;
  /** The number of the ledger entry that paid it; null: nothing was paid. */
  readonly paidSeq: number | null;
  /** Whether the balancer may assign it unasked: it was created through variant B. */
  readonly balanced: boolean;
  /** The node that it was last revoked from: the balancer does not assign it to that node at once. */
  readonly revokedFrom: string | null;
  /**
   * Attempts that ended without a result: failures, timeouts, nodes that went offline with it and, if it has
   * `maxAttempts`, restarts.
   */
  readonly attempts: number;
  /** Of the attempts, the failures and timeouts. */
  readonly failures: number;
  /** How often its node was handed it again through resume: its worker ended while it had the task. */
  readonly restarts: number;
  /** Steady clock; only while it is assigned and has a `maxRunMs`. */
  readonly runUntil: number | null;
  /** Steady clock; only while it is assigned and has a timeout or a `maxRunMs`. Never after `runUntil`. */
  readonly leaseUntil: number | null;
  /** Fencing token: counts its dispatches and its returns to open. A request with an older one is refused. */
  readonly epoch: number;
  readonly notBefore: number | null;
  /** It fails if it is not completed by then. */
  readonly expiresAt: number | null;
  /** The tasks that must be completed first. */
  readonly dependsOn: readonly string[];
  /** How many of them are not completed. */
  readonly unmet: number;
  /** Whether another task depends on it. */
  readonly hasDependents: boolean;
  /** It is open and waits for its time or its dependencies: it is not in the backlog. */
  readonly scheduled: boolean;
  /** When its holder started it. */
  readonly startedAt: number | null;
  /** The last note of its holder. */
  readonly progress: string | null;
  /** The last failure. */
  readonly failure: Failure | null;
  /** The attempts that failed before it, oldest first: with it at most FAILED_ATTEMPTS_KEPT (failedAttempts()). */
  readonly earlierFailures: readonly Failure[];
  /** The bytes of its checkpoint; 0: it has none. */
  readonly checkpointBytes: number;
  /** Whether an attempt has sent output (output.ts). */
  readonly hasOutput: boolean;
  /** null: nothing was ever asked about it. */
  readonly questions: TaskQuestions | null;
  /** How its results are checked before they are paid (domain/task/review.ts); null: not at all. */
  readonly review: Review | null;
  /** How many nodes do it, and how many must agree (domain/task/quorum.ts); null: one does it. */
  readonly quorum: Quorum | null;
  /** The task for which the hub created it (domain/task/family.ts); null: it was not created for another one. */
  readonly child: Child | null;
  /** Nodes that may not have it. */
  readonly notNodes: readonly string[];
  /** The schedule that created it, and its nominal time (null: it was run by hand); null: no schedule did. */
  readonly schedule: { readonly name: string; readonly at: number | null } | null;
  /** The name of its lane (lane.ts). */
  readonly lane: string;
  /** The limit key under which it is counted while it is assigned; null: the key had no limit when it was handed out. */
  readonly countsFor: string | null;
  /** While it is unfinished, or until `uniqueUntil`, no other task is created with this key; null: none. */
  readonly uniqueKey: string | null;
  /** How long it holds its key although it is finished; null: not at all. */
  readonly uniqueUntil: number | null;
  /** What the end of one of its dependencies without a result means: it fails too, or it runs when all have ended. */
  readonly onDependency: OnDependency;
  /** What its attempts have used, all together; null: no worker has reported any usage. */
  readonly spent: Spending | null;
  /** Its holder has taken leases for it (domain/lease.ts), which end with the attempt. */
  readonly hasLeases: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The files that are attached to it, oldest first. */
  readonly files: readonly string[];
  /** It uses, or has used, a feature that most tasks do not: the store keeps a row for those (store/sql/features.ts). */
  readonly hasFeatures: boolean;
  /** The bytes that count against the quota of its creator (quota.ts); 0: it was created without a bound key. */
  readonly keptBytes: number;
  /** Of what others have added to it, the bytes that count against their quotas until it ends. */
  readonly lentBytes: number;
  /** Those of `files` that are outputs (domain/file.ts); the others are inputs. */
  readonly outputs: readonly string[];
};

export const ON_REVIEW_TIMEOUT = TASK_FIELDS.on_review_timeout.kind.words;
export const REVIEW_STATES = ["pending", "passed", "rejected"] as const;
export const VERDICTS = ["pass", "reject"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Who checks a result: the node that created the task, a node by its id, or any node with a capability. */
export type Reviewer = "creator" | `node:${string}` | `capability:${string}`;

/** What the creator of a task asks for. */
export type ReviewTerms = {
  readonly by: Reviewer;
  /** How long a result waits for its verdict, and what counts as the verdict then. */
  readonly withinMs: number;
  readonly onTimeout: (typeof ON_REVIEW_TIMEOUT)[number];
};

/** The terms, and the check of one result. */
export type Review = ReviewTerms & {
  /** The last result that was checked, or is being checked; null: there was none. */
  readonly check: ReviewCheck | null;
};

export type ReviewCheck = {
  readonly state: (typeof REVIEW_STATES)[number];
  /** The dispatch whose result it is. */
  readonly epoch: number;
  /** The name of the key with which the result came; null: the secret that all share. */
  readonly keyId: string | null;
  readonly until: number;
  readonly note: string | null;
  /** The node that decided; null: a person, or the deadline. */
  readonly decidedBy: string | null;
  readonly decidedAt: number | null;
  /** Nobody decided in time. */
  readonly timedOut: boolean;
  /** It is a task of one's own, which is not paid (--self-reward off): nothing is held for it. */
  readonly unpaid: boolean;
};

/** A result that waits for a verdict: what a list shows of its task. */
export type PendingReview = Pick<
  Task,
  "seq" | "taskId" | "title" | "creatorNode" | "assignedNode" | "luxRewardMicro"
> & { readonly review: Review };

/** What the hub created a task for. */
export type Child = {
  /** The id of the other task, its parent. */
  readonly of: string;
  /** It checks the result of its parent; or it is one of the copies that several nodes do (domain/task/quorum.ts). */
  readonly as: "review" | "copy";
  /** The group of its parent: what the child costs counts for it too. */
  readonly group: string | null;
  /** Of a review, the dispatch of the parent whose result it checks; of a copy, the round of the quorum. */
  readonly epoch: number;
  /** Of a review, the name of the key that may not complete it; null: any may. */
  readonly notKey: string | null;
  /** Of a copy: nobody can read its result yet. */
  readonly sealed: boolean;
  /** Of a copy: what is compared. */
  readonly compare: readonly string[] | null;
  /** Of a completed copy: it came from the creator's node or key, and gets no share (--self-reward off). */
  readonly unpaid?: true;
};

export const QUORUM_STATES = ["pending", "agreed", "failed"] as const;

/** What the creator of a task asks for. */
export type QuorumTerms = {
  /** How many results must agree. */
  readonly results: number;
  /** How many copies there are at most. */
  readonly of: number;
  /** The values that must be equal, as JSON pointers (RFC 6901) into the result. */
  readonly compare: readonly string[];
};

/** As it is sent. */
export type QuorumRequest = {
  readonly results: number;
  readonly of?: number | undefined;
  readonly compare?: readonly string[] | undefined;
};

export type Quorum = QuorumTerms & {
  readonly state: (typeof QUORUM_STATES)[number];
  /** Each retry of the task begins a new one. */
  readonly round: number;
  /** The ids of the copies of this round. */
  readonly copies: readonly string[];
  /** The nodes whose results agree, the first to complete first. */
  readonly agreed: readonly string[];
  /** What its copies were paid, once they agree. */
  readonly paidMicro?: number;
};

export const ON_DEPENDENCY = TASK_FIELDS.on_dependency.kind.words;
export type OnDependency = (typeof ON_DEPENDENCY)[number];

/**
 * What the tasks of a group add up to. Rewards are summed as whole LUX and as the millionths beside them: the sum of the
 * largest rewards has more millionths than a column holds.
 */
export type GroupTotals = {
  readonly open: number;
  readonly assigned: number;
  /** Those whose result waits for a review included. */
  readonly completed: number;
  /** Without the cancelled ones. */
  readonly failed: number;
  /** Failed because they were cancelled, or expired. */
  readonly cancelled: number;
  readonly inReview: number;
  readonly lux: number;
  readonly luxMicro: number;
  /** What was paid, the shares of the copies of a quorum included. */
  readonly paid: number;
  readonly paidMicro: number;
  /** Of all tasks that the group has had since it had none. */
  readonly firstCreatedAt: number;
  readonly lastCreatedAt: number;
  readonly lastUpdatedAt: number;
};

/** The value of a field of TASK_FIELDS, as its kind says. */
export type FieldValue<K> = K extends { readonly is: "word"; readonly words: readonly (infer W)[] }
  ? W
  : K extends { readonly is: infer I extends keyof KindValues }
    ? KindValues[I]
    : never;

export type KindValues = Readonly<
  Record<"line" | "text" | "type" | "node" | "group" | "word", string> &
    Record<"lux" | "usd" | "whole" | "seconds" | "moment", number> &
    Record<"ids" | "tags", readonly string[]>
> & {
  readonly priority: Priority;
  readonly requires: Requirements | null;
  readonly limitKey: string | null;
  readonly reviewer: Reviewer;
  readonly quorum: QuorumRequest;
};

/** What the creator of a task asks for, from TASK_FIELDS. */
export type TaskTerms = {
  readonly [N in TemplateName as TaskFields[N]["key"]]:
    FieldValue<TaskFields[N]["kind"]> | (TaskFields[N] extends { readonly fallback: null } ? null : never);
};

/** The fields of a new task that name no time and no other task. */
export type TaskTemplate = TaskTerms &
  Pick<Task, "creatorVerified" | "creatorKey" | "balanced"> & {
    /** How its results are checked; left out: not at all. */
    readonly reviewTerms?: ReviewTerms | null;
    /** How many nodes do it; left out: one. */
    readonly quorumTerms?: QuorumTerms | null;
  };

/** What a worker left for the attempts after its own. */
export type Checkpoint = {
  /** JSON text, as it was sent. */
  readonly data: string;
  /** The dispatch that sent it, and its node. */
  readonly epoch: number;
  readonly nodeId: string;
  readonly at: number;
};

/** The output of one attempt of a task, without its text. */
export type OutputAttempt = {
  /** The dispatch that sent it, and its node. */
  readonly epoch: number;
  readonly nodeId: string;
  /** The bytes of UTF-8 that were sent, kept or not: where the next piece begins. */
  readonly bytes: number;
  /** What counts against the quota of its node (quota.ts); 0: it was sent without a bound key. */
  readonly keptBytes: number;
  readonly begunAt: number;
  /** When the last piece came. */
  readonly at: number;
};

/** A block of the output of an attempt (output.ts). */
export type OutputBlock = {
  readonly n: number;
  /** The offset of its first byte. */
  readonly start: number;
  readonly data: string;
};

/** What a task knows of its questions. */
export type TaskQuestions = {
  /**
   * `open`: at least one waits for its answer. `parked`: the same, and the task was given back until none does: it is not
   * ready. `settled`: none does.
   */
  readonly state: "open" | "parked" | "settled";
  /** How many were asked, and their bytes with those of their answers. */
  readonly asked: number;
  readonly bytes: number;
};

export const QUESTION_STATES = ["open", "answered", "timed_out"] as const;

/** A question of a worker to a person, or to another agent. */
export type Question = {
  readonly questionId: string;
  readonly taskId: string;
  readonly question: string;
  /** The answers that it suggests; empty: none. */
  readonly choices: readonly string[];
  /** The JSON Schema of the answer, as text; nobody enforces it. */
  readonly schema: string | null;
  readonly askedBy: string;
  /** The dispatch that asked. */
  readonly epoch: number;
  readonly askedAt: number;
  /** Without an answer by then it is timed out. */
  readonly until: number;
  readonly state: (typeof QUESTION_STATES)[number];
  /** JSON text. */
  readonly answer: string | null;
  readonly answeredBy: string | null;
  /** When it was answered or timed out. */
  readonly answeredAt: number | null;
  /** The answer came with a key that is bound to `answeredBy`. */
  readonly verified: boolean;
};

/** What a worker says that one step of its work has used (spending.ts). */
export type UsageReport = {
  /** The worker's number for it: what it sends again under the same number in the same attempt counts once. */
  readonly seq: number;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the input tokens, those that came from a cache. */
  readonly cachedTokens: number;
  /** Millionths of a dollar; null: the worker does not know. */
  readonly costMicro: number | null;
};

/** A sum of usage reports. `costMicro` is the sum of the costs that are known. */
export type Spending = {
  readonly reports: number;
  /** Of the reports, those without a cost. */
  readonly unpriced: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly costMicro: number;
};

/** What there is a sum of. */
export type SumScope = "hub" | "node" | "creator" | "type" | "model" | "group" | "voided";

/**
 * A sum of one UTC day, which counts from 1970-01-01. `value`: the node, the creator, the type, the model or the group;
 * "" for the hub, for no creator and for no type. There is no sum of what belongs to no group. `voided` is what was taken
 * off the other sums.
 */
export type SumKey = { readonly scope: SumScope; readonly value: string; readonly day: number };

export const BUDGET_SCOPES = ["hub", "node", "creator", "type", "group"] as const;
export const BUDGET_PERIODS = ["day", "month", "total"] as const;
export const ON_LIMIT = ["pause", "warn"] as const;

/** `value`: as in SumKey. */
export type BudgetKey = {
  readonly scope: (typeof BUDGET_SCOPES)[number];
  readonly value: string;
  readonly per: (typeof BUDGET_PERIODS)[number];
};

/** What work may cost (budget.ts). */
export type Budget = BudgetKey & {
  /** Millionths of a dollar; null: any. */
  readonly costMicro: number | null;
  /** Input and output tokens together; null: any. */
  readonly tokens: number | null;
  readonly onLimit: (typeof ON_LIMIT)[number];
  /** The first day of the period in which it was last said that 80 % are used, and that all is; null: never. */
  readonly warnedIn: number | null;
  readonly exceededIn: number | null;
};

/** A budget, and what was spent of it in its period. */
export type BudgetState = Budget & { readonly spent: Spending };

/** What an administrator has paused (gate.ts). `value`: "" for the hub, for no type and for no creator. */
export const PAUSE_SCOPES = ["hub", "type", "limit_key", "creator"] as const;

export type PauseKey = { readonly scope: (typeof PAUSE_SCOPES)[number]; readonly value: string };

export type Pause = PauseKey & { readonly reason: string | null; readonly at: number };

/** How many tasks of a limit key may run, and be handed out (gate.ts). "" is the key of the tasks without a type. */
export type Limit = {
  readonly key: string;
  /** null: any number. */
  readonly running: number | null;
  readonly perMinute: number | null;
  /** The last hold, which may be over; null: none. */
  readonly hold: Hold | null;
};

/** No task of a limit key is handed out from `at` to `until` (wall clock). */
export type Hold = {
  readonly at: number;
  readonly until: number;
  /** The node that asked for it; null: an administrator or a key of no node. */
  readonly by: string | null;
};

/** A limit, and what of it is used. */
export type LimitState = Limit & {
  /** The tasks of the key that are running; 0 without `running`. */
  readonly inUse: number;
  /** The dispatches of the last minute, by second. */
  readonly uses: readonly { readonly second: number; readonly count: number }[];
};

/** What is not handed out. */
export type Closed = {
  readonly hub: boolean;
  readonly nodes: ReadonlySet<string>;
  /** "" is no creator. */
  readonly creators: ReadonlySet<string>;
  /** "" is no type. */
  readonly types: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  /** Limit keys. "" is the key of the tasks without a type. */
  readonly keys: ReadonlySet<string>;
};

/**
 * The budgets on one UTC day, the pauses and the limits (gate.ts); `closed` is null when none keeps anything back.
 * `opensAt`: the first time at which something opens because of the time alone; null: nothing does.
 */
export type Gate = {
  readonly day: number;
  readonly budgets: readonly BudgetState[];
  readonly pauses: readonly Pause[];
  readonly limits: readonly LimitState[];
  readonly closed: Closed | null;
  readonly opensAt: number | null;
};

/** What a caller reads of a task while it waits for its end. */
export type TaskState = Pick<
  Task,
  "taskId" | "title" | "status" | "assignedNode" | "progress" | "failure" | "child" | "updatedAt"
>;

/** What a row of a list shows of a task, without its long texts. */
export type TaskSummary = Pick<
  Task,
  | TaskFields[SummaryName]["key"]
  | "seq"
  | "taskId"
  | "status"
  | "assignedNode"
  | "attempts"
  | "notBefore"
  | "expiresAt"
  | "unmet"
  | "startedAt"
  | "progress"
  | "failure"
  | "questions"
  | "review"
  | "quorum"
  | "child"
  | "schedule"
  | "createdAt"
  | "updatedAt"
>;

/** The origin of a task that was created through A2A. It never changes, and no rule reads it. */
export type TaskOrigin = {
  /** The caller that created it, and the card that it used; only this caller finds it there. */
  readonly caller: string;
  readonly contextId: string;
  readonly messageId: string;
};

// ---- Schedules

/** What happens at a time when an earlier task of the schedule is unfinished: no new task, or one more. */
export const OVERLAPS = ["skip", "queue"] as const;
/** Which of the missed times get a task: the last, or none. */
export const CATCH_UPS = ["one", "none"] as const;

/** When tasks are due: at the times of a cron expression in a time zone (IANA), or at an interval. */
export type Timing = { readonly cron: string; readonly tz: string } | { readonly everyMs: number };

/** What the author of a schedule says. */
/** A task that a schedule creates together with others. `needs`: the numbers of those before it that it waits for. */
export type ScheduledTask = TaskTemplate & {
  readonly ref: string;
  readonly needs: readonly number[];
  readonly onDependency: OnDependency;
};

export type ScheduleDraft = {
  readonly name: string;
  readonly timing: Timing;
  /** Its task may start `delayMs` after its nominal time. */
  readonly task: TaskTemplate & {
    readonly delayMs: number;
    /** Of a pipeline: all its tasks, the first of which `task` is. */
    readonly pipeline?: readonly ScheduledTask[];
  };
  readonly overlap: (typeof OVERLAPS)[number];
  readonly catchUp: (typeof CATCH_UPS)[number];
  /** Each task may start up to so much later, so that the tasks of many schedules do not start at once. */
  readonly jitterMs: number;
  /** No time is due after it. */
  readonly until: number | null;
  readonly paused: boolean;
};

export type Schedule = ScheduleDraft & {
  /** The last of its times that got no task and an event of that; null: none has. */
  readonly skipLoggedAt: number | null;
  readonly kept?: Kept;
  readonly nextAt: number | null;
  /** The last task that it created, and when. */
  readonly lastTaskId: string | null;
  readonly lastAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
};

// ---- Webhooks

export const WEBHOOK_FORMATS = ["luxhub", "a2a", "ntfy"] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

/** Which events of the log a webhook sends. Null and an empty list are no condition. */
export type WebhookFilter = {
  readonly kinds: readonly EventKind[];
  readonly taskId: string | null;
  readonly nodeId: string | null;
  readonly creatorNode: string | null;
  readonly group: string | null;
};

/** The push notification config of an A2A client for one task. It is deleted when the task has ended. */
export type PushConfig = {
  readonly configId: string;
  /** The caller that created it, and the only one that finds it. */
  readonly caller: string;
  readonly contextId: string;
  /** Shown to the receiver, so that it knows the sender; "": none. */
  readonly token: string;
  /** Of the header Authorization; null: none. */
  readonly authentication: { readonly scheme: string; readonly credentials: string } | null;
};

export type WebhookDraft = {
  readonly name: string;
  readonly url: string;
  readonly format: WebhookFormat;
  readonly filter: WebhookFilter;
  readonly push: PushConfig | null;
};

/** What a webhook has done so far: the part of it that deliveries change. */
export type WebhookProgress = {
  /** The id of the last event of the log that needs no delivery any more. */
  readonly cursor: number;
  readonly state: "active" | "suspended";
  /** Failed attempts since the last success, and when the first of them was. */
  readonly attempts: number;
  readonly failingSince: number | null;
  /** Not before this moment; null: at once. */
  readonly nextAt: number | null;
  readonly lastError: string | null;
  readonly deliveredAt: number | null;
};

/** A subscription to the event log, which is delivered to a URL. */
export type Webhook = WebhookDraft &
  WebhookProgress & {
    /** A name may be used again after a deletion, this id not. */
    readonly webhookId: string;
    /** Signs the messages (Standard Webhooks), or is the access token of ntfy; null: none. Never shown or logged. */
    readonly secret: string | null;
    /** Grows with each change by an administrator. */
    readonly revision: number;
    readonly kept?: Kept;
    readonly createdAt: number;
    readonly updatedAt: number;
  };

// ---- LUX

/** `hold`: a reward that is held back from the one who earned it; `return`: it goes back to the treasury. */
export type LuxKind = "reward" | "signin" | "hold" | "return";

/** What is held back of the reward of one task. */
export type HeldAccount = `held:${string}`;

/** One side of an entry. The account of a node has a prefix, so no node_id can name another account. */
export type Account = "treasury" | HeldAccount | `node:${string}`;

/** Moves LUX from one account to another: its two halves sum to zero. */
export type LedgerEntry = {
  /** Its number in the ledger: 1, 2, 3, … */
  readonly seq: number;
  readonly id: string;
  readonly from: Account;
  readonly to: Account;
  /** The node that it goes to, its number among the entries of that node, and the node's balance with it; or all null. */
  readonly nodeId: string | null;
  readonly n: number | null;
  readonly balanceMicro: bigint | null;
  readonly amountMicro: number;
  readonly kind: LuxKind;
  readonly taskId: string | null;
  readonly at: number;
  /** SHA-256 of the entry and of the hash before it (domain/lux.ts), as hex; null: it is older than the hash chain. */
  readonly hash: string | null;
};

/** The newest entry of the ledger; `seq` is 0 if there is none. */
export type LedgerHead = Pick<LedgerEntry, "seq" | "hash">;

/** What the one who completed a task was paid. `hash`: as in LedgerEntry. */
export type Receipt = {
  readonly entryId: string;
  readonly amountMicro: number;
  readonly hash: string | null;
};

// ---- Messages

export const SEND_TYPES = ["text", "task", "status"] as const;

export const BROADCAST_TYPES = ["broadcast", "alert", "update"] as const;

export type MessageType = (typeof SEND_TYPES)[number] | (typeof BROADCAST_TYPES)[number];

export type DeliveryState = "waiting" | "leased" | "gone" | "acked" | "parked";

export type Message = {
  readonly messageId: string;
  readonly fromNode: string;
  /** null: a broadcast. */
  readonly toNode: string | null;
  readonly type: MessageType;
  readonly content: string;
  readonly requireAck: boolean;
  /** The message that this one answers. */
  readonly replyTo: string | null;
  /** The name of its conversation; null: its own id. */
  readonly thread: string | null;
  /** It came with a key that is bound to its sender. */
  readonly verified: boolean;
  readonly sentAt: number;
};

/** The delivery of a message to one recipient. */
export type Delivery = {
  readonly message: Message;
  /** The order of arrival in the hub. */
  readonly seq: number;
  readonly toNode: string;
  readonly state: DeliveryState;
  /** How often it was handed out. */
  readonly deliveries: number;
  /** Steady clock; only while leased. */
  readonly leaseUntil: number | null;
};

/** A delivery without the message's content: enough to acknowledge or expire it. */
export type DeliveryStub = Omit<Delivery, "message"> & {
  readonly messageId: string;
  readonly fromNode: string;
  /** Whether the message is a broadcast. */
  readonly broadcast: boolean;
};

/** The number of a broadcast's recipients by state. A broadcast requires no ACK, so none is leased or parked. */
export type BroadcastTally = { readonly waiting: number; readonly delivered: number; readonly acked: number };

/** A message and the state of its delivery, as one node may see it. */
export type MessageFate = {
  readonly message: Message;
  /** The delivery to its recipient; of a broadcast, to the asking node; null for the asking node's own broadcast. */
  readonly delivery: Pick<Delivery, "state" | "deliveries"> | null;
  /** Only for the asking node's own broadcast. */
  readonly recipients: BroadcastTally | null;
};

// ---- Files

export const ATTACHMENTS = ["input", "output"] as const;
export type Attachment = (typeof ATTACHMENTS)[number];

export type FileRecord = {
  /** Also the id of its blob. */
  readonly fileId: string;
  /** The base name from the upload; for people, never a path. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly contentType: string;
  /** The uploader's JSON object, as JSON text. */
  readonly metadata: string;
  readonly nodeId: string | null;
  readonly taskId: string | null;
  /** What it is for its task (domain/file.ts); null: it belongs to no task. */
  readonly attached: Attachment | null;
  readonly uploadedAt: number;
  /** The bytes that count against the quota of its node (quota.ts); 0: it was uploaded without a bound key. */
  readonly keptBytes: number;
};

// ---- Notes and leases

/** A note in the shared memory of the nodes (domain/note.ts). */
export type Note = {
  readonly key: string;
  readonly text: string;
  /** 1 for a new note; each write adds 1. */
  readonly version: number;
  /** Who wrote this version; null: nobody said so. */
  readonly nodeId: string | null;
  /** The key of that request was bound to `nodeId`. */
  readonly verified: boolean;
  readonly kept?: Kept;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/** A note without its text. */
export type NoteHead = Omit<Note, "text" | "kept"> & {
  /** Of its key and its text, in UTF-8. */
  readonly bytes: number;
};

/** An advisory lease on a name or on the paths of a glob (domain/lease.ts). */
export type Lease = {
  readonly name: string;
  readonly nodeId: string;
  /** It ends when the node no longer holds this task; null: it belongs to no task. */
  readonly taskId: string | null;
  readonly shared: boolean;
  /** Fencing token: larger than that of every lease before it, and never used again. */
  readonly fencing: number;
  readonly ttlMs: number;
  /** Steady clock: from then on it counts for nothing. */
  readonly leaseUntil: number;
  readonly acquiredAt: number;
};

// ---- Keys

/** full and viewer: X-Matrix-Secret; a viewer only reads, and no message contents. admin: X-Admin-Key. */
export const KEY_ROLES = ["full", "viewer", "admin"] as const;

export type KeyRole = (typeof KEY_ROLES)[number];

export type KeyRecord = {
  /** A name that the operator chose. */
  readonly keyId: string;
  readonly role: KeyRole;
  /** Lower-case hex SHA-256 of the secret. */
  readonly hash: string;
  /** Requests with this key are answered in this variant on any listener. */
  readonly variant: VariantName | null;
  /** The key acts for this node only. */
  readonly nodeId: string | null;
  /** What it may promise as rewards per UTC day, in millionths of a LUX; null: the default (domain/mint.ts). */
  readonly mintMicro: number | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
};

/** An invitation to a node (domain/invitation.ts). */
export type Invitation = {
  readonly invitationId: string;
  /** Lower-case hex SHA-256 of its token. */
  readonly tokenHash: string;
  readonly nodeId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
  /** The key that was made from it; null until then. */
  readonly keyId: string | null;
};

/** What a row counts against the quota of the node whose key stored it (quota.ts); left out: it counts for nobody. */
export type Kept = { readonly by: string; readonly bytes: number };

/** What the keys of a node have stored: unfinished tasks that they created, and bytes (quota.ts). */
export type Usage = { readonly tasks: number; readonly bytes: number };

/** What one key has promised as rewards on one UTC day (dayOf), in millionths (mint.ts). */
export type Minted = { readonly keyId: string; readonly day: number; readonly micro: number };

// ---- Stored answers

export type StoredAnswer = {
  /** Identifies the request: key id, path and Idempotency-Key, with a space between them. */
  readonly scope: string;
  /** The variant, and the hex SHA-256 of the request: of the JSON value, or of an upload's fields and bytes. */
  readonly asked: string;
  readonly status: number;
  readonly body: string;
  readonly storedAt: number;
};
