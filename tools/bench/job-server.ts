// The child's end of a load client: takes jobs over IPC, one after the other, and replies to each. It ends with
// its parent.

export type Reply<Found> = { found: Found } | { error: string };

/** Serves jobs for as long as the parent lives; what `work` throws is the reply to that job. */
export function serveJobs(work: (job: unknown) => Promise<unknown>): void {
  const reply = async (job: unknown): Promise<Reply<unknown>> => {
    try {
      return { found: await work(job) };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  };
  process.on("message", async (job: unknown) => process.send?.(await reply(job)));
  process.on("disconnect", () => process.exit());
  // Ctrl-C reaches the whole group: the parent decides when this ends.
  process.on("SIGINT", () => {});
}

/** Rejects when `work` has not ended after `limitMs`; the work itself is not stopped by that. */
export async function within<T>(limitMs: number, what: string, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${what}: nothing within ${limitMs} ms`)), limitMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
