/**
 * The line to a Redis (or Valkey): up or down, never half. Every command is bounded in time; what fails or takes too long
 * takes the line down, and whoever waits for an answer is told at once (MailAway). While it is down it is tried again,
 * less and less eagerly, but at least every REDIS_RETRY_MAX_MS.
 *
 * Each try makes two new connections, one for commands and one for bells: on Bun 1.4.5 a client that reconnects by itself
 * counts as connected and is subscribed to nothing. A line is up only after every script has run once: a Redis that is
 * full, a replica, too old or still loading is away like one that is gone, and the line does not flutter.
 *
 * Must not: know what a message is, or say the password to anybody but Redis.
 */
import type { RedisClient } from "bun";
import {
  REDIS_BATCH,
  REDIS_CHECK_EVERY_MS,
  REDIS_COMMAND_MAX_MS,
  REDIS_CONNECT_MAX_MS,
  REDIS_RETRY_FIRST_MS,
  REDIS_RETRY_MAX_MS,
  REDIS_STEADY_MS,
} from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { MailAway } from "./mail.ts";
import { refusalOf } from "./redis-refusal.ts";

const CLIENT = {
  autoReconnect: false,
  enableOfflineQueue: false,
  connectionTimeout: REDIS_CONNECT_MAX_MS,
} as const;

export type LinkOptions = {
  readonly url: string;
  /** What every key and channel begins with. */
  readonly prefix: string;
  readonly clock: Clock;
  /** In Lua, by name: run() calls them. */
  readonly scripts: Readonly<Record<string, string>>;
  /** Runs every script once where it does no harm, and lets each write: only then is the line up. */
  readonly rehearse: (run: Run) => Promise<void>;
  /** Hears the mailboxes that another hub rings, and those of lookAgain(). */
  readonly onBell: (nodeId: string) => void;
};

