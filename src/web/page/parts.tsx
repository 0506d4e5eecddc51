/** The parts that views share: loading, tables, dialogs, notices. Must not: know a resource of the hub. */
import {
  type ComponentChildren,
  Fragment,
  type TargetedInputEvent,
  type TargetedSubmitEvent,
  type VNode,
  h,
} from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { clock, isVisible, useNow } from "./clock.ts";
import { onEvent } from "./live.ts";
import { ageOf } from "./format.ts";
import { type KnownQuery, route, setQuery, to, wrongQuery } from "./route.ts";
import { type Ask, askUntil, describe, hub, isOnline } from "./session.ts";
import { drawn } from "./shared.ts";
import { isoOf, timeOf, typedOf } from "./times.ts";

// ---- Loading

export type Loaded<T> = {
  readonly value: T | null;
  readonly error: string;
  readonly reload: () => void;
};

/** Which events change what is shown: by their kind, or by more of them. */
type Concerns<T> = RegExp | ((event: Event, shown: T | null) => boolean);

const ROWS_A_CALL = 50;

/** A whole list that is short enough to be shown whole, loaded page by page. */
export async function whole<T>(
  load: (page: { page: number; per_page: number }) => Promise<{ rows: readonly T[]; pages: number }>,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (let page = 1, isLast = false; !isLast; page++) {
    const { rows, pages } = await load({ page, per_page: ROWS_A_CALL });
    all.push(...rows);
    isLast = page >= pages;
  }
  return all;
}

/**
 * Loads at first, when `key` changes, and again soon after events that concern it: at once if little happens, else every
 * few seconds. Until a reload has ended, the old value stays. A hidden tab reloads when it is shown again.
 * @param load calls the hub by `ask`, until the view is gone
 * @param concerns null: no event does
 * @param keptMs how old an answer of the hub may be; once it has been quiet for longer, a last reload shows what the
 *   others missed
 */
