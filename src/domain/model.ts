/**
 * The domain model: types only; the rules are in the file of each resource. Times are epoch milliseconds of the wall
 * clock, unless a comment names the steady clock.
 */
import type { EventKind } from "./event.ts";
import type { FailureKind } from "./failure-kinds.ts";
import { type SummaryName, TASK_FIELDS, type TaskFields, type TemplateName } from "./task/fields.ts";

/**
 * The wall clock dates what people see, the steady clock ends leases. `gate` (gate.ts): absent where nothing is handed
 * out and no usage is reported, or nothing may be kept back.
 */
export type Moment = {
  readonly now: number;
  readonly steady: number;
  readonly gate?: Gate | null;
  /** Each creator has lanes of its own (lane.ts). */
  readonly isFair?: boolean;
};

// ---- Nodes

export type VariantName = "A" | "B";

export const JOINED_THROUGH = ["A", "B", "MCP"] as const;
export type JoinedThrough = (typeof JOINED_THROUGH)[number];

export type Node = {
  readonly nodeId: string;
  readonly name: string;
  readonly host: string | null;
  readonly port: number | null;
  readonly capabilities: readonly string[];
  readonly resources: Resources;
  /** Computed from its unfinished tasks. */
  readonly used: Resources;
  readonly variant: JoinedThrough;
  /** Null is any number. */
  readonly maxTasks: number | null;
  readonly autoAssign: boolean;
  readonly draining: boolean;
  readonly online: boolean;
  readonly registeredAt: number;
  /** Now, or since it came online (domain/lease.ts). */
  readonly hasLeases: boolean;
  readonly lastHeartbeatAt: number;
  /** Steady clock: without a heartbeat by then the node is offline. */
  readonly leaseUntil: number;
  readonly tasksAssigned: number;
  readonly tasksCompleted: number;
  /** In millionths of a LUX. */
  readonly luxEarnedMicro: bigint;
  /** When its set of tasks last changed. */
  readonly idleSince: number;
  /** How many entries it has in the LUX ledger, and their sum. */
  readonly entries: number;
  readonly balanceMicro: bigint;
};

/** By name, in thousandths. */
export type Resources = Readonly<Record<string, number>>;

/** All of these words, and enough of each resource. */
export type Requirements = { readonly capabilities: readonly string[]; readonly resources: Resources };

export type Pulse = Pick<Node, "nodeId" | "variant" | "online" | "draining" | "tasksAssigned">;

// ---- Tasks

export const TASK_STATUSES = ["open", "assigned", "completed", "failed"] as const;

export type TaskStatus = (typeof TASK_STATUSES)[number];

export type Failure = {
  readonly kind: FailureKind;
  readonly message: string | null;
  /** Who held the task or cancelled it. */
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
  /** The further keys of the worker, as JSON text. */
  readonly extra: string | null;
};

