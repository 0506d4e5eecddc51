// The job of the load clients for the libraries on PostgreSQL.
import { z } from "zod";
import { WORKS } from "../scenarios.ts";

export const LibraryJob = z.object({
  folder: z.string(),
  /** The server, and a database of the library's own. */
  url: z.string(),
  work: z.enum(WORKS),
  workers: z.int().positive(),
  batch: z.int().positive(),
  pool: z.int().positive(),
  windowMs: z.number().positive(),
});
export type LibraryJob = z.infer<typeof LibraryJob>;
