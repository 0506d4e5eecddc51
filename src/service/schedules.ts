/** The use cases of schedules (domain/schedule.ts), and the chore that creates their tasks when they are due. */
import { Rejection, UNDECIDED, also } from "../domain/decision.ts";
import { SCHEDULES_DUE_BATCH, SCHEDULE_REWOUND_MS } from "../domain/limits.ts";
import type { Gate, Moment, Schedule, ScheduleDraft, Task } from "../domain/model.ts";
import {
  type Fired,
  type SkipReason,
  deleteSchedule,
  fire,
  putSchedule,
  rewind,
  rewindStored,
  runSchedule,
  skip,
  tasksOf,
} from "../domain/schedule.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import { NO_ROW } from "../store/sql/query.ts";
import { candidatesIfBalanced } from "../store/sql/balancer.ts";
import {
  dueSchedules,
  hasUnfinishedTask,
  scheduleByName,
  scheduleCount,
  scheduleCounts,
  schedulePage,
  schedulesAfter,
} from "../store/sql/schedules.ts";
import { type Committed, type Store, type Transact, transactAlso, withAround } from "../store/store.ts";
import { type Page, type PageRequest, Rows, pageOf } from "./list-pages.ts";
import type { KeyRing } from "./keys.ts";
import type { MintService } from "./mints.ts";
import type { QuotaService } from "./quotas.ts";
import { UseCases } from "./use-cases.ts";

/** `boundTo`: the node of the caller's key. */
type Asked = { readonly name: string; readonly boundTo: string | null };

export class ScheduleService extends UseCases {
  readonly #isFair: boolean;
  readonly #newId: NewId;
  readonly #quotas: Pick<QuotaService, "charging">;
  readonly #mints: Pick<MintService, "limiting">;
  readonly #keys: Pick<KeyRing, "isRevoked">;

  constructor(
    store: Store,
    clock: Clock,
    newId: NewId,
    quotas: Pick<QuotaService, "charging">,
    mints: Pick<MintService, "limiting">,
    keys: Pick<KeyRing, "isRevoked">,
    isFair = false,
  ) {
    super(store, clock);
    this.#keys = keys;
    this.#mints = mints;
    this.#isFair = isFair;
    this.#newId = newId;
    this.#quotas = quotas;
  }

  /** @throws {Rejection} schedules_limit, key_bound_to_other_node */
  put(
    transact: Transact<Schedule>,
    draft: ScheduleDraft,
    boundTo: string | null,
  ): Promise<Committed<Schedule>> {
    const load = { before: scheduleByName(draft.name), counts: scheduleCounts(draft.task.creatorNode) };
    return transact(load, ({ before, counts }) =>
      putSchedule(draft, before, counts, boundTo, this.clock.now()),
    );
  }

  /** @throws {Rejection} schedule_not_found, key_bound_to_other_node */
  delete(transact: Transact<Schedule>, { name, boundTo }: Asked): Promise<Committed<Schedule>> {
    return transact({ schedule: scheduleByName(name) }, ({ schedule }) =>
      deleteSchedule(name, schedule, boundTo, this.clock.now()),
    );
  }