export type Task = TaskTerms & {
  /** In order of creation; 0 until it is stored. */
  readonly seq: number;
  readonly taskId: string;
  /** It was created with a key that is bound to `creatorNode`. */
  readonly creatorVerified: boolean;
  /** If the hub needs to know it (domain/mint.ts, --self-reward off); else null. */
  readonly creatorKey: string | null;
  readonly status: TaskStatus;
  readonly assignedNode: string | null;
  readonly result: TaskResult | null;
  /** The result came with a key that is bound to the node that completed it. */
  readonly resultVerified: boolean;
  readonly paidSeq: number | null;
  /** Created through variant B. */
  readonly balanced: boolean;
  /** The balancer does not assign it to that node at once. */
  readonly revokedFrom: string | null;
  /** Without a result: failures, timeouts, nodes that went offline with it and, if it has `maxAttempts`, restarts. */
  readonly attempts: number;
  readonly failures: number;
  readonly restarts: number;
  /** Steady clock; only while it is assigned and has a `maxRunMs`. */
  readonly runUntil: number | null;
  /** Steady clock; only with a timeout or a `maxRunMs`. Never after `runUntil`. */
  readonly leaseUntil: number | null;
  /** Fencing token: counts its dispatches and its returns to open. A request with an older one is refused. */
  readonly epoch: number;
  readonly notBefore: number | null;
  readonly expiresAt: number | null;
  readonly dependsOn: readonly string[];
  readonly unmet: number;
  readonly hasDependents: boolean;
  /** Not in the backlog: it waits for its time or its dependencies. */
  readonly scheduled: boolean;
  readonly startedAt: number | null;
  readonly progress: string | null;
  readonly failure: Failure | null;
  /** The attempts that failed before it, oldest first: with it at most FAILED_ATTEMPTS_KEPT (failedAttempts()). */
  readonly earlierFailures: readonly Failure[];
  readonly checkpointBytes: number;
  readonly hasOutput: boolean;
  readonly questions: TaskQuestions | null;
  /** domain/task/review.ts */
  readonly review: Review | null;
  /** domain/task/quorum.ts */
  readonly quorum: Quorum | null;
  /** The task for which the hub created it (domain/task/family.ts). */
  readonly child: Child | null;
  readonly notNodes: readonly string[];
  /** `at`: its nominal time; null: it was run by hand. */
  readonly schedule: { readonly name: string; readonly at: number | null } | null;
  readonly lane: string;
  /** Null: the key had no limit when the task was handed out. */
  readonly countsFor: string | null;
  /** No other task is created with this key while this one is unfinished, or until `uniqueUntil`. */
  readonly uniqueKey: string | null;
  readonly uniqueUntil: number | null;
  /** What a dependency that ends without a result means. */
  readonly onDependency: OnDependency;
  /** Null: no worker has reported any usage. */
  readonly spent: Spending | null;
  /** They end with the attempt (domain/lease.ts). */
  readonly hasLeases: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Oldest first. */
  readonly files: readonly string[];
  /** It uses, or has used, a feature that most tasks do not (store/sql/features.ts). */
  readonly hasFeatures: boolean;
  /** 0: it was created without a bound key. */
  readonly keptBytes: number;
  /** What others have added to it; counts against their quotas until it ends. */
  readonly lentBytes: number;
  /** Those of `files` that are outputs (domain/file.ts); the others are inputs. */
  readonly outputs: readonly string[];
};

export const ON_REVIEW_TIMEOUT = TASK_FIELDS.on_review_timeout.kind.words;
export const REVIEW_STATES = ["pending", "passed", "rejected"] as const;
export const VERDICTS = ["pass", "reject"] as const;
export type Verdict = (typeof VERDICTS)[number];

export type Reviewer = "creator" | `node:${string}` | `capability:${string}`;

export type ReviewTerms = {
  readonly by: Reviewer;
  readonly withinMs: number;
  readonly onTimeout: (typeof ON_REVIEW_TIMEOUT)[number];
};

export type Review = ReviewTerms & {
  /** The last result. */
  readonly check: ReviewCheck | null;
};

export type ReviewCheck = {
  readonly state: (typeof REVIEW_STATES)[number];
  /** The dispatch whose result it is. */
  readonly epoch: number;
  /** Null: the secret that all share. */
  readonly keyId: string | null;
  readonly until: number;
  readonly note: string | null;
  /** Null: a person, or the deadline. */
  readonly decidedBy: string | null;
  readonly decidedAt: number | null;
  readonly timedOut: boolean;
  /** The reviewed task is of the worker's own, and not paid (--self-reward off). */
  readonly unpaid: boolean;
};

export type PendingReview = Pick<
  Task,
  "seq" | "taskId" | "title" | "creatorNode" | "assignedNode" | "luxRewardMicro"
> & { readonly review: Review };

