// beanstalkd with a log that is flushed to disk at every write.
import { join } from "node:path";
import { Measurement } from "../job.ts";
import { startLoadClient } from "../load-client.ts";
import type { BeanstalkdJob } from "./beanstalkd-job.ts";
import type { Program } from "./install.ts";
import { WORKS } from "../scenarios.ts";
import { type Peer, type PeerServer, startServer } from "./peer.ts";

export function beanstalkdPeer(program: Program): Peer {
  return {
    name: `beanstalkd ${program.version}, \`-b DIR -f 0\``,
    cycle: "put, reserve, delete",
    load: "a connection each",
    works: WORKS,
    goal: 2,
    async start(connections, dataRoot) {
      const server = await startBeanstalkd(program, dataRoot);
      const source = join(import.meta.dir, "beanstalkd-load.ts");
      const client = startLoadClient<BeanstalkdJob, Measurement>([process.execPath, source], Measurement);
      return {
        pid: server.pid,
        run: (windowMs, work) => client.run({ port: server.port, work, connections, windowMs }),
        async stop() {
          await client.stop();
          await server.stop();
        },
      };
    },
  };
}

/** A beanstalkd that flushes every write to disk before it answers. */
export function startBeanstalkd(program: Program, dataRoot: string): Promise<PeerServer> {
  return startServer(dataRoot, ({ port, data }) => ({
    command: [program.path, "-l", "127.0.0.1", "-p", String(port), "-b", data, "-f", "0"],
    env: program.env,
  }));
}
