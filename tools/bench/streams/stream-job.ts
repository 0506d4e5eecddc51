// The messages between the bench and the clients of its streams, checked on both sides.
import { z } from "zod";

export const StreamJob = z.union([
  /** Opens a stream for each of `paths`; all of them are open when it is answered. */
  z.object({ kind: z.literal("open"), port: z.int(), secret: z.string(), paths: z.array(z.string()) }),
  /** What to look for in the streams of this port from now on. */
  z.object({ kind: z.literal("expect"), port: z.int(), mark: z.string() }),
  /** Waits until each of them has got it. */
  z.object({ kind: z.literal("collect"), port: z.int() }),
]);
export type StreamJob = z.infer<typeof StreamJob>;

/** When each stream got the text, in epoch milliseconds; and what the first one got with it. */
export const Arrivals = z.object({ atMs: z.array(z.number()), text: z.string() });
export type Arrivals = z.infer<typeof Arrivals>;

/** The wall clock, finer than Date.now(): the processes of one machine share it. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
