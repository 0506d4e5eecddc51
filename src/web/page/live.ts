/**
 * One event stream for all views. A hidden tab closes the stream. Must not: know a view.
 */
import type { Event } from "../../client/luxhub.ts";
import { isVisible } from "./clock.ts";
import { type Hub, describe, hub, session } from "./session.ts";
import { Shared, drawn, runAfter } from "./shared.ts";

type Listener = (event: Event | null) => void;
const listeners = new Set<Listener>();

/** Calls the listener with each new event, or with null when events may have been missed. Returns its unsubscribe. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(event: Event | null): void {
  for (const listener of listeners) listener(event);
}

export const liveFault = drawn("");
const follows = new Shared(0);

export function followAgain(): void {
  follows.value++;
}

runAfter([session, isVisible, follows], () => {
  if (session.value === null || !isVisible.value) return;
  liveFault.value = "";
  const ended = new AbortController();
  void follow(hub.value, ended.signal);
  return () => ended.abort();
});

async function follow(from: Hub, signal: AbortSignal): Promise<void> {
  notify(null);
  try {
    for await (const event of from.events({ signal })) notify(event);
  } catch (error) {
    if (!signal.aborted) liveFault.value = describe(error);
  }
}
