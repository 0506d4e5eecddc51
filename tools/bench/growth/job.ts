// The messages between the growth bench and its load client. Times in milliseconds.
import { z } from "zod";

/** The requests whose time must not grow, in the order in which they are measured. */
export const OPERATIONS = [
  "create",
  "claim",
  "complete",
  "pull",
  "list",
  "stats",
  "receive",
  "heartbeat",
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** What is done beside them, and not reported: the messages to be received, and the created tasks taken out again. */
const CHORES = ["send", "delete"] as const;

/** One phase: `count` requests of one kind, each as the next node of the fleet, over `connections`. */
export const PhaseJob = z.object({
  port: z.int(),
  secret: z.string(),
  adminKey: z.string(),
  operation: z.enum([...OPERATIONS, ...CHORES]),
  connections: z.int().positive(),
  count: z.int().positive(),
  nodes: z.int().positive(),
});
export type PhaseJob = z.infer<typeof PhaseJob>;

export const Phase = z.object({
  requestsPerSecond: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  /** Answers other than 200, or without what they must hold; `failure` is the first one. */
  failures: z.int(),
  failure: z.string().nullable(),
});
export type Phase = z.infer<typeof Phase>;
