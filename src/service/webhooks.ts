/** The use cases of webhooks (domain/webhook.ts). */
import type { Notified } from "../domain/change.ts";
import type { EventKind } from "../domain/event.ts";
import { WEBHOOK_SECRET_NEW_BYTES } from "../domain/limits.ts";
import type { Task, Webhook, WebhookDraft } from "../domain/model.ts";
import {
  type PutWebhook,
  deleteWebhook,
  putPush,
  putWebhook,
  resumeWebhook,
  webhookNotFound,
} from "../domain/webhook.ts";
import { Rejection } from "../domain/decision.ts";
import { isFinished } from "../domain/task/state.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { endEventOf, lastEventId } from "../store/sql/events.ts";
import { NO_ROW } from "../store/sql/query.ts";
import { taskById } from "../store/sql/tasks.ts";
import {
  ownWebhookCount,
  pushConfigsOf,
  pushCounts,
  suspendedCount,
  webhookByName,
  webhookCount,
  webhookPage,
} from "../store/sql/webhooks.ts";
import { type Around, type Committed, type Store, type Transact, around } from "../store/store.ts";
import { type Page, type PageRequest, pageOf, Rows } from "./list-pages.ts";
import { UseCases } from "./use-cases.ts";

/** Then it is base64 (Standard Webhooks). */
export const SECRET_PREFIX = "whsec_";

const WEBHOOK_KINDS: ReadonlySet<EventKind> = new Set([
  "webhook.saved",
  "webhook.deleted",
  "webhook.suspended",
  "webhook.resumed",
]);

export function changedWebhooks(changes: readonly Notified[]): readonly string[] {
  const names: string[] = [];
  for (const change of changes)
    if (change.kind === "event.logged" && WEBHOOK_KINDS.has(change.event.kind))
      names.push(String(change.event.data["name"]));
  return names;
}

/** The names of the use case's queries have no space. */
const BEFORE = "the push config before";
const COUNTS = "push configs counted";
const LAST_ID = "the last event";

/** As far as the URL itself shows; null: it may be called. */
type RefusalOf = (url: string, sender: "webhook" | "push") => string | null;

export class WebhookService extends UseCases {
  readonly refusalOf: RefusalOf;
  readonly #newId: NewId;
  /** Null: it may have changed. */
  #suspended: Promise<number> | null = null;

