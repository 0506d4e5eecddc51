// The messages between the bench and the workers of its dispatches, checked on both sides.
import { z } from "zod";

/** How a worker gets a task: by an id that it is told, by a pull and a claim, or by task/next. */
export const WAYS = ["claim", "pull", "next"] as const;

export const NextJob = z.object({
  port: z.int(),
  secret: z.string(),
  workers: z.int().positive(),
  tasks: z.int().positive(),
  way: z.enum(WAYS),
  /** False: the tasks wait before the first worker asks. True: the workers wait, and the tasks are created meanwhile. */
  tasksCome: z.boolean(),
  /** Connects the workers and prepares what is not measured, or hands the tasks out. */
  step: z.enum(["prepare", "run"]),
});
export type NextJob = z.infer<typeof NextJob>;

export const Dispatches = z.object({
  dispatches: z.int(),
  tookMs: z.number(),
  /** Until a worker has its task: from its request or, if tasks come, from the request that creates the task. */
  p50Ms: z.number(),
  p99Ms: z.number(),
  conflicts: z.int(),
  clientCpu: z.number(),
});
export type Dispatches = z.infer<typeof Dispatches>;
