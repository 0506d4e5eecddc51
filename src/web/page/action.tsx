/**
 * What the user can do, declared: the question before it, the work, what it says when done; as buttons and as forms.
 * Must not: know a resource of the hub.
 */
import {
  type ComponentChildren,
  Fragment,
  type TargetedSubmitEvent,
  type VNode,
  h,
  isValidElement,
} from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { showDialog } from "./dialog.tsx";
import { Field, type FieldOf } from "./field.tsx";
import { reloadViews } from "./load.ts";
import { showNotice } from "./notice.tsx";
import { Button } from "./parts.tsx";
import { describe } from "./session.ts";

/** `Args`: what `ask` and `work` get. */
type ActionOf<Args extends readonly unknown[]> = {
  /** What tests call it (`data-do`). */
  readonly name: string;
  readonly label: string;
  readonly work: (...args: Args) => unknown;
  /** What the notice says when it is done; undefined: the text that `work` returns, or nothing. */
  readonly done?: string | undefined;
  readonly look?: "primary" | "danger" | undefined;
  /** Names what it acts on, for screen readers. */
  readonly of?: string;
  /** Null: nothing needs to be asked. May throw what is wrong with the arguments. */
  readonly ask?: Question | ((...args: Args) => Question | null | Promise<Question>);
  readonly then?: () => unknown;
  /** Takes back what was done. */
  readonly undo?: ((...args: Args) => unknown) | undefined;
};

export type Action = ActionOf<[]>;

/** Does something with the fields of a form. Without `done` it only leads to another view: its fields stay. */
type FormAction = ActionOf<[fields: Fields, form: HTMLFormElement]>;

export type Fields = Readonly<Record<string, string>>;

export type Question = {
  readonly text: string;
  readonly yes: string;
  /** What the user must type before "yes" can be pressed; null: nothing. */
  readonly typed?: string | null;
  /** What is done can be undone. */
  readonly isHarmless?: boolean;
};

type More<Args extends readonly unknown[]> = Pick<ActionOf<Args>, "look" | "of" | "ask" | "then" | "undo">;

export function act<Args extends readonly unknown[] = []>(
  name: string,
  label: string,
  work: (...args: Args) => unknown,
  done?: string,
  more: More<Args> = {},
): ActionOf<Args> {
  return { name, label, work, done, ...more };
}

/** Deletes, once the user has confirmed it. */
export function deletion(name: string, text: string, work: () => unknown, more: More<[]> = {}): Action {
  return act(name, "Delete", work, "Deleted.", { look: "danger", ask: { text, yes: "Delete" }, ...more });
}

/** Does it, shows what came of it, and reloads the views. False if the user did not confirm it, or it failed. */
async function run<Args extends readonly unknown[]>(action: ActionOf<Args>, ...args: Args): Promise<boolean> {
  const { ask, work, done, then, undo } = action;
  try {
    const question = (typeof ask === "function" ? await ask(...args) : ask) ?? null;
    if (question !== null && !(await isConfirmed(question))) return false;
    const outcome = await work(...args);
    const text = done ?? (typeof outcome === "string" ? outcome : "");
    const back = undo && (() => void run(act(`undo-${action.name}`, "Undo", undo, "Undone."), ...args));
    if (text !== "") showNotice(text, false, back);
    reloadViews();
    then?.();
    return true;
  } catch (error) {
    showNotice(describe(error), true);
    return false;
  }
}

// ---- Buttons

export type ActionItem = Action | VNode | false | null;

export function Actions({ actions }: { actions: readonly ActionItem[] }): VNode {
  return <>{actions.map((item) => (isAction(item) ? <ActionButton action={item} /> : item))}</>;
}

function isAction(item: ActionItem): item is Action {
  return item !== null && item !== false && !isValidElement(item);
}

function ActionButton({ action }: { action: Action }): VNode {
  const { name, label, look, of } = action;
  const words = of === undefined ? undefined : `${label} ${of}`;
  return <Button label={label} class={look} name={name} aria-label={words} onClick={() => run(action)} />;
}

// ---- Forms

type FormItem = FieldOf | readonly FieldOf[] | VNode;

