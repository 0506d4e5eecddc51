/**
 * The lists of tasks. A list of all tasks, of states or of a node is read from an index of exactly these, and its total
 * from running totals. A list that is filtered by anything else is searched: steps of bounded size, between which
 * others are served, examine the tasks that one index finds, newest first, and keep those that match the rest.
 *
 * A position is the number of a task: what comes after it is older. So a list that is read by cursor shows each task that
 * is there all the time once, whatever is created, changed or deleted meanwhile.
 */
import {
  COUNT_SCANNED_MAX,
  LIST_COUNTED_MAX,
  LIST_FAILED_COUNTED_MAX,
  LIST_SCANNED_MAX,
  SEARCH_BLOCKS_MAX,
  SEARCH_FIRST_BLOCKS,
  SEARCH_STEP_BLOCKS,
  SEARCH_STEP_ROWS,
} from "../domain/limits.ts";
import { type Node, TASK_STATUSES, type Task, type TaskStatus, type TaskSummary } from "../domain/model.ts";
import { matchesWords } from "../lib/word-search.ts";
import { deletedNode, nodeById } from "../store/sql/nodes.ts";
import type { Sized } from "../store/sql/query.ts";
import {
  type Candidate,
  type FailedCandidate,
  TASK_BLOCK,
  type TaskFilter,
  type TaskTotals,
  UNFINISHED,
  candidatesBelow,
  candidatesInBlocks,
  countHeld,
  countInBlocks,
  failedOfNode,
  filteredSizes,
  taskBounds,
  taskSizes,
  taskSizesBelow,
  taskTotals,
  SUMMARY_BYTES,
  type ChangePosition,
  type TaskOrder,
  failedBefore,
  summariesBySeq,
  tasksBySeq,
  unfinishedFirstSizes,
} from "../store/sql/tasks.ts";
import type { Query, Read, Store } from "../store/store.ts";
import { failureGroupOf } from "./failure-stats.ts";
import {
  type CursorPage,
  ListPages,
  type PageRequest,
  type Position,
  Rows,
  START,
  loadRows,
} from "./list-pages.ts";
import { type Part, Scans, pageOfFound, partOf } from "./scan.ts";

/**
 * `words`: each begins a word of the title (lib/word-search.ts). `failure`: only in the order of change.
 */
export type TaskQuery = TaskFilter & {
  readonly words: readonly string[];
  readonly failure: FailureQuery | null;
};

/** `group`: its id (failure-stats.ts). `words`: each begins a word of the message. */
type FailureQuery = { readonly group: string | null; readonly words: readonly string[] };

export const ANY_TASK: TaskQuery = {
  statuses: TASK_STATUSES,
  nodeId: null,
  creatorNode: null,
  taskType: null,
  groups: null,
  tag: null,
  failureKinds: null,
  failure: null,
  inReview: null,
  since: null,
  until: null,
  held: null,
  words: [],
};

export type TaskPage<T> = CursorPage<T>;

/** `bytes`: of each task; null if it depends on the task. */
type TaskRows<T> = {
  readonly bySeq: (seqs: readonly number[], order?: TaskOrder) => Query<readonly T[]>;
  readonly bytes: number | null;
};

export const WHOLE_TASKS: TaskRows<Task> = { bySeq: tasksBySeq, bytes: null };
export const TASK_SUMMARIES: TaskRows<TaskSummary> = { bySeq: summariesBySeq, bytes: SUMMARY_BYTES };

/** `isExact` false: there are more. */
type TaskCount = { readonly count: number; readonly isExact: boolean };

/** Ordered by when the tasks changed. */
export type ChangePage<T> = Omit<CursorPage<T>, "next"> & { readonly next: ChangePosition | null };

/** Newest first. `end`: null at the end of the list. */
type Search = { readonly found: readonly Position[]; readonly end: Position | null };

type Enough = { readonly found: number; readonly looked: number };

/** The next step continues below a number. */
type SearchPart = Part<Candidate, number>;

type Bounds = { readonly oldest: number; readonly newest: number };

const placeOf = ({ updatedAt, seq }: ChangePosition): ChangePosition => ({ updatedAt, seq });

const blockOf = (seq: number): number => Math.floor(seq / TASK_BLOCK);

export class TaskLists<T> {
  readonly #store: Store;
  readonly #rows: TaskRows<T>;
  readonly #pages: ListPages;
  readonly #scans: Scans;

  constructor(store: Store, rows: TaskRows<T>, scans = new Scans()) {
    this.#store = store;
    this.#rows = rows;
    this.#pages = new ListPages(store);
    this.#scans = scans;
  }

