/** Joins the services of a hub, in the order in which they need each other. */
import type { Blobs } from "../blobs/blobs.ts";
import type { Quotas } from "../domain/quota.ts";
import type { OutputWindow } from "../domain/task/output.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Mail } from "../mail/mail.ts";
import type { Store } from "../store/store.ts";
import { A2aTasks } from "./a2a-tasks.ts";
import { AnswerTokens } from "./answer-tokens.ts";
import { Takes } from "./blocked-calls.ts";
import { Budgets } from "./budgets.ts";
import type { Copies } from "./copies.ts";
import { Explanations } from "./explanations.ts";
import { FailureStatistics } from "./failure-stats.ts";
import type { Feed } from "./feed.ts";
import { FileService } from "./files.ts";
import { GroupService } from "./groups.ts";
import { HeldTasks } from "./held-tasks.ts";
import { History } from "./history.ts";
import type { IdleWorkers } from "./idle-workers.ts";
import { InvitationService } from "./invitations.ts";
import type { KeyRing } from "./keys.ts";
import type { KnownLanes } from "./known-lanes.ts";
import { LeaseService } from "./leases.ts";
import { Lessons } from "./lessons.ts";
import { Limits } from "./limits.ts";
import { LuxService } from "./lux.ts";
import { MessageService } from "./messages.ts";
import type { Minutes } from "./minutes.ts";
import { type LuxPolicy, MintService } from "./mints.ts";
import { NextService } from "./next.ts";
import { NodeService } from "./nodes.ts";
import { NoteService } from "./notes.ts";
import { Outputs } from "./output.ts";
import { QuestionService } from "./questions.ts";
import { QuotaService } from "./quotas.ts";
import { ScheduleService } from "./schedules.ts";
import { SpendingService } from "./spending.ts";
import { SystemService } from "./system.ts";
import { TaskContexts } from "./task-context.ts";
import { TaskGraphs } from "./task-graph.ts";
import { TaskService } from "./tasks.ts";
import { Tickets } from "./tickets.ts";
import { TypeStatistics } from "./type-stats.ts";
import { type Encode, type Post, WebhookCourier } from "./webhook-courier.ts";
import { WebhookService } from "./webhooks.ts";

type Parts = {
  readonly store: Store;
  readonly clock: Clock;
  readonly copies: Copies;
  readonly log: Log;
  readonly newId: NewId;
  readonly keys: KeyRing;
  readonly feed: Feed;
  readonly idle: IdleWorkers;
  readonly minutes: Minutes;
  readonly knownLanes: KnownLanes;
  readonly mail: Mail;
  readonly blobs: Blobs;
  readonly quotas: Quotas;
  readonly luxPolicy: LuxPolicy;
  readonly reportMaxUsd: number;
  readonly maxNodes: number;
  readonly outputWindow: OutputWindow;
  readonly pinned: () => boolean;
  readonly diskFree: () => number | null;
  readonly software: string;
  readonly name: string | null;
  readonly post: Post;
  readonly refusalOf: WebhookService["refusalOf"];
  /** What encodes the messages of webhooks. */
  readonly encoding: (sources: {
    readonly a2a: A2aTasks;
    readonly feed: Feed;
    readonly files: FileService;
    readonly answerTokens: AnswerTokens;
  }) => Encode;
};

export type Services = ReturnType<typeof joinServices>;

export function joinServices(parts: Parts) {
  const { store, clock, log, newId, keys, feed, minutes, knownLanes, mail, blobs, post } = parts;
  const { paysOwn } = parts.luxPolicy;
  const tasks = new TaskService(store, clock, newId, {
    knownLanes,
    paysOwn,
    reportMaxUsd: parts.reportMaxUsd,
  });
  const nodes = new NodeService(store, clock, tasks, parts.maxNodes);
  const takes = new Takes(store, clock);
  const held = new HeldTasks(store, clock);
  const lessons = new Lessons(store);
  const quotas = new QuotaService(store, parts.quotas);
  const mints = new MintService(keys, clock, parts.luxPolicy);
  const answerTokens = new AnswerTokens(keys, clock);
  const a2a = new A2aTasks(store);
  const files = new FileService(store, clock, blobs, parts.pinned, (blobId) =>
    parts.copies.isArriving(blobId),
  );
  return {
    takes,
    feed,
    keys,
    copies: parts.copies,
    quotas,
    mints,
    tickets: new Tickets(keys, clock),
    minutes,
    history: new History(store, clock, minutes),
    held,
    typeStats: new TypeStatistics(store, clock, minutes, held),
    failureStats: new FailureStatistics(store, clock),
    tasks,
    lessons,
    contexts: new TaskContexts(store, lessons),
    graphs: new TaskGraphs(store),
    outputs: new Outputs(store, clock, parts.outputWindow),
    questions: new QuestionService(store, clock, newId, tasks, feed),
    groups: new GroupService(store, clock, feed, tasks.followUps),
    schedules: new ScheduleService(store, clock, newId, quotas, mints, keys, knownLanes.isFair),
    spending: new SpendingService(store, clock),
    budgets: new Budgets(store, clock),
    webhooks: new WebhookService(store, clock, newId, parts.refusalOf),
    courier: new WebhookCourier({
      ...{ store, clock, log, post },
      encode: parts.encoding({ a2a, feed, files, answerTokens }),
      isRevoked: (keyId, nodeId) => keys.isRevoked(keyId, nodeId),
    }),
    answerTokens,
    a2a,
    limits: new Limits(store, clock),
    explanations: new Explanations(store, clock),
    nodes,
    next: new NextService(store, clock, nodes, tasks, parts.idle, takes),
    messages: new MessageService(store, mail, clock, newId, feed.receivers, takes),
    notes: new NoteService(store, clock),
    leases: new LeaseService(store, clock),
    invitations: new InvitationService(store, clock, newId, keys),
    lux: new LuxService(store, clock, newId, parts.luxPolicy),
    files,
    system: new SystemService(store, mail, blobs, clock, parts.software, parts.diskFree, parts.name),
  };
}
