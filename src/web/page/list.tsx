/** The rows of a list, drawn from its declaration. Must not: load anything. */
import { type ComponentChildren, Fragment, type TargetedKeyboardEvent, type VNode, h } from "preact";
import { useRef, useState } from "preact/hooks";
import { type ActionItem, Actions } from "./action.tsx";
import { Menu } from "./parts.tsx";
import { here, route } from "./route.ts";

// ---- Tables

/** A column: its head, what is in a cell, and how it looks (`number`, `name`, `names`, `wide`, `id`, `buttons`). */
type Column<T> = readonly [
  head: string,
  cell: (row: T, index: number) => ComponentChildren,
  look?: string,
  sort?: Sort,
];

/** The word of the address (`order`) by which the list is sorted by a column; empty: the list is sorted so by itself. */
type Sort = { readonly order: string; readonly isAscending?: boolean };

export type TableOf<T> = {
  readonly label: string;
  readonly keyOf: (row: T) => string | number;
  readonly columns: readonly Column<T>[];
  readonly actions?: ((row: T) => readonly ActionItem[]) | false;
  readonly isGone?: (row: T) => boolean;
  /** Where the drawn rows are kept, if they never change. */
  readonly drawn?: () => WeakMap<T & object, VNode>;
  /** Of the table as a whole (`log`). */
  readonly look?: string;
};

type ItemsOf<T> = {
  readonly look: string;
  readonly keyOf: (row: T) => string | number;
  readonly item: (row: T) => ComponentChildren;
  readonly classOf?: (row: T) => string;
};

export type ListOf<T> = TableOf<T> | ItemsOf<T>;

/** The rows of a list; or what there is to say when there are none: a sentence, or more than that. */
export function List<T extends object>(props: {
  list: ListOf<T>;
  rows: readonly T[];
  empty?: ComponentChildren;
  selection?: Selection<T> | null;
  isGone?: (row: T) => boolean;
}): VNode {
  const { list, rows, empty, selection = null, isGone } = props;
  if (rows.length === 0) return typeof empty === "string" ? <p class="quiet">{empty}</p> : <>{empty}</>;
  if ("columns" in list) return <Table list={list} rows={rows} selection={selection} isGone={isGone} />;
  return (
    <ul class={list.look}>
      {rows.map((row) => (
        <li key={list.keyOf(row)} class={list.classOf?.(row)}>
          {list.item(row)}
        </li>
      ))}
    </ul>
  );
}

/**
 * A wide table scrolls within its own region, also by keyboard. In a narrow window each row is a block whose cells show
 * their column heads.
 */
