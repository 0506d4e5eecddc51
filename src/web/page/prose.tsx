/**
 * What others have written, as a person reads it: a subset of Markdown made of elements; data and long texts as they are.
 * Must not: hide a character, nor make a link of what a stranger has written.
 */
import { type ComponentChildren, type VNode, h } from "preact";
import { visible } from "../../lib/printable.ts";

/** A longer text stays as it is. */
const PROSE_CHARS = 64 * 1024;
/** From here on a text may scroll within its box, which the keyboard must reach. */
const SHORT_CHARS = 500;

const FENCE = /^ {0,3}```/;
const HEADING = /^#{1,6} +(.+)$/;
const ITEM = /^( *)(?:[-*+]|(\d{1,6})[.)]) +(.+)$/;
/** What means something only in columns: a table, or an indented line. */
const COLUMNS = /^(?:\||\t| {4})/;
const QUOTE = /^> ?/;
const INLINE = /`([^`\n]+)`|(?<![\w/*])\*\*(?=[\p{L}\p{N}"'(])([^\n*]+)\*\*(?!\*)/gu;

export function Text({ value, class: look = "" }: { value: unknown; class?: string }): VNode {
  const isProse = typeof value === "string" && value.length <= PROSE_CHARS && look !== "fault";
  const text = visible(typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const shown = { class: `text ${look}`.trim(), tabIndex: text.length > SHORT_CHARS ? 0 : undefined };
  if (!isProse) return <pre {...shown}>{text}</pre>;
  return (
    <div {...shown} dir="auto">
      {blocksOf(text.split("\n"))}
    </div>
  );
}

function blocksOf(lines: readonly string[]): readonly VNode[] {
  const blocks: VNode[] = [];
  let at = 0;
  /** The next lines up to the first that is none of them. */
  const take = (holds: (line: string) => boolean): readonly string[] => {
    const begin = at;
    while (at < lines.length && holds(lines[at] ?? "")) at++;
    return lines.slice(begin, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const [, heading] = HEADING.exec(line) ?? [];
    if (FENCE.test(line)) {
      at++;
      blocks.push(<pre>{take((next) => !FENCE.test(next)).join("\n")}</pre>);
      at++;
    } else if (heading !== undefined) {
      at++;
      blocks.push(<h3>{inline(heading)}</h3>);
    } else if (ITEM.test(line)) {
      blocks.push(<ul class="items">{take((next) => ITEM.test(next)).map(itemOf)}</ul>);
    } else if (COLUMNS.test(line)) {
      blocks.push(<pre>{take((next) => COLUMNS.test(next)).join("\n")}</pre>);
    } else if (QUOTE.test(line)) {
      const quoted = take((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, ""));
      blocks.push(<blockquote>{inline(quoted.join("\n"))}</blockquote>);
    } else if (line.trim() === "") {
      at++;
    } else {
      blocks.push(<p>{inline(take(isPlain).join("\n"))}</p>);
    }
  }
  return blocks;
}

function isPlain(line: string): boolean {
  return line.trim() !== "" && ![FENCE, HEADING, ITEM, COLUMNS, QUOTE].some((block) => block.test(line));
}

/** A number stays the one that was written. */
function itemOf(line: string): VNode {
  const [, indent = "", number, text = ""] = ITEM.exec(line) ?? [];
  return (
    <li class={indent.length > 1 ? "deep" : undefined} data-mark={number === undefined ? "•" : `${number}.`}>
      {inline(text)}
    </li>
  );
}

function inline(text: string): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const { 0: whole, 1: code, 2: strong, index } of text.matchAll(INLINE)) {
    parts.push(text.slice(from, index), code === undefined ? <b>{strong}</b> : <code>{code}</code>);
    from = index + whole.length;
  }
  return [...parts, text.slice(from)];
}
