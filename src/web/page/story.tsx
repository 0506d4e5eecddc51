/** The attempts of a task as bars on one time line, each with its notes and its error. */
import { type VNode, h } from "preact";
import { Moment, NodeLink, Section } from "./parts.tsx";
import { Text } from "./prose.tsx";
import type { Attempt } from "./attempts.ts";
import { useNow } from "./clock.ts";
import { durationOf, manyOf } from "./format.ts";
import { timeOf } from "./times.ts";

const BARS = 20;

export function Attempts({ attempts }: { attempts: readonly Attempt[] }): VNode | null {
  const isOpen = attempts.at(-1)?.to === null;
  const now = useNow((time) => (isOpen ? time : 0));
  if (attempts.length === 0) return null;
  const shown = attempts.slice(-BARS);
  const start = Math.min(...shown.map(({ from }) => from));
  const end = Math.max(start + 1_000, ...shown.map((attempt) => attempt.to ?? Math.max(now, attempt.from)));
  const part = (time: number): string => `${(100 * (time - start)) / (end - start)}%`;
  return (
    <Section title="Attempts">
      {attempts.length > shown.length && <p class="quiet">The last {BARS}.</p>}
      <div class={shown.length > 1 ? "bars" : "none"} aria-hidden="true">
        {shown.map((attempt) => (
          <div key={attempt.from}>
            <span class="who">
              {attempt.number} {attempt.node}
            </span>
            <span class="track">
              <i
                class={`t-${attempt.tone}`}
                style={`left:${part(attempt.from)};width:max(3px,${(100 * ((attempt.to ?? end) - attempt.from)) / (end - start)}%)`}
              />
            </span>
            <span class="long">{lengthOf(attempt, now)}</span>
          </div>
        ))}
        <div class="axis">
          <span class="who" />
          <span class="track">
            <span>{timeOf(start, { timeStyle: "medium" })}</span>
            <span>{isOpen ? "now" : `+${durationOf(Math.round((end - start) / 1_000))}`}</span>
          </span>
          <span class="long" />
        </div>
      </div>
      {shown.toReversed().map((attempt, i) => (
        <details key={attempt.from} class="attempt" open={i === 0 && attempt.tone !== "bad"}>
          <summary>
            {attempt.number} <b class={`t-${attempt.tone}`}>{attempt.word}</b> <span>{attempt.node}</span>
            <span class="quiet">
              {lengthOf(attempt, now)}
              {attempt.notes.length > 0 && `, ${manyOf(attempt.notes.length, "note")}`}
            </span>
          </summary>
          <p>
            <NodeLink id={attempt.node} /> <Moment at={attempt.from} />
          </p>
          {attempt.text !== "" && <Text value={attempt.text} class={attempt.tone === "bad" ? "fault" : ""} />}
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
    </Section>
  );
}

function lengthOf({ from, to: until }: Attempt, now: number): string {
  return durationOf(Math.max(0, Math.round(((until ?? now) - from) / 1_000)));
}