  constructor(store: Store, clock: Clock, newId: NewId, refusalOf: RefusalOf) {
    super(store, clock);
    this.refusalOf = refusalOf;
    this.#newId = newId;
    store.onCommit((changes) => {
      if (this.#suspended !== null && changedWebhooks(changes).length > 0) this.#suspended = null;
    });
  }

  /** `secret`: null keeps the one there is, or makes one. @throws {Rejection} webhooks_limit */
  put(
    transact: Transact<PutWebhook>,
    draft: WebhookDraft,
    secret: string | null,
  ): Promise<Committed<PutWebhook>> {
    const load = { before: webhookByName(draft.name), all: ownWebhookCount(), lastId: lastEventId() };
    const made = draft.format === "ntfy" ? null : newSecret();
    const webhookId = this.#newId();
    return transact(load, ({ before, all, lastId }) =>
      putWebhook(
        draft,
        secret,
        before,
        all,
        { webhookId, secret: made, lastEventId: lastId },
        this.clock.now(),
      ),
    );
  }

  /**
   * From the next event on. `boundTo`: the node of the caller's key.
   * @throws {Rejection} task_not_found, task_completed, task_failed, webhooks_limit
   */
  putPush(
    transact: Transact<PutWebhook>,
    draft: WebhookDraft,
    boundTo: string | null,
  ): Promise<Committed<PutWebhook>> {
    const { taskId } = draft.filter;
    const load = {
      task: taskById(taskId ?? ""),
      before: webhookByName(draft.name),
      counts: pushCounts(taskId, boundTo),
      lastId: lastEventId(),
      endId: endEventOf(taskId ?? ""),
    };
    const webhookId = this.#newId();
    return transact(load, ({ task, before, counts, lastId, endId }) => {
      const issue = { webhookId, secret: null, lastEventId: lastId, endEventId: endId };
      return putPush(draft, task, before, counts, boundTo, issue, this.clock.now());
    });
  }

  /**
   * The push config is put in the commit of the request, or neither. Notifications begin with the events of this
   * commit. `taskId`: null for a task that the request creates.
   * `draftOf` null: the request has no push config.
   */
  puttingPush<A>(
    taskOf: (answer: A) => Task,
    draftOf: ((taskId: string) => WebhookDraft) | null,
    { taskId, boundTo }: { readonly taskId: string | null; readonly boundTo: string | null },
  ): Around<A> | null {
    if (draftOf === null) return null;
    const webhookId = this.#newId();
    const more = () => ({
      [BEFORE]: taskId === null ? NO_ROW : webhookByName(draftOf(taskId).name),
      [COUNTS]: pushCounts(taskId, boundTo),
      [LAST_ID]: lastEventId(),
    });
    return around<A, ReturnType<typeof more>>(more, (decision, rows) => {
      if (decision.kind === "rejected" || decision.changes.length === 0) return decision;
      const task = taskOf(decision.answer);
      if (isFinished(task)) return decision; // the response shows it: there is nothing to notify of
      const issue = { webhookId, secret: null, lastEventId: rows[LAST_ID], endEventId: 0 };
      const [before, counts] = [rows[BEFORE], rows[COUNTS]];
      const put = putPush(draftOf(task.taskId), task, before, counts, boundTo, issue, this.clock.now());
      if (put.kind === "rejected") return put;
      return { ...decision, changes: [...decision.changes, ...put.changes] };
    });
  }

  /** @throws {Rejection} webhook_not_found */
  delete(transact: Transact<Webhook>, name: string): Promise<Committed<Webhook>> {
    return transact({ webhook: webhookByName(name) }, ({ webhook }) =>
      deleteWebhook(name, webhook, this.clock.now()),
    );
  }

  /** `after`: the id of an event of the log; null: the cursor. @throws {Rejection} webhook_not_found */
  resume(transact: Transact<Webhook>, name: string, after: number | null): Promise<Committed<Webhook>> {
    const load = { webhook: webhookByName(name), lastId: lastEventId() };
    return transact(load, ({ webhook, lastId }) =>
      resumeWebhook(name, webhook, after === null ? null : Math.min(after, lastId), this.clock.now()),
    );
  }

  async list(request: PageRequest): Promise<Page<Webhook>> {
    const { page, perPage } = request;
    const { total, rows } = await this.store.readTogether(async (read) => ({
      total: await read(webhookCount()),
      rows: await read(webhookPage(perPage, (page - 1) * perPage)),
    }));
    return pageOf(request, total, new Rows(rows));
  }

  /** @throws {Rejection} webhook_not_found */
  async get(name: string): Promise<Webhook> {
    const webhook = await this.store.read(webhookByName(name));
    if (!webhook) throw new Rejection(webhookNotFound(name));
    return webhook;
  }

  find(name: string): Promise<Webhook | null> {
    return this.store.read(webhookByName(name));
  }

  pushesOf(taskId: string): Promise<readonly Webhook[]> {
    return this.store.read(pushConfigsOf(taskId));
  }

  /** Read again only after an event of a webhook. */
  suspended(): Promise<number> {
    if (this.#suspended !== null) return this.#suspended;
    const read = this.store.read(suspendedCount());
    this.#suspended = read;
    read.catch(() => {
      if (this.#suspended === read) this.#suspended = null;
    });
    return read;
  }
}

function newSecret(): string {
  return SECRET_PREFIX + crypto.getRandomValues(new Uint8Array(WEBHOOK_SECRET_NEW_BYTES)).toBase64();
}
