/**
 * The metrics of this hub and of what it stores (docs/monitoring.md).
 *
 * Stored rows are counted for a scrape: in bounded steps, at most once a second, and nodes only after an event that may
 * have changed their number. If several hubs share a database, each counts its own events; the counts of stored rows
 * are the same at all of them.
 */
import type { Blobs } from "../blobs/blobs.ts";
import { EVENT_KINDS } from "../domain/event.ts";
import type { Spending } from "../domain/model.ts";
import { plus, toUsd } from "../domain/task/facet/spending.ts";
import {
  DIAGNOSIS_MAX_MS,
  METRICS_KEPT_MS,
  METRICS_MESSAGES_MAX,
  METRICS_TASKS_MAX,
  MICRO_PER_LUX,
} from "../domain/limits.ts";
import { invariantsBroken } from "../lib/assert.ts";
import { type Clock, SECOND_MS } from "../lib/clock.ts";
import { type Log, causeOf } from "../lib/log.ts";
import { Histogram } from "../lib/histogram.ts";
import { type Labels, MetricsText } from "../lib/metrics.ts";
import { type FileTotals, fileTotals } from "../store/sql/files.ts";
import { type NodeCounts, messagesIn, oldestReady } from "../store/sql/metrics.ts";
import { spentBy } from "../store/sql/spending.ts";
import { type TaskTotals, taskTotals } from "../store/sql/tasks.ts";
import { type Query, type Store, StoreUnavailable } from "../store/store.ts";
import { NodeCensus, type TypeCounts, countByType, countsOf, earlier, lanesRead } from "./census.ts";
import type { CopyLag } from "./copies.ts";
import type { Counts } from "./counts.ts";
import type { ChoreRuns } from "./scheduler.ts";
import type { CourierCounts } from "./webhook-courier.ts";
import type { StoreReport } from "./system.ts";

type Gauges = {
  readonly waiting: () => { readonly known: number; readonly anonymous: number };
  readonly streams: () => number;
  readonly isLeading: () => boolean;
  readonly chores: () => readonly ChoreRuns[];
  readonly diagnose: () => Promise<StoreReport>;
  /** Of the data directory; null when the system does not tell. */
  readonly diskFree: () => number | null;
  readonly writeRequests: (text: MetricsText) => void;
  readonly webhooks: () => CourierCounts;
  readonly copies: () => readonly CopyLag[];
};

type MetricsParts = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  readonly name: string | null;
  readonly counts: Counts;
};

type StoredTypes = ReadonlyMap<string, Readonly<TypeCounts>>;

type Stored = {
  readonly tasks: TaskTotals;
  readonly oldestReadyAt: number | null;
  readonly types: StoredTypes;
  readonly messages: Readonly<Record<(typeof MESSAGE_STATES)[number], number>>;
  readonly nodes: NodeCounts;
  readonly files: FileTotals;
  readonly spent: Spending;
  readonly databaseBytes: number | null;
};

/** The states as the API calls them. */
const MESSAGE_STATES = ["waiting", "delivered", "parked"] as const;
const TASK_STATUSES = ["open", "assigned", "completed", "failed"] as const;

/** All days. */
const EVER = { since: 0, until: 2 ** 31 - 1 } as const;

