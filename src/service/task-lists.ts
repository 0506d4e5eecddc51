/**
 * The lists of tasks. A list of all tasks, of states or of a node is read from an index of exactly these, and its total
 * from running totals. A list that is filtered by creator, type, group, tag or title is searched: steps of bounded size, between which
 * others are served, examine the tasks that one index finds, newest first, and keep those that match the rest.
 *
 * A position is the number of a task: what comes after it is older. So a list that is read by cursor shows each task that
 * is there all the time once, whatever is created, changed or deleted meanwhile.
 */
import {
  LIST_COUNTED_MAX,
  LIST_FAILED_COUNTED_MAX,
  LIST_FAR_PAGES_MAX,
  LIST_SCANNED_MAX,
  SEARCH_BLOCKS_MAX,
  SEARCH_FIRST_BLOCKS,
  SEARCH_STEP_BLOCKS,
  SEARCH_STEP_ROWS,
} from "../domain/limits.ts";
import { type Node, TASK_STATUSES, type Task, type TaskStatus } from "../domain/model.ts";
import { TickQueue } from "../lib/semaphore.ts";
import { matchesWords } from "../lib/word-search.ts";
import { deletedNode, nodeById } from "../store/sql/nodes.ts";
import {
  type Candidate,
  TASK_BLOCK,
  type TaskFilter,
  type TaskTotals,
  UNFINISHED,
  candidatesBelow,
  candidatesInBlocks,
  countInBlocks,
  failedOfNode,
  filteredSizes,
  taskBounds,
  taskSizes,
  taskSizesBelow,
  taskTotals,
  tasksBySeq,
  unfinishedFirstBySeq,
  unfinishedFirstSizes,
} from "../store/sql/tasks.ts";
import type { Read, Store } from "../store/store.ts";
import {
  type CursorPage,
  ListPages,
  type PageRequest,
  PagesBusy,
  type Position,
  Rows,
  loadRows,
} from "./list-pages.ts";

/** `words`: each begins a word of the title (lib/word-search.ts); none is any title. */
export type TaskQuery = TaskFilter & { readonly words: readonly string[] };

/** The beginning of every list. */
const START: Position = { before: Number.MAX_SAFE_INTEGER };

/** A page of a list of tasks. */
export type TaskPage = CursorPage<Task>;

/** What a search found, newest first, each with its own position; `end`: where it stopped, null at the end of the list. */
type Search = { readonly found: readonly Position[]; readonly end: Position | null };

/** The limits at which a search stops: tasks found, and tasks examined. */
type Enough = { readonly found: number; readonly looked: number };

/** The tasks that one step examined, and the number below which the next one continues; null if there are none. */
type SearchPart = { readonly candidates: readonly Candidate[]; readonly below: number | null };

/** The numbers of the first task and of the last one. */
type Bounds = { readonly oldest: number; readonly newest: number };

const blockOf = (seq: number): number => Math.floor(seq / TASK_BLOCK);

export class TaskLists {
  readonly #store: Store;
  readonly #pages: ListPages;
  /** One step of all searches in each tick. */
  readonly #steps = new TickQueue();

  constructor(store: Store) {
    this.#store = store;
    this.#pages = new ListPages(store);
  }

  /**
   * One page, newest first.
   * @param unfinishedFirst the first page begins with the unfinished tasks, newest first. What follows it is newest first
   * again, and may show some of them a second time.
   * @throws {PagesBusy}
   */
  page(query: TaskQuery, page: PageRequest, unfinishedFirst = false): Promise<TaskPage> {
    if (!isSearch(query)) return this.#plainPage(query, page, unfinishedFirst);
    return unfinishedFirst ? this.#searchUnfinishedFirst(query, page) : this.#searchPage(query, page);
  }