  /** @throws {Rejection} schedule_not_found, key_bound_to_other_node */
  async run(transact: Transact<Task>, { name, boundTo }: Asked): Promise<Committed<Task>> {
    // The candidates depend on the schedule, so it is read first.
    for (let before = await this.store.read(scheduleByName(name)); ;) {
      const expected = before;
      const load = { schedule: scheduleByName(name), ...this.#takersOf(expected) };
      const taskIds = this.#newIds(expected);
      const { answer: created, also: other = null } = await transactAlso(transact, load, (rows) => {
        const { schedule, candidates, gate } = rows;
        if (!Bun.deepEquals(expected?.task ?? null, schedule?.task ?? null)) return also(UNDECIDED, schedule);
        const task = { taskIds, candidates: candidates.best };
        return runSchedule(name, schedule, task, boundTo, this.#at(gate));
      });
      if (created) return created;
      before = other;
    }
  }

  async list(request: PageRequest): Promise<Page<Schedule>> {
    const { page, perPage } = request;
    const { total, rows } = await this.store.readTogether(async (read) => ({
      total: await read(scheduleCount()),
      rows: await read(schedulePage(perPage, (page - 1) * perPage)),
    }));
    return pageOf(request, total, new Rows(rows));
  }

  /**
   * One time of each of the first schedules that are due. Resolves to how many were due: a schedule may be due again at
   * once, and there may be more.
   */
  async fireSome(): Promise<number> {
    const due = await this.store.read(dueSchedules(this.clock.now(), SCHEDULES_DUE_BATCH));
    for (const schedule of due) await this.#fire(schedule);
    return due.length;
  }

  /** They lie too far ahead because the clock was set back. Resolves to how many. */
  async rewindAll(): Promise<number> {
    const ahead = await this.store.read(schedulesAfter(this.clock.now() + SCHEDULE_REWOUND_MS));
    let rewound = 0;
    for (const { name } of ahead.filter((one) => rewind(one, this.clock.now()) !== null)) {
      const load = { schedule: scheduleByName(name) };
      const isRewound = await this.store.transact(load, ({ schedule }) =>
        rewindStored(schedule, this.clock.now()),
      );
      if (isRewound) rewound++;
    }
    return rewound;
  }

  /** Unless the schedule has changed since it was read: then the next step handles it. */
  async #fire(due: Schedule): Promise<void> {
    const { name, task } = due;
    const load = {
      schedule: scheduleByName(name),
      isRunning: hasUnfinishedTask(name),
      ...this.#takersOf(due),
    };
    const taskIds = this.#newIds(due);
    const boundTo = task.creatorVerified ? task.creatorNode : null;
    const transact: Transact<Fired> = this.store.transact;
    const charged = withAround(transact, [this.#quotas.charging(boundTo)]);
    const limited = withAround(charged, [this.#mints.limiting(task.creatorKey)]);
    if (this.#keys.isRevoked(task.creatorKey, boundTo)) return this.#skip(due, "key_revoked", charged);
    try {
      await limited(load, ({ schedule, isRunning, candidates, gate }) => {
        if (!schedule || !Bun.deepEquals(schedule, due)) return UNDECIDED;
        return fire(schedule, { isRunning, taskIds, candidates: candidates.best }, this.#at(gate));
      });
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      // The key that put the schedule, or the quota of its node, has no room for the task or for its reward.
      const reason = error.code === "mint_limit" ? "mint_limit" : "quota_exceeded";
      await this.#skip(due, reason, charged);
    }
  }

  /** `charged`: counts the event for the one who put the schedule. */
  async #skip(due: Schedule, reason: SkipReason, charged: Transact<Fired>): Promise<void> {
    const skipWith = (write: Transact<Fired>, isLogged: boolean) =>
      write({ schedule: scheduleByName(due.name) }, ({ schedule }) =>
        schedule && Bun.deepEquals(schedule, due)
          ? skip(schedule, this.clock.now(), reason, isLogged)
          : UNDECIDED,
      );
    try {
      await skipWith(charged, true);
    } catch (refused) {
      if (!(refused instanceof Rejection)) throw refused;
      await skipWith(this.store.transact, false); // there is no room for the event
    }
  }

  #newIds(schedule: Schedule | null): readonly string[] {
    return Array.from({ length: schedule === null ? 0 : tasksOf(schedule) }, this.#newId);
  }

  /** Read when a transaction is decided: on PostgreSQL it may have waited long for the write lock. */
  #at(gate: Gate | null): Moment {
    return { now: this.clock.now(), steady: this.clock.steady(), gate, isFair: this.#isFair };
  }

  /** To which node the balancer gives the task at once. */
  #takersOf(schedule: Schedule | null) {
    const candidates = candidatesIfBalanced(schedule && schedule.task, null);
    return { candidates, gate: schedule?.task.balanced ? this.gate() : NO_ROW };
  }
}