export function useLoad<T>(
  key: string,
  load: (ask: Ask, signal: AbortSignal) => Promise<T>,
  concerns: Concerns<T> | null = null,
  keptMs = 0,
): Loaded<T> {
  const [state, setState] = useState({ key, value: null as T | null, error: "" });
  const [reloadCount, setReloadCount] = useState(0);
  const reload = (): void => setReloadCount((old) => old + 1);
  const last = useRef({ concerns, value: state.value, startedAt: 0, tookMs: 0 });
  Object.assign(last.current, { concerns, value: state.value });
  useLayoutEffect(() => {
    // The first load is not put off: it gives a tab that was opened in the background its title.
    if (reloadCount > 0 && !isVisible.value) return isVisible.follow(reload);
    const abort = new AbortController();
    const { signal } = abort;
    const startedAt = clock.timers();
    load(askUntil(signal), signal).then(
      (value) => {
        if (signal.aborted) return;
        Object.assign(last.current, { startedAt, tookMs: clock.timers() - startedAt });
        setState({ key, value, error: "" });
      },
      (error: unknown) => {
        if (signal.aborted) return;
        setState((old) => ({ key, value: old.key === key ? old.value : null, error: describe(error) }));
      },
    );
    return () => abort.abort();
  }, [key, reloadCount, hub.value]);
  // The hub is back: what could not be loaded while it was away is loaded now.
  useLayoutEffect(() => {
    if (isOnline.value && state.error !== "") reload();
  }, [isOnline.value]);
  useLayoutEffect(() => {
    if (concerns === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let whenQuiet: ReturnType<typeof setTimeout> | undefined;
    const reloadWhenQuiet = (): void => {
      if (keptMs === 0) return;
      clearTimeout(whenQuiet);
      whenQuiet = setTimeout(reload, keptMs + SOON_MS);
    };
    reloadWhenQuiet();
    const stopActions = onAction(reload);
    const stop = onEvent((event) => {
      const { startedAt, tookMs, concerns, value } = last.current;
      const isConcerned =
        event === null || (concerns instanceof RegExp ? concerns.test(event.kind) : concerns?.(event, value));
      if (!isConcerned) return;
      reloadWhenQuiet();
      const gapMs = Math.min(RELOAD_MAX_MS, Math.max(RELOAD_MS, tookMs * SHARE));
      timer ??= setTimeout(
        () => {
          timer = undefined;
          reload();
        },
        Math.max(SOON_MS, startedAt + gapMs - clock.timers()),
      );
    });
    return () => {
      stopActions();
      stop();
      clearTimeout(timer);
      clearTimeout(whenQuiet);
    };
  }, []);
  return state.key === key ? { ...state, reload } : { value: null, error: "", reload };
}

/** After an event; those that come together are one reload. */
const SOON_MS = 250;
/** From one load to the next, however much happens. */
const RELOAD_MS = 3_000;
const RELOAD_MAX_MS = 10_000;
/** An open page keeps the hub busy for at most 1/100 of the time. */
const SHARE = 100;

/**
 * Loads what the URL asks for.
 * @param known what it may have; see wrongQuery()
 * @param more what else the list depends on
 */
export function useList<T>(
  known: KnownQuery,
  load: (ask: Ask) => Promise<T>,
  concerns: Concerns<T> | null,
  more: unknown = null,
): Loaded<T> {
  const wrong = wrongQuery(known);
  return useLoad(
    JSON.stringify([route.value.query, wrong, more]),
    (ask) => (wrong === null ? load(ask) : Promise.reject(new Error(wrong))),
    concerns,
  );
}

/** All pages of a list that goes on by a cursor. */
export async function* pagesOf<T extends { readonly next_cursor?: string | null | undefined }>(
  load: (cursor: string | undefined) => Promise<T>,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await load(cursor);
    yield page;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

const TYPING_MS = 250;

/** Debounced input: calls `change` once the typing has ended, with all fields that changed, by name. */
export function useTyped(
  change: (changed: Readonly<Record<string, string>>) => void,
): (name: string) => (value: string) => void {
  const pending = useRef<{ changed: Record<string, string>; timer: ReturnType<typeof setTimeout> | null }>({
    changed: {},
    timer: null,
  });
  useLayoutEffect(() => () => clearTimeout(pending.current.timer ?? undefined), []);
  return (name) => (value) => {
    const { current } = pending;
    current.changed[name] = value.trim();
    clearTimeout(current.timer ?? undefined);
    current.timer = setTimeout(() => {
      const { changed } = current;
      current.changed = {};
      change(changed);
    }, TYPING_MS);
  };
}

type FilterField = {
  readonly name: string;
  readonly value: string | undefined;
  readonly onInput: (value: string) => void;
};

/** The fields that filter a list, by their names in the URL. A change begins with the first page of the list. */
export function useFilters(): (name: string) => FilterField {
  const { query } = route.value;
  const set = useTyped((changed) =>
    setQuery({ cursor: undefined, page: undefined, before: undefined, ...changed }),
  );
  return (name) => ({ name, value: query[name], onInput: set(name) });
}

/** Runs again and again while the component is shown. */
export function useEvery(ms: number, run: () => void): void {
  useLayoutEffect(() => {
    const timer = setInterval(run, ms);
    return () => clearInterval(timer);
  }, []);
}

export function Fault({ text }: { text: string }): VNode | null {
  return text === "" ? null : (
    <p class="fault" role="alert">
      {text}
    </p>
  );
}

/**
 * The heading of a page, and what is wrong with the page.
 * @param more what stands beside the heading
 */
export function Head(props: {
  error?: string;
  more?: ComponentChildren;
  children: ComponentChildren;
}): VNode {
  return (
    <>
      <header class="head">
        <h1>{props.children}</h1>
        {props.more}
      </header>
      <Fault text={props.error ?? ""} />
    </>
  );
}

/** A part of a page, with its heading. */
export function Section({
  title,
  children,
}: {
  title: ComponentChildren;
  children: ComponentChildren;
}): VNode {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A page that could not be loaded still has a heading, and a way back. Nothing while it loads. */
export function NotLoaded(props: {
  title: string;
  error: string;
  /** The address of the list, and its words. */
  back: readonly [address: string, words: string];
}): VNode | null {
  const { title, error, back } = props;
  if (error === "") return null;
  return (
    <>
      <Head error={error}>{title}</Head>
      <p>
        <a class="button" href={back[0]}>
          {back[1]}
        </a>
      </p>
    </>
  );
}

// ---- Notices and questions

/** The fields of a form by name. */
export type Fields = Readonly<Record<string, string>>;

type Notice = { readonly text: string; readonly isFault: boolean };
const notice = drawn<Notice | null>(null);
let noticeTimer: ReturnType<typeof setTimeout> | null = null;

export function showNotice(text: string, isFault = false): void {
  notice.value = { text, isFault };
  if (noticeTimer !== null) clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => (notice.value = null), isFault ? 10_000 : 4_000);
}

/** The reloads of the views that follow events. */
const reloads = new Set<() => void>();

/** Calls `reload` after each action of the user. Returns its end. */
export function onAction(reload: () => void): () => void {
  reloads.add(reload);
  return () => void reloads.delete(reload);
}

export function reloadViews(): void {
  for (const reload of reloads) reload();
}

/** Runs an action of the user, shows whether it succeeded, and reloads the views. */
export async function runAction(done: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    showNotice(done);
    reloadViews();
    return true;
  } catch (error) {
    showNotice(describe(error), true);
    return false;
  }
}

/** In the top layer, above an open dialog; always shown, because screen readers hear only what is. */
export function Notices(): VNode {
  const shown = notice.value;
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    // What came last into the top layer is above the rest of it.
    place.current?.hidePopover();
    place.current?.showPopover();
  }, [shown]);
  return (
    <div class="notices" role="status" popover="manual" ref={place}>
      {shown && <p class={shown.isFault ? "notice bad" : "notice"}>{shown.text}</p>}
    </div>
  );
}