  /** The tasks after a position, newest first. @throws {PagesBusy} */
  async after(query: TaskQuery, position: Position, perPage: number): Promise<TaskPage> {
    if (!isSearch(query)) return this.#plainAfter(query, position.before, perPage);
    const search = await this.#search(query, position, { found: perPage + 1, looked: 0 });
    const shown = search.found.slice(0, perPage);
    const next = search.found.length > perPage ? (shown.at(-1) ?? null) : search.end;
    return { rows: await this.#load(query, shown), page: null, perPage, total: null, next };
  }

  async #plainPage(query: TaskQuery, request: PageRequest, unfinishedFirst: boolean): Promise<TaskPage> {
    const { statuses, nodeId } = query;
    let unfinished = 0;
    const page = await this.#pages.load(request, async (read) => {
      const totals = nodeId === null ? await read(taskTotals()) : await totalsOf(nodeId, statuses, read);
      if (!totals) return null;
      unfinished = sumOf(totals, UNFINISHED, statuses);
      return {
        total: sumOf(totals, TASK_STATUSES, statuses),
        sizes: (slice) =>
          unfinishedFirst
            ? unfinishedFirstSizes(statuses, nodeId, slice.limit)
            : taskSizes(statuses, nodeId, slice),
        rowsBySeq: unfinishedFirst ? unfinishedFirstBySeq : tasksBySeq,
      };
    });
    const { rows, total, lastSeq } = page;
    const hasMore = lastSeq !== null && request.page * request.perPage < total;
    const isCut = unfinishedFirst && unfinished >= request.perPage;
    const next = hasMore ? (isCut ? START : { before: lastSeq }) : null;
    return { ...request, rows, total, next };
  }

  #plainAfter({ statuses, nodeId }: TaskQuery, before: number, perPage: number): Promise<TaskPage> {
    return this.#store.readTogether(async (read) => {
      const sizes = await read(taskSizesBelow(statuses, nodeId, before, perPage + 1));
      const shown = sizes.slice(0, perPage);
      const last = sizes.length > perPage ? shown.at(-1) : undefined;
      const rows = await loadRows(shown, tasksBySeq, read, (later) => this.#store.read(later));
      const next = last ? { before: last.seq } : null;
      return { rows, page: null, perPage, total: null, next };
    });
  }

  async #searchPage(query: TaskQuery, request: PageRequest): Promise<TaskPage> {
    const { page, perPage } = request;
    const upTo = page * perPage;
    const { found, end } = await this.#search(query, START, { found: upTo + 1, looked: LIST_COUNTED_MAX });
    const shown = found.slice(upTo - perPage, upTo);
    const next = found.length > upTo ? (shown.at(-1) ?? null) : end;
    const total = end === null ? found.length : null;
    return { ...request, rows: await this.#load(query, shown), total, next };
  }

  async #searchUnfinishedFirst(query: TaskQuery, request: PageRequest): Promise<TaskPage> {
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
    return { ...request, rows: await this.#load(query, shown, true), total, next };
  }

  /** Examines the tasks after a position until it has found enough, or one call has examined its maximum. */
  async #search(query: TaskQuery, from: Position, enough: Enough): Promise<Search> {
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
      for (const { seq, title } of step.candidates) {
        looked++;
        if (title === null) continue;
        if (matchesWords(query.words, title)) found.push({ before: seq });
        if (found.length >= enough.found && looked >= enough.looked) return { found, end: { before: seq } };
      }
      if (step.below === null) return { found, end: null };
      before = step.below;
      lookedUp += byBlock ? span : 0;
      if (looked >= LIST_SCANNED_MAX || lookedUp >= SEARCH_BLOCKS_MAX) return { found, end: { before } };
      if (step.candidates.length < SEARCH_STEP_ROWS) span = Math.min(2 * span, SEARCH_STEP_BLOCKS);
      if (this.#steps.waiting >= LIST_FAR_PAGES_MAX) throw new PagesBusy("Too many searches wait.");
      await this.#steps.next();
    }
  }

  /**
   * Whether the indexes by creator and type find fewer tasks than those by state and node, as far as a sample tells.
   *
   * What the sample saves, of a million tasks, 22,000 of them open: the open ones of a type that none of them has take
   * 3 calls and 53 ms instead of 10 calls and 200 to 400 ms by creator and type; the completed ones of a creator of 19
   * tasks take 1 call and 6 ms instead of 97 calls and 1.1 s by state. No fixed rule was near the better one in both.
   */
  async #isByBlock(query: TaskQuery, { oldest, newest }: Bounds): Promise<boolean> {
    const { statuses, nodeId, creatorNode, taskType, group } = query;
    if (group !== null || (creatorNode === null && taskType === null)) return false;
    if (nodeId === null && statuses.length === TASK_STATUSES.length) return true;
    const read: Read = (wanted) => this.#store.read(wanted);
    const totals = nodeId === null ? await read(taskTotals()) : await totalsOf(nodeId, statuses, read);
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
    const candidates = await this.#store.read(read);
    const last = candidates.length < SEARCH_STEP_ROWS ? undefined : candidates.at(-1);
    return { candidates, below: last?.seq ?? null };
  }

  async #stepByBlock(query: TaskQuery, before: number, span: number, first: number): Promise<SearchPart> {
    const newest = blockOf(before - 1);
    const oldest = Math.max(newest - span + 1, 0);
    const read = candidatesInBlocks(query, query.words.length > 0, { oldest, newest }, before);
    const below = oldest * TASK_BLOCK;
    return { candidates: await this.#store.read(read), below: below > first ? below : null };
  }

  /** Loads those tasks that still match. */
  #load(query: TaskQuery, shown: readonly Position[], unfinishedFirst = false): Promise<Rows<Task>> {
    if (shown.length === 0) return Promise.resolve(new Rows<Task>([]));
    return this.#store.readTogether(async (read) => {
      const seqs = shown.map(({ before }) => before);
      const sizes = new Map((await read(filteredSizes(seqs, query))).map((size) => [size.seq, size]));
      const inOrder = seqs.flatMap((seq) => sizes.get(seq) ?? []);
      const rowsBySeq = unfinishedFirst ? unfinishedFirstBySeq : tasksBySeq;
      return loadRows(inOrder, rowsBySeq, read, (later) => this.#store.read(later));
    });
  }
}

/** Whether no index has exactly these tasks. */
export function isSearch({ creatorNode, taskType, group, tag, words }: TaskQuery): boolean {
  return creatorNode !== null || taskType !== null || group !== null || tag !== null || words.length > 0;
}

/** `open` is 0, because such a task has no node. */
async function totalsOf(
  nodeId: string,
  statuses: readonly TaskStatus[],
  read: Read,
): Promise<TaskTotals | null> {
  const node: Node | null = (await read(nodeById(nodeId))) ?? (await read(deletedNode(nodeId)));
  if (!node) return null;
  const failed = statuses.includes("failed") ? await read(failedOfNode(nodeId, LIST_FAILED_COUNTED_MAX)) : 0;
  return { open: 0, assigned: node.tasksAssigned, completed: node.tasksCompleted, failed };
}

/** The tasks in those of `states` that are among `statuses`. */
function sumOf(totals: TaskTotals, states: readonly TaskStatus[], statuses: readonly TaskStatus[]): number {
  return states.reduce((sum, state) => sum + (statuses.includes(state) ? totals[state] : 0), 0);
}
