/** The use cases of reviews (domain/task/review.ts) and of families of tasks (domain/task/family.ts). */
import { UNDECIDED, accept, also } from "../domain/decision.ts";
import { type Family, checkFamilies } from "../domain/task/family.ts";
import { FAMILIES_CHECKED, QUORUM_COPIES_MAX, REVIEWS_COUNTED_MAX, SWEEP_BATCH } from "../domain/limits.ts";
import type { Gate, Moment, PendingReview, Task } from "../domain/model.ts";
import { Accounts, type ReviewRequest, review, timeOutReviews } from "../domain/task/review.ts";
import { must } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { NewId } from "../lib/ids.ts";
import type { Takers } from "../store/sql/balancer.ts";
import { ledgerHead } from "../store/sql/lux.ts";
import { nodeById, nodeEver } from "../store/sql/nodes.ts";
import { NO_ROW } from "../store/sql/query.ts";
import {
  type ReviewPosition,
  dueReviews,
  familyMembers,
  familyWorkers,
  markedFamilies,
  pendingReviews,
  reviewCount,
  workersOfDueReviews,
} from "../store/sql/reviews.ts";
import { taskById } from "../store/sql/tasks.ts";
import { type Committed, type Query, type Store, type Transact, transactAlso } from "../store/store.ts";
import { pageOfFound } from "./scan.ts";
import { UseCases } from "./use-cases.ts";

/** The most urgent first. `total` counts at most REVIEWS_COUNTED_MAX. */
type ReviewsPage = {
  readonly reviews: readonly PendingReview[];
  readonly total: number;
  readonly next: ReviewPosition | null;
};

type Followers = {
  readonly candidates: (task: Task | null) => Query<Takers>;
  /** With the gate that its transaction has loaded. */
  readonly at: (gate: Gate | null) => Moment;
  /** After a commit that has ended or opened tasks. */
  readonly follow: () => Promise<void>;
};

/** One for each copy of a quorum. */
const IDS_OF_FAMILY = QUORUM_COPIES_MAX;

export class ReviewService extends UseCases {
  readonly #newId: NewId;
  readonly #followers: Followers;

  constructor(store: Store, clock: Clock, newId: NewId, followers: Followers) {
    super(store, clock);
    this.#newId = newId;
    this.#followers = followers;
  }

  async review(transact: Transact<Task>, asked: ReviewRequest): Promise<Committed<Task>> {
    const entryId = this.#newId();
    // Whether it is balanced never changes, and the transaction checks who did the work.
    const before = await this.store.read(taskById(asked.taskId));
    for (let worker = before?.assignedNode ?? null; ;) {
      const expected = worker;
      const load = {
        task: taskById(asked.taskId),
        node: asked.nodeId === null ? NO_ROW : nodeById(asked.nodeId),
        worker: expected === null ? NO_ROW : nodeEver(expected),
        candidates: this.#followers.candidates(before),
        // A result that is rejected at once may be handed out again in this commit.
        gate: before?.balanced ? this.gate() : NO_ROW,
        head: ledgerHead(),
      };
      const { answer: reviewed, also: other = null } = await transactAlso(transact, load, (loaded) => {
        const { candidates, head, gate, ...rows } = loaded;
        const assignedNode = rows.task?.assignedNode ?? null;
        if (assignedNode !== expected) return also(UNDECIDED, assignedNode);
        const known = { ...rows, candidates: candidates.best };
        return review(known, asked, { entryId, head }, this.#followers.at(gate));
      });
      if (reviewed) await this.#followers.follow();
      if (reviewed) return reviewed;
      worker = other;
    }
  }

  async pending(from: ReviewPosition | null, limit: number): Promise<ReviewsPage> {
    const position = from ?? { until: 0, seq: 0 };
    return this.store.readTogether(async (read) => {
      const found = await read(pendingReviews(position, limit + 1));
      const { rows: reviews, next } = pageOfFound(found, limit, ({ review: { check }, seq }) => ({
        until: must(check, "a pending review has a deadline").until,
        seq,
      }));
      return { reviews, total: await read(reviewCount(REVIEWS_COUNTED_MAX)), next };
    });
  }

  /** At most SWEEP_BATCH. Returns how many there were. */
  async timeOut(): Promise<number> {
    const { now } = this.#followers.at(null);
    const load = {
      due: dueReviews(now, SWEEP_BATCH),
      workers: workersOfDueReviews(now, SWEEP_BATCH),
      head: ledgerHead(),
    };
    const entryIds = Array.from({ length: SWEEP_BATCH }, () => this.#newId());
    return this.store.transact(load, ({ due, workers, head }) => {
      const { changes } = timeOutReviews(
        due,
        new Accounts(workers, head),
        entryIds,
        this.#followers.at(null),
      );
      return accept(due.length, changes);
    });
  }

  /** As many as one transaction holds. Returns how many there were. */
  async checkFamilies(): Promise<number> {
    const load = {
      marked: markedFamilies(FAMILIES_CHECKED),
      members: familyMembers(FAMILIES_CHECKED),
      workers: familyWorkers(FAMILIES_CHECKED),
      head: ledgerHead(),
    };
    const ids = Array.from({ length: FAMILIES_CHECKED * IDS_OF_FAMILY }, () => this.#newId());
    return this.store.transact(load, ({ marked, members, workers, head }) => {
      const families = marked.map((taskId, i): Family => ({
        taskId,
        parent: members.find((task) => task.taskId === taskId) ?? null,
        children: members.filter(({ child }) => child?.of === taskId),
        ids: ids.slice(i * IDS_OF_FAMILY, (i + 1) * IDS_OF_FAMILY),
      }));
      return accept(
        marked.length,
        checkFamilies(families, new Accounts(workers, head), this.#followers.at(null)),
      );
    });
  }
}
