/** The parts that views share: loading, tables, dialogs, notices. Must not: know a resource of the hub. */
import {
  type ComponentChildren,
  Fragment,
  type JSX,
  type TargetedInputEvent,
  type TargetedSubmitEvent,
  h,
} from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { clock, useNow } from "./clock.ts";
import { onEvent } from "./live.ts";
import { ageOf } from "./format.ts";
import { type KnownQuery, route, to, wrongQuery } from "./route.ts";
import { type Hub, describe, hub, isOnline } from "./session.ts";
import { drawn } from "./shared.ts";

// ---- Loading

export type Loaded<T> = {
  readonly value: T | null;
  readonly error: string;
  readonly reload: () => void;
  /** When the last load began, and how long it took. */
  readonly startedAt: number;
  readonly tookMs: number;
};

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

/** Loads at first, when `key` changes, and at each reload. Until a reload has ended, the old value stays. */
export function useLoad<T>(key: string, load: (hub: Hub, signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState({ key, value: null as T | null, error: "", startedAt: 0, tookMs: 0 });
  const [reloadCount, setReloadCount] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const startedAt = clock.timers();
    load(hub.value, abort.signal).then(
      (value) =>
        !abort.signal.aborted &&
        setState({ key, value, error: "", startedAt, tookMs: clock.timers() - startedAt }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setState((old) => ({
          ...(old.key === key ? old : { ...old, value: null }),
          ...{ key, error: describe(error) },
        }));
      },
    );
    return () => abort.abort();
  }, [key, reloadCount, hub.value]);
  // The hub is back: what could not be loaded while it was away is loaded now.
  useEffect(() => {
    if (isOnline.value && state.error !== "") setReloadCount((old) => old + 1);
  }, [isOnline.value]);
  const isOld = state.key !== key;
  return {
    value: isOld ? null : state.value,
    error: isOld ? "" : state.error,
    startedAt: state.startedAt,
    tookMs: state.tookMs,
    reload: () => setReloadCount((old) => old + 1),
  };
}

/**
 * Loads what the URL asks for.
 * @param known what it may have; see wrongQuery()
 * @param more what else the list depends on
 */
