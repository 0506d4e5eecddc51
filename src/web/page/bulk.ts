/**
 * Actions on the selected tasks, or on all that match a filter. Must not: act without a question that names how many.
 */
import type { BatchOperation, RequestOf } from "../../client/luxhub.ts";
import { type Action, type Question, act } from "./action.tsx";
import { type Change, type Reverse, changeAll } from "./batches.tsx";
import { type Summary, countOf, stateOf } from "./format.ts";
import type { BulkOf } from "./list-page.tsx";
import { pagesOf } from "./load.ts";
import { type Ask, isAdmin, mayActFor } from "./session.ts";
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
  readonly reverse?: Reverse;
  readonly suits: (status: string | undefined, creator: string | null | undefined) => boolean;
};

const KINDS: readonly Kind[] = [
  {
    path: "task/retry",
    verb: "Retry",
    done: "retried",
    suits: (status, creator) => status === "failed" && mayActFor(creator),
  },
  {
    path: "task/cancel",
    verb: "Cancel",
    done: "cancelled",
    reverse: { path: "task/retry", done: "open again" },
    suits: (status, creator) =>
      status !== undefined && status !== "failed" && status !== "completed" && mayActFor(creator),
  },
  { path: "task/delete", verb: "Delete", done: "deleted", suits: isAdmin },
];

export const bulkActions: BulkOf<Summary, { readonly filter: Filter; readonly total: Total }> = {
  nameOf: ({ title }) => title,
  selected: (tasks) =>
    KINDS.filter(({ suits }) => tasks.some((task) => suits(stateOf(task), task.creator_node))).map((kind) => {
      const suited = tasks.filter((task) => kind.suits(stateOf(task), task.creator_node));
      const number = countOf(suited.length);
      const title = `${kind.verb} the selected`;
      const text = `${kind.verb} the ${number} selected tasks?`;
      const work = (): Promise<void> =>
        changeAll(
          title,
          kind.done,
          suited.length,
          async function* () {
            yield changesOf(kind.path, suited);
          },
          kind.reverse,
        );
      return actionOf(kind, "selected", kind.verb, work, { text, yes: `${kind.verb} ${number}` });
    }),
  matching: ({ filter, total: { count, isExact } }) =>
    KINDS.filter(({ suits }) => suits(statusOf(filter), filter.creator_node)).map((kind) => {
      const { verb, path } = kind;
      const words = wordsOf(filter);
      const number = isExact ? countOf(count) : `more than ${countOf(count)}`;
      const isTyped = words === "" || (path === "task/delete" && (!isExact || count > DELETED_UNTYPED));
      const text =
        words === ""
          ? `${verb} all ${number} tasks of this hub?`
          : `${verb} the ${number} tasks that match (${words}), also on other pages?`;
      const typed = isTyped ? (isExact ? String(count) : "all") : null;
      const work = (): Promise<void> =>
        changeMatching(`${verb} all that match`, kind, filter, isExact ? count : null);
      return actionOf(kind, "all", `${verb} all`, work, { text, yes: `${verb} ${number}`, typed });
    }),
};

function actionOf(
  kind: Kind,
  of: string,
  label: string,
  work: () => Promise<void>,
  question: Question,
): Action {
  const look = kind.path === "task/delete" ? "danger" : undefined;
  const ask = { ...question, isHarmless: kind.path === "task/retry" };
  return act(`${kind.path}-${of}`, label, work, undefined, { look, ask });
}

export function changeMatching(
  title: string,
  { path, done, reverse }: Pick<Kind, "path" | "done" | "reverse">,
  filter: Filter,
  total: number | null,
): Promise<void> {
  return changeAll(
    title,
    done,
    total,
    async function* (ask: Ask) {
      const load = (cursor: string | undefined) =>
        ask("task/list?fields=summary", { ...filter, per_page: PAGE, cursor });
      for await (const { tasks } of pagesOf(load)) yield changesOf(path, tasks);
    },
    reverse,
  );
}

function changesOf(path: BatchOperation, tasks: readonly Summary[]): readonly Change[] {
  return tasks.map(({ task_id }) => ({ path, body: { task_id } }));
}

function statusOf(filter: Filter): string | undefined {
  const { status, held, failed_by, failure_group, failure_q } = filter;
  if (failed_by ?? failure_group ?? failure_q) return "failed";
  if (status === "cancelled") return "failed";
  return held !== undefined ? "open" : status === "in_review" ? "completed" : status;
}

/** The filter in words: "failed, type summarise"; empty without one. */
function wordsOf(filter: Filter): string {
  const { status, held, since, until } = filter;
  const words = {
    "": held === "none" ? "could run now" : status?.replace("_", " "),
    "held back":
      held === "none" ? "" : held === "any" ? "by anything" : held && `by ${held.replaceAll("_", " ")}`,
    type: filter.task_type,
    node: filter.node_id,
    "failed at": filter.failed_by,
    kind: filter.failure_kind?.includes(",") ? "" : filter.failure_kind,
    failure: filter.failure_q ?? (filter.failure_group && "as in the address"),
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
