/**
 * Mail carried by Redis: each mailbox is a list of tickets there, and bells go to the other hubs over its channel.
 *
 * The authority is the store. A message, who it waits for and whether it was handed out are committed there, exactly as
 * without Redis, so a 200 means on disk whatever Redis keeps, and history, ACK and redelivery are what they were. What
 * Redis has is the hand-out among any number of hubs on one database: a ticket is the message's id, in the recipient's
 * list; whose hands it is in takes the message, and two hubs do not meet in the store over one row.
 *
 *   send:  ticket into the list;   COMMIT of the message;       bell
 *   take:  ticket into our hands;  COMMIT of the handing out;   ticket out of our hands
 *
 * A take asks the store for the oldest that waits, and leaves alone what is in another hub's hands, with all that has the
 * same sender: nothing may overtake it, for who has it may die and leave it where it was. (Takes at one hub need no such
 * care: its store decides them in the order in which they came.) So tickets may be lost, stale or doubled, and it costs
 * time only:
 *   - Lost (Redis restarted empty, evicts, is cut off for one hub and not for another, the list is full): the message is
 *     found in the store by the next look, in its place in the order, which is the store's.
 *   - Stale (the commit of its sending failed or never came; it was handed out, confirmed or dropped meanwhile): nothing
 *     waits under it in the store, and it is thrown away.
 *   - In the hands of a hub that died before its commit: after TICKET_HOLD_MS they are empty, and the message still
 *     waits. Died after its commit: the store says that it was handed out. Slow, and its hands were emptied: the
 *     store commits one of the two takes; the other sees that the message no longer waits.
 *
 * So what a Redis that keeps nothing on disk can lose is tickets and bells: no message, no order, no ACK. The other way
 * round, Redis as the authority (appendfsync always, WAIT), would make a 200 mean what somebody else's redis.conf says,
 * needs a second commit in the store all the same (history, events, idempotency), and leaves a message in one and not the
 * other when the hub dies between the two. Tickets carry no content: it would be held in memory twice, for a read by
 * primary key that the commit does anyway.
 *
 * Must not: be trusted for correctness.
 */
import { REDIS_BATCH, TICKETS_MAX, TICKETS_RETAIN_MS, TICKET_HOLD_MS } from "../domain/limits.ts";
import type { Message } from "../domain/model.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/ids.ts";
import { onlineNodeIds } from "../store/sql/nodes.ts";
import { databaseId } from "../store/sql/messages.ts";
import type { Store, Transact } from "../store/store.ts";
import { EmbeddedMail } from "./embedded.ts";
import type { Mail, Sent, Taken } from "./mail.ts";
import { type LinkListener, RedisLink, type Run } from "./redis-link.ts";

/** KEYS: lists. ARGV: ticket, longest list, how long a list is kept. */
const PUSH = `
  for _, list in ipairs(KEYS) do
    if redis.call('LLEN', list) < tonumber(ARGV[2]) then redis.call('RPUSH', list, ARGV[1]) end
    redis.call('PEXPIRE', list, ARGV[3])
  end`;

/**
 * KEYS: list, hands, wanted. ARGV: this hub, how many tickets, how long they are held, how many in other hands are told.
 * Time is Redis' own. Who finds anything in another hub's hands is counted as wanting it.
 */
