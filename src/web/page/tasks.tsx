/**
 * The list of tasks: filters in the URL, pages by cursor, rows that keep their places and can be selected (bulk.tsx acts
 * on them).
 */
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { BulkActions, type Filter } from "./bulk.tsx";
import { type AnyTask, commandOf, countOf, priorityOf, stateOf } from "./format.ts";
import { NodeField } from "./node-field.tsx";
import { Age, Empty, Fault, Field, Select, State, Table, useEvents, useLoad, useTyped } from "./parts.tsx";
import { LIST_SCANNED_MAX } from "../../domain/limits.ts";
import { type Query, route, setQuery, to, wrongQuery } from "./route.ts";
import { mayAct } from "./session.ts";

const PAGE = 50;

/** The filter that stands in the URL. */
function filterOf({ status, type, node, creator, group, tag, q }: Query): Filter {
  const word = (["open", "assigned", "pending", "completed", "failed"] as const).find(
    (one) => one === status,
  );
  return { status: word, task_type: type, node_id: node, creator_node: creator, group, tag, q };
}

const STATES = [
  ["", "any"],
  ["pending", "unfinished"],
  ["open", "open"],
  ["assigned", "assigned"],
  ["completed", "completed"],
  ["failed", "failed"],
] as const;

export function Tasks(): JSX.Element {
  const { query } = route.value;
  const filter = filterOf(query);
  const [changes, setChanges] = useState(0);
  const status = STATES.map(([word]) => word);
  const words = { q: null, type: null, node: null, creator: null, group: null, tag: null };
  const wrong = wrongQuery({ ...words, status, cursor: null });
  const key = JSON.stringify([filter, query["cursor"], changes, wrong]);
  const loaded = useLoad(key, (from, signal) =>
    wrong === null
      ? from.tasks.list({ ...filter, per_page: PAGE, cursor: query["cursor"] }, { signal })
      : Promise.reject(new Error(wrong)),
  );
  useEvents((event) => event.kind.startsWith("task."), loaded);
  const set = useTyped((changed) => setQuery({ ...changed, cursor: undefined }));
  const { error } = loaded;
  const value = wrong === null ? loaded.value : null;
  const rows = useSteady(key, value?.tasks ?? null);
  const isFiltered = Object.values(filter).some(Boolean);
  const isSearch = [filter.q, filter.task_type, filter.creator_node, filter.group, filter.tag].some(Boolean);
  const selection = useSelection(key, rows.shown);
  return (
    <>
      <header class="head">
        <h1>Tasks {value?.total != null && <small>{countOf(value.total)}</small>}</h1>
        {rows.unseen > 0 && (
          // In the head, because it appears while the user reads and must not move the rows.
          <button type="button" class="news" onClick={rows.showAll}>
            {rows.unseen}
            {rows.unseen === PAGE && "+"} new: show
          </button>
        )}
        {mayAct.value && (
          <a class="button primary" href={to("new")}>
            New task
          </a>
        )}
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Field label="Title" name="q" type="search" value={query["q"]} onInput={set("q")} />
        <Select
          label="State"
          name="status"
          value={query["status"]}
          options={STATES}
          onInput={set("status")}
        />
        <Field label="Type" name="type" value={query["type"]} onInput={set("type")} />
        <NodeField label="Node" name="node" value={query["node"]} onInput={set("node")} />
        <NodeField label="Creator" name="creator" value={query["creator"]} onInput={set("creator")} />
        <Field label="Group" name="group" value={query["group"]} onInput={set("group")} />
        <Field label="Tag" name="tag" value={query["tag"]} onInput={set("tag")} />
        {isFiltered && (
          <a class="button" href={to("tasks")}>
            Clear
          </a>
        )}
      </form>
      <Fault text={error} />
      {mayAct.value && rows.shown.length > 0 && (
        <BulkActions
          filter={filter}
          total={value?.total ?? null}
          selected={selection.tasks}
          onClear={selection.clear}
          onDone={loaded.reload}
          onClose={() => {
            selection.clear();
            setChanges(changes + 1);
          }}
        />
      )}
      {rows.shown.length > 0 ? (
        <TaskTable tasks={rows.shown} gone={rows.gone} {...(mayAct.value && { selection })} />
      ) : (
        value &&
        (isFiltered ? (
          <Empty text={value.next_cursor === null ? "No task matches." : "No match so far."} />
        ) : (
          <Empty
            text="No tasks yet. Create one here, or from a shell:"
            line={commandOf("task", "add", "Say hello", "--description", "To everyone")}
          />
        ))
      )}
      {isSearch && value?.next_cursor && rows.shown.length < PAGE && (
        <p role="status">
          The search has examined {countOf(LIST_SCANNED_MAX)} tasks. <b>Older</b> continues with those before
          them.
        </p>
      )}
      <nav class="pager" aria-label="Pages">
        {query["cursor"] && <a href={to("tasks", "", { ...query, cursor: undefined })}>Newest</a>}
        {value?.next_cursor && (
          <a rel="next" href={to("tasks", "", { ...query, cursor: value.next_cursor })}>
            Older
          </a>
        )}
      </nav>
    </>
  );
}

type Rows = {
  readonly shown: readonly AnyTask[];
  /** The ids of shown tasks that the filters no longer select. */
  readonly gone: ReadonlySet<string>;
  readonly unseen: number;
  readonly showAll: () => void;
};

