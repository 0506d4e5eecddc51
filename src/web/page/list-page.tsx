/**
 * The page of a list, drawn from its declaration: filters and pages stand in the address. Must not: know a resource of
 * the hub.
 */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import { type Action, Actions } from "./action.tsx";
import { Field, type FieldOf, useTyped } from "./field.tsx";
import { List, type ListOf, type Selection, useSelection } from "./list.tsx";
import { type Concerns, useLoad } from "./load.ts";
import { Button, Empty, Fault, Head, Link, Menu } from "./parts.tsx";
import { type KnownQuery, here, route, setQuery, to, wrongQuery } from "./route.ts";
import type { Ask } from "./session.ts";

// ---- Pages and filters, which stand in the address

type Turn = readonly [words: string, address: string] | "" | false | null | undefined;

export function Pager({ back, next }: { back?: Turn; next?: Turn }): VNode {
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

type Turns = { readonly back?: Turn; readonly next?: Turn };

type Paged = { readonly next_cursor?: string | null | undefined; readonly pages?: number | null | undefined };

const NEXT = "Next page";

/** By a cursor one goes on, or back to the first page; counted pages are turned both ways. */
function turnsOf(page: Paged | null): Turns {
  const { cursor, page: number } = route.value.query;
  if (cursor || page?.next_cursor) {
    const nextCursor = page?.next_cursor ?? undefined;
    return {
      back: cursor && ["First page", here({ cursor: undefined })],
      next: nextCursor && [NEXT, here({ cursor: nextCursor })],
    };
  }
  const current = Number(number ?? 1);
  const turn = (to: number): string => here({ page: to > 1 ? String(to) : undefined });
  return {
    back: current > 1 && ["Previous page", turn(current - 1)],
    next: current < (page?.pages ?? 0) && [NEXT, turn(current + 1)],
  };
}

const PLACES: KnownQuery = { cursor: null, page: null };

/** `more`: it is seldom used, and stands apart. `address`: it stands only in the address. */
export type FilterOf = FieldOf & { readonly place?: "more" | "address" };

const TURNED: ReadonlySet<string> = new Set(["cursor", "page", "before", "order"]);

const FIRST_PAGE = { cursor: undefined, page: undefined, before: undefined };

/** The filters, and what clears them. A change begins with the first page of the list. */
function Filters({ filters }: { filters: readonly FilterOf[] }): VNode | null {
  const { query, view } = route.value;
  const set = useTyped((changed) => setQuery({ ...FIRST_PAGE, ...changed }));
  if (filters.length === 0) return null;
  const standing = (wanted: FilterOf["place"]) => filters.filter(({ place }) => place === wanted);
  const draw = (field: FilterOf): VNode => (
    <Field key={field.name} {...field} value={query[field.name] ?? field.value} onInput={set(field.name)} />
  );
  const seldom = standing("more");
  const isChanged = Object.keys(query).some((name) => query[name] !== "" && !TURNED.has(name));
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {standing(undefined).map(draw)}
      {seldom.length > 0 && (
        <Menu label="More filters" name="more-filters">
          {seldom.map(draw)}
        </Menu>
      )}
      {filters.map(
        ({ name, label, place }) =>
          place !== undefined &&
          query[name] && (
            <a
              key={`chip ${name}`}
              class="chip"
              href={here({ ...FIRST_PAGE, [name]: undefined })}
              title={`Remove: ${query[name]}`}
            >
              {label} <b>{query[name]}</b> ×
            </a>
          ),
      )}
      {isChanged && <Link href={to(view)} text="Clear" />}
    </form>
  );
}

/** Whether the address has one of the filters. */
export function isFiltered(filters: readonly FilterOf[]): boolean {
  return filters.some(({ name }) => Boolean(route.value.query[name]));
}

/** What the address may have: the values of the filters, and what else the list reads from it. */
function knownBy(filters: readonly FilterOf[], more: KnownQuery): KnownQuery {
  const fields = filters.map(({ name, options }) => [
    name,
    options === undefined ? null : options.map((option) => (typeof option === "string" ? option : option[0])),
  ]);
  return { ...Object.fromEntries(fields), ...more, ...PLACES };
}

type Query = Readonly<Record<string, string>>;

export type BulkOf<T, A> = {
  readonly nameOf: (row: T) => string;
  readonly selected: (rows: readonly T[]) => readonly Action[];
  readonly matching?: (page: A) => readonly Action[];
};

/** What can be done with all rows that match, beside the filters; what destroys them is behind a button. */
function Matching({ actions }: { actions: readonly Action[] }): VNode {
  const safe = actions.filter(({ look }) => look !== "danger");
  const dangerous = actions.filter(({ look }) => look === "danger");
  return (
    <p class="buttons">
      <Actions actions={safe} />
      {dangerous.length > 0 && (
        <Menu label="⋯" title="With all that match" name="matching">
          <Actions actions={dangerous} />
        </Menu>
      )}
    </p>
  );
}