export type Child = {
  /** The id of its parent. */
  readonly of: string;
  /** A copy is one of a quorum (domain/task/quorum.ts). */
  readonly as: "review" | "copy";
  /** What the child costs counts for this group too. */
  readonly group: string | null;
  /** Of a review, the dispatch of the parent whose result it checks; of a copy, the round of the quorum. */
  readonly epoch: number;
  /** Of a review: who may not complete it. */
  readonly notKey: string | null;
  /** Of a copy: nobody can read its result yet. */
  readonly sealed: boolean;
  /** Of a copy: what is compared. */
  readonly compare: readonly string[] | null;
  /** Of a copy of the creator's node or key: it gets no share (--self-reward off). */
  readonly unpaid?: true;
};

export const QUORUM_STATES = ["pending", "agreed", "failed"] as const;

export type QuorumTerms = {
  readonly results: number;
  readonly of: number;
  readonly compare: readonly string[];
};

type QuorumRequest = {
  readonly results: number;
  readonly of?: number | undefined;
  readonly compare?: readonly string[] | undefined;
};

export type Quorum = QuorumTerms & {
  readonly state: (typeof QUORUM_STATES)[number];
  /** Each retry begins a new one. */
  readonly round: number;
  readonly copies: readonly string[];
  /** The first to complete first. */
  readonly agreed: readonly string[];
  readonly paidMicro?: number;
};

export const ON_DEPENDENCY = TASK_FIELDS.on_dependency.kind.words;
export type OnDependency = (typeof ON_DEPENDENCY)[number];

export type GroupTotals = {
  readonly open: number;
  readonly assigned: number;
  /** With those whose result waits for a review. */
  readonly completed: number;
  /** Without the cancelled ones. */
  readonly failed: number;
  /** With the expired ones. */
  readonly cancelled: number;
  readonly inReview: number;
  readonly lux: number;
  readonly luxMicro: number;
  /** With the shares of the copies of a quorum. */
  readonly paid: number;
  readonly paidMicro: number;
  /** Of all tasks that the group has had since it had none. */
  readonly firstCreatedAt: number;
  readonly lastCreatedAt: number;
  readonly lastUpdatedAt: number;
};

export type FieldValue<K> = K extends { readonly is: "word"; readonly words: readonly (infer W)[] }
  ? W
  : K extends { readonly is: infer I extends keyof KindValues }
    ? KindValues[I]
    : never;

export type KindValues = Readonly<
  Record<"line" | "text" | "type" | "node" | "group" | "word" | "traceparent" | "tracestate", string> &
    Record<"lux" | "usd" | "whole" | "seconds" | "moment", number> &
    Record<"ids" | "tags", readonly string[]>
> & {
  readonly priority: Priority;
  readonly requires: Requirements | null;
  readonly limitKey: string | null;
  readonly reviewer: Reviewer;
  readonly quorum: QuorumRequest;
};

/** From TASK_FIELDS. */
export type TaskTerms = {
  readonly [N in TemplateName as TaskFields[N]["key"]]:
    FieldValue<TaskFields[N]["kind"]> | (TaskFields[N] extends { readonly fallback: null } ? null : never);
};

/** Without times and other tasks. */
export type TaskTemplate = TaskTerms &
  Pick<Task, "creatorVerified" | "creatorKey" | "balanced"> & {
    readonly reviewTerms?: ReviewTerms | null;
    readonly quorumTerms?: QuorumTerms | null;
  };

export type Checkpoint = {
  /** JSON text, as it was sent. */
  readonly data: string;
  readonly epoch: number;
  readonly nodeId: string;
  readonly at: number;
};

export type OutputAttempt = {
  readonly epoch: number;
  readonly nodeId: string;
  /** Kept or not: where the next piece begins. */
  readonly bytes: number;
  /** 0: it was sent without a bound key. */
  readonly keptBytes: number;
  readonly begunAt: number;
  readonly at: number;
};

export type OutputBlock = {
  readonly n: number;
  readonly start: number;
  readonly data: string;
};

export type TaskQuestions = {
  /** `parked`: the task was given back meanwhile, and is not ready. */
  readonly state: "open" | "parked" | "settled";
  readonly asked: number;
  readonly bytes: number;
};

