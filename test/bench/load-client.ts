// The bench's end of the load client: one child process, one job at a time.
import { join } from "node:path";
import { keepChild } from "./children.ts";
import { type Job, type Measurement, Reply } from "./job.ts";

const SOURCE = join(import.meta.dir, "load.ts");

/** A running load client. */
export type LoadClient = { run(job: Job): Promise<Measurement>; stop(): Promise<void> };

/** Starts the load client's process. `run` rejects when the job failed or the process ended. */
export function startLoadClient(): LoadClient {
  let pending: PromiseWithResolvers<Measurement> | null = null;
  const child = keepChild(
    Bun.spawn([process.execPath, SOURCE], {
      stdio: ["ignore", "ignore", "inherit"],
      ipc(message: unknown) {
        const reply = Reply.parse(message);
        if ("error" in reply) pending?.reject(new Error(reply.error));
        else pending?.resolve(reply.measurement);
      },
    }),
  );
  void child.exited.then((code) => pending?.reject(new Error(`the load client ended with ${code}`)));
  return {
    run(job) {
      pending = Promise.withResolvers<Measurement>();
      child.send(job);
      return pending.promise;
    },
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}
