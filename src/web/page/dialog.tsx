/** The dialogs over the page, the newest above the others. They end with the view over which they were opened. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { drawn } from "./shared.ts";

export function Modal(props: {
  title: string;
  onClose: () => void;
  class?: string;
  /** Of the button that closes it. */
  close?: string;
  children: ComponentChildren;
}): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const latest = useRef(props.onClose);
  latest.current = props.onClose;
  useLayoutEffect(() => {
    const shown = dialog.current;
    const closed = new AbortController();
    shown?.addEventListener("close", () => latest.current(), closed);
    shown?.showModal();
    return () => {
      closed.abort();
      shown?.close(); // gives the focus back: one that is taken out while it is open does not
    };
  }, []);
  return (
    <dialog ref={dialog} class={props.class} aria-label={props.title}>
      <h2>{props.title}</h2>
      {props.children}
      {props.close && (
        <form method="dialog" class="buttons">
          <button>{props.close}</button>
        </form>
      )}
    </dialog>
  );
}

type Dialog = {
  readonly title: string;
  readonly body: VNode;
  /** Of the button that closes it, if the body has none. */
  readonly close?: string;
  /** The user has closed it, or left the view. */
  readonly onClose?: () => void;
};

const dialogs = drawn<readonly Dialog[]>([]);

/** Returns what closes it. */
export function showDialog(dialog: Dialog): () => void {
  dialogs.value = [...dialogs.value, dialog];
  return () => {
    dialogs.value = dialogs.value.filter((shown) => shown !== dialog);
  };
}

function leave(left: readonly Dialog[]): void {
  dialogs.value = dialogs.value.filter((dialog) => !left.includes(dialog));
  for (const dialog of left) dialog.onClose?.();
}

addEventListener("hashchange", () => leave(dialogs.value));

export function Dialogs(): VNode {
  useLayoutEffect(() => () => leave(dialogs.value), []);
  return (
    <>
      {dialogs.value.map((dialog) => (
        <Modal key={dialog} title={dialog.title} close={dialog.close ?? ""} onClose={() => leave([dialog])}>
          {dialog.body}
        </Modal>
      ))}
    </>
  );
}