function Table<T extends object>(props: {
  list: TableOf<T>;
  rows: readonly T[];
  selection: Selection<T> | null;
  isGone: ((row: T) => boolean) | undefined;
}): VNode {
  const { list, rows, selection } = props;
  const { label, keyOf, actions } = list;
  const isGone = (row: T): boolean => props.isGone?.(row) || list.isGone?.(row) || false;
  const isAll = selection !== null && rows.every(selection.has);
  const drawn = list.drawn?.();
  const columns: readonly Column<T>[] =
    actions && rows.some((row) => actions(row).some(Boolean))
      ? [...list.columns, ["Actions", (row) => <RowActions actions={actions(row)} />, "buttons"]]
      : list.columns;
  const draw = (row: T, index: number): VNode => (
    <tr key={keyOf(row)} class={isGone(row) ? "gone" : undefined}>
      {columns.map(([head, cell, look], column) => (
        <td class={look} data-head={head}>
          {column === 0 && selection !== null && (
            <>
              <SelectBox
                name="select"
                of={selection.nameOf(row)}
                checked={selection.has(row)}
                onClick={({ shiftKey }) => selection.toggle(row, shiftKey)}
              />{" "}
            </>
          )}
          {cell(row, index)}
        </td>
      ))}
    </tr>
  );
  const onKey = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    if (event.key.toLowerCase() !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
    const lines = [...event.currentTarget.querySelectorAll("tbody tr")];
    const { target } = event;
    const row = rows[lines.findIndex((line) => target instanceof Node && line.contains(target))];
    if (row) selection?.toggle(row, event.shiftKey);
  };
  return (
    <div
      class={list.look ? `table ${list.look}` : "table"}
      role="region"
      aria-label={label}
      tabIndex={0}
      onKeyDown={onKey}
    >
      <table>
        <thead>
          <tr>
            {columns.map(([head, , look, sort], column) => (
              <HeadCell head={head} look={look ?? ""} sort={sort}>
                {column === 0 && selection !== null && (
                  <>
                    <SelectBox
                      name="select-page"
                      of="all rows of this page"
                      checked={isAll}
                      onClick={() => selection.setAll(!isAll)}
                    />{" "}
                  </>
                )}
              </HeadCell>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const line = drawn?.get(row) ?? draw(row, index);
            drawn?.set(row, line);
            return line;
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Several actions of a row are a menu, so that a list is no wall of buttons. */
function RowActions({ actions }: { actions: readonly ActionItem[] }): VNode {
  const offered = actions.filter(Boolean);
  const items = <Actions actions={offered} />;
  if (offered.length <= 1) return items;
  return (
    <Menu label="⋯" title="Actions" name="actions">
      {items}
    </Menu>
  );
}

function HeadCell(props: {
  head: string;
  look: string;
  sort: Sort | undefined;
  children: ComponentChildren;
}): VNode {
  const { head, look, sort, children } = props;
  const isSorted = sort !== undefined && (route.value.query["order"] ?? "") === sort.order;
  const order = isSorted ? (sort.isAscending ? "ascending" : "descending") : undefined;
  return (
    <th scope="col" class={look.startsWith("number") ? "number" : ""} aria-sort={order}>
      {children}
      {sort ? <a href={here({ order: sort.order, cursor: undefined })}>{head}</a> : head}
    </th>
  );
}

// ---- Rows that are selected

/** Rows that the user selects: by a click, or with `x` on the row that has the focus. */
export type Selection<T> = {
  readonly rows: readonly T[];
  readonly nameOf: (row: T) => string;
  readonly has: (row: T) => boolean;
  /** Selects or deselects a row; as a range, also all between it and the one before. */
  readonly toggle: (row: T, isRange: boolean) => void;
  readonly setAll: (isOn: boolean) => void;
};

type Ids = ReadonlySet<string | number>;
const NONE: Ids = new Set();

/** What was selected last: it is there again when the user comes Back from one of the rows. */
let left = { key: "", ids: NONE };

export function useSelection<T>(
  key: string,
  rows: readonly T[],
  keyOf: (row: T) => string | number,
): Omit<Selection<T>, "nameOf"> {
  // A page to which the user comes by a link has no state.
  const [chosen, setChosen] = useState(history.state === null ? { key, ids: NONE } : left);
  left = chosen;
  const last = useRef<string | number>("");
  const idsOf = (state: typeof chosen) => (state.key === key ? state.ids : NONE);
  const ids = idsOf(chosen);
  const placeOf = (id: string | number): number => rows.findIndex((row) => keyOf(row) === id);
  return {
    rows: rows.filter((row) => ids.has(keyOf(row))),
    has: (row) => ids.has(keyOf(row)),
    toggle(row, isRange) {
      const id = keyOf(row);
      const end = placeOf(id);
      const begin = isRange ? placeOf(last.current) : -1;
      const range = begin < 0 ? [id] : rows.slice(Math.min(begin, end), Math.max(begin, end) + 1).map(keyOf);
      last.current = id;
      setChosen((old) => {
        const ids = new Set(idsOf(old));
        const isOn = begin >= 0 || !ids.has(id);
        for (const each of range) isOn ? ids.add(each) : ids.delete(each);
        return { key, ids };
      });
    },
    setAll: (isOn) => setChosen({ key, ids: isOn ? new Set(rows.map(keyOf)) : NONE }),
  };
}

function SelectBox({
  of,
  ...props
}: {
  name: string;
  of: string;
  checked: boolean;
  onClick: (event: MouseEvent) => void;
}): VNode {
  const { name, ...attributes } = props;
  return <input type="checkbox" data-do={name} aria-label={`Select ${of}`} {...attributes} />;
}
