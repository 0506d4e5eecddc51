/** What a view loads, and when it loads it again. Must not: know a resource of the hub. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { clock, isVisible } from "./clock.ts";
import { onEvent } from "./live.ts";
import { type Ask, askUntil, describe, hub, isOnline } from "./session.ts";
import { drawn } from "./shared.ts";

export type Loaded<T> = {
  /** Null before the first load. Until a reload has ended, the old value stays. */
  readonly value: T | null;
  readonly error: string;
  readonly reload: () => void;
};

/** How many views have nothing to show yet, because what they load takes long. */
export const slowLoads = drawn(0);
const SLOW_MS = 300;

export type Load<T> = (ask: Ask, signal: AbortSignal) => Promise<T>;

export type Concerns<T> = RegExp | ((event: Event, shown: T | null) => boolean);

const SOON_MS = 250;
/** From one load to the next, however much happens. */
const RELOAD_MS = 3_000;
const RELOAD_MAX_MS = 10_000;
/** An open page keeps the hub busy for at most 1/100 of the time. */
const SHARE = 100;

/** What an event needs to know, which comes long after the drawing: of the last one, and of the last load. */
type Latest = { isConcerned: (event: Event) => boolean; startedAt: number; tookMs: number };

/**
 * Loads at first, when `key` changes, and again soon after events that concern it. A hidden tab reloads when it is shown.
 * @param load calls the hub by `ask`, which ends with the view
 * @param concerns null: no event does
 * @param keptMs how old a response of the hub may be: a last reload, when it is quiet, shows what the others missed
 */
export function useLoad<T>(
  key: string,
  load: Load<T>,
  concerns: Concerns<T> | null = null,
  keptMs = 0,
): Loaded<T> {
  const [state, setState] = useState({ key, value: null as T | null, error: "" });
  const [reloads, setReloads] = useState(0);
  const reload = (): void => setReloads((count) => count + 1);
  const latest = useRef<Latest>({ isConcerned: () => false, startedAt: 0, tookMs: 0 });
  latest.current.isConcerned = (event) =>
    concerns instanceof RegExp ? concerns.test(event.kind) : concerns?.(event, state.value) === true;

  useLayoutEffect(() => {
    // The first load is not put off: it gives a tab that was opened in the background its title.
    if (reloads > 0 && !isVisible.value) return isVisible.follow(reload);
    const abort = new AbortController();
    const { signal } = abort;
    const startedAt = clock.timers();
    const isShown = state.key === key && state.value !== null;
    load(askUntil(signal), signal)
      .then(
        (value) => {
          if (signal.aborted) return;
          Object.assign(latest.current, { startedAt, tookMs: clock.timers() - startedAt });
          setState({ key, value, error: "" });
        },
        (error: unknown) => {
          if (signal.aborted) return;
          setState((old) => ({ key, value: old.key === key ? old.value : null, error: describe(error) }));
        },
      )
      .finally(isShown ? null : countSlow());
    return () => abort.abort();
  }, [key, reloads, hub.value]);

  useLayoutEffect(() => {
    if (isOnline.value && state.error !== "") reload();
  }, [isOnline.value]);

  useLayoutEffect(() => (concerns === null ? undefined : followChanges(latest, reload, keptMs)), []);
  return state.key === key ? { ...state, reload } : { value: null, error: "", reload };
}

/** Counts a load as slow, from when it is. Returns its end. */
function countSlow(): () => void {
  let counted = 0;
  const timer = setTimeout(() => (slowLoads.value += counted = 1), SLOW_MS);
  return () => {
    clearTimeout(timer);
    slowLoads.value -= counted;
  };
}

/** Reloads after actions, and soon after events: at once if little happens, else every few seconds. Returns its end. */
function followChanges(latest: { readonly current: Latest }, reload: () => void, keptMs: number): () => void {
  const soon = once(reload);
  const whenQuiet = once(reload);
  const waitForQuiet = (): void => {
    if (keptMs > 0) whenQuiet.restart(keptMs + SOON_MS);
  };
  waitForQuiet();
  const stopActions = onAction(reload);
  const stopEvents = onEvent((event) => {
    const { startedAt, tookMs, isConcerned } = latest.current;
    if (event !== null && !isConcerned(event)) return;
    waitForQuiet();
    const gapMs = Math.min(RELOAD_MAX_MS, Math.max(RELOAD_MS, tookMs * SHARE));
    soon.start(Math.max(SOON_MS, startedAt + gapMs - clock.timers()));
  });
  return () => {
    stopActions();
    stopEvents();
    soon.stop();
    whenQuiet.stop();
  };
}

type Timer = {
  /** Does nothing while the timer runs. */
  readonly start: (ms: number) => void;
  readonly restart: (ms: number) => void;
  readonly stop: () => void;
};

export function once(run: () => void): Timer {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };
  const start = (ms: number): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, ms);
  };
  const restart = (ms: number): void => {
    stop();
    start(ms);
  };
  return { start, restart, stop };
}

/** @param ms null: not now */
export function useEvery(ms: number | null, run: () => void): void {
  useLayoutEffect(() => {
    if (ms === null) return;
    const timer = setInterval(run, ms);
    return () => clearInterval(timer);
  }, [ms]);
}

// ---- After an action of the user

const reloads = new Set<() => void>();

/** Calls `reload` after each action of the user. Returns its end. */
export function onAction(reload: () => void): () => void {
  reloads.add(reload);
  return () => void reloads.delete(reload);
}

export function reloadViews(): void {
  for (const reload of reloads) reload();
}

// ---- Pages of the hub's lists

const ROWS_A_CALL = 50;

/** A list that is short enough to be shown whole, loaded page by page. */
export async function whole<A extends { readonly pages: number }, T>(
  load: (place: { page: number; per_page: number }) => Promise<A>,
  rowsOf: (page: A) => readonly T[],
): Promise<readonly T[]> {
  const rows: T[] = [];
  for (let page = 1, pages = 1; page <= pages; page++) {
    const loaded = await load({ page, per_page: ROWS_A_CALL });
    rows.push(...rowsOf(loaded));
    ({ pages } = loaded);
  }
  return rows;
}

export async function* pagesOf<A extends { readonly next_cursor?: string | null | undefined }>(
  load: (cursor: string | undefined) => Promise<A>,
): AsyncGenerator<A> {
  let cursor: string | undefined;
  do {
    const page = await load(cursor);
    yield page;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
