/**
 * The pulse of a hub among others on one database: every second it reads the database's clock and takes, keeps or looks
 * for the turn to do the periodic work.
 *
 * The clock. Leases are readings of the steady clock, and hubs on several machines write and compare them. So each hub's
 * steady clock is set by the database's: moved by how far this machine's clock is from that one. A small difference is
 * noise and left alone. A large one (the database's clock was set, or this machine slept) moves the steady clock against
 * the wall clock, which the hub notices as a jump: all leases start anew.
 *
 * The turn. One row says whose it is and until when, by the database's clock. Its hub renews it at every pulse; a hub
 * that is dead, frozen or cut off does not, and after TURN_MS another takes it. Who takes or keeps it after it could not
 * reach the database for that long says so: most likely nobody could, and no heartbeat was written meanwhile.
 *
 * The schema. A hub that was frozen for longer than its turn may find the database migrated by a newer one: it
 * leaves the turn to that, for good.
 */
import { CLOCK_NOISE_MS, PULSE_MS, TURN_MS } from "../../domain/limits.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { type Connection, query } from "./connection.ts";
import { SCHEMA, isMoved } from "./migrations.ts";
import type { Turn } from "../store.ts";

const NOW_MS = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`;

const LOOK = `
  SELECT ${NOW_MS} AS now, ${SCHEMA} AS schema, holder, until <= clock_timestamp() AS free,
    CASE WHEN isfinite(renewed_at) THEN (extract(epoch FROM renewed_at) * 1000)::bigint ELSE 0 END AS renewed_at
  FROM turn`;
const TAKE = `
  UPDATE turn SET holder = $1, renewed_at = clock_timestamp(),
    until = clock_timestamp() + interval '${TURN_MS} milliseconds'
  WHERE holder = $1 OR until <= clock_timestamp()`;
const LEAVE = `UPDATE turn SET until = clock_timestamp() WHERE holder = $1`;

export class Pulse {
  /** The hub's clock: `steady` is that of all hubs on the database. */
  readonly clock: Clock;
  readonly #connection: Connection;
  readonly #hubId: string;
  readonly #onBeat: () => Promise<void>;
  readonly #machine = systemClock();
  #shiftMs = 0;
  /** By the database's clock. */
  #openedAt = 0;
  #oursUntil = 0;
  /** When the database last answered, by this machine's clock. */
  #answeredAt = 0;
  #afterGap = false;
  #isOutdated = false;
  #timer: Timer | null = null;
  #beating: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `onBeat` runs at every pulse, whether the database answers or not. */
  constructor(connection: Connection, hubId: string, base: Clock, onBeat: () => Promise<void>) {
    this.#connection = connection;
    this.#hubId = hubId;
    this.#onBeat = onBeat;
    this.clock = {
      now: () => base.now(),
      steady: () => Math.trunc(base.steady() + this.#shiftMs),
      timers: () => base.timers(),
    };
  }

  /** @throws what the database throws */
  async start(): Promise<void> {
    const { now, offsetMs } = await this.#look();
    this.#shiftMs = offsetMs;
    this.#openedAt = now;
    this.#schedule();
  }

  /** The database has another schema than this hub knows. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /** Whose the periodic work is now. */
  async turn(): Promise<Turn> {
    if (this.#machine.steady() >= this.#oursUntil) await this.#beat();
    if (this.#machine.steady() >= this.#oursUntil) return "another's";
    if (!this.#afterGap) return "ours";
    this.#afterGap = false;
    return "ours after a gap";
  }

  /** Leaves the turn to the others. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#beating;
    await this.#leave();
  }

  async #leave(): Promise<void> {
    if (this.#oursUntil === 0) return;
    this.#oursUntil = 0;
    await query(this.#connection, LEAVE, [this.#hubId]).catch(() => {}); // then its time runs out by itself
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat()
        .catch(() => {}) // the requests tell of it; the next pulse tries again
        .then(this.#onBeat)
        .finally(() => this.#schedule());
    }, PULSE_MS);
  }

  async #beat(): Promise<void> {
    const started = this.#machine.steady();
    const wasAway = started - this.#answeredAt > TURN_MS;
    const { offsetMs, isFree, holder, renewedAt, schema } = await this.#look();
    this.#isOutdated = isMoved(schema);
    if (this.#isOutdated) return this.#leave();
    if (Math.abs(offsetMs - this.#shiftMs) > CLOCK_NOISE_MS) this.#shiftMs = offsetMs;
    if (holder !== this.#hubId && !isFree) {
      this.#oursUntil = 0;
      return;
    }
    const { count } = await query(this.#connection, TAKE, [this.#hubId]);
    if (count === 1) this.#afterGap ||= wasAway || (holder !== this.#hubId && renewedAt <= this.#openedAt);
    this.#oursUntil = count === 1 ? started + TURN_MS : 0;
  }

  async #look() {
    const sent = this.#machine.steady();
    const [row] = await query(this.#connection, LOOK);
    this.#answeredAt = this.#machine.steady();
    const between = (sent + this.#answeredAt) / 2;
    const now = Number(row?.["now"]);
    return {
      now,
      schema: row?.["schema"],
      offsetMs: now - between,
      isFree: Boolean(row?.["free"]),
      holder: String(row?.["holder"]),
      renewedAt: Number(row?.["renewed_at"]),
    };
  }
}
