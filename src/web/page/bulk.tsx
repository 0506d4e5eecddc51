/**
 * Actions on many tasks: on those that the user has selected, or on all that match a filter. batches.tsx does them.
 * Must not: act without a question that names how many.
 */
import { type VNode, h } from "preact";
import type { BatchOperation, RequestOf } from "../../client/luxhub.ts";
import { type Summary, countOf, stateOf } from "./format.ts";
import { changeAll } from "./batches.tsx";
import { Button, askToConfirm, pagesOf } from "./parts.tsx";
import { type Ask, isAdmin } from "./session.ts";
import { timeOf } from "./times.ts";

const PAGE = 50;
/** To delete more than these, the user types how many. */
const DELETED_UNTYPED = 100;

export type Filter = RequestOf<"task/list?fields=summary">;

/** How many match; `isExact`: false if there may be more. */
export type Total = { readonly count: number; readonly isExact: boolean };

type BulkAction = { readonly path: BatchOperation; readonly verb: string; readonly done: string };

const BULK_ACTIONS: readonly BulkAction[] = [
  { path: "task/retry", verb: "Retry", done: "retried" },
  { path: "task/cancel", verb: "Cancel", done: "cancelled" },
  { path: "task/delete", verb: "Delete", done: "deleted" },
];

/** Whether an action suits tasks of a state: only failed tasks can be retried, and only unfinished ones cancelled. */
function suits(path: string, status: string | undefined): boolean {
  if (path === "task/retry") return status === "failed";
  if (path === "task/cancel") return status !== undefined && status !== "failed" && status !== "completed";
  return isAdmin();
}

/** The filter in words: "failed, type summarise"; empty without one. */
function wordsOf(filter: Filter): string {
  const { status, ready, waiting, task_type, node_id, creator_node, group, tag, failed_by, q } = filter;
  const { failure_kind, failure_group, since, until } = filter;
  const words = {
    "": ready ? "ready" : status,
    waiting: waiting === "any" ? "for anything" : waiting && `for ${waiting}`,
    type: task_type,
    node: node_id,
    "failed at": failed_by,
    kind: failure_kind,
    failure: failure_group && "as in the address",
    creator: creator_node,
    group,
    tag,
    "changed since": since && timeOf(since),
    until: until && timeOf(until),
    title: q,
  };
  return Object.entries(words)
    .flatMap(([name, value]) => (value ? [`${name} ${String(value)}`.trim()] : []))
    .join(", ");
}

/**
 * Stands above the rows, also when they are scrolled.
 * @param total how many tasks match; null until the hub has counted them
 * @param onClear deselects
 * @param onDone the rows may change their places
 */
export function BulkActions(props: {
  filter: Filter;
  total: Total | null;
  selected: readonly Summary[];
  onClear: () => void;
  onDone: () => void;
}): VNode | null {
  const { filter, total, selected, onClear, onDone } = props;
  const isChosen = selected.length > 0;
  const actions = BULK_ACTIONS.filter(({ path }) =>
    isChosen ? selected.some((task) => suits(path, stateOf(task))) : suits(path, statusOf(filter)),
  );
  const start = async (action: BulkAction): Promise<void> => {
    const chosen = selected.filter((task) => suits(action.path, stateOf(task)));
    if (!isChosen && total === null) return;
    const count = isChosen ? chosen.length : (total?.count ?? 0);
    const isExact = isChosen || total?.isExact === true;
    const words = wordsOf(filter);
    const number = isExact ? countOf(count) : `more than ${countOf(count)}`;
    const isTyped =
      !isChosen && (words === "" || (action.path === "task/delete" && (!isExact || count > DELETED_UNTYPED)));
    const question = isChosen
      ? `${action.verb} the ${number} selected tasks?`
      : words === ""
        ? `${action.verb} all ${number} tasks of this hub?`
        : `${action.verb} the ${number} tasks that match (${words}), also on other pages?`;
    const typed = isTyped ? (isExact ? String(count) : "all") : null;
    if (!(await askToConfirm(question, `${action.verb} ${number}`, typed, action.path === "task/retry")))
      return;
    const title = `${action.verb} ${isChosen ? "the selected" : "all that match"}`;
    const changeOf = ({ task_id }: Summary) => ({ path: action.path, body: { task_id } });
    await changeAll(title, action.done, isExact ? count : null, async function* (ask) {
      if (isChosen) yield chosen.map(changeOf);
      else for await (const tasks of matching(filter, ask)) yield tasks.map(changeOf);
    });
    onDone();
  };
  if (actions.length === 0 && !isChosen) return null;
  return (
    <p class={isChosen ? "buttons act chosen" : "buttons act"}>
      <span>{isChosen ? `${selected.length} selected:` : "All that match:"}</span>
      {actions.map((action) => (
        <Button
          key={action.path}
          class={action.path === "task/delete" ? "danger" : undefined}
          data-do={`${action.path}-${isChosen ? "selected" : "all"}`}
          onClick={() => start(action)}
        >
          {action.verb} {isChosen ? "" : "all"}
        </Button>
      ))}
      {isChosen && (
        <Button data-do="deselect" onClick={onClear}>
          Select none
        </Button>
      )}
    </p>
  );
}

/** The state that all tasks have that match; undefined: they may have any. */
function statusOf(filter: Filter): string | undefined {
  const { status, ready, waiting, failed_by } = filter;
  if (failed_by !== undefined || filter.failure_group !== undefined) return "failed";
  return ready !== undefined || waiting !== undefined ? "open" : status;
}

/** The tasks that match, a page at a time. */
export async function* matching(filter: Filter, ask: Ask): AsyncGenerator<readonly Summary[]> {
  const load = (cursor: string | undefined) =>
    ask("task/list?fields=summary", { ...filter, per_page: PAGE, cursor });
  for await (const { tasks } of pagesOf(load)) yield tasks;
}