/** Keeps the shown rows in place; new rows wait until the user asks for them. */
function useSteady(key: string, tasks: readonly AnyTask[] | null): Rows {
  const [order, setOrder] = useState<{ key: string; tasks: readonly AnyTask[] }>({ key: "", tasks: [] });
  const isNew = tasks !== null && (order.key !== key || order.tasks.length === 0);
  useEffect(() => {
    if (isNew && tasks.length > 0) setOrder({ key, tasks });
  }, [key, isNew, tasks]);
  if (tasks === null || isNew) {
    return {
      shown: tasks ?? (order.key === key ? order.tasks : []),
      gone: NONE,
      unseen: 0,
      showAll: () => {},
    };
  }
  const current = new Map(tasks.map((task) => [task.task_id, task]));
  const known = new Set(order.tasks.map(({ task_id }) => task_id));
  const oldest = order.tasks.at(-1)?.created_at ?? "";
  return {
    shown: order.tasks.map((task) => current.get(task.task_id) ?? task),
    // New rows move the last ones to the next page; these have not changed.
    gone: new Set(
      order.tasks
        .filter((task) => !current.has(task.task_id) && task.created_at >= (tasks.at(-1)?.created_at ?? ""))
        .map(({ task_id }) => task_id),
    ),
    unseen: tasks.filter((task) => !known.has(task.task_id) && task.created_at >= oldest).length,
    showAll: () => setOrder({ key, tasks }),
  };
}

const NONE: ReadonlySet<string> = new Set();

// ---- Rows that are selected

type Selection = {
  readonly tasks: readonly AnyTask[];
  readonly has: (task: AnyTask) => boolean;
  /** Selects or deselects a task; as a range, also all between it and the one before. */
  readonly toggle: (task: AnyTask, isRange: boolean) => void;
  readonly clear: () => void;
};

function useSelection(key: string, rows: readonly AnyTask[]): Selection {
  const [chosen, setChosen] = useState<{ key: string; ids: ReadonlySet<string> }>({ key, ids: NONE });
  const last = useRef("");
  const ids = chosen.key === key ? chosen.ids : NONE;
  const placeOf = (taskId: string): number => rows.findIndex(({ task_id }) => task_id === taskId);
  return {
    tasks: rows.filter(({ task_id }) => ids.has(task_id)),
    has: ({ task_id }) => ids.has(task_id),
    toggle({ task_id }, isRange) {
      const to = placeOf(task_id);
      const from = isRange ? placeOf(last.current) : -1;
      const between =
        from < 0
          ? [task_id]
          : rows.slice(Math.min(from, to), Math.max(from, to) + 1).map((row) => row.task_id);
      const isOn = from >= 0 || !ids.has(task_id);
      const next = new Set(ids);
      for (const id of between) isOn ? next.add(id) : next.delete(id);
      last.current = task_id;
      setChosen({ key, ids: next });
    },
    clear: () => setChosen({ key, ids: NONE }),
  };
}

/** @param selection if rows can be selected: by a click, or with `x` on the row that has the focus */
export function TaskTable(props: {
  tasks: readonly AnyTask[];
  gone?: ReadonlySet<string>;
  selection?: Selection;
}): JSX.Element {
  const { tasks, gone, selection } = props;
  const onKey = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    if (event.key.toLowerCase() !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...event.currentTarget.querySelectorAll("tbody tr")];
    const { target } = event;
    const task = tasks[rows.findIndex((row) => target instanceof Node && row.contains(target))];
    if (task) selection?.toggle(task, event.shiftKey);
  };
  return (
    <div onKeyDown={onKey}>
      <Table label="Tasks" head={["State", "Title", "Type", "Priority", "Node", "LUX", "Created", "Changed"]}>
        {tasks.map((task) => (
          <tr key={task.task_id} class={gone?.has(task.task_id) ? "gone" : undefined}>
            <td>
              {selection && (
                <input
                  type="checkbox"
                  data-do="select"
                  aria-label={`Select ${task.title}`}
                  checked={selection.has(task)}
                  onClick={(event) => selection.toggle(task, event.shiftKey)}
                />
              )}{" "}
              <State word={stateOf(task)} />
            </td>
            <td class="wide">
              <a class="row" href={to("tasks", task.task_id)} title={task.title}>
                {task.title}
              </a>
              {task.attempts > 0 && <small> {task.attempts}×</small>}
              <Labels task={task} />
              {task.failure !== null && stateOf(task) === "failed" && (
                <div class="why" title={task.failure.message ?? undefined}>
                  {task.failure.message ?? task.failure.kind}
                </div>
              )}
            </td>
            <td class="id" title={task.task_type ?? undefined}>
              {task.task_type ?? <span class="quiet">–</span>}
            </td>
            <td>{priorityOf(task)}</td>
            <td class="id">
              <NodeLink
                name={
                  task.assigned_node ?? (stateOf(task) === "failed" ? (task.failure?.node_id ?? null) : null)
                }
              />
            </td>
            <td class="number">{task.lux_reward === 0 ? "" : countOf(task.lux_reward)}</td>
            <td>
              <Age at={task.created_at} />
            </td>
            <td>{task.updated_at !== task.created_at && <Age at={task.updated_at} />}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

/** The group and the tags of a task, each as a link to the others that have it. */
export function Labels({ task: { group, tags = [] } }: { task: AnyTask }): JSX.Element | null {
  if (group === undefined && tags.length === 0) return null;
  return (
    <small class="labels">
      {group !== undefined && <a href={to("groups", group)}>{group}</a>}
      {tags.map((tag) => (
        <a key={tag} href={to("tasks", "", { tag })}>
          #{tag}
        </a>
      ))}
    </small>
  );
}

function NodeLink({ name }: { name: string | null }): JSX.Element {
  return name === null ? (
    <span class="quiet">–</span>
  ) : (
    <a href={to("nodes", name)} title={name}>
      {name}
    </a>
  );
}
