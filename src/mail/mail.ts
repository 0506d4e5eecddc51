/**
 * The port to the mailboxes. Its comments are the contract that every engine is tested against.
 *
 * A send is answered after the message is on disk. Each waiting message goes to one receiver, oldest first. A message
 * that requires an ACK is redelivered after its visibility timeout, until it is acknowledged or parked
 * (domain/message.ts has the state diagram).
 */
import type { HandOut } from "../domain/message.ts";
import type { Delivery, Message } from "../domain/model.ts";
import type { Answer, Committed, Transact } from "../store/store.ts";

/** With `redis` the store holds the message, and Redis carries its wake-up. */
export type Transport = string;

export type Sent = {
  readonly messageId: string;
  readonly receivers: readonly string[];
  readonly transport: Transport;
};
export type Taken = { readonly deliveries: readonly Delivery[]; readonly transport: Transport };

/** A large answer is loaded once its bytes are acquired. */
export type Room = {
  /** Rejects after `withinMs`, and when `signal` aborts; then nothing is acquired. */
  acquire(bytes: number, withinMs: number, signal: AbortSignal): Promise<void>;
  release(bytes: number): void;
};

export type Receiver = {
  readonly signal: AbortSignal;
  /** Without it nothing bounds the memory of what is loaded. */
  readonly room?: Room;
  /** Of the contents as JSON together, but at least one message is taken; MESSAGES_ANSWER_MAX_BYTES unless given. */
  readonly maxBytes?: number;
};

/** A type of tasks; null: every node. */
export type TakerFilter = string | null;

/**
 * `transact` comes from the caller, who may store an answer in the same commit. For `now` and `steady` see
 * lib/clock.ts.
 */
export interface Mail {
  readonly transport: Transport;
  /** @throws {Rejection} node_not_found */
  send(transact: Transact<Sent>, message: Message, toNode: string): Promise<Answer<Sent>>;
  /**
   * Sends to every node that is online, or to those that take a type of tasks, except the sender; if it throws, to
   * none. A broadcast to many nodes is written in several commits, with requests served in between, one such broadcast
   * at a time. It is invisible until the last commit.
   * @throws {MailBusy} when too many broadcasts wait, or this one took too long
   */
  broadcast(
    transact: Transact<Sent>,
    message: Message,
    steady: () => number,
    taking?: TakerFilter,
  ): Promise<Answer<Sent>>;
  /**
   * Undefined when none waits, or when the receiver hung up before there was room. @throws {Rejection} node_not_found
   */
  take(
    transact: Transact<Taken>,
    nodeId: string,
    count: number,
    steady: () => number,
    receiver?: Receiver,
  ): Promise<Committed<Taken> | undefined>;
  /** In one transaction and with a small answer, empty when no message waits. */
  takeAtOnce(
    transact: Transact<Taken>,
    nodeId: string,
    count: number,
    steady: () => number,
  ): Promise<Committed<Taken>>;
  /** Commits an answer without messages. @throws {Rejection} node_not_found */
  takeNothing(transact: Transact<Taken>, nodeId: string): Promise<Committed<Taken>>;
  /** For messages that never reached their receiver; not those acknowledged or redelivered meanwhile. */
  putBack(nodeId: string, taken: readonly HandOut[]): Promise<void>;
  /** @throws {Rejection} node_not_found, message_not_found, not_your_message */
  acknowledge(
    transact: Transact,
    request: { messageId: string; nodeId: string },
    now: () => number,
  ): Promise<null>;
  /** Whose visibility timeout is over, in one bounded step. Returns how many. */
  expireSome(now: number, steady: number): Promise<number>;
  /** In one bounded step. Returns false when there is none. */
  dropUnfinished(steady: number): Promise<boolean>;
  /** @throws {Rejection} node_not_found, message_not_found, not_your_message, message_not_parked */
  redrive(transact: Transact, request: { messageId: string; nodeId: string }): Promise<null>;
}

/** The caller may try again later. The answer shows the error's message. */
export class MailBusy extends Error {
  override readonly name = "MailBusy";
}