  /** Their searches take turns with those of this one. */
  of<U>(rows: TaskRows<U>): TaskLists<U> {
    return new TaskLists(this.#store, rows, this.#scans);
  }

  /**
   * @param unfinishedFirst the first page begins with the unfinished tasks, newest first. What follows it is newest
   * first again, and may show some of them a second time.
   * @throws {PagesBusy}
   */
  page(query: TaskQuery, page: PageRequest, unfinishedFirst = false): Promise<TaskPage<T>> {
    if (!isSearch(query)) return this.#plainPage(query, page, unfinishedFirst);
    return unfinishedFirst ? this.#searchUnfinishedFirst(query, page) : this.#searchPage(query, page);
  }

  /** Newest first. @throws {PagesBusy} */
  async after(query: TaskQuery, position: Position, perPage: number): Promise<TaskPage<T>> {
    if (!isSearch(query)) return this.#plainAfter(query, position.before, perPage);
    const search = await this.#search(query, position, { found: perPage + 1, looked: 0 });
    const { rows: shown, next } = pageOfFound(search.found, perPage, (found) => found, search.end);
    return { rows: await this.#load(query, shown), page: null, perPage, total: null, next };
  }

  /**
   * Those that changed last first; `from` null: from the newest on.
   * @throws {PagesBusy}
   */
  async failed(query: TaskQuery, from: ChangePosition | null, perPage: number): Promise<ChangePage<T>> {
    const { found, end } = await this.#searchFailed(query, from, perPage + 1, LIST_SCANNED_MAX);
    const { rows: shown, next } = pageOfFound(found, perPage, (position) => position, end);
    const seqs = shown.map(({ seq }) => ({ before: seq }));
    return {
      rows: await this.#load(query, seqs, "lastChangedFirst"),
      page: null,
      perPage,
      total: null,
      next,
    };
  }

  /** Among as many as one call may examine. @throws {PagesBusy} */
  async count(query: TaskQuery): Promise<TaskCount> {
    if (!isSearch(query)) {
      const { statuses, nodeId } = query;
      const totals = await this.#store.readTogether((read) => totalsOf(nodeId, statuses, read));
      const count = totals === null ? 0 : sumOf(totals, TASK_STATUSES, statuses);
      return {
        count,
        isExact: nodeId === null || totals === null || totals.failed < LIST_FAILED_COUNTED_MAX,
      };
    }
    const held = heldAlone(query);
    const ranges = held && countHeld(held, COUNT_SCANNED_MAX + 1);
    if (ranges) {
      const count = await this.#store.read(ranges);
      return { count: Math.min(count, COUNT_SCANNED_MAX), isExact: count <= COUNT_SCANNED_MAX };
    }
    const isFailed = query.statuses.length === 1 && query.statuses[0] === "failed";
    const isPlain = query.nodeId === null && query.groups === null;
    const { found, end } =
      isFailed && (isPlain || query.failure !== null)
        ? await this.#searchFailed(query, null, Infinity, COUNT_SCANNED_MAX)
        : await this.#search(query, START, { found: Infinity, looked: COUNT_SCANNED_MAX }, COUNT_SCANNED_MAX);
    return { count: found.length, isExact: end === null };
  }

  async #searchFailed(
    query: TaskQuery,
    from: ChangePosition | null,
    enough: number,
    most: number,
  ): Promise<{ readonly found: readonly ChangePosition[]; readonly end: ChangePosition | null }> {
    const found: ChangePosition[] = [];
    if (!query.statuses.includes("failed")) return { found, end: null };
    const { failure } = query;
    const newest = { updatedAt: query.until ?? Number.MAX_SAFE_INTEGER, seq: 0 };
    const step = async (position: ChangePosition) => {
      const before = failedBefore(
        query,
        query.words.length > 0,
        failure !== null,
        position,
        SEARCH_STEP_ROWS,
      );
      return partOf(await this.#store.read(before), SEARCH_STEP_ROWS, placeOf);
    };
    let end: ChangePosition | null = null;
    for await (const { rows, next } of this.#scans.steps(from ?? newest, step, most)) {
      end = next;
      for (const candidate of rows) {
        const { title, failed } = candidate;
        if (title === null || !matchesWords(query.words, title)) continue;
        if (failure !== null && (failed === null || !hasFailedSo(failure, failed))) continue;
        found.push(placeOf(candidate));
        if (found.length >= enough) return { found, end: placeOf(candidate) };
      }
    }
    return { found, end };
  }

  async #plainPage(query: TaskQuery, request: PageRequest, unfinishedFirst: boolean): Promise<TaskPage<T>> {
    const { statuses, nodeId } = query;
    let unfinished = 0;
    const page = await this.#pages.load(request, async (read) => {
      const totals = await totalsOf(nodeId, statuses, read);
      if (!totals) return null;
      unfinished = sumOf(totals, UNFINISHED, statuses);
      return {
        total: sumOf(totals, TASK_STATUSES, statuses),
        sizes: (slice) =>
          this.#sized(
            unfinishedFirst
              ? unfinishedFirstSizes(statuses, nodeId, slice.limit)
              : taskSizes(statuses, nodeId, slice),
          ),
        rowsBySeq: this.#inOrder(unfinishedFirst ? "unfinishedFirst" : "newestFirst"),
      };
    });
    const { rows, total, lastSeq } = page;
    const hasMore = lastSeq !== null && request.page * request.perPage < total;
    const isCut = unfinishedFirst && unfinished >= request.perPage;
    const next = hasMore ? (isCut ? START : { before: lastSeq }) : null;
    return { ...request, rows, total, next };
  }

  #plainAfter({ statuses, nodeId }: TaskQuery, before: number, perPage: number): Promise<TaskPage<T>> {
    return this.#store.readTogether(async (read) => {
      const sizes = await read(this.#sized(taskSizesBelow(statuses, nodeId, before, perPage + 1)));
      const { rows: shown, next } = pageOfFound(sizes, perPage, ({ seq }) => ({ before: seq }));
      const rows = await loadRows(shown, this.#inOrder("newestFirst"), read, (later) =>
        this.#store.read(later),
      );
      return { rows, page: null, perPage, total: null, next };
    });
  }

  async #searchPage(query: TaskQuery, request: PageRequest): Promise<TaskPage<T>> {
    const { page, perPage } = request;
    const upTo = page * perPage;
    const { found, end } = await this.#search(query, START, { found: upTo + 1, looked: LIST_COUNTED_MAX });
    const shown = found.slice(upTo - perPage, upTo);
    const { next } = pageOfFound(found, upTo, (position) => position, end);
    const total = end === null ? found.length : null;
    return { ...request, rows: await this.#load(query, shown), total, next };
  }

  async #searchUnfinishedFirst(query: TaskQuery, request: PageRequest): Promise<TaskPage<T>> {
    const { perPage } = request;
    const enough = { found: perPage + 1, looked: LIST_COUNTED_MAX };
    const inStates = (unfinished: boolean): Promise<Search> => {
      const statuses = query.statuses.filter((status) => UNFINISHED.includes(status) === unfinished);
      return this.#search({ ...query, statuses }, START, enough);
    };
    const [first, second] = [await inStates(true), await inStates(false)];
    const finished = second.found.slice(0, Math.max(0, perPage - first.found.length));
    const shown = [...first.found.slice(0, perPage), ...finished];
    const isCounted = first.end === null && second.end === null;
    const total = isCounted ? first.found.length + second.found.length : null;
    // What is newer than the last finished one is shown, if all that is unfinished is.
    const after = first.end === null ? (finished.at(-1) ?? START) : START;
    const next = total === shown.length ? null : after;
    return { ...request, rows: await this.#load(query, shown, "unfinishedFirst"), total, next };
  }

  /** Until it has found enough, or one call has examined its maximum. */
  async #search(query: TaskQuery, from: Position, enough: Enough, most = LIST_SCANNED_MAX): Promise<Search> {
    const found: Position[] = [];
    const bounds = query.statuses.length === 0 ? null : await this.#store.read(taskBounds());
    if (!bounds) return { found, end: null };
    const byBlock = await this.#isByBlock(query, bounds);
    let before = Math.min(from.before, bounds.newest + 1);
    let [looked, lookedUp, span] = [0, 0, SEARCH_FIRST_BLOCKS];
    for (;;) {
      const step = byBlock
        ? await this.#stepByBlock(query, before, span, bounds.oldest)
        : await this.#step(query, before);
      for (const { seq, title } of step.rows) {
        looked++;
        if (title === null) continue;
        if (matchesWords(query.words, title)) found.push({ before: seq });
        if (found.length >= enough.found && looked >= enough.looked) return { found, end: { before: seq } };
      }
      if (step.next === null) return { found, end: null };
      before = step.next;
      lookedUp += byBlock ? span : 0;
      if (looked >= most || lookedUp >= SEARCH_BLOCKS_MAX) return { found, end: { before } };
      if (step.rows.length < SEARCH_STEP_ROWS) span = Math.min(2 * span, SEARCH_STEP_BLOCKS);
      await this.#scans.turn();
    }
  }

  /**
   * As far as a sample tells.
   * What the sample saves, of a million tasks, 22,000 of them open: the open ones of a type that none of them has take
   * 3 calls and 53 ms instead of 10 calls and 200 to 400 ms by creator and type; the completed ones of a creator of 19
   * tasks take 1 call and 6 ms instead of 97 calls and 1.1 s by state. No fixed rule was near the better one in both.
   */
  async #isByBlock(query: TaskQuery, { oldest, newest }: Bounds): Promise<boolean> {
    const { statuses, nodeId, creatorNode, taskType, groups, held, inReview } = query;
    const hasRanges = groups !== null || inReview !== null || held?.places != null;
    if (hasRanges || (creatorNode === null && taskType === null)) return false;
    if (nodeId === null && statuses.length === TASK_STATUSES.length) return true;
    const read: Read = (wanted) => this.#store.read(wanted);
    const totals = await totalsOf(nodeId, statuses, read);
    const inStates = totals ? sumOf(totals, TASK_STATUSES, statuses) : 0;
    if (inStates <= SEARCH_STEP_ROWS) return false;
    const top = blockOf(newest);
    const sample = { oldest: Math.max(top - SEARCH_STEP_BLOCKS + 1, blockOf(oldest)), newest: top };
    const sampled = newest - Math.max(sample.oldest * TASK_BLOCK, oldest) + 1;
    const inSample = await read(countInBlocks(query, sample));
    return inSample / sampled < inStates / (newest - oldest + 1);
  }

  async #step(query: TaskQuery, before: number): Promise<SearchPart> {
    const read = candidatesBelow(query, query.words.length > 0, before, SEARCH_STEP_ROWS);
    return partOf(await this.#store.read(read), SEARCH_STEP_ROWS, ({ seq }) => seq);
  }

  async #stepByBlock(query: TaskQuery, before: number, span: number, first: number): Promise<SearchPart> {
    const newest = blockOf(before - 1);
    const oldest = Math.max(newest - span + 1, 0);
    const read = candidatesInBlocks(query, query.words.length > 0, { oldest, newest }, before);
    const below = oldest * TASK_BLOCK;
    return { rows: await this.#store.read(read), next: below > first ? below : null };
  }

  /** Those that still match. */
  #load(query: TaskQuery, shown: readonly Position[], order: TaskOrder = "newestFirst"): Promise<Rows<T>> {
    if (shown.length === 0) return Promise.resolve(new Rows<T>([]));
    return this.#store.readTogether(async (read) => {
      const seqs = shown.map(({ before }) => before);
      const sizes = new Map(
        (await read(this.#sized(filteredSizes(seqs, query)))).map((size) => [size.seq, size]),
      );
      const inOrder = seqs.flatMap((seq) => sizes.get(seq) ?? []);
      return loadRows(inOrder, this.#inOrder(order), read, (later) => this.#store.read(later));
    });
  }

  /** Of the rows that the list loads. */
  #sized(sizes: Query<readonly Sized[]>): Query<readonly Sized[]> {
    const { bytes } = this.#rows;
    if (bytes === null) return sizes;
    return { ...sizes, shape: (rows) => sizes.shape(rows).map(({ seq }) => ({ seq, bytes })) };
  }

  #inOrder(order: TaskOrder): (seqs: readonly number[]) => Query<readonly T[]> {
    return (seqs) => this.#rows.bySeq(seqs, order);
  }
}

