/**
 * Leader election among the hubs on one database, by a leader lease; also the clocks that the hubs share. Every second a
 * hub reads the database's clock, and takes, renews or watches the lease. The leader does the periodic work.
 *
 * The clocks. Leases of nodes and messages, start times of tasks and the dates of stored answers are readings of clocks,
 * and hubs on several machines write and compare them. So each hub sets both its clocks, the wall clock and the steady
 * clock, by the database's clock: it adds the difference to this machine's steady clock. What the wall clock of a hub's
 * own machine says, or whether it is set, changes nothing. The database read its clock between the query and its answer,
 * so the difference lies within bounds, however long that took: the hub moves its clocks only as far as these bounds
 * demand, and a small difference is noise and ignored. A large one (the database's clock was set, or this machine slept)
 * moves them against the machine's steady clock, which the hub notices as a jump: all leases start again.
 *
 * The leader lease. The one row of the table `turn` names its holder and its end, by the database's clock. The leader
 * renews it every second; one that is dead, frozen or cut off does not, and after LEADER_LEASE_MS another hub takes it.
 * A hub that takes or renews it after it could not reach the database for that long is elected after a gap: most likely
 * no hub could reach it, and no heartbeat was written meanwhile. After the database's clock was set back, a lease that
 * nobody renews ends at once, and for at most a second two hubs may be leaders: chores may run twice.
 *
 * The schema. A hub that was frozen for longer than its lease may find that a newer one has migrated the database: it
 * gives up the lease permanently.
 */
import { CLOCK_NOISE_MS, ELECTION_EVERY_MS, LEADER_LEASE_MS } from "../../domain/limits.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { ElectionResult } from "../store.ts";
import type { Result } from "./connection.ts";
import { IS_TAKEN, SCHEMA, isMigrated } from "./migrate.ts";

const NOW_MS = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`;

const READ_LEASE = `
  SELECT ${NOW_MS} AS now, ${SCHEMA} AS schema, holder, NOT ${IS_TAKEN} AS free,
    CASE WHEN isfinite(renewed_at) THEN (extract(epoch FROM renewed_at) * 1000)::bigint ELSE 0 END AS renewed_at
  FROM turn`;
const TAKE_LEASE = `
  UPDATE turn SET holder = $1, renewed_at = clock_timestamp(),
    until = clock_timestamp() + interval '${LEADER_LEASE_MS} milliseconds'
  WHERE holder = $1 OR NOT ${IS_TAKEN}`;
const RELEASE_LEASE = `UPDATE turn SET until = clock_timestamp() WHERE holder = $1`;

/** Runs a statement. @throws {StoreUnavailable} also when the database does not answer in time */
export type Ask = (sql: string, params?: readonly string[]) => Promise<Result>;

/** Of the clock at the start: the one that took the shortest time counts. */
const FIRST_READINGS_MAX = 3;

function widthOf({ leastMs, mostMs }: { readonly leastMs: number; readonly mostMs: number }): number {
  return mostMs - leastMs;
}

export class LeaderElection {
  /** The hub's clock: `now` and `steady` are those of all hubs on the database. */
  readonly clock: Clock;
  readonly #ask: Ask;
  readonly #hubId: string;
  readonly #onTick: () => Promise<void>;
  readonly #machine = systemClock();
  #shiftMs = 0;
  #openedAt = 0;
  #leaderUntil = 0;
  /** When the database last answered, by this machine's clock. */
  #answeredAt = 0;
  #isAfterGap = false;
  #isOutdated = false;
  #timer: Timer | null = null;
  #ticking: Promise<void> = Promise.resolve();
  #electing: Promise<void> | null = null;
  #isClosed = false;

  /** `onTick` runs every second, whether the database answers or not. */
  constructor(ask: Ask, hubId: string, base: Clock, onTick: () => Promise<void>) {
    this.#ask = ask;
    this.#hubId = hubId;
    this.#onTick = onTick;
    const machine = this.#machine;
    this.clock = {
      // The wall clocks cancel each other out, unless a test has set `base`.
      now: () => Math.trunc(machine.steady() + this.#shiftMs) + base.now() - machine.now(),
      steady: () => Math.trunc(base.steady() + this.#shiftMs),
      machine: () => base.machine(),
      timers: () => base.timers(),
      work: () => base.work(),
    };
  }

  /** @throws what the database throws */
  async start(): Promise<void> {
    let lease = await this.#readLease();
    for (let tries = 1; widthOf(lease) > CLOCK_NOISE_MS && tries < FIRST_READINGS_MAX; tries++) {
      const again = await this.#readLease();
      if (widthOf(again) < widthOf(lease)) lease = again;
    }
    this.#shiftMs = (lease.leastMs + lease.mostMs) / 2;
    this.#openedAt = lease.now;
    this.#schedule();
  }

  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  async lead(): Promise<ElectionResult> {
    if (!this.#isLeader) await this.#elect();
    if (!this.#isLeader) return "follower";
    if (!this.#isAfterGap) return "leader";
    this.#isAfterGap = false;
    return "elected after a gap";
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#ticking;
    await this.#release();
  }

  get #isLeader(): boolean {
    return this.#machine.steady() < this.#leaderUntil;
  }

  async #release(): Promise<void> {
    if (this.#leaderUntil === 0) return;
    this.#leaderUntil = 0;
    await this.#ask(RELEASE_LEASE, [this.#hubId]).catch(() => {}); // then the lease runs out
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#ticking = this.#elect()
        .catch(() => {}) // the requests report it; the next tick tries again
        .then(this.#onTick)
        .finally(() => this.#schedule());
    }, ELECTION_EVERY_MS);
  }

  /** One election at a time: two at once would both see the same gap, and it would be reported twice. */
  #elect(): Promise<void> {
    return (this.#electing ??= this.#electNow().finally(() => (this.#electing = null)));
  }

  async #electNow(): Promise<void> {
    const started = this.#machine.steady();
    const answeredBefore = this.#answeredAt;
    const { now, leastMs, mostMs, isFree, holder, renewedAt, schema } = await this.#readLease();
    this.#isOutdated = isMigrated(schema);
    if (this.#isOutdated) return this.#release();
    const isOff = this.#shiftMs < leastMs - CLOCK_NOISE_MS || this.#shiftMs > mostMs + CLOCK_NOISE_MS;
    if (isOff) this.#shiftMs = Math.min(Math.max(this.#shiftMs, leastMs), mostMs);
    if (holder !== this.#hubId && !isFree) {
      this.#leaderUntil = 0;
      return;
    }
    // At the answer, and not when it was asked for: an election that began before the lease ran out may wait for it.
    const wasAway = this.#answeredAt - answeredBefore > LEADER_LEASE_MS;
    const { count } = await this.#ask(TAKE_LEASE, [this.#hubId]);
    const isOfOtherTime = renewedAt <= this.#openedAt || renewedAt > now;
    if (count === 1) this.#isAfterGap ||= wasAway || (holder !== this.#hubId && isOfOtherTime);
    this.#leaderUntil = count === 1 ? started + LEADER_LEASE_MS : 0;
  }

  async #readLease() {
    const sent = this.#machine.steady();
    const [row] = await this.#ask(READ_LEASE);
    this.#answeredAt = this.#machine.steady();
    const now = Number(row?.["now"]);
    return {
      now,
      schema: row?.["schema"],
      // Bounds of the difference: the database's clock minus this machine's.
      leastMs: now - this.#answeredAt,
      mostMs: now - sent,
      isFree: Boolean(row?.["free"]),
      holder: String(row?.["holder"]),
      renewedAt: Number(row?.["renewed_at"]),
    };
  }
}
