/**
 * The port to the mailboxes. Its comments are the contract that every engine is tested against.
 *
 * A send is answered after the message is on disk. Each waiting message goes to one receiver, oldest first. A message
 * that requires an ACK is redelivered after its visibility timeout, until it is acknowledged or parked
 * (domain/message.ts has the state diagram).
 */
import type { HandOut } from "../domain/message.ts";
import type { Delivery, Message } from "../domain/model.ts";
import type { Transact } from "../store/store.ts";

/** What carried a message: `sqlite`, `postgresql`, or `redis` (the store keeps it, and Redis carried its wake-up). */
export type Transport = string;

export type Sent = {
  readonly messageId: string;
  readonly receivers: readonly string[];
  readonly transport: Transport;
};
export type Taken = { readonly deliveries: readonly Delivery[]; readonly transport: Transport };

/** `transact` comes from the caller, who may store an answer in the same commit. `steady`: lib/clock.ts. */
export interface Mail {
  /** What carries messages now. */
  readonly transport: Transport;
  /** To one node. @throws {Rejection} node_not_found */
  send(transact: Transact, message: Message, toNode: string): Promise<Sent>;
  /**
   * To every node that is online, except the sender: all of them or, if it throws, none. A broadcast to many nodes is
   * written in several commits, between which requests are served, one broadcast at a time; it is invisible until the last.
   * `steady`: lib/clock.ts.
   * @throws {MailBusy} when too many broadcasts wait, or this one took too long
   */
  broadcast(transact: Transact, message: Message, steady: () => number): Promise<Sent>;
  /**
   * Takes up to `count` messages; undefined when none waits, or when `signal` was aborted before there was memory for
   * them. @throws {Rejection} node_not_found
   */
  take(
    transact: Transact,
    nodeId: string,
    count: number,
    steady: number,
    signal?: AbortSignal,
  ): Promise<Taken | undefined>;
  /** As take(), in one transaction and without large answers; without messages when none waits. */
  takeAtOnce(transact: Transact, nodeId: string, count: number, steady: number): Promise<Taken>;
  /** An answer without messages, committed like any other. @throws {Rejection} node_not_found */
  takeNothing(transact: Transact, nodeId: string): Promise<Taken>;
  /** Puts back what never reached its receiver, except what was acknowledged or redelivered meanwhile. */
  putBack(nodeId: string, taken: readonly HandOut[]): Promise<void>;
  /** Acknowledges a message; a repeat is a success. @throws {Rejection} node_, message_not_found, not_your_message */
  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }, now: number): Promise<null>;
  /** Ends visibility timeouts that are over: redelivers or parks, one bounded step. The answer is how many. */
  expireSome(now: number, steady: number): Promise<number>;
  /** Removes broadcasts that were not finished, one bounded step. The answer is whether there is more to do. */
  dropUnfinished(steady: number): Promise<boolean>;
  /** Lets a parked message wait again. @throws {Rejection} node_, message_not_found, not_your_message, message_not_parked */
  redrive(transact: Transact, asked: { messageId: string; nodeId: string }): Promise<null>;
}

/** Nothing was sent; the caller tries again later. The message is for the caller. */
export class MailBusy extends Error {
  override readonly name = "MailBusy";
}
