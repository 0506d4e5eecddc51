// The messages between the bench and its pairs of a sender and a blocked receiver, checked on both sides.
import { z } from "zod";

export const WakeJob = z.object({
  server: z.enum(["luxhub", "redis"]),
  port: z.int(),
  secret: z.string(),
  pairs: z.int().positive(),
  /** Messages that each pair sends. */
  messages: z.int().positive(),
  /** From a receiver's request to the send, on average: by then the receiver is blocked. */
  pauseMs: z.number().positive(),
});
export type WakeJob = z.infer<typeof WakeJob>;

/** From the first byte of the send to the whole answer of the receive. */
export const Wakes = z.object({ p50Ms: z.number(), p99Ms: z.number(), clientCpu: z.number() });
export type Wakes = z.infer<typeof Wakes>;
