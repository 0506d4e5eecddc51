// The bench's end of a load client: one child process, one job at a time.
import { z } from "zod";
import { keepChild } from "./children.ts";

/** A running load client. */
export type LoadClient<Job, Found> = { run(job: Job): Promise<Found>; stop(): Promise<void> };

/**
 * Starts a load client's process. `command` runs a job server (job-server.ts) that answers each job with a `shape`.
 * `run` rejects when the job failed or the process ended.
 */
export function startLoadClient<Job extends object, Found>(
  command: readonly string[],
  shape: z.ZodType<Found>,
): LoadClient<Job, Found> {
  const Reply = z.union([z.object({ found: shape }), z.object({ error: z.string() })]);
  let pending: PromiseWithResolvers<Found> | null = null;
  const child = keepChild(
    Bun.spawn([...command], {
      serialization: "json", // for Node's sake
      stdio: ["ignore", "ignore", "inherit"],
      ipc(message: unknown) {
        const reply = Reply.parse(message);
        if ("error" in reply) pending?.reject(new Error(reply.error));
        else pending?.resolve(reply.found);
      },
    }),
  );
  void child.exited.then((code) => pending?.reject(new Error(`the load client ended with ${code}`)));
  return {
    run(job) {
      pending = Promise.withResolvers<Found>();
      child.send(job);
      return pending.promise;
    },
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}