export const QUESTION_STATES = ["open", "answered", "timed_out"] as const;

export type Question = {
  readonly questionId: string;
  readonly taskId: string;
  readonly question: string;
  readonly choices: readonly string[];
  /** As text; nobody enforces it. */
  readonly schema: string | null;
  readonly askedBy: string;
  readonly epoch: number;
  readonly askedAt: number;
  /** Without an answer by then it is timed out. */
  readonly until: number;
  readonly state: (typeof QUESTION_STATES)[number];
  /** JSON text. */
  readonly answer: string | null;
  readonly answeredBy: string | null;
  /** Or timed out. */
  readonly answeredAt: number | null;
  /** The answer came with a key that is bound to `answeredBy`. */
  readonly verified: boolean;
};

export type UsageReport = {
  /** The worker's number: the same number in the same attempt counts once. */
  readonly seq: number;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Millionths of a dollar; null: unknown. */
  readonly costMicro: number | null;
};

/** `costMicro`: the sum of the known costs. */
export type Spending = {
  readonly reports: number;
  readonly unpriced: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly costMicro: number;
};

export type SumScope = "hub" | "node" | "creator" | "type" | "model" | "group" | "voided";

/**
 * `day`: from 1970-01-01, UTC. `value`: "" for the hub, for no creator and for no type; what belongs to no group has no
 * sum. `voided` is what was taken off the other sums.
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

export type Budget = BudgetKey & {
  readonly costMicro: number | null;
  readonly tokens: number | null;
  readonly onLimit: (typeof ON_LIMIT)[number];
  /** The first day of the period in which it was last said; null: never. */
  readonly warnedIn: number | null;
  readonly exceededIn: number | null;
};

export type BudgetState = Budget & { readonly spent: Spending };

/** `value`: "" for the hub, for no type and for no creator. */
export const PAUSE_SCOPES = ["hub", "type", "limit_key", "creator"] as const;

export type PauseKey = { readonly scope: (typeof PAUSE_SCOPES)[number]; readonly value: string };

export type Pause = PauseKey & { readonly reason: string | null; readonly at: number };

/** How many tasks of a limit key may run, and be handed out (gate.ts). "" is the key of the tasks without a type. */
export type Limit = {
  readonly key: string;
  readonly running: number | null;
  readonly perMinute: number | null;
  /** It may be over. */
  readonly hold: Hold | null;
};

/** From `at` to `until` (wall clock). */
export type Hold = {
  readonly at: number;
  readonly until: number;
  /** Null: an administrator or a key of no node. */
  readonly by: string | null;
};

export type LimitState = Limit & {
  readonly inUse: number;
  /** The dispatches of the last minute, by second. */
  readonly uses: readonly { readonly second: number; readonly count: number }[];
};

export type Closed = {
  readonly hub: boolean;
  readonly nodes: ReadonlySet<string>;
  /** "" is no creator. */
  readonly creators: ReadonlySet<string>;
  /** "" is no type. */
  readonly types: ReadonlySet<string>;
  readonly groups: ReadonlySet<string>;
  readonly keys: ReadonlySet<string>;
};

/** On one UTC day. `closed` null: nothing is kept back. `opensAt`: when time alone opens something. */
export type Gate = {
  readonly day: number;
  readonly budgets: readonly BudgetState[];
  readonly pauses: readonly Pause[];
  readonly limits: readonly LimitState[];
  readonly closed: Closed | null;
  readonly opensAt: number | null;
};

export type TaskState = Pick<
  Task,
  "taskId" | "title" | "status" | "assignedNode" | "progress" | "failure" | "child" | "updatedAt"
>;

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

/** It never changes, and no rule reads it. */
export type TaskOrigin = {
  /** Only this caller finds it on this card. */
  readonly caller: string;
  readonly contextId: string;
  readonly messageId: string;
};

// ---- Schedules

