/** The list of tasks. */
import { type ComponentChildren, type VNode, h } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { LIST_SCANNED_MAX } from "../../domain/list-limits.ts";
import { FAILURE_KINDS, isCancelled } from "../../domain/failure-kinds.ts";
import { type Filter, bulkActions } from "./bulk.ts";
import { nodeNames, taskTypes } from "./field.tsx";
import { type Summary, commandOf, countOf, noteOf, priorityOf, stateOf } from "./format.ts";
import { HELD_WORDS } from "./health.ts";
import { type FilterOf, ListPage, isFiltered } from "./list-page.tsx";
import type { ListOf, TableOf } from "./list.tsx";
import { Age, Button, Link, NodeLink, None, State, TaskLink, Why } from "./parts.tsx";
import { type Query, route, setQuery, to } from "./route.ts";
import { useHeldRows } from "./rows.ts";
import { type Ask, mayAct } from "./session.ts";
import { LASTS, isoOf, sinceOf } from "./times.ts";

const PAGE = 50;

/** The kinds of failure, without what was cancelled or has expired. */
export const FAILED = FAILURE_KINDS.filter((kind) => !isCancelled(kind)).join(",");

/** The states of the form: in the URL, in words, and for the API. */
const STATES: readonly (readonly [inUrl: string, words: string, filter: Filter])[] = [
  ["", "any", {}],
  ["pending", "unfinished", { status: "pending" }],
  ["open", "open", { status: "open" }],
  ["ready", "open, could run now", { held: "none" }],
  ["held", "held back", { held: "any" }],
  ...HELD_WORDS.map(([held, words]) => [held, `held: ${words}`, { held }] as const),
  ["assigned", "assigned", { status: "assigned" }],
  ["completed", "completed", { status: "completed" }],
  ["in_review", "in review", { status: "in_review" }],
  ["failed", "failed", { status: "failed", failure_kind: FAILED, order: "updated" }],
  ["cancelled", "cancelled or expired", { status: "cancelled", order: "updated" }],
];

const FILTERS: readonly FilterOf[] = [
  { name: "q", label: "Title", type: "search" },
  { name: "status", label: "State", options: STATES.map(([word, label]) => [word, label] as const) },
  { name: "type", label: "Type", suggest: taskTypes },
  { name: "node", label: "Node", suggest: nodeNames },
  { name: "last", label: "Changed", options: LASTS },
  { name: "failed_by", label: "Failed at node", suggest: nodeNames, place: "more" },
  {
    name: "kind",
    label: "Kind of failure",
    options: [["", "any"], ...FAILURE_KINDS.map((kind) => [kind, kind.replace("_", " ")] as const)],
    place: "more",
  },
  { name: "failure", label: "Words of the failure", type: "search", place: "more" },
  { name: "group", label: "Group", place: "more" },
  { name: "tag", label: "Tag", place: "more" },
  { name: "creator", label: "Creator", suggest: nodeNames, place: "more" },
  { name: "since", label: "Changed since", type: "time", place: "more" },
  { name: "until", label: "Changed before", type: "time", place: "more" },
  { name: "failure_group", label: "Failure", place: "address" },
];

/** The filter that stands in the URL. */
function filterOf(query: Query): Filter {
  const { status = "", type, node, failed_by, failure, creator, group, tag, kind, until, q } = query;
  return {
    ...STATES.find(([word]) => word === status)?.[2],
    ...(failed_by && { failed_by, order: "updated" as const }),
    task_type: type,
    node_id: node,
    creator_node: creator,
    group,
    tag,
    failure_group: query["failure_group"],
    failure_q: failure,
    ...(kind && { failure_kind: kind }),
    since: sinceOf(query),
    until: isoOf(until),
    q,
  };
}

async function load(ask: Ask, query: Query) {
  const filter = filterOf(query);
  const page = await ask("task/list?fields=summary", { ...filter, per_page: PAGE, cursor: query["cursor"] });
  const { order, ...counted } = filter;
  const { count, exact } =
    page.total === null ? await ask("task/count", counted) : { count: page.total, exact: true };
  return { filter, tasks: page.tasks, next_cursor: page.next_cursor, total: { count, isExact: exact } };
}