type Question = {
  readonly text: string;
  readonly yes: string;
  /** What the user must type before "yes" can be pressed; null: nothing. */
  readonly typed: string | null;
  /** What is done can be undone. */
  readonly isHarmless: boolean;
  readonly answer: (yes: boolean) => void;
};
const question = drawn<Question | null>(null);

/** A confirmation dialog, before what cannot be undone or concerns many. */
export function askToConfirm(
  text: string,
  yes: string,
  typed: string | null = null,
  isHarmless = false,
): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (isYes: boolean): void => {
      question.value = null;
      resolve(isYes);
    };
    question.value = { text, yes, typed, isHarmless, answer };
  });
}

/** Asks, and then runs the action. False if it was not run, or failed. */
export async function runAsked(
  text: string,
  yes: string,
  done: string,
  work: () => Promise<unknown>,
): Promise<boolean> {
  return (await askToConfirm(text, yes)) && runAction(done, work);
}

/** The focus is on "Not now", so that a key that is held down confirms nothing. */
export function ConfirmDialog(): VNode | null {
  const asked = question.value;
  const [typed, setTyped] = useState("");
  useLayoutEffect(() => setTyped(""), [asked]);
  if (asked === null) return null;
  return (
    <Modal title={asked.text} onClose={() => asked.answer(false)}>
      {asked.typed !== null && (
        <Field label={`Type ${asked.typed} to confirm`} name="typed" onInput={setTyped} />
      )}
      <p class="buttons">
        <Button data-do="no" autofocus onClick={() => asked.answer(false)}>
          Not now
        </Button>
        <Button
          class={asked.isHarmless ? "primary" : "danger"}
          data-do="yes"
          disabled={asked.typed !== null && typed !== asked.typed}
          onClick={() => asked.answer(true)}
        >
          {asked.yes}
        </Button>
      </p>
    </Modal>
  );
}

