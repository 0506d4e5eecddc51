// The bench's end of a load client: one child process, one job at a time.
import { z } from "zod";
import { keepChild } from "./children.ts";
import type { Measurement } from "./job.ts";

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

/** What several load clients at once have measured: sums, and of the percentiles the largest. */
export async function together<Client>(
  clients: readonly Client[],
  run: (client: Client) => Promise<Measurement>,
): Promise<Measurement> {
  const found = await Promise.all(clients.map(run));
  const sum = (pick: (each: Measurement) => number): number =>
    found.reduce((all, each) => all + pick(each), 0);
  const most = (pick: (each: Measurement) => number): number => Math.max(...found.map(pick));
  return {
    requests: sum(({ requests }) => requests),
    cycles: sum(({ cycles }) => cycles),
    cyclesInAll: sum(({ cyclesInAll }) => cyclesInAll),
    requestsPerSecond: sum(({ requestsPerSecond }) => requestsPerSecond),
    cyclesPerSecond: sum(({ cyclesPerSecond }) => cyclesPerSecond),
    p50Ms: most(({ p50Ms }) => p50Ms),
    p99Ms: most(({ p99Ms }) => p99Ms),
    failures: sum(({ failures }) => failures),
    failure: found.find(({ failure }) => failure !== null)?.failure ?? null,
    clientCpu: sum(({ clientCpu }) => clientCpu),
  };
}
