/** The output of a task as it comes, the newest attempt or one that is chosen. Must not: show it as anything but text. */
import { type Markup, h, useEffect, useRef, useState } from "./dom.ts";
import type { OutputPart, Variant } from "../../client/luxhub.ts";
import { PlainOutput } from "../../lib/plain-output.ts";
import { commandOf, countOf, quoted } from "./format.ts";
import { Button, Copy, Fault, Section } from "./parts.tsx";
import { describe, hub } from "./session.ts";

/** What the page holds; the command shows what is before it. */
const SHOWN_MAX_CHARS = 256 * 1024;

type Attempts = OutputPart<Variant>["attempts"];

/** Text, and after how many dropped bytes it comes. */
type Piece = { readonly dropped: number; readonly text: string };

type Shown = {
  readonly attempt: number;
  readonly attempts: Attempts;
  readonly pieces: readonly Piece[];
  /** The page no longer holds its beginning. */
  readonly isCut: boolean;
};

export function Output({ taskId }: { taskId: string }): Markup | null {
  /** null: the newest, and those that come. */
  const [chosen, choose] = useState<number | null>(null);
  const [shown, show] = useState<Shown | null>(null);
  const [error, setError] = useState("");
  const [follows, setFollows] = useState(true);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const abort = new AbortController();
    show(null);
    setError("");
    const read = async (): Promise<void> => {
      let plain = new PlainOutput();
      let attempt = -1;
      const options = { attempt: chosen ?? undefined, follow: true, signal: abort.signal };
      for await (const part of hub.value.output(taskId, options)) {
        if (chosen !== null && part.attempt !== chosen) return; // the next one
        if (attempt !== part.attempt) plain = new PlainOutput();
        ({ attempt } = part);
        const piece = { dropped: part.dropped, text: plain.add(part.data) };
        show((old) => added(old, part, piece));
      }
    };
    read().catch((fault: unknown) => {
      if (!abort.signal.aborted) setError(describe(fault));
    });
    return () => abort.abort();
  }, [taskId, chosen, hub.value]);
  useEffect(() => {
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
              data-do={`output-${i}`}
              aria-pressed={attempt === shown.attempt}
              onClick={() => choose(i === shown.attempts.length - 1 ? null : attempt)}
            >
              Attempt {attempt} on {node_id}
            </Button>
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

/** Text without a gap is one piece; of too much, the oldest goes. */
function added(old: Shown | null, part: OutputPart<Variant>, piece: Piece): Shown {
  const { attempt, attempts } = part;
  const isSame = old !== null && old.attempt === attempt;
  const before = isSame ? old.pieces : [];
  const last = before.at(-1);
  const pieces =
    last !== undefined && piece.dropped === 0
      ? [...before.slice(0, -1), { ...last, text: last.text + piece.text }]
      : [...before, piece];
  let isCut = isSame && old.isCut;
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
