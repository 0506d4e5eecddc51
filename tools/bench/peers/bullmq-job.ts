// The job of the load client for BullMQ.
import { z } from "zod";
import { WORKS } from "../scenarios.ts";

export const BullmqJob = z.object({
  /** Where the packages are. */
  folder: z.string(),
  port: z.int(),
  work: z.enum(WORKS),
  workers: z.int().positive(),
  /** A connection for each worker, or a few that all of them share. */
  ownConnections: z.boolean(),
  windowMs: z.number().positive(),
});
export type BullmqJob = z.infer<typeof BullmqJob>;