/** An earlier task of the schedule is unfinished: no new task, or one more. */
export const OVERLAPS = ["skip", "queue"] as const;
/** Which of the missed times get a task: the last, or none. */
export const CATCH_UPS = ["one", "none"] as const;

export type Timing = { readonly cron: string; readonly tz: string } | { readonly everyMs: number };

/** `needs`: the numbers of those before it that it waits for. */
export type ScheduledTask = TaskTemplate & {
  readonly ref: string;
  readonly needs: readonly number[];
  readonly onDependency: OnDependency;
};

export type ScheduleDraft = {
  readonly name: string;
  readonly timing: Timing;
  readonly task: TaskTemplate & {
    readonly delayMs: number;
    /** All its tasks, `task` included. */
    readonly pipeline?: readonly ScheduledTask[];
  };
  readonly overlap: (typeof OVERLAPS)[number];
  readonly catchUp: (typeof CATCH_UPS)[number];
  /** So that the tasks of many schedules do not start at once. */
  readonly jitterMs: number;
  readonly until: number | null;
  readonly paused: boolean;
};

export type Schedule = ScheduleDraft & {
  /** The last time that got an event instead of a task. */
  readonly skipLoggedAt: number | null;
  readonly kept?: Kept;
  readonly nextAt: number | null;
  readonly lastTaskId: string | null;
  readonly lastAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
};

// ---- Webhooks

export const WEBHOOK_FORMATS = ["luxhub", "a2a", "ntfy"] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

export type WebhookFilter = {
  readonly kinds: readonly EventKind[];
  readonly taskId: string | null;
  readonly nodeId: string | null;
  readonly creatorNode: string | null;
  readonly group: string | null;
};

/** Deleted when the task has ended. */
export type PushConfig = {
  readonly configId: string;
  /** Only it finds the config. */
  readonly caller: string;
  readonly contextId: string;
  /** The receiver knows the sender by it; "": none. */
  readonly token: string;
  /** Of the header Authorization. */
  readonly authentication: { readonly scheme: string; readonly credentials: string } | null;
};

export type WebhookDraft = {
  readonly name: string;
  readonly url: string;
  readonly format: WebhookFormat;
  readonly filter: WebhookFilter;
  readonly push: PushConfig | null;
};

/** What deliveries change. */
export type WebhookProgress = {
  /** The last event that needs no delivery any more. */
  readonly cursor: number;
  readonly state: "active" | "suspended";
  /** `attempts`: since the last success. */
  readonly attempts: number;
  readonly failingSince: number | null;
  readonly nextAt: number | null;
  readonly lastError: string | null;
  readonly deliveredAt: number | null;
};

export type Webhook = WebhookDraft &
  WebhookProgress & {
    /** A name may be used again after a deletion, this id not. */
    readonly webhookId: string;
    /** Signs the messages (Standard Webhooks), or is the access token of ntfy; null: none. Never shown or logged. */
    readonly secret: string | null;
    readonly revision: number;
    readonly kept?: Kept;
    readonly createdAt: number;
    readonly updatedAt: number;
  };

// ---- LUX

/** `hold`: held back from the one who earned it; `return`: back to the treasury. */
type LuxKind = "reward" | "signin" | "hold" | "return";

export type HeldAccount = `held:${string}`;

/** The prefix of a node's account keeps a node_id from naming another account. */
export type Account = "treasury" | HeldAccount | `node:${string}`;

/** Its two halves sum to zero. */
export type LedgerEntry = {
  readonly seq: number;
  readonly id: string;
  readonly from: Account;
  readonly to: Account;
  /** Their number among the node's entries, and its balance after it; or all null. */
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

export type LedgerHead = Pick<LedgerEntry, "seq" | "hash">;

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
  readonly replyTo: string | null;
  readonly thread: string | null;
  /** It came with a key that is bound to its sender. */
  readonly verified: boolean;
  readonly sentAt: number;
};

