/**
 * The output of tasks while they run: appends it, reads it by offset, and wakes the calls and streams that wait for more.
 *
 * A reader is a place: an attempt and an offset in it. It misses nothing and sees nothing twice, whenever and at whichever
 * hub it reads; a wake-up only says when to read.
 */
import { Rejection, taskNotFound } from "../domain/decision.ts";
import { OUTPUT_BLOCKS_PER_READ, OUTPUT_REREAD_MS } from "../domain/limits.ts";
import type { OutputAttempt, Task } from "../domain/model.ts";
import {
  type Appended,
  type OutputText,
  type OutputWindow,
  appendOutput,
  blockAt,
  textFrom,
} from "../domain/task/output.ts";
import type { HolderRequest } from "../domain/task/request.ts";
import { isFinished } from "../domain/task/state.ts";
import { isSealed } from "../domain/task/failure.ts";
import type { Clock } from "../lib/clock.ts";
import { nodeById } from "../store/sql/nodes.ts";
import { attemptsOf, outputBlocks } from "../store/sql/output.ts";
import { taskById } from "../store/sql/tasks.ts";
import type { Committed, Read, Store, Transact } from "../store/store.ts";
import { type Patience, untilFound } from "./blocked-calls.ts";
import { type Waiter, Waiters } from "./waiters.ts";
import { UseCases } from "./use-cases.ts";

/**
 * Where to read. `attempt`: its epoch, or that of the first later one that has output, read from its beginning; null:
 * the newest that has output.
 */
export type OutputPlace = { readonly attempt: number | null; readonly from: number };

export type OutputPart = OutputText & {
  readonly task: Task;
  /** null: no attempt from the asked one on has output yet. */
  readonly attempt: OutputAttempt | null;
  /** Oldest first. */
  readonly attempts: readonly OutputAttempt[];
  /** Of the task, if there is no attempt. */
  readonly hasEnded: boolean;
};

const NOTHING: OutputText = { from: 0, data: "", nextOffset: 0, dropped: 0 };

export class Outputs extends UseCases {
  readonly #window: OutputWindow;
  readonly #readers = new Waiters();

  constructor(store: Store, clock: Clock, window: OutputWindow) {
    super(store, clock);
    this.#window = window;
    store.onCommit((changes) => {
      if (this.#readers.size === 0) return;
      for (const change of changes) {
        if (change.kind === "output.appended" || change.kind === "output.changed")
          this.#readers.wakeAll(change.taskId);
        // An attempt has begun or ended. Those of other hubs come only as events.
        else if (change.kind === "event.logged" && change.event.taskId !== null)
          this.#readers.wakeAll(change.event.taskId);
      }
    });
  }

  append(
    transact: Transact<Appended>,
    asked: HolderRequest & { readonly offset: number; readonly data: string },
  ): Promise<Committed<Appended>> {
    const { taskId, nodeId } = asked;
    const load = { task: taskById(taskId), node: nodeById(nodeId), attempts: attemptsOf(taskId) };
    return transact(load, ({ task, node, attempts }) => {
      const at = this.at();
      return appendOutput(task, node, attempts, asked, this.#window, at);
    });
  }

  /** Reads at most `maxBlocks` blocks, up to the next gap. @throws {Rejection} task_not_found */
  read(taskId: string, place: OutputPlace, maxBlocks = OUTPUT_BLOCKS_PER_READ): Promise<OutputPart> {
    return this.store.readTogether((read) => readPart(read, taskId, place, maxBlocks));
  }

  /**
   * Reads as soon as there is more, or the attempt has ended, or the wait is over.
   * @throws {Rejection} task_not_found, also when the task is deleted meanwhile
   * @throws {WaitAborted} when the caller is gone
   */
  async next(taskId: string, place: OutputPlace, { waitMs, signal }: Patience): Promise<OutputPart> {
    const find = async (): Promise<OutputPart | null> => {
      const part = await this.read(taskId, place);
      return part.data !== "" || part.hasEnded ? part : null;
    };
    const until = this.clock.steady() + waitMs;
    for (let leftMs = waitMs; leftMs > 0; leftMs = until - this.clock.steady()) {
      const patience = { waitMs: Math.min(leftMs, OUTPUT_REREAD_MS), signal };
      const found = await untilFound(this.join(taskId), find, patience, this.clock);
      if (found !== null) return found;
      if (this.#isDraining) break;
    }
    return this.read(taskId, place);
  }

  join(taskId: string): Waiter {
    return this.#readers.join(taskId);
  }

  #isDraining = false;

  /** Now and from now on: the hub shuts down. */
  drain(): void {
    this.#isDraining = true;
    this.#readers.drain();
  }
}

async function readPart(
  read: Read,
  taskId: string,
  { attempt: asked, from: askedFrom }: OutputPlace,
  maxBlocks: number,
): Promise<OutputPart> {
  const task = await read(taskById(taskId));
  if (!task) throw new Rejection(taskNotFound(taskId));
  const attempts = task.hasOutput && !isSealed(task) ? await read(attemptsOf(taskId)) : [];
  const attempt = (asked === null ? attempts.at(-1) : attempts.find(({ epoch }) => epoch >= asked)) ?? null;
  if (attempt === null) return { ...NOTHING, task, attempt, attempts, hasEnded: isFinished(task) };
  const { epoch, bytes } = attempt;
  const hasEnded = task.status !== "assigned" || task.epoch !== epoch;
  const from = asked === null || asked === epoch ? askedFrom : 0;
  const blocks = from >= bytes ? [] : await read(outputBlocks(taskId, epoch, blockAt(from), maxBlocks));
  return { ...textFrom(blocks, from, bytes), task, attempt, attempts, hasEnded };
}
