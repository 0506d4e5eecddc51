/**
 * Changes many things, a page at a time, each in one batch: the user can stop it, and the hub serves others in between.
 */
import { type VNode, h } from "preact";
import type { BatchOperation } from "../../client/luxhub.ts";
import { Modal } from "./dialog.tsx";
import { countOf } from "./format.ts";
import { reloadViews } from "./load.ts";
import { Button } from "./parts.tsx";
import { type Ask, askUntil, describe, hub } from "./session.ts";
import { drawn } from "./shared.ts";

export type Change = { readonly path: BatchOperation; readonly body: Record<string, unknown> };

type Run = {
  readonly title: string;
  readonly word: string;
  readonly done: number;
  readonly refused: number;
  readonly total: number | null;
  readonly end: string;
  readonly abort: AbortController;
  /** Takes back what was done. */
  readonly undo: (() => Promise<void>) | null;
};

/** What takes back a change of the same task, and what it does with it. */
export type Reverse = { readonly path: BatchOperation; readonly done: string };

const BATCH = 50;

const run = drawn<Run | null>(null);

export async function changeAll(
  title: string,
  word: string,
  total: number | null,
  pages: (ask: Ask) => AsyncIterable<readonly Change[]>,
  reverse?: Reverse,
): Promise<void> {
  const abort = new AbortController();
  const report = (more: Partial<Run>): void => {
    const before = run.value;
    if (before?.abort === abort) run.value = { ...before, ...more };
  };
  run.value = { title, word, done: 0, refused: 0, total, end: "", abort, undo: null };
  let [done, refused] = [0, 0];
  const changed: Change[] = [];
  const undo = (): Promise<void> =>
    changeAll("Undo", reverse?.done ?? "", changed.length, async function* () {
      for (let i = 0; i < changed.length; i += BATCH) yield changed.slice(i, i + BATCH);
    });
  try {
    const ask = askUntil(abort.signal);
    for await (const requests of pages(ask)) {
      if (requests.length === 0) continue;
      const answers = await hub.value.batch(requests, { signal: abort.signal });
      const accepted = requests.filter((_, i) => (answers[i]?.status ?? 400) < 400);
      done += accepted.length;
      refused += requests.length - accepted.length;
      if (reverse) changed.push(...accepted.map(({ body }) => ({ path: reverse.path, body })));
      report({ done, refused });
    }
    report({ end: "Done.", undo: changed.length === 0 ? null : undo });
  } catch (error) {
    if (!abort.signal.aborted) report({ end: describe(error) });
  }
  reloadViews();
}

export function BatchDialog(): VNode | null {
  const shown = run.value;
  if (shown === null) return null;
  const { title, word, done, refused, total, end, abort, undo } = shown;
  const close = (): void => {
    abort.abort();
    run.value = null;
  };
  return (
    <Modal title={title} onClose={close}>
      <p role="status">
        {countOf(done)} {word}
        {refused > 0 && `, ${countOf(refused)} rejected`}
        {end && `. ${end}`}
      </p>
      {end === "" && total !== null && (
        <p>
          <progress aria-label="Done so far" max={Math.max(1, total)} value={done + refused} /> of{" "}
          {countOf(total)}
        </p>
      )}
      <p class="buttons">
        <Button label={end === "" ? "Stop" : "Close"} name="close" onClick={close} />
        {undo && <Button label="Undo" name="undo" onClick={undo} />}
      </p>
    </Modal>
  );
}