const CLAIM = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  local elsewhere = {}
  for _, held in ipairs(redis.call('ZRANGE', KEYS[2], 0, ARGV[4] - 1)) do
    local space = string.find(held, ' ', 1, true)
    if string.sub(held, 1, space - 1) ~= ARGV[1] then table.insert(elsewhere, string.sub(held, space + 1)) end
  end
  if #elsewhere > 0 then
    redis.call('INCR', KEYS[3])
    redis.call('PEXPIRE', KEYS[3], ARGV[3])
  end
  local mine = redis.call('LPOP', KEYS[1], ARGV[2]) or {}
  for _, ticket in ipairs(mine) do redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1] .. ' ' .. ticket) end
  if #mine > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
  return { mine, elsewhere }`;

/**
 * KEYS: hands, wanted. ARGV: this hub, bell's channel and text, tickets. Rings for one who wanted something; that one,
 * having taken, rings for the next.
 */
const RELEASE = `
  for i = 4, #ARGV do redis.call('ZREM', KEYS[1], ARGV[1] .. ' ' .. ARGV[i]) end
  if tonumber(redis.call('GET', KEYS[2]) or 0) < 1 then return 0 end
  redis.call('DECR', KEYS[2])
  redis.call('PUBLISH', ARGV[2], ARGV[3])
  return 1`;

const SCRIPTS = { push: PUSH, claim: CLAIM, release: RELEASE };

/** A mailbox that is no node's, for the rehearsal. */
const STAGE = "";

export type RedisMailOptions = {
  /** What large answers may hold, see EmbeddedMail. */
  readonly room?: Semaphore;
  readonly url: string;
  readonly clock: Clock;
  /** Wakes who waits here for a mailbox. */
  readonly onBell: (nodeId: string) => void;
};

/**
 * Mail over a line to Redis that may go down at any moment: send, broadcast and take then throw MailAway, always before
 * anything is written.
 */
export class RedisMail implements Mail {
  readonly transport = "redis";
  readonly #store: Store;
  readonly #mailboxes: EmbeddedMail;
  readonly #link: RedisLink;
  readonly #onBell: RedisMailOptions["onBell"];

  private constructor(store: Store, link: RedisLink, { onBell, room }: RedisMailOptions) {
    this.#store = store;
    this.#mailboxes = new EmbeddedMail(store, room, this.transport);
    this.#link = link;
    this.#onBell = onBell;
  }

  /** Mail with its line still down: see start(). */
  static async over(store: Store, options: RedisMailOptions): Promise<RedisMail> {
    const { url, clock, onBell } = options;
    const prefix = `luxhub:${await store.read(databaseId())}`; // hubs of another database share nothing with us
    const mail: RedisMail = new RedisMail(
      store,
      new RedisLink({ url, prefix, clock, onBell, scripts: SCRIPTS, rehearse: (run) => mail.#rehearse(run) }),
      options,
    );
    return mail;
  }

  /** Tries the line once, and goes on looking after it. The listener hears whenever it goes up or down. */
  start(listener: LinkListener): Promise<void> {
    return this.#link.start(listener);
  }

  get isUp(): boolean {
    return this.#link.isUp;
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  send(transact: Transact, message: Message, toNode: string): Promise<Sent> {
    return this.#ticketed(message, [toNode], () => this.#mailboxes.send(transact, message, toNode));
  }

  async broadcast(transact: Transact, message: Message): Promise<Sent> {
    // Who it goes to is decided in the commit. Who comes online until then has no ticket, who goes has a stale one.
    const nodeIds = await this.#store.read(onlineNodeIds());
    const receivers = nodeIds.filter((nodeId) => nodeId !== message.fromNode);
    return this.#ticketed(message, receivers, () => this.#mailboxes.broadcast(transact, message));
  }

  async take(
    transact: Transact,
    nodeId: string,
    count: number,
    steady: number,
    signal?: AbortSignal,
  ): Promise<Taken | undefined> {
    const { run } = this.#link;
    const { mine, elsewhere } = await this.#claim(run, nodeId, count);
    let taken: Taken | undefined;
    try {
      taken = await this.#mailboxes.take(transact, nodeId, count, steady, signal, elsewhere);
      return taken ?? (elsewhere.length > 0 ? { deliveries: [], transport: this.transport } : undefined);
    } finally {
      // Nobody waits for this; when the line goes down over it, it tells why.
      if (taken || mine.length > 0) this.#release(run, nodeId, mine).catch(() => {});
      if (!taken && elsewhere.length > 0) this.#link.lookAgain(nodeId); // if who has it dies, nobody rings for it
    }
  }

  takeNothing(transact: Transact, nodeId: string): Promise<Taken> {
    return this.#mailboxes.takeNothing(transact, nodeId);
  }

  /** What comes back to a mailbox does so without a ticket: it is rare, and the store has it in its old place. */
  putBack(...asked: Parameters<Mail["putBack"]>): Promise<void> {
    return this.#mailboxes.putBack(...asked);
  }

  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }, now: number): Promise<null> {
    return this.#mailboxes.acknowledge(transact, asked, now);
  }

  expireSome(now: number, steady: number): Promise<number> {
    return this.#mailboxes.expireSome(now, steady);
  }

  /** The ticket comes before the commit: whoever the commit wakes, here or at another hub, finds it. */
  async #ticketed(message: Message, nodeIds: readonly string[], commit: () => Promise<Sent>): Promise<Sent> {
    const { messageId } = message;
    for (let i = 0; i < nodeIds.length; i += REDIS_BATCH) {
      const lists = nodeIds.slice(i, i + REDIS_BATCH).map((nodeId) => this.#list(nodeId));
      await this.#push(this.#link.run, lists, messageId);
    }
    try {
      const sent = await commit();
      this.#link.ring(sent.receivers);
      return sent;
    } catch (error) {
      for (const nodeId of nodeIds) this.#link.tell("LREM", [this.#list(nodeId), "-1", messageId]);
      throw error;
    }
  }

  #push(run: Run, lists: readonly string[], ticket: string): Promise<unknown> {
    return run("push", lists, [ticket, TICKETS_MAX, TICKETS_RETAIN_MS]);
  }

  async #claim(run: Run, nodeId: string, count: number) {
    const args = [this.#link.self, count, TICKET_HOLD_MS, TICKETS_MAX];
    const reply = await run("claim", this.#keysOf(nodeId), args);
    const [mine, elsewhere] = Array.isArray(reply) ? reply.map(texts) : [];
    return { mine: mine ?? [], elsewhere: elsewhere ?? [] };
  }

  /**
   * Empties our hands. A ticket for what was not handed out is thrown away too: it is stale, or its message was kept back
   * and is found without one. Were it put back, stale ones would go round for ever.
   */
  async #release(run: Run, nodeId: string, mine: readonly string[]): Promise<void> {
    const [, hands, wanted] = this.#keysOf(nodeId);
    const args = [this.#link.self, ...this.#link.bell([nodeId]), ...mine];
    if ((await run("release", [hands, wanted], args)) === 1) this.#onBell(nodeId);
  }

  async #rehearse(run: Run): Promise<void> {
    await this.#push(run, [this.#list(STAGE)], newId());
    const { mine } = await this.#claim(run, STAGE, TICKETS_MAX);
    await this.#release(run, STAGE, mine);
  }

  #keysOf(nodeId: string): readonly [list: string, hands: string, wanted: string] {
    return [this.#list(nodeId), this.#link.key("hands", nodeId), this.#link.key("wanted", nodeId)];
  }

  #list(nodeId: string): string {
    return this.#link.key("box", nodeId);
  }
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