export function useList<T>(
  known: KnownQuery,
  load: (hub: Hub, signal: AbortSignal) => Promise<T>,
  more: unknown = null,
): Loaded<T> {
  const wrong = wrongQuery(known);
  return useLoad(JSON.stringify([route.value.query, wrong, more]), (from, signal) =>
    wrong === null ? load(from, signal) : Promise.reject(new Error(wrong)),
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

/** After an event; those that come together are one reload. */
const SOON_MS = 250;
/** From one load to the next, however much happens. */
const RELOAD_MS = 3_000;
const RELOAD_MAX_MS = 10_000;
/** An open page keeps the hub busy for at most 1/100 of the time. */
const SHARE = 100;

function waitMs({ startedAt, tookMs }: Loaded<unknown>): number {
  const gapMs = Math.min(RELOAD_MAX_MS, Math.max(RELOAD_MS, tookMs * SHARE));
  return Math.max(SOON_MS, startedAt + gapMs - clock.timers());
}

/**
 * Throttled reloads, after events that concern the view: at once if little happens, else every few seconds. `keptMs`: how
 * old an answer of the hub may be; once it has been quiet for longer, a last reload shows what the others missed.
 */
export function useEvents(concerns: (event: Event) => boolean, loaded: Loaded<unknown>, keptMs = 0): void {
  const latest = useRef({ concerns, loaded });
  latest.current = { concerns, loaded };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let last: ReturnType<typeof setTimeout> | null = null;
    const reloadNow = (): void => latest.current.loaded.reload();
    reloads.add(reloadNow);
    const reloadWhenQuiet = (): void => {
      if (keptMs === 0) return;
      if (last !== null) clearTimeout(last);
      last = setTimeout(reloadNow, keptMs + SOON_MS);
    };
    reloadWhenQuiet();
    const stop = onEvent((event) => {
      if (event !== null && !latest.current.concerns(event)) return;
      reloadWhenQuiet();
      timer ??= setTimeout(() => {
        timer = null;
        reloadNow();
      }, waitMs(latest.current.loaded));
    });
    return () => {
      reloads.delete(reloadNow);
      stop();
      if (timer !== null) clearTimeout(timer);
      if (last !== null) clearTimeout(last);
    };
  }, []);
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
  useEffect(() => () => clearTimeout(pending.current.timer ?? undefined), []);
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

export function Fault({ text }: { text: string }): JSX.Element | null {
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
}): JSX.Element {
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

/** A page that could not be loaded still has a heading, and a way back. Nothing while it loads. */
export function NotLoaded(props: {
  title: string;
  error: string;
  /** The address of the list, and its words. */
  back: readonly [address: string, words: string];
}): JSX.Element | null {
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
export function Notices(): JSX.Element {
  const shown = notice.value;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
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
export function ConfirmDialog(): JSX.Element | null {
  const asked = question.value;
  const [typed, setTyped] = useState("");
  useEffect(() => setTyped(""), [asked]);
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
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={props.class} aria-labelledby="modal-title" onClose={props.onClose}>
      <h2 id="modal-title">{props.title}</h2>
      {props.children}
    </dialog>
  );
}

// ---- Small things

/** A button that sends no form. */
export function Button({ onClick, ...rest }: ButtonProps): JSX.Element {
  return <button type="button" {...rest} onClick={() => void onClick()} />;
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
export function Close({ word }: { word: string }): JSX.Element {
  return (
    <form method="dialog" class="buttons">
      <button>{word}</button>
    </form>
  );
}

/** A link of a pager; none, if there is no such page. */
type Turn = readonly [words: string, address: string] | "" | false | null | undefined;

export function Pager({ back, next }: { back?: Turn; next: Turn }): JSX.Element {
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

/** The fields that filter a list. */
export function Filters({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {children}
    </form>
  );
}

/** In a cell: there is none. */
export function None(): JSX.Element {
  return <span class="quiet">–</span>;
}

export function NodeLink({ id }: { id: string | null }): JSX.Element {
  return id === null ? (
    <None />
  ) : (
    <a href={to("nodes", id)} title={id}>
      {id}
    </a>
  );
}

/** The end of the id of a task: the beginning is a time, and the same for many. */
export function TaskId({ id }: { id: string | null }): JSX.Element {
  return id === null ? (
    <None />
  ) : (
    <a class="row" href={to("tasks", id)} title={id}>
      <code>…{id.slice(-8)}</code>
    </a>
  );
}

/** A local time. */
export function Moment({ at }: { at: string | number }): JSX.Element {
  const date = new Date(at);
  return <time dateTime={date.toISOString()}>{date.toLocaleString()}</time>;
}

/** A text to paste, and the button that copies it. */
export function Paste({ text, label = "Copy" }: { text: string; label?: string }): JSX.Element {
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
export function Copy({ text, label }: { text: string; label: string }): JSX.Element {
  const [isByHand, setByHand] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
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

export function Age({ at }: { at: string | null }): JSX.Element {
  const age = useNow((time) => ageOf(at, time));
  return at === null ? (
    <None />
  ) : (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {age}
    </time>
  );
}

/** Beside what a node said: its key was bound to it. */
export function Verified({ is }: { is: boolean }): JSX.Element | null {
  return is ? (
    <small class="verified" title="The request came with a key that is bound to the node.">
      ✓ verified
    </small>
  ) : null;
}

/** A name and its value, which stay in one line. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function State({ word }: { word: string }): JSX.Element {
  return <span class={`state s-${word}`}>{word}</span>;
}

/** What to do when there is nothing: a sentence, and a line to paste. */
export function Empty({ text, line }: { text: string; line?: string }): JSX.Element {
  return (
    <div class="empty">
      <p>{text}</p>
      {line !== undefined && <Paste text={line} />}
    </div>
  );
}

/** The heads of columns of numbers. */
const NUMBERS: ReadonlySet<string> = new Set([
  ...["Place", "LUX", "Done", "Failed", "Tasks done", "Id", "Size"],
  ...["Open", "Oldest", "Nodes", "Running", "Done/h", "Failed/h", "Wait p50 · p95"],
  ...["Cost", "Input tokens", "Cached", "Output tokens", "Tokens"],
]);

/**
 * A wide table scrolls within its own region, also by keyboard. In a narrow window each row is a block whose cells show
 * their column heads.
 */
export function Table(props: {
  label: string;
  head: readonly string[];
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="table" role="region" aria-label={props.label} tabIndex={0}>
      <table style={props.head.map((word, i) => `--head-${i + 1}:"${word}"`).join(";")}>
        <thead>
          <tr>
            {props.head.map((word) => (
              <th key={word} scope="col" class={NUMBERS.has(word) ? "number" : undefined}>
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

type FieldProps = {
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

export function Field(props: FieldProps): JSX.Element {
  const { label, onInput, rows, value = "", name, required = false, type = "text", list } = props;
  const common = { name, required, defaultValue: value, autocomplete: "off" as const, spellcheck: false };
  const onChange = (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>): void =>
    onInput?.(event.currentTarget.value);
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
        <textarea {...common} rows={rows} onInput={onChange} />
      ) : type === "number" ? (
        <input {...common} type={type} step="any" onInput={onChange} />
      ) : type === "file" || type === "password" ? (
        <input {...common} type={type} multiple={props.multiple === true} onInput={onChange} />
      ) : (
        <input {...common} type={type} list={list} onInput={onChange} onFocus={props.onFocus} />
      )}
    </label>
  );
}

export function Select(props: {
  label: string;
  name: string;
  value?: string | undefined;
  /** A value that is its own label stands alone. */
  options: readonly (string | readonly [value: string, label: string])[];
  onInput?: (value: string) => void;
}): JSX.Element {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select name={props.name} onChange={(event) => props.onInput?.(event.currentTarget.value)}>
        {props.options
          .map((option) => (typeof option === "string" ? [option, option] : option))
          .map(([value, label]) => (
            <option key={value} value={value} selected={value === (props.value ?? "")}>
              {label}
            </option>
          ))}
      </select>
    </label>
  );
}

/**
 * A form whose fields go to `onSend` by name, as texts without white space around them. It is emptied when that returns
 * true.
 */
export function Form(props: {
  onSend: (fields: Fields, form: HTMLFormElement) => unknown;
  class?: string;
  children: ComponentChildren;
}): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const onSubmit = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]);
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
