// The messages between the bench and its pairs of a sender and a blocked receiver, checked on both sides.
import { z } from "zod";

/** What the pairs talk to: one or two hubs, a Redis, a beanstalkd, or a PostgreSQL without a hub. */
export const WakeServer = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("luxhub"),
    /** A message that a receive takes, or a task that a task/next takes. */
    what: z.enum(["message", "task"]),
    sendPort: z.int(),
    receivePort: z.int(),
    secret: z.string(),
  }),
  z.object({ kind: z.literal("beanstalkd"), port: z.int() }),
  z.object({ kind: z.literal("redis"), port: z.int() }),
  z.object({ kind: z.literal("postgres"), url: z.string() }),
]);
export type WakeServer = z.infer<typeof WakeServer>;

export const WakeJob = z.object({
  server: WakeServer,
  pairs: z.int().positive(),
  messages: z.int().positive(),
  /** From a receiver's request to the send, on average: by then the receiver is blocked. */
  pauseMs: z.number().positive(),
  /** What is sent becomes ready so late, in seconds; this is not counted in the times. */
  delayS: z.int().nonnegative(),
});
export type WakeJob = z.infer<typeof WakeJob>;

/** From the beginning of the send to the whole answer of the receive, without the delay: how late it is. */
export const Wakes = z.object({ p50Ms: z.number(), p99Ms: z.number(), clientCpu: z.number() });
export type Wakes = z.infer<typeof Wakes>;
