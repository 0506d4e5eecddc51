/**
 * The list of tasks: filters in the URL, pages by cursor, rows that keep their places and can be selected (bulk.tsx acts
 * on them).
 */
import { Fragment, type TargetedKeyboardEvent, type VNode, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { BulkActions, type Filter, type Total } from "./bulk.tsx";
import { type Summary, commandOf, countOf, noteOf, oneOf, priorityOf, stateOf } from "./format.ts";
import { now } from "./clock.ts";
import { NodeField, TypeField } from "./suggest-field.tsx";
import {
  Age,
  Button,
  Empty,
  Fault,
  Field,
  Filters,
  Head,
  NodeLink,
  None,
  Pager,
  Select,
  SelectRow,
  State,
  Table,
  TaskLink,
  TimeField,
  useFilters,
  useList,
} from "./parts.tsx";
import { LIST_SCANNED_MAX } from "../../domain/list-limits.ts";
import { type Query, here, route, to } from "./route.ts";
import { type Ask, mayAct } from "./session.ts";
import { isoOf } from "./times.ts";

const PAGE = 50;

/** The states of the form: in the URL, in words, and for the API. */
const STATES: readonly (readonly [inUrl: string, words: string, filter: Filter])[] = [
  ["", "any", {}],
  ["pending", "unfinished", { status: "pending" }],
  ["open", "open", { status: "open" }],
  ["ready", "open, ready", { ready: "1" }],
  ["waiting", "waiting", { waiting: "any" }],
  ["waiting-time", "waiting for a time", { waiting: "time" }],
  ["waiting-tasks", "waiting for tasks", { waiting: "tasks" }],
  ["waiting-answer", "waiting for an answer", { waiting: "answer" }],
  ["assigned", "assigned", { status: "assigned" }],
  ["completed", "completed", { status: "completed" }],
  ["failed", "failed", { status: "failed", order: "updated" }],
];

const KINDS = ["failed", "timed_out", "offline", "cancelled", "expired", "dependency", "budget"] as const;
const KIND_OPTIONS = [["", "any"] as const, ...KINDS.map((kind) => [kind, kind.replace("_", " ")] as const)];

const HOUR_S = 3_600;
const LASTS: readonly (readonly [string, string])[] = [
  ["", "ever"],
  [String(HOUR_S / 4), "in the last 15 min"],
  [String(HOUR_S), "in the last hour"],
  [String(24 * HOUR_S), "in the last 24 h"],
  [String(7 * 24 * HOUR_S), "in the last 7 days"],
];

/** What the list reads from the URL: any value, or one of these words. */
const KNOWN = {
  ...{ q: null, type: null, node: null, failed_by: null, creator: null, group: null, tag: null },
  status: STATES.map(([word]) => word),
  kind: ["", ...KINDS],
  last: LASTS.map(([seconds]) => seconds),
  ...{ since: null, until: null, failure_group: null, cursor: null },
};

/** The filter that stands in the URL. What is relative in it is relative to now. */
function filterOf(query: Query): Filter {
  const { status = "", type, node, failed_by, creator, group, tag, kind, last, since, until, q } = query;
  return {
    ...STATES.find(([word]) => word === status)?.[2],
    ...(failed_by && { failed_by, order: "updated" as const }),
    task_type: type,
    node_id: node,
    creator_node: creator,
    group,
    tag,
    failure_group: query["failure_group"],
    failure_kind: oneOf(KINDS, kind),
    since: last ? new Date(now.value - Number(last) * 1_000).toISOString() : isoOf(since),
    until: isoOf(until),
    q,
  };
}

export function Tasks(): VNode {
  const { query } = route.value;
  const [changes, setChanges] = useState(0);
  const key = JSON.stringify([query, changes]);
  const load = async (ask: Ask) => {
    const filter = filterOf(query);
    const page = await ask("task/list?fields=summary", {
      ...filter,
      per_page: PAGE,
      cursor: query["cursor"],
    });
    return { filter, ...page, total: await totalOf(filter, page.total, ask) };
  };
  const loaded = useList(KNOWN, load, /^task\./, changes);
  const field = useFilters();
  const { value, error } = loaded;
  const filter = value?.filter ?? {};
  const rows = useSteady(key, value?.tasks ?? null, filter.order === "updated");
  const isFiltered = Object.entries(query).some(([name, given]) => name !== "cursor" && given !== "");
  const selection = useSelection(key, rows.shown);
  return (
    <>
      <Head
        more={
          <>
            {rows.unseen > 0 && (
              // In the head, because it appears while the user reads and must not move the rows.
              <Button class="news" onClick={rows.showAll}>
                {rows.unseen}
                {rows.unseen === PAGE && "+"} new: show
              </Button>
            )}
            {mayAct() && (
              <a class="button primary" href={to("new")}>
                New task
              </a>
            )}
          </>
        }
      >
        Tasks{" "}
        {value && (
          <small>
            {value.total.isExact ? "" : "more than "}
            {countOf(value.total.count)}
          </small>
        )}
      </Head>
      <Filters isFiltered={isFiltered}>
        <Field label="Title" type="search" {...field("q")} />
        <Select
          label="State"
          options={STATES.map(([word, label]) => [word, label] as const)}
          {...field("status")}
        />
        <TypeField label="Type" {...field("type")} />
        <NodeField label="Node" {...field("node")} />
        <Select label="Changed" options={LASTS} {...field("last")} />
        <details class="more" open={MORE.some((name) => Boolean(query[name]))}>
          <summary>More filters</summary>
          <div class="row-of-fields">
            <NodeField label="Failed at node" {...field("failed_by")} />
            <Select label="Kind of failure" options={KIND_OPTIONS} {...field("kind")} />
            <Field label="Group" {...field("group")} />
            <Field label="Tag" {...field("tag")} />
            <NodeField label="Creator" {...field("creator")} />
            <TimeField label="Changed since" {...field("since")} />
            <TimeField label="Changed before" {...field("until")} />
          </div>
        </details>
      </Filters>
      <Fault text={error} />
      {mayAct() && rows.shown.length > 0 && (
        <BulkActions
          filter={filter}
          total={value?.total ?? null}
          selected={selection.tasks}
          onClear={selection.clear}
          onDone={() => {
            selection.clear();
            setChanges(changes + 1);
          }}
        />
      )}
      {rows.shown.length > 0 ? (
        <TaskTable tasks={rows.shown} gone={rows.gone} {...(mayAct() && { selection })} />
      ) : (
        value &&
        (isFiltered ? (
          <Empty text={value.next_cursor === null ? "No task matches." : "No match so far."} />
        ) : (
          <Empty
            text="No tasks yet. Create one here, or from a shell:"
            line={commandOf("task add 'Say hello' --description 'To everyone'")}
          />
        ))
      )}
      {isFiltered && value?.next_cursor && rows.shown.length < PAGE && (
        <p role="status">
          The search has examined {countOf(LIST_SCANNED_MAX)} tasks. <b>Older</b> continues with those before
          them.
        </p>
      )}
      <Pager
        back={query["cursor"] && ["Newest", here({ cursor: undefined })]}
        next={value?.next_cursor && ["Older", here({ cursor: value.next_cursor })]}
      />
    </>
  );
}

/** The filters that are seldom used. */
const MORE = ["failed_by", "kind", "group", "tag", "creator", "since", "until"];

/** How many match: as the list says, or counted. */
async function totalOf(filter: Filter, total: number | null, ask: Ask): Promise<Total> {
  if (total !== null) return { count: total, isExact: true };
  const { order, ...counted } = filter;
  const { count, exact } = await ask("task/count", counted);
  return { count, isExact: exact };
}

type Rows = {
  readonly shown: readonly Summary[];
  /** The ids of shown tasks that the filters no longer select. */
  readonly gone: ReadonlySet<string>;
  readonly unseen: number;
  readonly showAll: () => void;
};

/**
 * Keeps the shown rows in place; new rows wait until the user asks for them.
 * @param isByChange whether the list is ordered by the last change, instead of by creation
 */
function useSteady(key: string, tasks: readonly Summary[] | null, isByChange: boolean): Rows {
  const placeOf = ({ created_at, updated_at }: Summary): string => (isByChange ? updated_at : created_at);
  const [order, setOrder] = useState<{ key: string; tasks: readonly Summary[] }>({ key: "", tasks: [] });
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
  const last = order.tasks.at(-1);
  const oldest = last ? placeOf(last) : "";
  const lowest = tasks.at(-1);
  return {
    shown: order.tasks.map((task) => current.get(task.task_id) ?? task),
    // New rows move the last ones to the next page; these have not changed.
    gone: new Set(
      order.tasks
        .filter((task) => !current.has(task.task_id) && placeOf(task) >= (lowest ? placeOf(lowest) : ""))
        .map(({ task_id }) => task_id),
    ),
    unseen: tasks.filter((task) => !known.has(task.task_id) && placeOf(task) >= oldest).length,
    showAll: () => setOrder({ key, tasks }),
  };
}

const NONE: ReadonlySet<string> = new Set();

// ---- Rows that are selected

type Selection = {
  readonly tasks: readonly Summary[];
  readonly has: (task: Summary) => boolean;
  /** Selects or deselects a task; as a range, also all between it and the one before. */
  readonly toggle: (task: Summary, isRange: boolean) => void;
  readonly clear: () => void;
};

function useSelection(key: string, rows: readonly Summary[]): Selection {
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
  tasks: readonly Summary[];
  gone?: ReadonlySet<string>;
  selection?: Selection;
  /** On the page of a node, which need not be named in each row. */
  isOfNode?: boolean;
}): VNode {
  const { tasks, gone, selection, isOfNode = false } = props;
  const onKey = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    if (event.key.toLowerCase() !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...event.currentTarget.querySelectorAll("tbody tr")];
    const { target } = event;
    const task = tasks[rows.findIndex((row) => target instanceof Node && row.contains(target))];
    if (task) selection?.toggle(task, event.shiftKey);
  };
  return (
    <div onKeyDown={onKey}>
      <Table
        label="Tasks"
        rows={tasks}
        keyOf={({ task_id }) => task_id}
        classOf={({ task_id }) => (gone?.has(task_id) ? "gone" : "")}
        columns={[
          [
            "State",
            (task) => (
              <>
                {selection && (
                  <SelectRow
                    name={task.title}
                    isOn={selection.has(task)}
                    toggle={(withShift) => selection.toggle(task, withShift)}
                  />
                )}{" "}
                <State word={stateOf(task)} />
              </>
            ),
          ],
          ["Title", titleOf, "wide"],
          ["Type", typeOf, "id"],
          ["Priority", priorityOf],
          ...(isOfNode ? [] : [["Node", nodeOf, "id"] as const]),
          ["LUX", ({ lux_reward: reward }) => (reward === 0 ? "" : countOf(reward)), "number"],
          ["Created", (task) => <Age at={task.created_at} />],
          ["Changed", (task) => task.updated_at !== task.created_at && <Age at={task.updated_at} />],
        ]}
      />
    </div>
  );
}

function titleOf(task: Summary): VNode {
  return (
    <>
      <TaskLink task={task} isRow />
      {task.attempts > 0 && <small title="failed attempts"> {task.attempts}×</small>}
      <Labels task={task} />
      <Why text={whyOf(task)} />
    </>
  );
}

export function typeOf({ task_type: type }: Summary): VNode {
  return type === null ? <None /> : <span title={type}>{type}</span>;
}

/** The node that has the task, or at which it failed. */
function nodeOf(task: Summary): VNode {
  const failedAt = stateOf(task) === "failed" ? task.failure?.node_id : null;
  return <NodeLink id={task.assigned_node ?? failedAt ?? null} />;
}

function whyOf(task: Summary): string {
  if (stateOf(task) !== "failed" || task.failure === null) return noteOf(task);
  return task.failure.message ?? task.failure.kind;
}

/** In a row: why a task failed, what it waits for, or what its node says. */
function Why({ text }: { text: string }): VNode | null {
  return text === "" ? null : (
    <div class="why" title={text}>
      {text}
    </div>
  );
}

/** The group and the tags of a task, each as a link to the others that have it. */
export function Labels({
  task: { group, tags = [] },
}: {
  task: Pick<Summary, "group" | "tags">;
}): VNode | null {
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
