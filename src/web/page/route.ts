/** The URL as state: `#/tasks?status=open`. A hash, so that the hub serves one page, under any prefix. */
import { useEffect } from "preact/hooks";
import { drawn } from "./shared.ts";

type Route = {
  readonly view: string;
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
};

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  return {
    view: view || "overview",
    id: decoded(rest.join("/")),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand
  }
}

export const route = drawn(read());

addEventListener("hashchange", () => {
  // A field with the focus keeps what is typed, and this was typed for the page before.
  document.querySelector<HTMLElement>('[role="search"] :focus')?.blur();
  subject.value = "";
  route.value = read();
});

/** What the view is about, for the title of the tab: "Review the change"; empty for the name of the view. */
export const subject = drawn("");

export function useSubject(text: string): void {
  useEffect(() => {
    subject.value = text;
  }, [text]);
}

export type Query = Readonly<Record<string, string | undefined>>;

export function to(view: string, id = "", query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const text = new URLSearchParams(given).toString();
  return `#/${view}${id && `/${encodeURIComponent(id)}`}${text && `?${text}`}`;
}

/** What a view reads from the query: any value of a name (null), or one of its words. */
export type KnownQuery = Readonly<Record<string, readonly string[] | null>>;

/**
 * What is wrong with the query of the URL; null when nothing is. A mistyped link must not show a list of something else.
 */
export function wrongQuery(known: KnownQuery): string | null {
  const names = new Map(Object.entries(known));
  for (const [name, given] of Object.entries(route.value.query)) {
    const words = names.get(name);
    if (words === undefined)
      return `The address has ${name}=${given}, but this list knows only ${[...names.keys()].join(", ")}.`;
    if (words !== null && given !== "" && !words.includes(given))
      return `The address has ${name}=${given}, which is none of ${words.filter(Boolean).join(", ")}.`;
  }
  return null;
}

export function here(change: Query): string {
  const { view, id, query } = route.value;
  return to(view, id, { ...query, ...change });
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes the query without a new entry in the history. */
export function setQuery(query: Query): void {
  history.replaceState(history.state, "", here(query));
  route.value = read();
}
