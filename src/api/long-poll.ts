/** Calls that wait: how many there may be, and that their silence is no fault. */
import { WAITERS_MAX } from "../domain/limits.ts";
import { type Exchange, allowSilence } from "../http/exchange.ts";
import type { Feed } from "../service/feed.ts";
import { overloaded } from "./error-table.ts";

/** Lets a call wait without being cut for its silence. @throws {Problem} 503 when too many wait already */
export function holdOpen(feed: Feed, exchange: Exchange): void {
  if (feed.waiting >= WAITERS_MAX) throw overloaded("As many calls wait as the hub can hold.");
  allowSilence(exchange);
}
