/**
 * A bounded cache of the events that were committed last, with the messages that they announce. Streams that follow the
 * log find their events here, each encoded once for all of them, so that a broadcast to ten thousand makes no query.
 *
 * Invariant: an entry is what the store would answer. Rows of the log and messages never change; only retention removes
 * them. What is not here is read from the store, so the cache may forget any entry at any time.
 */
import type { Notified } from "../domain/change.ts";
import type { LoggedEvent, NewEvent } from "../domain/event.ts";
import { RECENT_EVENTS_MAX, RECENT_EVENTS_MAX_WEIGHT } from "../domain/limits.ts";
import type { Message } from "../domain/model.ts";
import { must } from "../lib/assert.ts";

export type StreamItem =
  | { readonly kind: "event"; readonly event: LoggedEvent }
  | { readonly kind: "message"; readonly eventId: number; readonly message: Message };

/** Each time the same object, so that its encoding can be kept with it. */
export type RecentEvent = {
  readonly item: StreamItem & { readonly kind: "event" };
  /** Null when the event is of another kind, or the recipients are unknown. */
  readonly sent: { readonly item: StreamItem; readonly receivers: ReadonlySet<string> } | null;
  readonly weight: number;
};

/** After the last step of a broadcast its event is still to come. */
type Unannounced = { readonly message: Message; readonly receivers: Set<string> };

/** A hub writes one broadcast at a time in steps. Others that are left were never finished. */
const UNANNOUNCED_MAX = 2;
/** Estimated. The content of a message counts twice: as stored and as encoded. */
const EVENT_WEIGHT = 200;
const RECEIVER_WEIGHT = 50;

export class RecentEvents {
  readonly #byId = new Map<number, RecentEvent>();
  readonly #unannounced = new Map<string, Unannounced>();
  #weight = 0;

  get(eventId: number): RecentEvent | undefined {
    return this.#byId.get(eventId);
  }

  /** Null when one of them is not here. */
  all(eventIds: readonly number[]): readonly LoggedEvent[] | null {
    const events: LoggedEvent[] = [];
    for (const id of eventIds) {
      const recent = this.#byId.get(id);
      if (recent === undefined) return null;
      events.push(recent.item.event);
    }
    return events;
  }

  /** Transactions that are left out cost a query each, and nothing else. */
  add(changes: readonly Notified[], eventIds: readonly number[]): void {
    let logged = 0;
    for (const change of changes) {
      if (change.kind === "message.stored") this.#store(change.message);
      else if (change.kind === "delivery.queued")
        this.#unannounced.get(change.messageId)?.receivers.add(change.toNode);
      else if (change.kind === "deliveries.queued") {
        const receivers = this.#unannounced.get(change.messageId)?.receivers;
        if (receivers) for (const toNode of change.toNodes) receivers.add(toNode);
      } else if (change.kind === "event.logged")
        this.#add(change.event, must(eventIds[logged++], "each logged event has an id"));
    }
  }

  #store(message: Message): void {
    this.#unannounced.set(message.messageId, { message, receivers: new Set() });
    if (this.#unannounced.size > UNANNOUNCED_MAX) deleteFirst(this.#unannounced);
  }

  #add(event: NewEvent, id: number): void {
    const sent = event.kind === "message.sent" ? this.#announce(event) : null;
    const messageWeight = sent ? 2 * sent.message.content.length + RECEIVER_WEIGHT * sent.receivers.size : 0;
    const weight = EVENT_WEIGHT + messageWeight;
    this.#byId.set(id, {
      item: { kind: "event", event: { ...event, id, verified: event.verified === true } },
      sent: sent && {
        item: { kind: "message", eventId: id, message: sent.message },
        receivers: sent.receivers,
      },
      weight,
    });
    this.#weight += weight;
    // The newest stays, however large it is: the streams are about to read it.
    while (
      this.#byId.size > 1 &&
      (this.#byId.size > RECENT_EVENTS_MAX || this.#weight > RECENT_EVENTS_MAX_WEIGHT)
    )
      this.#weight -= must(deleteFirst(this.#byId), "a map that is not empty has a first entry").weight;
  }

  /** If all its recipients are known: the first steps of a broadcast may have been left out. */
  #announce({ data }: NewEvent): Unannounced | null {
    const messageId = String(data["message_id"]);
    const sent = this.#unannounced.get(messageId);
    this.#unannounced.delete(messageId);
    return sent !== undefined && sent.receivers.size === (data["receivers"] ?? 1) ? sent : null;
  }
}

function deleteFirst<K, V>(map: Map<K, V>): V | undefined {
  for (const [key, value] of map) {
    map.delete(key);
    return value;
  }
  return undefined;
}