function hasFailedSo(
  { group, words }: FailureQuery,
  { taskType, failure }: NonNullable<FailedCandidate["failed"]>,
): boolean {
  if (group !== null && failureGroupOf(taskType, failure) !== group) return false;
  return matchesWords(words, failure.message ?? "");
}

/** No index has exactly these tasks. */
export function isSearch({ statuses: _, nodeId: __, words, ...filters }: TaskQuery): boolean {
  return words.length > 0 || Object.values(filters).some((value) => value !== null);
}

/** What holds the tasks, if nothing else is asked for. */
function heldAlone({ held, ...query }: TaskQuery): TaskFilter["held"] {
  const isOpen = query.statuses.length === 1 && query.statuses[0] === "open";
  return isOpen && !isSearch({ ...query, held: null }) && query.nodeId === null ? held : null;
}

/** Of all or of one node; null: there is no such node. */
async function totalsOf(
  nodeId: string | null,
  statuses: readonly TaskStatus[],
  read: Read,
): Promise<TaskTotals | null> {
  if (nodeId === null) return read(taskTotals());
  const node: Node | null = (await read(nodeById(nodeId))) ?? (await read(deletedNode(nodeId)));
  if (!node) return null;
  const failed = statuses.includes("failed") ? await read(failedOfNode(nodeId, LIST_FAILED_COUNTED_MAX)) : 0;
  // An open task has no node.
  return { open: 0, assigned: node.tasksAssigned, completed: node.tasksCompleted, failed };
}

function sumOf(totals: TaskTotals, states: readonly TaskStatus[], statuses: readonly TaskStatus[]): number {
  return states.reduce((sum, state) => sum + (statuses.includes(state) ? totals[state] : 0), 0);
}
