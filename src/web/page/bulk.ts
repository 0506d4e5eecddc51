/**
 * Actions on the selected tasks, or on all that match a filter. Must not: act without a question that names how many.
 */
import type { BatchOperation, RequestOf } from "../../client/luxhub.ts";
import { type Action, act } from "./action.tsx";
import { type Change, changeAll } from "./batches.tsx";
import { type Summary, countOf, stateOf } from "./format.ts";
import type { BulkOf } from "./list-page.tsx";
import { pagesOf } from "./load.ts";
import { type Ask, isAdmin } from "./session.ts";
import { timeOf } from "./times.ts";

const PAGE = 50;
/** To delete more than these, the user types how many. */
const DELETED_UNTYPED = 100;

export type Filter = RequestOf<"task/list?fields=summary">;

type Total = { readonly count: number; readonly isExact: boolean };

type Kind = {
  readonly path: BatchOperation;
  readonly verb: string;
  readonly done: string;
  readonly suits: (status: string | undefined) => boolean;
};

const KINDS: readonly Kind[] = [
  { path: "task/retry", verb: "Retry", done: "retried", suits: (status) => status === "failed" },
  {
    path: "task/cancel",
    verb: "Cancel",
    done: "cancelled",
    suits: (status) => status !== undefined && status !== "failed" && status !== "completed",
  },
  { path: "task/delete", verb: "Delete", done: "deleted", suits: isAdmin },
];

export const bulkActions: BulkOf<Summary, { readonly filter: Filter; readonly total: Total }> = {
  nameOf: ({ title }) => title,
  selected: (tasks) =>
    KINDS.filter(({ suits }) => tasks.some((task) => suits(stateOf(task)))).map((kind) =>
      onSelected(
        kind,
        tasks.filter((task) => kind.suits(stateOf(task))),
      ),
    ),
  matching: ({ filter, total }) =>
    KINDS.filter(({ suits }) => suits(statusOf(filter))).map((kind) => onMatching(kind, filter, total)),
};

function onSelected({ path, verb, done }: Kind, tasks: readonly Summary[]): Action {
  const number = countOf(tasks.length);
  return act(
    `${path}-selected`,
    verb,
    () =>
      changeAll(`${verb} the selected`, done, tasks.length, async function* () {
        yield changesOf(path, tasks);
      }),
    undefined,
    {
      look: path === "task/delete" ? "danger" : undefined,
      ask: {
        text: `${verb} the ${number} selected tasks?`,
        yes: `${verb} ${number}`,
        isHarmless: path === "task/retry",
      },
    },
  );
}

function onMatching({ path, verb, done }: Kind, filter: Filter, { count, isExact }: Total): Action {
  const words = wordsOf(filter);
  const number = isExact ? countOf(count) : `more than ${countOf(count)}`;
  const isTyped = words === "" || (path === "task/delete" && (!isExact || count > DELETED_UNTYPED));
  return act(
    `${path}-all`,
    `${verb} all`,
    () => changeMatching(`${verb} all that match`, { path, done }, filter, isExact ? count : null),
    undefined,
    {
      look: path === "task/delete" ? "danger" : undefined,
      ask: {
        text:
          words === ""
            ? `${verb} all ${number} tasks of this hub?`
            : `${verb} the ${number} tasks that match (${words}), also on other pages?`,
        yes: `${verb} ${number}`,
        typed: isTyped ? (isExact ? String(count) : "all") : null,
        isHarmless: path === "task/retry",
      },
    },
  );
}

export function changeMatching(
  title: string,
  { path, done }: Pick<Kind, "path" | "done">,
  filter: Filter,
  total: number | null,
): Promise<void> {
  return changeAll(title, done, total, async function* (ask: Ask) {
    const load = (cursor: string | undefined) =>
      ask("task/list?fields=summary", { ...filter, per_page: PAGE, cursor });
    for await (const { tasks } of pagesOf(load)) yield changesOf(path, tasks);
  });
}

function changesOf(path: BatchOperation, tasks: readonly Summary[]): readonly Change[] {
  return tasks.map(({ task_id }) => ({ path, body: { task_id } }));
}

function statusOf(filter: Filter): string | undefined {
  const { status, ready, waiting, failed_by } = filter;
  if (failed_by !== undefined || filter.failure_group !== undefined) return "failed";
  return ready !== undefined || waiting !== undefined ? "open" : status;
}

/** The filter in words: "failed, type summarise"; empty without one. */
function wordsOf(filter: Filter): string {
  const { status, ready, waiting, since, until } = filter;
  const words = {
    "": ready ? "ready" : status,
    waiting: waiting === "any" ? "for anything" : waiting && `for ${waiting}`,
    type: filter.task_type,
    node: filter.node_id,
    "failed at": filter.failed_by,
    kind: filter.failure_kind,
    failure: filter.failure_group && "as in the address",
    creator: filter.creator_node,
    group: filter.group,
    tag: filter.tag,
    "changed since": since && timeOf(since),
    until: until && timeOf(until),
    title: filter.q,
  };
  return Object.entries(words)
    .flatMap(([name, value]) => (value ? [`${name} ${String(value)}`.trim()] : []))
    .join(", ");
}
