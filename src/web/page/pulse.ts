/** What the frame knows of the hub on every page. Must not: load while the tab is hidden. */
import type { AnswerOf, Event, Variant } from "../../client/luxhub.ts";
import { isVisible } from "./clock.ts";
import { onEvent } from "./live.ts";
import { onAction, once } from "./load.ts";
import { checkSession, describe, expired, hasSecret, hub, isOnline, mayAct, session } from "./session.ts";
import { drawn, runAfter } from "./shared.ts";

type Pulse = {
  readonly name: string | null;
  readonly canWrite: boolean;
  readonly failed: number;
  readonly deadLetters: number | null;
  readonly questions: number | null;
  readonly reviews: number | null;
  readonly pauses: NonNullable<AnswerOf<"status", Variant>["paused"]>;
};

/** The page has it, so that it is known before a sign-in; null if the hub has no name. */
export const hubName =
  document.querySelector<HTMLMetaElement>('meta[name="application-name"]')?.content ?? null;

const UNKNOWN: Pulse = {
  name: hubName,
  canWrite: true,
  failed: 0,
  deadLetters: null,
  questions: null,
  reviews: null,
  pauses: [],
};

export const pulse = drawn<Pulse>(UNKNOWN);

export function pausedWords({ scope, value }: Pick<Pulse["pauses"][number], "scope" | "value">): string {
  const word = { hub: "the whole hub", type: "type", limit_key: "limit key", creator: "creator" }[scope];
  return scope === "hub" ? word : `${word} ${value ?? "none"}`;
}

const EVERY_MS = 60_000;
const SOON_MS = 5_000;
const ACTED_MS = 500;

const KINDS: ReadonlySet<Event["kind"]> = new Set([
  ...(["message.parked", "task.failed", "hub.paused", "hub.resumed"] as const),
  ...(["task.review_requested", "task.review_passed", "task.review_rejected"] as const),
  ...(["task.asked", "task.answered", "task.question_timed_out"] as const),
]);

async function load(): Promise<void> {
  const from = hub.value;
  try {
    const [status, { total }, parked, questions, reviews] = await Promise.all([
      from.call("status"),
      from.call("stats/minutes"),
      mayAct() ? from.call("message/parked", { per_page: 1 }) : null,
      hasSecret() ? from.call("questions", { limit: 1 }) : null,
      hasSecret() ? from.call("reviews", { limit: 1 }) : null,
    ]);
    if (hub.value !== from) return;
    pulse.value = {
      name: status.name,
      canWrite: status.status === "ok",
      failed: total.tasks_failed,
      deadLetters: parked?.total ?? null,
      questions: questions?.total ?? null,
      reviews: reviews?.total ?? null,
      pauses: status.paused ?? [],
    };
  } catch (error) {
    describe(error); // notices a session that has ended; views tell their own faults
  }
}

export function followPulse(): void {
  runAfter([session, expired, isVisible, isOnline], () => {
    if (session.value === null || expired.value !== "" || !isVisible.value || !isOnline.value) return;
    const soon = once(() => void load());
    const stopActions = onAction(() => soon.start(ACTED_MS));
    void load();
    const stopEvents = onEvent((event) => {
      if (event !== null && KINDS.has(event.kind)) soon.start(SOON_MS);
    });
    const minute = setInterval(() => {
      void checkSession();
      soon.start(SOON_MS);
    }, EVERY_MS);
    return () => {
      stopEvents();
      stopActions();
      clearInterval(minute);
      soon.stop();
    };
  });
}

// ---- The icon, as a lamp

/** Amber; a hub with a name has a colour of its own, so that two hubs are told apart. */
function colourOf(name: string | null): string {
  if (name === null) return "#f2b632";
  const hash = [...name].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) % 360, 7);
  return `hsl(${hash} 75% 58%)`;
}

export function drawIcon(): void {
  runAfter([pulse, isOnline, session], () => {
    const { name, canWrite, failed } = pulse.value;
    document.documentElement.style.setProperty("--mark", colourOf(name));
    const isDark = !isOnline.value || session.value === null;
    const spot = !canWrite || failed > 0 ? '<circle cx="24" cy="8" r="8" fill="#d32f2f"/>' : "";
    const fill = isDark ? "#7a838c" : colourOf(name);
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="2" y="2" width="28" height="28" rx="7" fill="${fill}"/>${spot}</svg>`;
    document
      .querySelector('link[rel="icon"]')
      ?.setAttribute("href", `data:image/svg+xml,${encodeURIComponent(svg)}`);
  });
}