const GROUP_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const COMMIT_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const LAG_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class Metrics {
  readonly #store: Store;
  readonly #blobs: Blobs;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #version: string;
  readonly #name: string | null;
  readonly #startedSteady: number;
  readonly #groupSizes = new Histogram(GROUP_BOUNDS);
  readonly #commitSeconds = new Histogram(COMMIT_BOUNDS);
  readonly #lagSeconds = new Histogram(LAG_BOUNDS);
  readonly #nodes: NodeCensus;
  readonly #counts: Counts;
  #stored: Promise<Stored | null> | null = null;
  #storedAt = Number.NEGATIVE_INFINITY;
  /** Calls share the text that is being made. */
  #text: Promise<string> | null = null;

  constructor({ store, blobs, clock, log, version, name, counts }: MetricsParts) {
    this.#store = store;
    this.#blobs = blobs;
    this.#clock = clock;
    this.#log = log;
    this.#version = version;
    this.#name = name;
    this.#startedSteady = clock.steady();
    this.#nodes = new NodeCensus(store);
    this.#counts = counts;
    store.onGroup((transactions, ms) => {
      this.#groupSizes.observe(transactions);
      this.#commitSeconds.observe(ms / SECOND_MS);
    });
  }

  noteLag(ms: number): void {
    this.#lagSeconds.observe(ms / SECOND_MS);
  }

  /** Omits the counts of stored rows if the store does not answer in time. */
  text(gauges: Gauges): Promise<string> {
    return (this.#text ??= this.#make(gauges).finally(() => void (this.#text = null)));
  }

  async #make(gauges: Gauges): Promise<string> {
    const stored = await this.#readStored(gauges);
    const text = new MetricsText();
    this.#writeHub(text, gauges, stored !== null);
    gauges.writeRequests(text);
    this.#writeStore(text, gauges);
    if (stored !== null) this.#writeStored(text, stored);
    this.#writeTypes(text, stored?.types ?? null);
    await writeProcess(text);
    return text.toString();
  }

  /** Once a second at most; null when the store does not answer in time. */
  #readStored(gauges: Gauges): Promise<Stored | null> {
    const now = this.#clock.steady();
    if (this.#stored !== null && now - this.#storedAt < METRICS_KEPT_MS) return this.#stored;
    this.#storedAt = now;
    const { promise: timeIsUp, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(resolve, DIAGNOSIS_MAX_MS, null);
    const read = this.#read(gauges).catch((error: unknown) => {
      // An unavailable database is in the metrics already, and other parts of the hub log it.
      if (!(error instanceof StoreUnavailable))
        this.#log.error("the metrics of the store could not be read", { cause: causeOf(error) });
      return null;
    });
    this.#stored = Promise.race([read, timeIsUp]).finally(() => clearTimeout(timer));
    return this.#stored;
  }

  async #read({ diagnose }: Gauges): Promise<Stored> {
    const read = <R>(query: Query<R>): Promise<R> => this.#store.read(query);
    const messages = { waiting: 0, delivered: 0, parked: 0 };
    for (const state of MESSAGE_STATES) {
      const stored = state === "delivered" ? "leased" : state;
      messages[state] = await read(messagesIn(stored, METRICS_MESSAGES_MAX));
    }
    const tasks = await read(taskTotals());
    const types = await this.#readTypes();
    // Those of special lanes are found by their types.
    const oldestReadyAt = types
      .values()
      .reduce((oldest, { oldestAt }) => earlier(oldest, oldestAt), await read(oldestReady()));
    return {
      messages,
      tasks,
      oldestReadyAt,
      types,
      nodes: await this.#nodes.count(),
      files: await read(fileTotals()),
      spent: plus(await read(spentBy("hub", "", EVER)), await read(spentBy("voided", "", EVER))),
      databaseBytes: (await diagnose()).found?.sizeBytes ?? null,
    };
  }

  /** In bounded steps with other work in between. */
  async #readTypes(): Promise<StoredTypes> {
    const stored = new Map<string, TypeCounts>();
    for (const label of this.#counts.typeTimes.keys()) countsOf(stored, label);
    const counts = await countByType(this.#store, METRICS_TASKS_MAX, await lanesRead(this.#store));
    for (const [taskType, { ready, running, oldestAt }] of counts) {
      const ofLabel = countsOf(stored, this.#counts.labelOf(taskType));
      ofLabel.ready += ready;
      ofLabel.running += running;
      ofLabel.oldestAt = earlier(ofLabel.oldestAt, oldestAt);
    }
    return stored;
  }

  #writeHub(text: MetricsText, gauges: Gauges, isReadable: boolean): void {
    const { engine } = this.#store;
    const named = this.#name === null ? {} : { name: this.#name };
    const build = { version: this.#version, bun: Bun.version, engine, ...named };
    text.gauge("luxhub_build_info", "The program, its runtime and its store.", [[build, 1]]);
    text.gauge(
      "luxhub_uptime_seconds",
      "Time since this hub was started.",
      (this.#clock.steady() - this.#startedSteady) / SECOND_MS,
    );
    text.gauge("luxhub_leader", "1 if this hub does the periodic work.", flag(gauges.isLeading()));
    text.gauge("luxhub_writable", "0 after a failed write, until one succeeds.", [
      [{ store: "database" }, flag(this.#store.writable)],
      [{ store: "files" }, flag(this.#blobs.writable)],
    ]);
    text.gauge("luxhub_database_readable", "1 if the database answered this scrape.", flag(isReadable));
    text.counter(
      "luxhub_invariants_broken_total",
      "Assertions of this program that failed; the log has their places. Report it.",
      invariantsBroken(),
    );
    const { known, anonymous } = gauges.waiting();
    text.gauge("luxhub_waiting_calls", "Calls that wait, by whether they showed a valid secret.", [
      [{ secret: "valid" }, known],
      [{ secret: "none" }, anonymous],
    ]);
    const { delivered, failed, active, suspended } = gauges.webhooks();
    text.counter("luxhub_webhook_deliveries_total", "Attempts of this hub to deliver webhook messages.", [
      [{ outcome: "delivered" }, delivered],
      [{ outcome: "failed" }, failed],
    ]);
    text.gauge("luxhub_webhooks", "Webhooks by state; the leader counts them.", [
      [{ state: "active" }, active],
      [{ state: "suspended" }, suspended],
    ]);
    const copies = gauges.copies().map((copy) => [{ standby: copy.name }, copy] as const);
    text.gauge(
      "luxhub_standby_following",
      "1 if a standby follows; on a standby, whether this hub does.",
      copies.map(([labels, { isFollowing }]) => [labels, flag(isFollowing)] as const),
    );
    text.gauge(
      "luxhub_standby_lag_entries",
      "Entries of the change log that a standby lacks.",
      copies.map(([labels, { lagEntries }]) => [labels, lagEntries] as const),
    );
    text.gauge(
      "luxhub_standby_lag_seconds",
      "Age of the oldest entry that a standby lacks: what may be lost.",
      copies.map(([labels, { lagMs }]) => [labels, lagMs / SECOND_MS] as const),
    );
    text.gauge("luxhub_event_streams", "Open event streams.", gauges.streams());
    text.histogram("luxhub_event_loop_lag_seconds", "How late a timer fired, measured once a second.", [
      [{}, this.#lagSeconds],
    ]);
    const chores = gauges.chores();
    text.gauge(
      "luxhub_chore_last_success_timestamp_seconds",
      "When this hub last did a periodic job without an error.",
      chores.flatMap(({ name, succeededAt }) =>
        succeededAt === null ? [] : [[{ chore: name }, succeededAt / SECOND_MS] as const],
      ),
    );
    text.counter(
      "luxhub_chore_failures_total",
      "Errors of a periodic job on this hub.",
      chores.map(({ name, failures }) => [{ chore: name }, failures] as const),
    );
  }

  #writeStore(text: MetricsText, { diskFree }: Gauges): void {
    const plain: Labels = {};
    text.counter(
      "luxhub_events_total",
      "Events that this hub wrote, by kind.",
      EVENT_KINDS.map((kind) => [{ kind }, this.#counts.events.get(kind) ?? 0] as const),
    );
    text.counter("luxhub_lux_paid_total", "LUX that this hub paid.", this.#counts.luxMicro / MICRO_PER_LUX);
    text.gauge(
      "luxhub_commit_queue_length",
      "Parts of transactions that wait for their commit.",
      this.#store.queued,
    );
    text.histogram("luxhub_commit_group_transactions", "Transactions that shared a commit.", [
      [plain, this.#groupSizes],
    ]);
    text.histogram("luxhub_commit_duration_seconds", "Time from the beginning of a group to its commit.", [
      [plain, this.#commitSeconds],
    ]);
    const free = diskFree();
    if (free !== null)
      text.gauge("luxhub_disk_free_bytes", "Free space on the disk of the data directory.", free);
  }

  #writeStored(text: MetricsText, stored: Stored): void {
    const { tasks, oldestReadyAt, messages, nodes, files, spent, databaseBytes } = stored;
    text.gauge(
      "luxhub_tasks",
      "Tasks, by status.",
      TASK_STATUSES.map((status) => [{ status }, tasks[status]] as const),
    );
    const waitedMs = oldestReadyAt === null ? 0 : Math.max(0, this.#clock.now() - oldestReadyAt);
    text.gauge(
      "luxhub_tasks_oldest_ready_age_seconds",
      "Age of the oldest task that may be handed out now; 0 when there is none.",
      waitedMs / SECOND_MS,
    );
    text.gauge(
      "luxhub_messages",
      `Messages in mailboxes, by state; counted up to ${METRICS_MESSAGES_MAX} each.`,
      MESSAGE_STATES.map((state) => [{ state }, messages[state]] as const),
    );
    text.counter("luxhub_cost_usd_total", "What work has cost, where it is known.", toUsd(spent.costMicro));
    text.counter("luxhub_tokens_total", "Tokens that work has used.", [
      [{ direction: "input" }, spent.inputTokens],
      [{ direction: "output" }, spent.outputTokens],
    ]);
    text.counter("luxhub_usage_reports_total", "Reports of usage, by whether they had a cost.", [
      [{ cost: "known" }, spent.reports - spent.unpriced],
      [{ cost: "unknown" }, spent.unpriced],
    ]);
    text.gauge("luxhub_nodes", "Registered nodes, by status.", [
      [{ status: "online" }, nodes.online],
      [{ status: "draining" }, nodes.draining],
      [{ status: "offline" }, nodes.offline],
    ]);
    text.gauge("luxhub_files", "Stored files.", files.files);
    text.gauge("luxhub_files_size_bytes", "Size of all stored files together.", files.bytes);
    if (databaseBytes !== null)
      text.gauge("luxhub_database_size_bytes", "Size of the database.", databaseBytes);
  }

  /** `stored` null: only what this hub has counted. */
  #writeTypes(text: MetricsText, stored: StoredTypes | null): void {
    const now = this.#clock.now();
    const labelled = [...this.#counts.typeTimes].map(([type, times]) => ({ labels: { type }, times }));
    if (stored !== null) {
      const rows = [...stored].map(([type, of]) => ({ labels: { type }, of }));
      text.gauge(
        "luxhub_type_tasks_ready",
        `Tasks that may be handed out now, by type; counted up to ${METRICS_TASKS_MAX} each.`,
        rows.map(({ labels, of }) => [labels, of.ready] as const),
      );
      text.gauge(
        "luxhub_type_tasks_running",
        `Tasks that are assigned to a node, by type; counted up to ${METRICS_TASKS_MAX} together.`,
        rows.map(({ labels, of }) => [labels, of.running] as const),
      );
      text.gauge(
        "luxhub_type_oldest_ready_age_seconds",
        "Age of the oldest task of the type that may be handed out now; 0 when there is none.",
        rows.map(({ labels, of: { oldestAt } }) => {
          const waitedMs = oldestAt === null ? 0 : Math.max(0, now - oldestAt);
          return [labels, waitedMs / SECOND_MS] as const;
        }),
      );
    }
    text.histogram(
      "luxhub_type_task_wait_seconds",
      "Time from when a task became ready to when it was handed out, each time, by type.",
      labelled.map(({ labels, times }) => [labels, times.wait] as const),
    );
    text.histogram(
      "luxhub_type_task_run_seconds",
      "Time from the last start of a task to its completion, by type.",
      labelled.map(({ labels, times }) => [labels, times.run] as const),
    );
  }
}

function flag(is: boolean): number {
  return is ? 1 : 0;
}

const MICROSECONDS = 1_000_000;
/** Files of /proc, which only Linux has; other systems lack these metrics. */
const OPEN_FILES = "/proc/self/fd";
const LIMITS = "/proc/self/limits";

/** Under the names that all client libraries of Prometheus use. */
async function writeProcess(text: MetricsText): Promise<void> {
  const { user, system } = process.cpuUsage();
  text.counter("process_cpu_seconds_total", "Processor time.", (user + system) / MICROSECONDS);
  text.gauge("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss());
  const open = await Bun.file(OPEN_FILES)
    .stat()
    .catch(() => null);
  if (open !== null && open.size > 0) text.gauge("process_open_fds", "Open file descriptors.", open.size);
  const limits = await Bun.file(LIMITS)
    .text()
    .catch(() => "");
  const most = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  if (Number.isFinite(most)) text.gauge("process_max_fds", "Most file descriptors that may be open.", most);
}