export function Tasks(): VNode {
  return (
    <ListPage
      title="Tasks"
      count={({ total }) => `${total.isExact ? "" : "more than "}${countOf(total.count)}`}
      more={mayAct() && <Link class="button primary" href={to("new")} text="New task" />}
      filters={FILTERS}
      load={load}
      concerns={/^task\./}
      rows={({ tasks }) => tasks}
      list={TASKS}
      useRows={(rows, key, page) =>
        useHeldRows(rows, key, {
          keyOf: ({ task_id }) => task_id,
          placeOf: page?.filter.order === "updated" ? (task) => task.updated_at : (task) => task.created_at,
        })
      }
      bulk={mayAct() && bulkActions}
      empty={[
        "No tasks yet. Create one here, or from a shell:",
        commandOf("task add 'Say hello' --description 'To everyone'"),
      ]}
      noMatch="No task matches."
      above={(page) => <Search page={page} />}
    />
  );
}

/** A search examines some tasks a call. Without a match it goes on by itself, until there is one or the user stops it. */
function Search({ page }: { page: Awaited<ReturnType<typeof load>> | null }): VNode | null {
  const { cursor, ...filters } = route.value.query;
  const key = JSON.stringify(filters);
  const [{ of, examined, isStopped }, setState] = useState({ of: key, examined: 0, isStopped: false });
  const next = isFiltered(FILTERS) && page !== null && page.tasks.length < PAGE ? page.next_cursor : null;
  const goesOn = next !== null && page?.tasks.length === 0 && !(isStopped && of === key);
  useLayoutEffect(() => {
    if (next !== null && (of !== key || cursor === undefined))
      setState({ of: key, examined: LIST_SCANNED_MAX, isStopped: false });
    else if (next !== null) setState((old) => ({ ...old, examined: old.examined + LIST_SCANNED_MAX }));
    if (goesOn) setQuery({ cursor: next });
  }, [next, goesOn]);
  const isSearching = goesOn || (page === null && of === key && examined > 0 && !isStopped);
  if (!isSearching && next === null) return null;
  return (
    <p role="status" class="buttons">
      The search has examined {countOf(examined)} tasks.{" "}
      {!isSearching && "The next page continues with those before them."}
      {isSearching && (
        <Button
          label="Stop"
          name="stop-search"
          onClick={() => setState({ of: key, examined, isStopped: true })}
        />
      )}
    </p>
  );
}

/** @param without the columns that a page has no use for; `Group`: all are of one */
export function tasksOf(without: readonly string[] = []): ListOf<Summary> {
  const columns: TableOf<Summary>["columns"] = [
    ["State", (task) => <State word={stateOf(task)} />],
    ["Title", (task) => titleOf(task, !without.includes("Group")), "wide"],
    ["Type", typeOf, "id"],
    ["Priority", (task) => priorityOf(task) !== "medium" && priorityOf(task)],
    ["Node", nodeOf, "id"],
    ["LUX", ({ lux_reward: reward }) => (reward === 0 ? "" : countOf(reward)), "number"],
    ["Created", (task) => <Age at={task.created_at} />],
    ["Changed", (task) => task.updated_at !== task.created_at && <Age at={task.updated_at} />],
  ];
  return {
    label: "Tasks",
    keyOf: ({ task_id }) => task_id,
    columns: columns.filter(([head]) => !without.includes(head)),
  };
}

const TASKS = tasksOf();

function titleOf(task: Summary, hasGroup: boolean): ComponentChildren {
  return [
    <TaskLink task={task} isRow />,
    task.attempts > 0 && <small title="failed attempts"> {task.attempts}×</small>,
    <Labels task={hasGroup ? task : { tags: task.tags }} />,
    <Why text={whyOf(task)} />,
  ];
}

export function typeOf({ task_type: type }: Summary): VNode {
  return type === null ? <None /> : <span title={type}>{type}</span>;
}

function nodeOf(task: Summary): ComponentChildren {
  const failedAt = stateOf(task) === "failed" ? task.failure?.node_id : null;
  const id = task.assigned_node ?? failedAt;
  return id != null && <NodeLink id={id} />;
}

function whyOf(task: Summary): string {
  if (stateOf(task) !== "failed" || task.failure === null) return noteOf(task);
  return task.failure.message ?? task.failure.kind;
}

export function Labels({ task }: { task: Partial<Pick<Summary, "group" | "tags">> }): VNode | null {
  const { group, tags = [] } = task;
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
