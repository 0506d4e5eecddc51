// BullMQ on a Redis that makes every write durable before it answers. Its client is its own library, in a process of its
// own: under Node if there is one, which runs it faster than Bun does.
import { join } from "node:path";
import { keepChild } from "../children.ts";
import { Measurement } from "../job.ts";
import { startLoadClient, together } from "../load-client.ts";
import type { BullmqJob } from "./bullmq-job.ts";
import type { Program } from "./install.ts";
import { WORKS } from "../scenarios.ts";
import { type Peer, type PeerServer, startServer } from "./peer.ts";

/** BullMQ from the packages in `folder`; with its workers' calls pipelined on a few connections, or on one each. */
export function bullmqPeer(
  folder: string,
  version: string,
  redis: Program,
  ownConnections: boolean,
  processes = 1,
): Peer {
  return {
    name: `BullMQ ${version} on Redis ${redis.version}, \`appendfsync always\``,
    cycle: "add, getNextJob, moveToCompleted",
    load: `${ownConnections ? "a connection each" : "shared, pipelined"}${processes > 1 ? `, ${processes} processes` : ""}`,
    works: WORKS,
    goal: processes > 1 ? null : ownConnections ? 2 : 0.9,
    async start(connections, dataRoot) {
      const program = await buildLoad(folder);
      const server = await startRedis(redis, dataRoot);
      const runtime = Bun.which("node") ?? process.execPath;
      const clients = Array.from({ length: processes }, () =>
        startLoadClient<BullmqJob, Measurement>([runtime, program], Measurement),
      );
      const workers = Math.ceil(connections / processes);
      const job = { folder, port: server.port, workers, ownConnections };
      return {
        pid: server.pid,
        run: (windowMs, work) => together(clients, (client) => client.run({ ...job, work, windowMs })),
        async stop() {
          await Promise.all(clients.map((client) => client.stop()));
          await server.stop();
        },
      };
    },
  };
}

/** A Redis that flushes every write to disk before it answers. */
export function startRedis(redis: Program, dataRoot: string): Promise<PeerServer> {
  return startServer(dataRoot, ({ port, data }) => ({
    command: [
      ...[redis.path, "--bind", "127.0.0.1", "--port", String(port), "--dir", data, "--save", ""],
      ...["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"],
    ],
    env: redis.env,
  }));
}

/** As JavaScript, for Node of any version. */
async function buildLoad(folder: string): Promise<string> {
  const program = join(folder, "bullmq-load.mjs");
  const source = join(import.meta.dir, "bullmq-load.ts");
  const build = [process.execPath, "build", "--target=node", source, "--outfile", program];
  const child = keepChild(Bun.spawn(build, { stdout: "ignore", stderr: "inherit" }));
  if ((await child.exited) !== 0) throw new Error("the load client for BullMQ did not compile");
  return program;
}
