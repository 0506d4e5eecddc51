/**
 * The list of tasks: filters in the URL, pages by cursor, rows that keep their places, and bulk actions on all tasks
 * that match.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { BatchOperation, RequestOf } from "../../client/luxhub.ts";
import { type AnyTask, commandOf, countOf, stateOf } from "./format.ts";
import { NodeField } from "./node-field.tsx";
import {
  Age,
  Empty,
  Fault,
  Field,
  Modal,
  Select,
  State,
  Table,
  askToConfirm,
  useEvents,
  useLoad,
  useTyped,
} from "./parts.tsx";
import { LIST_COUNTED_MAX, LIST_SCANNED_MAX } from "../../domain/limits.ts";
import { type Query, route, setQuery, to, wrongQuery } from "./route.ts";
import { describe, hub, isAdmin, mayAct } from "./session.ts";

const PAGE = 50;

type Filter = RequestOf<"task/list">;

/** The filter that stands in the URL. */
function filterOf({ status, type, node, creator, q }: Query): Filter {
  const word = (["open", "assigned", "completed", "failed"] as const).find((one) => one === status);
  return { status: word, task_type: type, node_id: node, creator_node: creator, q };
}

const STATES = [
  ["", "any"],
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
  const wrong = wrongQuery({ q: null, status, type: null, node: null, creator: null, cursor: null });
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
  const isSearch = Boolean(filter.q || filter.task_type || filter.creator_node);
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
        {isFiltered && (
          <a class="button" href={to("tasks")}>
            Clear
          </a>
        )}
      </form>
      <Fault text={error} />
      {rows.shown.length > 0 ? (
        <TaskTable tasks={rows.shown} gone={rows.gone} />
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
      {mayAct.value && rows.shown.length > 0 && (
        <BulkActions
          filter={filter}
          total={value?.total ?? null}
          onDone={loaded.reload}
          onClose={() => setChanges(changes + 1)}
        />
      )}
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

export function TaskTable(props: { tasks: readonly AnyTask[]; gone?: ReadonlySet<string> }): JSX.Element {
  return (
    <Table label="Tasks" head={["State", "Title", "Type", "Priority", "Node", "LUX", "Created", "Changed"]}>
      {props.tasks.map((task) => (
        <tr key={task.task_id} class={props.gone?.has(task.task_id) ? "gone" : undefined}>
          <td>
            <State word={stateOf(task)} />
          </td>
          <td class="wide">
            <a class="row" href={to("tasks", task.task_id)}>
              {task.title}
            </a>
            {task.attempts > 0 && <small> {task.attempts}×</small>}
            {task.failure !== null && stateOf(task) === "failed" && (
              <div class="why" title={task.failure.message ?? undefined}>
                {task.failure.message ?? task.failure.kind}
              </div>
            )}
          </td>
          <td class="names">{task.task_type ?? <span class="quiet">–</span>}</td>
          <td>{String(task.priority)}</td>
          <td>
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
          <td>
            <Age at={task.updated_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function NodeLink({ name }: { name: string | null }): JSX.Element {
  return name === null ? <span class="quiet">–</span> : <a href={to("nodes", name)}>{name}</a>;
}

// ---- Bulk actions: on all tasks that match

type BulkAction = { readonly path: BatchOperation; readonly verb: string; readonly done: string };

const BULK_ACTIONS: readonly BulkAction[] = [
  { path: "task/retry", verb: "Retry", done: "retried" },
  { path: "task/cancel", verb: "Cancel", done: "cancelled" },
  { path: "task/delete", verb: "Delete", done: "deleted" },
];

/** Whether an action suits a filter: only failed tasks can be retried, and only unfinished ones cancelled. */
function suits(path: string, status: Filter["status"]): boolean {
  if (path === "task/retry") return status === "failed";
  if (path === "task/cancel") return status === "open" || status === "assigned";
  return isAdmin.value;
}

type Progress = {
  readonly action: BulkAction;
  readonly done: number;
  readonly refused: number;
  /** How many tasks matched at first; null if the hub has not counted them. */
  readonly total: number | null;
  readonly end: string;
};

/** The filter in words: "failed, type summarise"; empty without one. */
function wordsOf({ status, task_type, node_id, creator_node, q }: Filter): string {
  const words = { "": status, type: task_type, node: node_id, creator: creator_node, title: q };
  return Object.entries(words)
    .flatMap(([name, value]) => (value ? [`${name} ${String(value)}`.trim()] : []))
    .join(", ");
}

/**
 * @param total how many tasks match; null if the hub has not counted them
 * @param onClose the user has seen what was done: the rows may change their places
 */
function BulkActions(props: {
  filter: Filter;
  total: number | null;
  onDone: () => void;
  onClose: () => void;
}): JSX.Element | null {
  const { filter, total, onDone, onClose } = props;
  const [progress, setProgress] = useState<Progress | null>(null);
  const abort = useRef<AbortController | null>(null);
  const actions = BULK_ACTIONS.filter(({ path }) => suits(path, filter.status));
  useEffect(() => () => abort.current?.abort(), []);
  const start = async (action: BulkAction): Promise<void> => {
    const words = wordsOf(filter);
    const number = total === null ? `more than ${countOf(LIST_COUNTED_MAX)}` : countOf(total);
    const isYes = await askToConfirm(
      words === ""
        ? `${action.verb} all ${number} tasks of this hub?`
        : `${action.verb} the ${number} tasks that match (${words}), also on other pages?`,
      `${action.verb} ${number}`,
      words === "" ? String(total ?? "all") : null,
    );
    if (!isYes) return;
    const ended = new AbortController();
    abort.current = ended;
    const report = (state: Omit<Progress, "action">): void => setProgress({ action, ...state });
    await changeAll(action, filter, ended.signal, report);
    onDone();
  };
  const close = (): void => {
    abort.current?.abort();
    setProgress(null);
    onClose();
  };
  if (progress !== null) {
    const { action, done, refused, total, end } = progress;
    return (
      <Modal title={`${action.verb} all that match`} onClose={close}>
        <p role="status">
          {countOf(done)} {action.done}
          {refused > 0 && `, ${countOf(refused)} rejected`}
          {end && `. ${end}`}
        </p>
        {end === "" && total !== null && (
          <p>
            <progress aria-label="Done so far" max={Math.max(1, total)} value={done + refused} /> of{" "}
            {countOf(total)}
          </p>
        )}
        <p class="buttons">
          <button type="button" data-do="close" onClick={close}>
            {end === "" ? "Stop" : "Close"}
          </button>
        </p>
      </Modal>
    );
  }
  if (actions.length === 0) return null;
  return (
    <p class="buttons together">
      <span>All that match:</span>
      {actions.map((action) => (
        <button
          key={action.path}
          type="button"
          data-do={`${action.path}-all`}
          onClick={() => void start(action)}
        >
          {action.verb} all
        </button>
      ))}
    </p>
  );
}

/**
 * Changes a page at a time, each in one batch, so that the user can stop it and the hub serves other requests in
 * between.
 */
async function changeAll(
  { path }: BulkAction,
  filter: Filter,
  signal: AbortSignal,
  report: (state: Omit<Progress, "action">) => void,
): Promise<void> {
  let state = { done: 0, refused: 0, total: null as number | null, end: "" };
  let cursor: string | undefined;
  report(state);
  try {
    while (state.end === "") {
      const page = await hub.value.tasks.list({ ...filter, per_page: PAGE, cursor }, { signal });
      const requests = page.tasks.map(({ task_id }) => ({ path, body: { task_id } }));
      const { answers } =
        requests.length === 0 ? { answers: [] } : await hub.value.call("batch", { requests }, { signal });
      const accepted = answers.filter(({ status }) => status < 400).length;
      state = {
        done: state.done + accepted,
        refused: state.refused + answers.length - accepted,
        total: cursor === undefined ? page.total : state.total,
        end: page.next_cursor === null ? "Done." : "",
      };
      report(state);
      cursor = page.next_cursor ?? undefined;
    }
  } catch (error) {
    if (!signal.aborted) report({ ...state, end: describe(error) });
  }
}
