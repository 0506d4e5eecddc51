/**
 * What the page knows without asking again: one follower of the event log for all views, and the numbers of the last hour.
 * A hidden tab follows nothing. Must not: know a view.
 */
import { effect, signal } from "@preact/signals";
import type { Event } from "../../client/luxhub.ts";
import { systemClock } from "../../lib/clock.ts";
import { type Hub, describe, hub, session } from "./session.ts";

export const clock = systemClock();

/** The wall clock, in steps of a second while the tab is seen. Ages are shown by it. */
export const now = signal(clock.now());

const isVisible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => {
  isVisible.value = !document.hidden;
});

effect(() => {
  if (!isVisible.value) return;
  now.value = clock.now();
  const timer = setInterval(() => (now.value = clock.now()), 1_000);
  return () => clearInterval(timer);
});

type Listener = (event: Event | null) => void;
const listeners = new Set<Listener>();

/** Hears of each event from now on; of null when some may have been missed. Returns the way to stop. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(event: Event | null): void {
  for (const listener of listeners) listener(event);
}

effect(() => {
  if (session.value === null || !isVisible.value) return;
  const ended = new AbortController();
  void follow(hub.value, ended.signal);
  return () => ended.abort();
});

async function follow(from: Hub, signal: AbortSignal): Promise<void> {
  tell(null);
  try {
    for await (const event of from.events({ signal })) tell(event);
  } catch (error) {
    if (!signal.aborted) describe(error);
  }
}

/** A minute of the last hour. Seconds are medians; null where nothing started or was finished. */
export type Minute = {
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly startS: number | null;
  readonly finishS: number | null;
};

const MINUTES = 60;
const MINUTE_MS = 60_000;

/** The last hour by minutes, oldest first, as far as the newest events tell. */
export async function lastHour(from: Hub, signal: AbortSignal): Promise<readonly Minute[]> {
  const { events } = await from.call("events", { limit: 1_000 }, { signal });
  const end = Math.ceil(clock.now() / MINUTE_MS);
  const createdAt = new Map<string | null, number>();
  const minutes = Array.from({ length: MINUTES }, () => ({
    created: 0,
    completed: 0,
    failed: 0,
    starts: [] as number[],
    ends: [] as number[],
  }));
  for (const { kind, at, task_id } of events) {
    const ms = Date.parse(at);
    const minute = minutes[MINUTES - end + Math.floor(ms / MINUTE_MS)];
    if (kind === "task.created") createdAt.set(task_id, ms);
    if (minute === undefined) continue;
    const made = createdAt.get(task_id);
    const seconds = made === undefined ? [] : [(ms - made) / 1_000];
    if (kind === "task.created") minute.created++;
    if (kind === "task.assigned") minute.starts.push(...seconds);
    if (kind === "task.failed") minute.failed++;
    if (kind === "task.completed") {
      minute.completed++;
      minute.ends.push(...seconds);
    }
  }
  return minutes.map(({ created, completed, failed, starts, ends }) => ({
    created,
    completed,
    failed,
    startS: median(starts),
    finishS: median(ends),
  }));
}

function median(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}
