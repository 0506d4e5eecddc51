/**
 * The whole client, as its package exports it: the hub of luxhub.ts, which can also run a worker. The dashboard leaves the
 * worker out, because it is a tenth of the page.
 */
import { LuxHub as Hub } from "./luxhub.ts";
import type { Variant } from "./types.ts";
import type { Handler } from "./handler.ts";
import { type WorkerOptions, runWorker } from "./worker.ts";

export * from "./luxhub.ts";
export {
  type AskOptions,
  AttemptStalled,
  FatalError,
  type Handler,
  type TaskContext,
  type Used,
  type WorkerEvent,
  WorkerOutage,
} from "./handler.ts";
export type { WorkerOptions } from "./worker.ts";

/** A hub, with all its calls, and the worker. */
export class LuxHub<V extends Variant = "A"> extends Hub<V> {
  /** Registers a node and does its tasks until a signal of the options stops the worker. */
  worker(nodeId: string, handler: Handler<V>, options: WorkerOptions<V> = {}): Promise<void> {
    const hub = { call: this.call.bind(this), stream: this.stream.bind(this), upload: this.files.upload };
    return runWorker<V>(hub, nodeId, handler, options);
  }
}
