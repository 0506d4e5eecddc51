/** The output of a task as it comes, as a terminal shows it. Must not: show it as anything but text. */
import { Fragment, type VNode, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { OutputPart, Variant } from "../../client/luxhub.ts";
import { TerminalOutput } from "../../lib/plain-output.ts";
import { isVisible } from "./clock.ts";
import { saveBlob } from "./file-actions.tsx";
import { commandOf, countOf, quoted } from "./format.ts";
import { Button, Copy, Fault, Section } from "./parts.tsx";
import { describe, hub, isOnline } from "./session.ts";

const SHOWN_MAX_CHARS = 256 * 1024;
/** A piece of text that is longer gets no more: what goes at the beginning goes in such pieces. */
const PIECE_CHARS = 4 * 1024;

type Attempts = OutputPart<Variant>["attempts"];

type Place = { attempt?: number | undefined; from?: number; output?: TerminalOutput };

/** The output of the newest attempt, and beside it that of another one. */
export function Output(props: {
  taskId: string;
  /** When each attempt began, the first of the task first. */
  dispatches: readonly number[];
}): VNode {
  const { taskId, dispatches } = props;
  const [attempts, setAttempts] = useState<Attempts>([]);
  /** null: the newest, and those that come. */
  const [chosen, choose] = useState<number | null>(null);
  const [compared, compare] = useState<number | null>(null);
  const [error, setError] = useState("");
  const newest = attempts.at(-1)?.attempt;
  const numberOf = ({ begun_at: at }: Attempts[number], i: number): number =>
    Math.max(i + 1, dispatches.filter((from) => from <= Date.parse(at)).length);
  const choices = (name: string, shown: number | undefined, show: (attempt: number) => void) =>
    attempts.map((each, i) => (
      <Button
        key={each.attempt}
        name={`${name}-${i}`}
        aria-pressed={each.attempt === shown}
        onClick={() => show(each.attempt)}
        label={name === "output" ? `Attempt ${numberOf(each, i)} on ${each.node_id}` : `${numberOf(each, i)}`}
        aria-label={name === "output" ? undefined : `Attempt ${numberOf(each, i)} beside it`}
      />
    ));
  const terminal = { taskId, isShown: attempts.length > 0, onAttempts: setAttempts, onFault: setError };
  return (
    <>
      <Fault text={error} />
      <Section title="Output while it runs" class={attempts.length > 0 ? "" : "none"}>
        {attempts.length > 1 && (
          <p class="buttons">
            {choices("output", chosen ?? newest, (attempt) => choose(attempt === newest ? null : attempt))}
            <span class="quiet">beside</span>
            {choices("beside", compared ?? undefined, (attempt) =>
              compare(attempt === compared ? null : attempt),
            )}
          </p>
        )}
        <div class="terminals">
          <Terminal {...terminal} chosen={chosen} />
          {compared !== null && <Terminal {...terminal} key={compared} chosen={compared} />}
        </div>
      </Section>
    </>
  );
}

function Terminal(props: {
  taskId: string;
  chosen: number | null;
  isShown: boolean;
  onAttempts: (attempts: Attempts) => void;
  onFault: (text: string) => void;
}): VNode {
  const { taskId, chosen, isShown, onAttempts, onFault } = props;
  const [{ follows, isCut }, setState] = useState({ follows: true, isCut: false });
  const [screen] = useState(() => new Screen(setState));
  const place = useRef<Place>({});
  useLayoutEffect(() => {
    place.current = { attempt: chosen ?? undefined };
  }, [chosen]);
  // A tab that is shown again, or whose hub is back, reads on where it stopped.
  useLayoutEffect(() => {
    onFault("");
    if (!isVisible.value || !isOnline.value) return;
    const abort = new AbortController();
    const { signal } = abort;
    const read = async (): Promise<void> => {
      const { attempt: known, from } = place.current;
      for await (const part of hub.value.output(taskId, { attempt: known, from, follow: true, signal })) {
        const { attempt, attempts, dropped, next_offset } = part;
        if (signal.aborted || (chosen ?? attempt) !== attempt) return; // the next one
        if (place.current.attempt !== attempt || place.current.output === undefined) {
          screen.clear();
          place.current = { attempt, output: new TerminalOutput() };
        }
        place.current.from = next_offset;
        if (dropped > 0) screen.note(`[${countOf(dropped)} bytes are no longer kept]`);
        for (const run of place.current.output?.add(part.data) ?? [])
          screen.draw(run.text, run.look, run.overwrites);
        screen.settle();
        onAttempts(attempts);
      }
    };
    read().catch((fault: unknown) => {
      if (!signal.aborted) onFault(describe(fault));
    });
    return () => abort.abort();
  }, [chosen, hub.value, isVisible.value, isOnline.value]);
  // What is drawn while the part is hidden, or narrower, has not been scrolled.
  useLayoutEffect(() => screen.settle());
  const command = `task logs -f ${quoted(taskId)}${chosen === null ? "" : ` --attempt ${chosen}`}`;
  return (
    <div>
      {isCut && <p class="quiet">The beginning is not shown here: copy the command.</p>}
      <pre
        class="text output"
        ref={screen.attach}
        onScroll={screen.onScroll}
        tabIndex={0}
        aria-label="Output"
      />
      {isShown && (
        <p class="buttons">
          <label>
            <input
              type="checkbox"
              data-do="follow-output"
              checked={follows}
              onChange={(event) => screen.follow(event.currentTarget.checked)}
            />{" "}
            Follow
          </label>
          <Copy text={() => screen.text()} label="Copy" />
          <Button
            label="Download"
            name="download-output"
            onClick={() => saveBlob(new Blob([screen.text()], { type: "text/plain" }), `${taskId}.log`)}
          />
          <Copy text={commandOf(command)} label="Copy as luxhub" />
        </p>
      )}
    </div>
  );
}

/** What stands in the box: text is only appended, so that what the user has selected stays selected. */
class Screen {
  #box: HTMLPreElement | null = null;
  /** Where the last line begins: a piece of text (null: the first one), and a place in it. */
  #line: { piece: Text | null; at: number } = { piece: null, at: 0 };
  #chars = 0;
  #follows = true;
  #isCut = false;
  /** Where the box was scrolled to; a place above it is the user's. */
  #top = 0;
  readonly #onChange: (state: { readonly follows: boolean; readonly isCut: boolean }) => void;

  constructor(onChange: (state: { readonly follows: boolean; readonly isCut: boolean }) => void) {
    this.#onChange = onChange;
  }

  readonly attach = (box: HTMLPreElement | null): void => {
    this.#box = box;
  };

  readonly onScroll = (): void => {
    if (this.#box === null) return;
    const { scrollTop, scrollHeight, clientHeight } = this.#box;
    const isAtEnd = scrollTop + clientHeight >= scrollHeight - 4;
    if (isAtEnd !== this.#follows && (isAtEnd || scrollTop < this.#top)) this.follow(isAtEnd);
    this.#top = scrollTop;
  };

  follow(follows: boolean): void {
    this.#follows = follows;
    this.#top = 0;
    this.settle();
    this.#tell();
  }

  #tell(): void {
    this.#onChange({ follows: this.#follows, isCut: this.#isCut });
  }

  text(): string {
    return this.#box?.textContent ?? "";
  }

  clear(): void {
    this.#box?.replaceChildren();
    this.#top = 0;
    this.#line = { piece: null, at: 0 };
    this.#chars = 0;
    this.#isCut = false;
    this.#tell();
  }

  note(text: string): void {
    this.draw(`${this.#chars === 0 ? "" : "\n"}${text}\n`, "quiet", false);
  }

  draw(text: string, look: string, overwrites: boolean): void {
    if (overwrites) this.#removeLine();
    const last = this.#box?.lastChild;
    let piece: Text;
    if (look === "" && last instanceof Text && last.length < PIECE_CHARS) {
      piece = last;
      piece.appendData(text);
    } else {
      piece = document.createTextNode(text);
      const part = look === "" ? piece : document.createElement("span");
      if (part instanceof HTMLElement) {
        part.className = look;
        part.append(piece);
      }
      this.#box?.append(part);
    }
    this.#chars += text.length;
    const lineEnd = text.lastIndexOf("\n");
    if (lineEnd !== -1) this.#line = { piece, at: piece.length - (text.length - lineEnd - 1) };
  }

  /** Removes what is too much at the beginning, and shows the end. */
  settle(): void {
    const box = this.#box;
    if (box === null) return;
    // The user has scrolled up, and the event of that has not come yet.
    if (this.#follows && box.clientHeight > 0 && box.scrollTop < this.#top) {
      this.#follows = false;
      this.#tell();
    }
    for (
      let first = box.firstChild;
      first !== null && this.#chars > SHOWN_MAX_CHARS;
      first = box.firstChild
    ) {
      this.#chars -= first.textContent?.length ?? 0;
      first.remove();
      if (this.#isCut) continue;
      this.#isCut = true;
      this.#tell();
    }
    if (this.#follows && !hasSelection(box)) box.scrollTop = box.scrollHeight;
    this.#top = box.scrollTop;
  }

  #removeLine(): void {
    const box = this.#box;
    const { piece, at } = this.#line;
    const before = piece?.parentNode === box ? piece : piece?.parentNode;
    while (box?.lastChild && box.lastChild !== before) {
      this.#chars -= box.lastChild.textContent?.length ?? 0;
      box.lastChild.remove();
    }
    if (!piece?.isConnected) return;
    this.#chars -= piece.length - at;
    piece.deleteData(at, piece.length - at);
  }
}

function hasSelection(box: HTMLElement): boolean {
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && box.contains(selection.anchorNode);
}