export function Modal(props: {
  title: string;
  onClose: () => void;
  class?: string;
  children: ComponentChildren;
}): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={props.class} aria-labelledby="modal-title" onClose={props.onClose}>
      <h2 id="modal-title">{props.title}</h2>
      {props.children}
    </dialog>
  );
}

// ---- Small things

/** A button that sends no form. */
export function Button({ onClick, ...rest }: ButtonProps): VNode {
  return <button type="button" {...rest} onClick={() => void onClick()} />;
}

/** A button that deletes, once the user has confirmed it. `onDone`: where to go after that. */
export function Delete(props: {
  "data-do": string;
  "aria-label"?: string;
  ask: string;
  work: () => Promise<unknown>;
  onDone?: () => void;
}): VNode {
  const { ask, work, onDone, ...rest } = props;
  const onClick = async (): Promise<void> => {
    if (await runAsked(ask, "Delete", "Deleted.", work)) onDone?.();
  };
  return (
    <Button class="danger" onClick={onClick} {...rest}>
      Delete
    </Button>
  );
}

type ButtonProps = {
  /** What it does, as tests name it. */
  "data-do"?: string;
  class?: string | undefined;
  title?: string;
  "aria-label"?: string;
  "aria-pressed"?: boolean;
  autofocus?: boolean;
  disabled?: boolean;
  onClick: () => unknown;
  children: ComponentChildren;
};

/** Closes the dialog that it stands in. */
export function Close({ word }: { word: string }): VNode {
  return (
    <form method="dialog" class="buttons">
      <button>{word}</button>
    </form>
  );
}

/** A link of a pager; none, if there is no such page. */
type Turn = readonly [words: string, address: string] | "" | false | null | undefined;

export function Pager({ back, next }: { back?: Turn; next: Turn }): VNode {
  return (
    <nav class="pager" aria-label="Pages">
      {back && <a href={back[1]}>{back[0]}</a>}
      {next && (
        <a rel="next" href={next[1]}>
          {next[0]}
        </a>
      )}
    </nav>
  );
}

/** Links to the forms of a view, of which it has one now. */
export function Ranges(props: {
  links: readonly (readonly [words: string, href: string, isHere: boolean])[];
}): VNode {
  return (
    <span class="ranges">
      {props.links.map(([words, href, isHere]) => (
        <a key={words} href={href} aria-current={isHere ? "true" : undefined}>
          {words}
        </a>
      ))}
    </span>
  );
}

/** The fields that filter a list, and what clears them. */
export function Filters(props: { isFiltered?: boolean; children: ComponentChildren }): VNode {
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {props.children}
      {props.isFiltered && (
        <a class="button" href={to(route.value.view)}>
          Clear
        </a>
      )}
    </form>
  );
}

/** In a cell: there is none. */
export function None(): VNode {
  return <span class="quiet">–</span>;
}

export function NodeLink({ id }: { id: string | null }): VNode {
  return id === null ? (
    <None />
  ) : (
    <a href={to("nodes", id)} title={id}>
      {id}
    </a>
  );
}

/** The title of a task, all of it in its tooltip. `isRow`: it opens the row of a table. */
export function TaskLink(props: {
  task: { readonly task_id: string; readonly title: string };
  isRow?: boolean;
}): VNode {
  const { task_id, title } = props.task;
  return (
    <a class={props.isRow ? "row" : ""} href={to("tasks", task_id)} title={title}>
      {title}
    </a>
  );
}

/** The end of the id of a task: the beginning is a time, and the same for many. */
export function TaskId({ id }: { id: string | null }): VNode {
  return id === null ? (
    <None />
  ) : (
    <a class="row" href={to("tasks", id)} title={id}>
      <code>…{id.slice(-8)}</code>
    </a>
  );
}