export type Delivery = {
  readonly message: Message;
  readonly seq: number;
  readonly toNode: string;
  readonly state: DeliveryState;
  readonly deliveries: number;
  /** Steady clock; only while leased. */
  readonly leaseUntil: number | null;
};

export type DeliveryStub = Omit<Delivery, "message"> & {
  readonly messageId: string;
  readonly fromNode: string;
  readonly broadcast: boolean;
};

/** By state. A broadcast requires no ACK, so none is leased or parked. */
export type BroadcastTally = { readonly waiting: number; readonly delivered: number; readonly acked: number };

export type MessageFate = {
  readonly message: Message;
  /** Of a broadcast, that to the asking node; null for the asking node's own broadcast. */
  readonly delivery: Pick<Delivery, "state" | "deliveries"> | null;
  /** Only for the asking node's own broadcast. */
  readonly recipients: BroadcastTally | null;
};

// ---- Files

export const ATTACHMENTS = ["input", "output"] as const;
export type Attachment = (typeof ATTACHMENTS)[number];

export type FileRecord = {
  readonly fileId: string;
  /** From the upload; for people, never a path. */
  readonly name: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly contentType: string;
  /** The uploader's JSON object, as JSON text. */
  readonly metadata: string;
  readonly nodeId: string | null;
  readonly taskId: string | null;
  readonly attached: Attachment | null;
  readonly uploadedAt: number;
  /** 0: it was uploaded without a bound key. */
  readonly keptBytes: number;
};

export type Note = {
  readonly key: string;
  readonly text: string;
  readonly version: number;
  readonly nodeId: string | null;
  /** The key of that request was bound to `nodeId`. */
  readonly verified: boolean;
  readonly kept?: Kept;
  readonly createdAt: number;
  readonly updatedAt: number;
};

export type NoteHead = Omit<Note, "text" | "kept"> & {
  /** Of its key and its text, in UTF-8. */
  readonly bytes: number;
};

export type Lease = {
  readonly name: string;
  readonly nodeId: string;
  /** The lease ends when the node no longer holds it. */
  readonly taskId: string | null;
  readonly shared: boolean;
  /** Fencing token: larger than every one before, never used again. */
  readonly fencing: number;
  readonly ttlMs: number;
  readonly leaseUntil: number;
  readonly acquiredAt: number;
};

// ---- Keys

/** full and viewer: X-Matrix-Secret; a viewer only reads, and no message contents. admin: X-Admin-Key. */
export const ADDED_KEY_ROLES = ["full", "viewer", "admin"] as const;
/** standby: made only with the line that its machine joins with. */
export const KEY_ROLES = [...ADDED_KEY_ROLES, "standby"] as const;

export type KeyRole = (typeof KEY_ROLES)[number];

export type KeyRecord = {
  readonly keyId: string;
  readonly role: KeyRole;
  readonly hash: string;
  /** Requests with this key are answered in this variant on any listener. */
  readonly variant: VariantName | null;
  /** The key acts for this node only. */
  readonly nodeId: string | null;
  /** Null: the default (domain/mint.ts). */
  readonly mintMicro: number | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
};

export type Invitation = {
  readonly invitationId: string;
  readonly tokenHash: string;
  readonly nodeId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
  readonly keyId: string | null;
};

/** Left out: it counts for nobody. */
export type Kept = { readonly by: string; readonly bytes: number };

/** quota.ts */
export type Usage = { readonly tasks: number; readonly bytes: number };

/** On a UTC day (dayOf), in millionths (mint.ts). */
export type Minted = { readonly keyId: string; readonly day: number; readonly micro: number };

// ---- Stored answers

export type StoredAnswer = {
  /** The key id, path and Idempotency-Key, with a space between them. */
  readonly scope: string;
  /** The variant, and the SHA-256 of the JSON value, or of an upload's fields and bytes. */
  readonly asked: string;
  readonly status: number;
  readonly body: string;
  readonly storedAt: number;
};
