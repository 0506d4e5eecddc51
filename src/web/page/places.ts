/**
 * Where the user was on each page of the history: Back restores scroll position and focus; a new page gets the focus.
 */

type Place = { readonly top: number; readonly link: string | null };

/** Scrolling writes the place at most this often: browsers refuse more than some hundred in half a minute. */
const WRITE_MS = 250;
const WAIT_MS = 10_000;

export function keepPlaces(): void {
  history.scrollRestoration = "manual";
  let timer: ReturnType<typeof setTimeout> | null = null;
  const write = (): void => {
    timer = null;
    if (restoring?.signal.aborted === false) return; // the place is kept until it is reached
    const active = document.activeElement?.closest("main a")?.getAttribute("href") ?? null;
    history.replaceState({ top: scrollY, link: active } satisfies Place, "");
  };
  addEventListener("scroll", () => (timer ??= setTimeout(write, WRITE_MS)), { passive: true });
  // Before the link of a row leads away.
  addEventListener("click", write, { capture: true });
  addEventListener("hashchange", () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const state: unknown = history.state;
    enter(isPlace(state) ? state : null);
  });
}

function isPlace(state: unknown): state is Place {
  return typeof state === "object" && state !== null && "top" in state && "link" in state;
}

/** Restores the place of a page until the user does something, or WAIT_MS are over. */
let restoring: AbortController | null = null;

function enter(place: Place | null): void {
  const main = document.getElementById("content");
  restoring?.abort();
  main?.focus({ preventScroll: true });
  scrollTo(0, 0);
  if (place === null || main === null) return;
  const ended = new AbortController();
  restoring = ended;
  const { signal } = ended;
  const restore = (): void => {
    const link = [...main.querySelectorAll("a")].find((link) => link.getAttribute("href") === place.link);
    if (place.link !== null && link === undefined) return; // it is still loading
    scrollTo(0, place.top);
    link?.focus({ preventScroll: true });
  };
  const observer = new ResizeObserver(restore); // what comes later may move the rest
  requestAnimationFrame(() => signal.aborted || observer.observe(main)); // by then the page before is gone
  signal.addEventListener("abort", () => observer.disconnect());
  for (const input of ["wheel", "pointerdown", "keydown"])
    addEventListener(input, () => ended.abort(), { signal, capture: true, passive: true });
  setTimeout(() => ended.abort(), WAIT_MS);
}
