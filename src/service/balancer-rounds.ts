/**
 * The balancer over the pool: reads who takes what, walks through what waits and is taken by somebody, and gives it out a
 * bounded step at a time, each a commit of its own. Between two steps requests are served.
 *
 * Each step decides by the nodes as they are then. What was read before only says what is worth a step.
 */
import type { Candidate } from "../domain/balancer.ts";
import { accept } from "../domain/decision.ts";
import { Fleet } from "../domain/balancer-queue.ts";
import { BALANCE_ROUND_MAX, BALANCE_TYPES_MAX, NODES_PART, SWEEP_BATCH } from "../domain/limits.ts";
import { assignTo } from "../domain/task.ts";
import type { Clock } from "../lib/clock.ts";
import { availableAfter, availableNodes, isPoolEmpty, openBySeq } from "../store/sql/balancer.ts";
import { KnownCapabilities } from "../store/sql/rows.ts";
import type { Store } from "../store/store.ts";
import { PoolWalk, othersTurn, typesInPool } from "./backlog.ts";

export type Assignment = { readonly taskId: string; readonly nodeId: string };

/** What one round gave out, best task first, and whether it ended at its limit and not at the end of the pool. */
export type Round = { readonly assignments: readonly Assignment[]; readonly isCutShort: boolean };

type Scene = { readonly fleet: Fleet; readonly known: KnownCapabilities };

export class Balancing {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Gives out open tasks, best first: all of them, or only those the balancer may give away by itself; BALANCE_ROUND_MAX at most. */
  async run(onlyBalanced: boolean, signal?: AbortSignal): Promise<Round> {
    const assignments: Assignment[] = [];
    // Most often nothing waits: then the fleet is not read.
    if (await this.#store.read(isPoolEmpty(onlyBalanced))) return { assignments, isCutShort: false };
    const wanted = await this.#typesWanted(onlyBalanced);
    const scene: Scene = { fleet: new Fleet(wanted), known: new KnownCapabilities() };
    await this.#meetAll(scene);
    const isTaken = (type: string | null): boolean =>
      type === null ? scene.fleet.takesAll : scene.fleet.takes(type);
    const typesTaken = (): Promise<readonly string[]> => this.#typesTaken(onlyBalanced, wanted, scene);
    let overAll = scene.fleet.takesAll;
    let walk = await PoolWalk.begin(this.#store, onlyBalanced, overAll ? null : await typesTaken());
    while (!signal?.aborted) {
      const most = Math.min(SWEEP_BATCH, BALANCE_ROUND_MAX - assignments.length);
      if (most === 0) return { assignments, isCutShort: true };
      const seqs = await walk.next(most, isTaken);
      if (seqs.length > 0) assignments.push(...(await this.#give(seqs, scene)));
      if (overAll && !scene.fleet.takesAll) {
        // Whoever takes all is full: on from where it stands, over what the others take.
        overAll = false;
        walk = await PoolWalk.begin(this.#store, onlyBalanced, await typesTaken(), walk.cursor);
      } else if (seqs.length < most) break;
    }
    return { assignments, isCutShort: false };
  }

  /** The types of what waits; null when they are too many to be held. */
  async #typesWanted(onlyBalanced: boolean): Promise<ReadonlySet<string> | null> {
    const wanted = new Set<string>();
    for await (const types of typesInPool(this.#store, onlyBalanced)) {
      for (const type of types) wanted.add(type);
      if (wanted.size > BALANCE_TYPES_MAX) return null;
    }
    return wanted;
  }

  /** The types of what waits that somebody takes: gone through from the side that has fewer of them. */
  async #typesTaken(
    onlyBalanced: boolean,
    wanted: ReadonlySet<string> | null,
    { fleet }: Scene,
  ): Promise<readonly string[]> {
    const isTaken = (type: string): boolean => fleet.takes(type);
    if (wanted) return [...wanted].filter(isTaken);
    if (fleet.types.size <= BALANCE_TYPES_MAX) return ["", ...fleet.types.keys()].filter(isTaken);
    const taken = new Set<string>();
    for await (const types of typesInPool(this.#store, onlyBalanced))
      for (const type of types) if (isTaken(type)) taken.add(type);
    return [...taken];
  }

  /** Enters who takes what, a number of nodes at a time. */
  async #meetAll({ fleet, known }: Scene): Promise<void> {
    for (let after: string | undefined = ""; after !== undefined;) {
      const nodes: readonly Candidate[] = await this.#store.read(availableAfter(after, NODES_PART, known));
      fleet.meet(nodes);
      await othersTurn();
      after = nodes.length < NODES_PART ? undefined : nodes.at(-1)?.nodeId;
    }
  }

  /** One step: the tasks are those of a walk that may have been taken meanwhile. */
  async #give(seqs: readonly number[], { fleet, known }: Scene): Promise<readonly Assignment[]> {
    const now = this.#clock.now();
    const load = { tasks: openBySeq(seqs), nodes: availableNodes(known) };
    return this.#store.transact(load, ({ tasks, nodes }) => {
      fleet.see(nodes);
      const given = fleet.give(tasks, now);
      const changes = given.flatMap(({ task, nodeId }) => assignTo(task, nodeId, "balancer", now).changes);
      return accept(
        given.map(({ task, nodeId }): Assignment => ({ taskId: task.taskId, nodeId })),
        changes,
      );
    });
  }
}