/** A moment, to the second. */
export function Moment({ at }: { at: string | number }): VNode {
  return <time dateTime={new Date(at).toISOString()}>{timeOf(at)}</time>;
}

/** A text to paste, and the button that copies it. */
export function Paste({ text, label = "Copy" }: { text: string; label?: string }): VNode {
  return (
    <p class="paste">
      <code>{text}</code> <Copy text={text} label={label} />
    </p>
  );
}

/** Copies without the clipboard's API, which a page over plain HTTP does not have. False if the browser does not let it. */
function copySelected(field: HTMLInputElement): boolean {
  field.focus();
  field.select();
  // Deprecated, and what every browser still does; without it the user presses Ctrl+C.
  return document.execCommand("copy");
}

/** Copies a text; where the browser does not let it, shows the text selected. */
export function Copy({ text, label }: { text: string; label: string }): VNode {
  const [isByHand, setByHand] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (!isByHand || field.current === null) return;
    if (!copySelected(field.current)) return;
    setByHand(false);
    showNotice("Copied.");
  }, [isByHand]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text); // undefined over plain HTTP
      showNotice("Copied.");
    } catch {
      setByHand(true);
    }
  };
  return (
    <>
      <Button data-do="copy" onClick={copy}>
        {label}
      </Button>
      {isByHand && (
        <input class="copied" ref={field} readOnly value={text} aria-label="Press Ctrl+C to copy this" />
      )}
    </>
  );
}

export function Age({ at }: { at: string | null }): VNode {
  const age = useNow((time) => ageOf(at, time));
  return at === null ? (
    <None />
  ) : (
    <time dateTime={at} title={timeOf(at)}>
      {age}
    </time>
  );
}

/** Beside what a node said: its key was bound to it. */
export function Verified({ is }: { is: boolean }): VNode | null {
  return is ? (
    <small class="verified" title="The request came with a key that is bound to the node.">
      ✓ verified
    </small>
  ) : null;
}

/** A name and its value, which stay in one line. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function State({ word }: { word: string }): VNode {
  return <span class={`state s-${word}`}>{word}</span>;
}

/** What to do when there is nothing: a sentence, and a line to paste. */
export function Empty({ text, line }: { text: string; line?: string }): VNode {
  return (
    <div class="empty">
      <p>{text}</p>
      {line !== undefined && <Paste text={line} />}
    </div>
  );
}

/** A column: its head, what is in a cell, and how it looks (`number`, `name`, `names`, `wide`, `id`, `buttons`). */
export type Column<T> = readonly [
  head: string,
  cell: (row: T, index: number) => ComponentChildren,
  look?: string,
  sort?: Sort,
];

/** How the list is sorted by a column: the address that does it, and the order if it is sorted so now. */
export type Sort = { readonly href: string; readonly order: "ascending" | "descending" | undefined };

/**
 * A wide table scrolls within its own region, also by keyboard. In a narrow window each row is a block whose cells show
 * their column heads.
 * @param made keeps the rows, if they never change
 */
