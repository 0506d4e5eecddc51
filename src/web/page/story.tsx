/** The story of a task: its attempts as bars on one time line, each with its notes and its error; and its other events. */
import { type JSX, h } from "preact";
import type { Event } from "../../client/luxhub.ts";
import { type Attempt, attemptsOf } from "./attempts.ts";
import { now } from "./clock.ts";
import { durationOf } from "./format.ts";
import { to } from "./route.ts";

/** The bars that are shown, the last ones. */
const BARS = 20;

export function Attempts({ events }: { events: readonly Event[] }): JSX.Element | null {
  const all = attemptsOf(events);
  if (all.length === 0) return null;
  const shown = all.slice(-BARS);
  const start = Math.min(...shown.map(({ from }) => from));
  const end = Math.max(
    start + 1_000,
    ...shown.map((attempt) => attempt.to ?? Math.max(now.value, attempt.from)),
  );
  const part = (time: number): string => `${(100 * (time - start)) / (end - start)}%`;
  const isOpen = shown.at(-1)?.to === null;
  return (
    <section>
      <h2>Attempts</h2>
      {all.length > shown.length && <p class="quiet">The last {BARS}.</p>}
      <div class="bars" aria-hidden="true">
        {shown.map((attempt) => (
          <div key={attempt.from}>
            <span class="who">{attempt.node}</span>
            <span class="track">
              <i
                class={`t-${attempt.tone}`}
                style={{
                  left: part(attempt.from),
                  width: `max(3px, ${(100 * ((attempt.to ?? end) - attempt.from)) / (end - start)}%)`,
                }}
              />
            </span>
            <span class="long">{lengthOf(attempt)}</span>
          </div>
        ))}
        <div class="axis">
          <span class="who" />
          <span class="track">
            <span>{new Date(start).toLocaleTimeString()}</span>
            <span>{isOpen ? "now" : `+${durationOf(Math.round((end - start) / 1_000))}`}</span>
          </span>
          <span class="long" />
        </div>
      </div>
      {shown.toReversed().map((attempt, i) => (
        <details key={attempt.from} class="attempt" open={i === 0}>
          <summary>
            <b class={`t-${attempt.tone}`}>{attempt.word}</b> <span>{attempt.node}</span>
            <span class="quiet">
              {lengthOf(attempt)}
              {attempt.notes.length > 0 &&
                `, ${attempt.notes.length} ${attempt.notes.length === 1 ? "note" : "notes"}`}
            </span>
          </summary>
          <p>
            <a href={to("nodes", attempt.node)}>{attempt.node}</a>{" "}
            <time dateTime={new Date(attempt.from).toISOString()}>
              {new Date(attempt.from).toLocaleString()}
            </time>
          </p>
          {attempt.text !== "" && (
            <pre class={`text ${attempt.tone === "bad" ? "fault" : ""}`}>{attempt.text}</pre>
          )}
          {attempt.notes.length > 0 && (
            <ol class="notes">
              {attempt.notes.map(({ at, text }, n) => (
                <li key={n}>
                  <time>+{durationOf(Math.round((at - attempt.from) / 1_000))}</time> <span>{text}</span>
                </li>
              ))}
            </ol>
          )}
        </details>
      ))}
    </section>
  );
}

function lengthOf({ from, to: until }: Attempt): string {
  return durationOf(Math.max(0, Math.round(((until ?? now.value) - from) / 1_000)));
}