/** Over the end of the list, so that no row moves when it comes. */
function Selected<T, A>(props: {
  bulk: BulkOf<T, A>;
  selection: Selection<T>;
  ending: (action: Action) => Action;
}): VNode {
  const { bulk, selection, ending } = props;
  return (
    <p class="buttons act" role="status">
      <b>{selection.rows.length} selected</b>
      <Actions actions={bulk.selected(selection.rows).map(ending)} />
      <Button label="Select none" name="deselect" onClick={() => selection.setAll(false)} />
    </p>
  );
}

// ---- The page

/** What of the loaded rows is shown, and in which order: see rows.ts. */
export type Arranged<T> = {
  readonly shown: readonly T[];
  /** Shown rows that the filters no longer select. */
  readonly isGone: (row: T) => boolean;
  /** New rows that wait until the user asks for them. */
  readonly unseen: number;
  readonly showAll: () => void;
};

function useLoaded<T>(rows: readonly T[] | null): Arranged<T> {
  return { shown: rows ?? [], isGone: () => false, unseen: 0, showAll: () => {} };
}

type EmptyText = readonly [text: string, line?: string];

/** The page of a list. What is shown of its loaded page `A` is a function of it. */
type ListPageOf<T, A> = {
  readonly title: ComponentChildren;
  /** Beside the title: mostly how many there are. */
  readonly count?: (page: A) => ComponentChildren;
  readonly more?: ComponentChildren | ((page: A | null) => ComponentChildren);
  readonly filters?: readonly FilterOf[];
  /** What the address may have besides the filters and the places. */
  readonly known?: KnownQuery;
  readonly load: (ask: Ask, query: Query) => Promise<A>;
  readonly concerns: Concerns<A> | null;
  readonly rows: (page: A) => readonly T[];
  readonly list: ListOf<T>;
  /** A hook, which keeps shown rows in their places. */
  readonly useRows?: (rows: readonly T[] | null, key: string, page: A | null) => Arranged<T>;
  readonly bulk?: BulkOf<T, A> | false;
  /** When there is no row at all, and when none matches. */
  readonly empty: EmptyText;
  readonly noMatch?: string | EmptyText;
  /** If they are not those of a cursor or of counted pages. */
  readonly turns?: (page: A | null) => Turns;
  /** Between the filters and the rows. */
  readonly above?: (page: A | null) => ComponentChildren;
  readonly below?: (page: A | null) => ComponentChildren;
};

export function ListPage<T extends object, A extends Paged>(props: ListPageOf<T, A>): VNode {
  const { filters = [], known = {}, load, concerns, list, bulk = false } = props;
  const { useRows = useLoaded, noMatch = "There is nothing here.", turns = turnsOf } = props;
  const [changes, setChanges] = useState(0);
  const { view, id, query } = route.value;
  const wrong = wrongQuery(knownBy(filters, known));
  const key = JSON.stringify([id, query, wrong, changes]);
  const { value: page, error } = useLoad(
    key,
    (ask) => (wrong === null ? load(ask, query) : Promise.reject(new Error(wrong))),
    concerns,
  );
  const loaded = page && props.rows(page);
  const { shown, isGone, unseen, showAll } = useRows(loaded, key, page);
  const chosen = useSelection(JSON.stringify([view, id, query]), shown, list.keyOf);
  const selection = bulk === false ? null : { ...chosen, nameOf: bulk.nameOf };
  /** After a change of many rows, none is selected, and the list begins anew. */
  const ending = (action: Action): Action => ({
    ...action,
    then: () => {
      chosen.setAll(false);
      setChanges(changes + 1);
    },
  });
  const isNarrowed = isFiltered(filters) || Boolean(query["cursor"] || query["page"]);
  const noRow = isNarrowed ? (page?.next_cursor ? "No match so far." : noMatch) : props.empty;
  const [text, line] = typeof noRow === "string" ? [noRow] : noRow;
  return (
    <>
      <Head
        more={
          <div class="buttons">
            {unseen > 0 && (
              // In the heading, because it appears while the user reads and must not move the rows.
              <Button
                label={`${unseen}${unseen === loaded?.length ? "+" : ""} new: show`}
                class="news"
                onClick={showAll}
              />
            )}
            {typeof props.more === "function" ? props.more(page) : props.more}
          </div>
        }
      >
        {props.title} {page && props.count && <small>{props.count(page)}</small>}
      </Head>
      <div class="toolbar">
        <Filters filters={filters} />
        {bulk && page && shown.length > 0 && <Matching actions={(bulk.matching?.(page) ?? []).map(ending)} />}
      </div>
      <Fault text={error} />
      {props.above?.(page)}
      <List
        list={list}
        rows={shown}
        isGone={isGone}
        selection={selection}
        empty={page && <Empty text={text} line={line} />}
      />
      {bulk && selection && selection.rows.length > 0 && (
        <Selected bulk={bulk} selection={selection} ending={ending} />
      )}
      <Pager {...turns(page)} />
      {props.below?.(page)}
    </>
  );
}