export function Table<T extends object>(props: {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string | number | null;
  classOf?: (row: T) => string | undefined;
  made?: WeakMap<T, VNode>;
}): VNode {
  const { label, rows, columns, keyOf, classOf, made } = props;
  const rowOf = (row: T, index: number): VNode => (
    <tr key={keyOf(row)} class={classOf?.(row)}>
      {columns.map(([head, cell, look]) => (
        <td class={look} data-head={head}>
          {cell(row, index)}
        </td>
      ))}
    </tr>
  );
  return (
    <div class="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(([head, , look, sort]) => (
              <th scope="col" class={look?.startsWith("number") ? "number" : ""} aria-sort={sort?.order}>
                {sort ? <a href={sort.href}>{head}</a> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const drawn = made?.get(row) ?? rowOf(row, index);
            made?.set(row, drawn);
            return drawn;
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Selects the row that it stands in. */
export function SelectRow(props: {
  name: string;
  isOn: boolean;
  toggle: (withShift: boolean) => void;
}): VNode {
  return (
    <input
      type="checkbox"
      data-do="select"
      aria-label={`Select ${props.name}`}
      checked={props.isOn}
      onClick={({ shiftKey }) => props.toggle(shiftKey)}
    />
  );
}

export type FieldProps = {
  label: string;
  name: string;
  value?: string | undefined;
  type?: "text" | "search" | "number" | "password" | "file" | "datetime-local";
  /** The id of a datalist with suggestions. */
  list?: string;
  required?: boolean;
  /** Of a file: several may be chosen. */
  multiple?: boolean;
  rows?: number;
  onInput?: (value: string) => void;
  onFocus?: () => void;
};

export function Field(props: FieldProps): VNode {
  const { label, onInput, rows, value = "", name, required = false, type = "text", list } = props;
  const common = {
    ...{ name, required, defaultValue: value, autocomplete: "off" as const, spellcheck: false },
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onInput?.(event.currentTarget.value),
  };
  // The value of the URL may change without typing: by Clear, or by the browser's Back.
  const place = useRef<HTMLLabelElement>(null);
  useLayoutEffect(() => {
    const field = place.current?.querySelector<HTMLInputElement | HTMLTextAreaElement>("input, textarea");
    if (field && field !== document.activeElement && field.type !== "file") field.value = value;
  }, [value]);
  return (
    <label class="field" ref={place}>
      <span>{label}</span>
      {rows !== undefined ? (
        <textarea {...common} rows={rows} />
      ) : type === "number" ? (
        <input {...common} type={type} step="any" />
      ) : type === "file" || type === "password" ? (
        <input {...common} type={type} multiple={props.multiple === true} />
      ) : (
        <input {...common} type={type} list={list} onFocus={props.onFocus} />
      )}
    </label>
  );
}

/** A field for a moment, which goes to `onInput` in its ISO form. */
export function TimeField({ value, onInput, ...rest }: Omit<FieldProps, "type">): VNode {
  return (
    <Field
      {...rest}
      type="datetime-local"
      value={typedOf(value)}
      onInput={(typed) => onInput?.(isoOf(typed) ?? "")}
    />
  );
}

export function Select(props: {
  label: string;
  name: string;
  value?: string | undefined;
  /** A value that is its own label stands alone. */
  options: readonly (string | readonly [value: string, label: string])[];
  onInput?: (value: string) => void;
}): VNode {
  const options = props.options.map((option) =>
    typeof option === "string" ? ([option, option] as const) : option,
  );
  const chosen = options.find(([value]) => value === (props.value ?? "")) ?? options[0];
  return (
    <label class="field">
      <span>{props.label}</span>
      <select name={props.name} onChange={(event) => props.onInput?.(event.currentTarget.value)}>
        {options.map(([value, label]) => (
          <option key={value} value={value} selected={value === chosen?.[0]}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/**
 * A form whose fields go to `onSend` by name, as texts without white space around them, without the empty ones. It is
 * emptied when that returns true.
 */
export function Form(props: {
  onSend: (fields: Fields, form: HTMLFormElement) => unknown;
  class?: string;
  children: ComponentChildren;
}): VNode {
  const [isBusy, setBusy] = useState(false);
  const onSubmit = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = [...new FormData(form)]
      .map(([name, value]) => [name, String(value).trim()] as const)
      .filter(([, value]) => value !== "");
    setBusy(true);
    try {
      if ((await props.onSend(Object.fromEntries(fields), form)) === true) form.reset();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class={props.class} onSubmit={(event) => void onSubmit(event)}>
      <fieldset disabled={isBusy}>{props.children}</fieldset>
    </form>
  );
}
