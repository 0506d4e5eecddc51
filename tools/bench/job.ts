// The messages between the bench and its load client, checked on both sides. Times in milliseconds.
import { z } from "zod";

/** One measurement: `connections` nodes repeat one scenario against one server for `windowMs`. */
export const Job = z.object({
  /** Of one server, or of several hubs that are one: the connections are spread over them. */
  ports: z.array(z.int()).min(1),
  secret: z.string(),
  scenario: z.string(),
  connections: z.int().positive(),
  windowMs: z.number().positive(),
  /** False for the bare server: its answers hold no ids and nothing else to look for. */
  isChecked: z.boolean(),
});
export type Job = z.infer<typeof Job>;

/** What one measurement found. Requests and cycles are those answered inside the window. */
export const Measurement = z.object({
  requests: z.int(),
  cycles: z.int(),
  cyclesInAll: z.int(),
  requestsPerSecond: z.number(),
  cyclesPerSecond: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  /** Answers other than 200, or without what they must hold; `failure` is the first one. */
  failures: z.int(),
  failure: z.string().nullable(),
  /** The load client's own use of a core, 0 to 1: near 1, the client is the limit, not the server. */
  clientCpu: z.number(),
});
export type Measurement = z.infer<typeof Measurement>;
