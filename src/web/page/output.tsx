/** The output of a task as it comes. Must not: show it as anything but text. */
import { type VNode, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { OutputPart, Variant } from "../../client/luxhub.ts";
import { PlainOutput } from "../../lib/plain-output.ts";
import { isVisible } from "./clock.ts";
import { commandOf, countOf, quoted } from "./format.ts";
import { Button, Copy, Fault, Section } from "./parts.tsx";
import { describe, hub, isOnline } from "./session.ts";

const SHOWN_MAX_CHARS = 256 * 1024;

type Attempts = OutputPart<Variant>["attempts"];

type Piece = { readonly dropped: number; readonly text: string };

type Shown = {
  readonly attempt: number;
  readonly attempts: Attempts;
  readonly pieces: readonly Piece[];
  readonly isCut: boolean;
};

type Place = { readonly attempt?: number | undefined; readonly from?: number; readonly plain?: PlainOutput };

export function Output({ taskId }: { taskId: string }): VNode | null {
  /** null: the newest, and those that come. */
  const [chosen, choose] = useState<number | null>(null);
  const [shown, show] = useState<Shown | null>(null);
  const [error, setError] = useState("");
  const [follows, setFollows] = useState(true);
  const box = useRef<HTMLPreElement>(null);
  const place = useRef<Place>({});
  useLayoutEffect(() => {
    place.current = { attempt: chosen ?? undefined };
  }, [chosen]);
  // A tab that is shown again, or whose hub is back, reads on where it stopped.
  useLayoutEffect(() => {
    setError("");
    if (!isVisible.value || !isOnline.value) return;
    const abort = new AbortController();
    const { signal } = abort;
    const read = async (): Promise<void> => {
      for await (const part of hub.value.output(taskId, { ...place.current, follow: true, signal })) {
        const { attempt, dropped, next_offset: from } = part;
        if (signal.aborted || (chosen ?? attempt) !== attempt) return; // the next one
        const known = place.current.attempt === attempt ? place.current.plain : undefined;
        const plain = known ?? new PlainOutput();
        place.current = { attempt, from, plain };
        const piece = { dropped, text: plain.add(part.data) };
        show((old) => added(known ? old : null, part, piece));
      }
    };
    read().catch((fault: unknown) => {
      if (!signal.aborted) setError(describe(fault));
    });
    return () => abort.abort();
  }, [chosen, hub.value, isVisible.value, isOnline.value]);
  useLayoutEffect(() => {
    if (follows && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown, follows]);
  if (shown === null) return <Fault text={error} />;
  return (
    <Section title="Output while it runs">
      <p class="buttons">
        <label>
          <input
            type="checkbox"
            data-do="follow-output"
            checked={follows}
            onChange={(event) => setFollows(event.currentTarget.checked)}
          />{" "}
          Follow
        </label>
        {shown.attempts.length > 1 &&
          shown.attempts.map(({ attempt, node_id }, i) => (
            <Button
              key={attempt}
              name={`output-${i}`}
              aria-pressed={attempt === shown.attempt}
              onClick={() => choose(i === shown.attempts.length - 1 ? null : attempt)}
              label={`Attempt ${attempt} on ${node_id}`}
            />
          ))}
        <Copy text={commandOf(`task logs -f ${quoted(taskId)}`)} label="Copy as luxhub" />
      </p>
      <Fault text={error} />
      <pre class="text output" ref={box} tabIndex={0}>
        {shown.isCut && <small class="quiet">The beginning is not shown here: copy the command.{"\n"}</small>}
        {shown.pieces.map(({ dropped, text }, i) => (
          <span key={i}>
            {dropped > 0 && (
              <small class="quiet">
                {"\n"}[{countOf(dropped)} bytes are no longer kept]{"\n"}
              </small>
            )}
            {text}
          </span>
        ))}
      </pre>
    </Section>
  );
}

/**
 * Text without a gap is one piece; of too much, the oldest goes.
 * @param old null: the text is the first of its attempt
 */
function added(old: Shown | null, part: OutputPart<Variant>, piece: Piece): Shown {
  const { attempt, attempts } = part;
  const before = old?.pieces ?? [];
  const last = before.at(-1);
  const pieces =
    last !== undefined && piece.dropped === 0
      ? [...before.slice(0, -1), { ...last, text: last.text + piece.text }]
      : [...before, piece];
  let isCut = old?.isCut ?? false;
  let chars = pieces.reduce((sum, { text }) => sum + text.length, 0);
  while (chars > SHOWN_MAX_CHARS && pieces[0]) {
    const [first] = pieces;
    const over = chars - SHOWN_MAX_CHARS;
    isCut = true;
    chars -= Math.min(over, first.text.length);
    if (over < first.text.length) pieces[0] = { dropped: 0, text: first.text.slice(over) };
    else pieces.shift();
  }
  return { attempt, attempts, pieces, isCut };
}