/**
 * @param isRow the button stands beside the fields; otherwise below them, beside what is to be checked
 * @param children what stands beside the button
 */
export function Form(props: {
  action: FormAction;
  fields: readonly FormItem[];
  isRow?: boolean;
  class?: string;
  children?: ComponentChildren;
}): VNode {
  const { action, fields, isRow = false, children } = props;
  const [isBusy, setBusy] = useState(false);
  const sender = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    // A field that is disabled meanwhile loses the focus.
    if (!isBusy && document.activeElement === document.body) sender.current?.focus();
  }, [isBusy]);
  const onSubmit = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget;
    sender.current = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    setBusy(true);
    const isDone = await run(action, fieldsOf(form), form);
    if (isDone && action.done !== undefined) form.reset();
    setBusy(false);
  };
  const isBeside = (item: FormItem): boolean => !isRow && "type" in item && item.type === "check";
  const button = (
    <button class={action.look} data-do={action.name}>
      {action.label}
    </button>
  );
  return (
    <form class={isRow ? "filters" : props.class} onSubmit={(event) => void onSubmit(event)}>
      <fieldset disabled={isBusy}>
        {fields.filter((item) => !isBeside(item)).map(drawItem)}
        {isRow ? (
          <>
            {button}
            {children}
          </>
        ) : (
          <p class="buttons">
            {button}
            {fields.filter(isBeside).map(drawItem)}
            {children}
          </p>
        )}
      </fieldset>
    </form>
  );
}

export type FormOf = {
  readonly action: FormAction;
  readonly fields: readonly FormItem[];
  /** Beside the button. */
  readonly beside?: VNode;
};

/** Makes what is shown only once: when its form is closed. */
export function making<T>(
  [name, label, done]: readonly [name: string, label: string, done: string],
  make: (fields: Fields) => Promise<T>,
  show: (made: T) => void,
): FormAction {
  let made: T | null = null;
  const work = async (fields: Fields): Promise<void> => void (made = await make(fields));
  return act(name, label, work, done, { look: "primary", then: () => made !== null && show(made) });
}

/**
 * A button that opens a form, which closes once its action is done.
 * @param form is called when it is opened: what changes meanwhile does not change the form
 */
export function FormButton(props: {
  label: string;
  name: string;
  look?: "primary";
  form: () => FormOf;
}): VNode {
  const { label, name, look, form } = props;
  const open = (): void => {
    const { action, fields, beside } = form();
    const then = (): void => {
      close();
      action.then?.();
    };
    const body = (
      <Form class="form" fields={fields} action={{ ...action, then }}>
        {beside}
      </Form>
    );
    const close = showDialog({ title: label, body, close: "Not now" });
  };
  return <Button label={label} name={name} class={look} onClick={open} />;
}

function drawItem(item: FormItem): VNode {
  if (isValidElement(item)) return item;
  if ("name" in item) return <Field key={item.name} {...item} />;
  return <div class="row-of-fields">{item.map(drawItem)}</div>;
}

function fieldsOf(form: HTMLFormElement): Fields {
  const fields = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()] as const);
  return Object.fromEntries(fields.filter(([, value]) => value !== ""));
}

// ---- The question

export function isConfirmed(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (isYes: boolean): void => {
      close();
      resolve(isYes);
    };
    const body = <Confirm question={question} answer={answer} />;
    const close = showDialog({ title: question.text, body, onClose: () => resolve(false) });
  });
}

/** The focus is on "Not now", so that a key that is held down confirms nothing. */
function Confirm(props: { question: Question; answer: (isYes: boolean) => void }): VNode {
  const [input, setInput] = useState("");
  const { question, answer } = props;
  const { yes, typed = null, isHarmless = false } = question;
  return (
    <>
      {typed !== null && <Field label={`Type ${typed} to confirm`} name="typed" onInput={setInput} />}
      <p class="buttons">
        <Button label="Not now" name="no" autofocus onClick={() => answer(false)} />
        <Button
          label={yes}
          class={isHarmless ? "primary" : "danger"}
          name="yes"
          disabled={typed !== null && input !== typed}
          onClick={() => answer(true)}
        />
      </p>
    </>
  );
}
