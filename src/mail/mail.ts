/**
 * The port to what carries messages. Its comments are the contract that every engine is tested against.
 *
 * A message is on disk before its sending is answered. Each waiting message is handed to one taker, oldest first; one
 * that wants an ACK comes back until it is confirmed or parked (domain/message.ts has the diagram).
 */
import type { Handed } from "../domain/message.ts";
import type { Delivery, Message } from "../domain/model.ts";
import type { Transact } from "../store/store.ts";

/** The name of what carried or served a message: `sqlite`, `postgresql` or `redis`. */
export type Transport = string;

export type Sent = {
  readonly messageId: string;
  readonly receivers: readonly string[];
  readonly transport: Transport;
};
export type Taken = { readonly deliveries: readonly Delivery[]; readonly transport: Transport };

/** `transact` is the caller's way to write, so that a stored answer is in the same commit. `steady`: lib/clock.ts. */
export interface Mail {
  /** What carries messages now. */
  readonly transport: Transport;
  /** To one node. @throws {Rejection} node_not_found */
  send(transact: Transact, message: Message, toNode: string): Promise<Sent>;
  /** To every node that is online, the sender left out. */
  broadcast(transact: Transact, message: Message): Promise<Sent>;
  /**
   * Takes up to `count` messages out; undefined when none waits, or `signal` was aborted before there was room for them. No deliveries: what waits is just being handed out by
   * another hub, for TICKET_HOLD_MS at most, and who waits is woken when that is over. @throws {Rejection} node_not_found
   */
  take(
    transact: Transact,
    nodeId: string,
    count: number,
    steady: number,
    signal?: AbortSignal,
  ): Promise<Taken | undefined>;
  /** An answer without messages, decided like any other. @throws {Rejection} node_not_found */
  takeNothing(transact: Transact, nodeId: string): Promise<Taken>;
  /** Puts back what was taken and never reached its taker, but what has been acked or redelivered meanwhile. */
  putBack(nodeId: string, taken: readonly Handed[]): Promise<void>;
  /** Confirms a message; a repeat is a success. @throws {Rejection} node_, message_not_found, not_your_message */
  acknowledge(transact: Transact, asked: { messageId: string; nodeId: string }, now: number): Promise<null>;
  /** Brings back, or parks, what was not confirmed in time, one bounded step. The answer is how many. */
  expireSome(now: number, steady: number): Promise<number>;
}

/** An engine that may be away cannot be reached. Nothing was written: another engine may be asked instead. */
export class MailAway extends Error {
  override readonly name = "MailAway";
}
