/** The small parts of views: headings, dialogs, buttons, links, times. Must not: load anything. */
import { type ComponentChildren, Fragment, type TargetedMouseEvent, type VNode, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useNow } from "./clock.ts";
import { showDialog } from "./dialog.tsx";
import { ageOf } from "./format.ts";
import { showNotice } from "./notice.tsx";
import { type Query, to } from "./route.ts";
import { useUniqueId } from "./shared.ts";
import { timeOf } from "./times.ts";

// ---- A page and its parts

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

/**
 * A part of a page.
 * @param note stands beside its title
 */
export function Section(props: {
  title: ComponentChildren;
  note?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}): VNode {
  return (
    <section class={props.class}>
      <header>
        <h2>{props.title}</h2>
        {props.note && <div class="quiet">{props.note}</div>}
      </header>
      {props.children}
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
        <Link class="button" href={back[0]} text={back[1]} />
      </p>
    </>
  );
}

export function Empty({ text, line }: { text: string; line?: string | undefined }): VNode {
  return (
    <div class="empty">
      <p>{text}</p>
      {line !== undefined && <Paste text={line} />}
    </div>
  );
}

/** A count of tasks. `tasks`: the address of those that it counts. */
export type Tile = readonly [
  tone: string,
  count: string,
  word: string,
  tasks: Query,
  note?: ComponentChildren,
];

export function Tiles({ tiles }: { tiles: readonly Tile[] }): VNode {
  return (
    <ul class="flow">
      {tiles.map(([tone, count, word, tasks, note]) => (
        <li key={word} class={`t-${tone}`}>
          <a href={to("tasks", "", tasks)}>
            <b>{count}</b> {word}
            {note !== undefined && <small>{note}</small>}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** What the user should know of the thing that a page shows. */
export function Say({ tone, children }: { tone: string; children: ComponentChildren }): VNode {
  return (
    <p class={`say t-${tone}`} role="status">
      {children}
    </p>
  );
}

/** Names with their values. What has no value is left out. */
export type FactOf = readonly [name: ComponentChildren, value: ComponentChildren];

export function Facts({ facts }: { facts: readonly FactOf[] }): VNode {
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

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

// ---- Buttons and menus

type ButtonProps = {
  label: string;
  /** What tests call it (`data-do`). */
  name?: string;
  class?: string | undefined;
  title?: string;
  "aria-label"?: string | undefined;
  "aria-pressed"?: boolean;
  autofocus?: boolean;
  disabled?: boolean;
  onClick: () => unknown;
};

export function Button({ label, name, onClick, ...attributes }: ButtonProps): VNode {
  return (
    <button type="button" data-do={name} {...attributes} onClick={() => void onClick()}>
      {label}
    </button>
  );
}

/** An address with its words. */
export function Link(props: {
  href: string;
  text: ComponentChildren;
  class?: string;
  title?: string;
}): VNode {
  const { text, ...attributes } = props;
  return <a {...attributes}>{text}</a>;
}

export function Paste({ text, label = "Copy" }: { text: string; label?: string }): VNode {
  return (
    <p class="paste">
      <code>{text}</code> <Copy text={text} label={label} />
    </p>
  );
}

/** Copies a text; where the browser does not let it, a dialog shows the text selected. */
export function Copy({ text, label }: { text: string | (() => string); label: string }): VNode {
  const copy = async (): Promise<void> => {
    const copied = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(copied); // undefined over plain HTTP
      showNotice("Copied.");
    } catch {
      const close = showDialog({
        title: "Press Ctrl+C to copy this",
        body: <ByHand text={copied} onCopied={() => close()} />,
        close: "Close",
      });
    }
  };
  return <Button label={label} name="copy" onClick={copy} />;
}

function ByHand({ text, onCopied }: { text: string; onCopied: () => void }): VNode {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (field.current === null || !isSelectionCopied(field.current)) return;
    onCopied();
    showNotice("Copied.");
  }, []);
  return <textarea rows={3} ref={field} readOnly value={text} aria-label="The text to copy" />;
}

/** Copies without the clipboard's API, which a page over plain HTTP does not have. False if the browser does not let it. */
function isSelectionCopied(field: HTMLTextAreaElement): boolean {
  field.focus();
  field.select();
  // Deprecated, and what every browser still does; without it the user presses Ctrl+C.
  return document.execCommand("copy");
}

/**
 * What is seldom used, behind a button. The browser opens and closes it, and gives the focus back to the button; so does a
 * choice in it, before it acts: a dialog then gives the focus back to the button too.
 */
export function Menu(props: {
  label: ComponentChildren;
  /** Its name for screen readers, if the label is a sign. */
  title?: string;
  name: string;
  class?: string | undefined;
  children: ComponentChildren;
}): VNode {
  const { label, title, name, children } = props;
  const id = useUniqueId();
  const choose = (event: TargetedMouseEvent<HTMLDivElement>): void => {
    const { target, currentTarget } = event;
    if (target instanceof Element && target.closest("a, button") !== null) currentTarget.hidePopover();
  };
  return (
    <>
      <button
        type="button"
        class={props.class}
        data-do={name}
        popovertarget={id}
        aria-label={title}
        title={title}
      >
        {label}
      </button>
      <div popover="auto" id={id} class="menu" onClickCapture={choose}>
        {children}
      </div>
    </>
  );
}

// ---- In a cell, or a line

export function None(): VNode {
  return <span class="quiet">–</span>;
}

export function State({ word }: { word: string }): VNode {
  return <span class={`state s-${word}`}>{word}</span>;
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

export function Moment({ at }: { at: string | number }): VNode {
  return <time dateTime={new Date(at).toISOString()}>{timeOf(at)}</time>;
}

/** After a state: how long it lasts. */
export function Until({ at }: { at: string | null }): VNode | null {
  return at === null ? null : (
    <>
      , until <Moment at={at} />
    </>
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

export function Why({ text }: { text: string | null | undefined }): VNode | null {
  return text ? (
    <div class="why" title={text}>
      {text}
    </div>
  ) : null;
}

export function NodeLink({ id }: { id: string | null | undefined }): VNode {
  return id == null ? <None /> : <Link href={to("nodes", id)} title={id} text={id} />;
}

/** The title of a task, all of it in its tooltip. `isRow`: it opens the row of a table. `why`: see Why. */
export function TaskLink(props: {
  task: { readonly task_id: string; readonly title: string };
  isRow?: boolean;
  why?: string | undefined;
}): VNode {
  const { task, isRow, why } = props;
  return (
    <>
      <Link
        class={isRow ? "row" : ""}
        href={to("tasks", task.task_id)}
        title={task.title}
        text={task.title}
      />
      <Why text={why} />
    </>
  );
}

/** The end of the id of a task: the beginning is a time, and the same for many. */
export function TaskId({ id }: { id: string | null }): VNode {
  return id === null ? (
    <None />
  ) : (
    <Link class="row" href={to("tasks", id)} title={id} text={<code>…{id.slice(-8)}</code>} />
  );
}
