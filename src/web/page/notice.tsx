/** What the page tells the user for a few seconds. */
import { type VNode, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { once } from "./load.ts";
import { drawn } from "./shared.ts";

type Notice = { readonly text: string; readonly isFault: boolean; readonly undo: (() => void) | null };

const SHOWN_MS = 4_000;
/** A fault, and what can be undone. */
const LONG_MS = 10_000;

const notice = drawn<Notice | null>(null);
const end = once(() => (notice.value = null));

export function showNotice(text: string, isFault = false, undo: Notice["undo"] = null): void {
  notice.value = { text, isFault, undo };
  end.restart(isFault || undo ? LONG_MS : SHOWN_MS);
}

/** In the top layer, above an open dialog; always shown, because screen readers hear only what is. */
export function Notices(): VNode {
  const shown = notice.value;
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    // What came last into the top layer is above the others in it.
    place.current?.hidePopover();
    place.current?.showPopover();
  }, [shown]);
  return (
    <div class="notices" role="status" popover="manual" ref={place}>
      {shown && (
        <p class={shown.isFault ? "notice bad" : "notice"}>
          {shown.text}{" "}
          {shown.undo && (
            <button type="button" data-do="undo" onClick={shown.undo}>
              Undo
            </button>
          )}
        </p>
      )}
    </div>
  );
}