/** Runs a script and answers what it does. */
export type Run = (
  script: string,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/** Hears that the line is up (null), or why it is down; also when the reason changes. */
export type LinkListener = (away: string | null) => void;

/** One time that the line is up. */
type Session = {
  readonly commands: RedisClient;
  readonly bells: RedisClient;
  readonly shas: ReadonlyMap<string, string>;
  readonly since: number;
};

export class RedisLink {
  readonly #options: LinkOptions;
  /** The name of this hub among those that share the prefix. */
  readonly self = Bun.randomUUIDv7();
  #listener: LinkListener = () => {};
  #session: Session | null = null;
  /** Why the line is down, as it was last told. */
  #away: string | null = null;
  #retryMs = REDIS_RETRY_FIRST_MS;
  #timer: Timer | null = null;
  #working: Promise<void> = Promise.resolve();
  #closed = false;
  readonly #lookAgain = new Set<string>();
  /** Breaks off a try that is under way. */
  #breakOff: () => void = () => {};

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Tries the line once: up or down, it is known when this resolves. Then it looks after itself until close(). */
  async start(listener: LinkListener): Promise<void> {
    this.#listener = listener;
    this.#working = this.#connect();
    await this.#working;
  }

  get isUp(): boolean {
    return this.#session !== null;
  }

  key(...parts: readonly string[]): string {
    return [this.#options.prefix, ...parts].join(":");
  }

  /** @throws {MailAway} when the line is down, or goes down over it */
  readonly run: Run = async (script, keys, args) =>
    this.#ask("EVALSHA", wordsOf(this.#session?.shas.get(script), keys, args));

  /** Sends a command and does not wait for its answer: one that fails takes the line down, and no more is lost with it. */
  tell(command: string, args: readonly string[]): void {
    this.#ask(command, args).catch(() => {}); // the line has told why
  }

  /** Tells the other hubs that something waits in these mailboxes. */
  ring(nodeIds: readonly string[]): void {
    for (let i = 0; i < nodeIds.length; i += REDIS_BATCH) {
      this.tell("PUBLISH", this.bell(nodeIds.slice(i, i + REDIS_BATCH)));
    }
  }

  /** Channel and text of a bell, for a script that rings. */
  bell(nodeIds: readonly string[]): readonly [string, string] {
    return [this.key("bell"), `${this.self} ${nodeIds.join(",")}`]; // no node_id has a comma
  }

  /** Rings a mailbox here at the next check of the line, or when it goes down. */
  lookAgain(nodeId: string): void {
    this.#lookAgain.add(nodeId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const session = this.#session;
    this.#session = null;
    if (session) shut(session.commands, session.bells);
    this.#breakOff();
    await this.#working;
  }

  async #ask(command: string, args: readonly string[]): Promise<unknown> {
    const session = this.#session;
    if (session === null) throw new MailAway("Redis is away.");
    try {
      return await within(REDIS_COMMAND_MAX_MS, session.commands.send(command, [...args]));
    } catch (error) {
      this.#end(session, reasonOf(error));
      throw new MailAway("Redis is away.", { cause: error });
    }
  }

  /** One try. Never rejects. */
  async #connect(): Promise<void> {
    const { url, clock } = this.#options;
    const commands = new Bun.RedisClient(url, CLIENT);
    const bells = new Bun.RedisClient(url, CLIENT);
    this.#breakOff = () => shut(commands, bells);
    try {
      await Promise.all([commands.connect(), bells.connect()]);
      const shas = await within(REDIS_CONNECT_MAX_MS, this.#prepare(commands, bells));
      const session = { commands, bells, shas, since: clock.steady() };
      commands.onclose = bells.onclose = () => this.#end(session, "the connection broke");
      if (this.#closed || !commands.connected || !bells.connected) throw new Error("the connection broke");
      this.#session = session;
    } catch (error) {
      shut(commands, bells);
      if (this.#closed) return;
      // A client whose greeting is refused says only that the connection was closed.
      const refusal = await refusalOf(url, REDIS_CONNECT_MAX_MS);
      this.#waitAndRetry();
      this.#tell(refusal ?? reasonOf(error));
      return;
    }
    this.#timer = setTimeout(() => this.#work(() => this.#check()), REDIS_CHECK_EVERY_MS);
    this.#tell(null);
  }

  async #prepare(commands: RedisClient, bells: RedisClient): Promise<ReadonlyMap<string, string>> {
    const shas = new Map<string, string>();
    for (const [name, lua] of Object.entries(this.#options.scripts)) {
      shas.set(name, String(await commands.send("SCRIPT", ["LOAD", lua])));
    }
    await this.#options.rehearse((script, keys, args) =>
      commands.send("EVALSHA", wordsOf(shas.get(script), keys, args)),
    );
    await bells.subscribe(this.key("bell"), (text) => this.#hear(text));
    return shas;
  }

  /** A Redis that hangs closes no connection: it is asked whether it is there. */
  async #check(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    try {
      await within(REDIS_COMMAND_MAX_MS, Promise.all([session.commands.ping(), session.bells.ping()]));
    } catch (error) {
      this.#end(session, reasonOf(error));
      return;
    }
    this.#ringAgain();
    if (this.#session !== session) return;
    this.#timer = setTimeout(() => this.#work(() => this.#check()), REDIS_CHECK_EVERY_MS);
  }

  #end(session: Session, reason: string): void {
    if (this.#session !== session) return;
    this.#session = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    shut(session.commands, session.bells);
    if (this.#options.clock.steady() - session.since >= REDIS_STEADY_MS) this.#retryMs = REDIS_RETRY_FIRST_MS;
    this.#waitAndRetry();
    this.#tell(reason);
    this.#ringAgain();
  }

  #waitAndRetry(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => this.#work(() => this.#connect()), this.#retryMs);
    this.#retryMs = Math.min(2 * this.#retryMs, REDIS_RETRY_MAX_MS);
  }

  #work(step: () => Promise<void>): void {
    if (!this.#closed) this.#working = step();
  }

  #tell(away: string | null): void {
    if (this.#closed || (away !== null && away === this.#away)) return;
    this.#away = away;
    this.#listener(away);
  }

  #hear(text: string): void {
    const space = text.indexOf(" ");
    if (text.slice(0, space) === this.self) return; // who waits here was woken by the commit
    for (const nodeId of text.slice(space + 1).split(",")) this.#options.onBell(nodeId);
  }

  #ringAgain(): void {
    const nodeIds = [...this.#lookAgain];
    this.#lookAgain.clear();
    for (const nodeId of nodeIds) this.#options.onBell(nodeId);
  }
}

function wordsOf(sha = "", keys: readonly string[], args: readonly (string | number)[]): string[] {
  return [sha, String(keys.length), ...keys, ...args.map(String)];
}

function shut(...clients: readonly RedisClient[]): void {
  for (const client of clients) {
    client.onclose = null;
    client.close();
  }
}

/** The promise's own outcome, or a rejection when it takes longer. */
async function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const refuse = (): void => late.reject(new Error(`no answer within ${limitMs} ms`));
  // Not before the sockets have been looked at: it may be this process that stood still, and the answer be there.
  const timer = setTimeout(() => setImmediate(refuse), limitMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
