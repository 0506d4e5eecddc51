/**
 * The limit on waiting calls (long polls and blocking receives), whose connections are not closed as idle. The calls
 * themselves wait in service/wait-queue.ts.
 */
import { WAITERS_MAX } from "../domain/limits.ts";
import { type Exchange, allowSilence } from "../http/exchange.ts";
import type { Feed } from "../service/feed.ts";
import { overloaded } from "./error-table.ts";

/**
 * Admits one more waiting call: its connection is not closed as idle.
 * @throws {Problem} 503 when WAITERS_MAX calls wait already
 */
export function holdOpen(feed: Feed, exchange: Exchange): void {
  if (feed.waiting >= WAITERS_MAX) throw overloaded("As many calls wait as the hub can hold.");
  allowSilence(exchange);
}
