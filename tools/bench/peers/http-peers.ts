// The hub itself and bunqueue: both speak HTTP, so both get the bench's own load client, one keep-alive connection a
// worker with one request outstanding.
import { join } from "node:path";
import { type Job, Measurement } from "../job.ts";
import { type LoadClient, startLoadClient, together } from "../load-client.ts";
import { WORKS, nameWith } from "../scenarios.ts";
import { SECRET, startHub } from "../server-under-test.ts";
import type { BullmqJob } from "./bullmq-job.ts";
import { BUNQUEUE } from "./bunqueue-scenario.ts";
import type { BatchJob } from "../postgres/batch-load.ts";
import { type Against, type Peer, type RunningPeer, startServer } from "./peer.ts";

const LOAD = "a connection each";

/** luxhub; `command` runs it, without `serve`. The workers are in so many processes. */
export function luxhubPeer(command: readonly string[], processes = 1): Peer {
  return {
    name: "luxhub",
    cycle: "create, claim, complete",
    load: processes === 1 ? LOAD : `${LOAD}, ${processes} processes`,
    works: WORKS,
    goal: null,
    async start(connections, dataRoot) {
      const hub = await startHub(command, dataRoot);
      return httpPeer(hub, "cycle", connections, processes);
    },
  };
}

/** luxhub with its requests in batches of `batch`, of about as many tasks together as there are `singles`, single callers. */
export function luxhubBatchPeer(
  command: readonly string[],
  { batch, singles, goal, against }: { batch: number; singles: number; goal: number; against: Against },
): Peer {
  const workers = Math.max(1, Math.round(singles / batch));
  return {
    name: `luxhub, batches of ${batch}`,
    cycle: "create, claim, complete, each by POST batch",
    load: `${workers} connections`,
    works: WORKS.slice(0, 1),
    goal,
    against,
    async start(_, dataRoot) {
      const hub = await startHub(command, dataRoot);
      const source = join(import.meta.dir, "../postgres/batch-load.ts");
      const client = startLoadClient<BatchJob, Measurement>([process.execPath, source], Measurement);
      const job = { ports: [hub.port], secret: SECRET, workers, batch };
      return {
        pid: hub.pid,
        run: (windowMs) => client.run({ ...job, takes: "claim", windowMs }),
        async stop() {
          await Promise.all([client.stop(), hub.stop()]);
        },
      };
    },
  };
}

/** bunqueue, from the packages in `folder`, over HTTP or over TCP by its own library. */
export function bunqueuePeer(folder: string, version: string, over: "HTTP" | "TCP"): Peer {
  const isHttp = over === "HTTP";
  return {
    name: `bunqueue ${version} over ${over}, \`durable: true\``,
    cycle: isHttp ? "push, pull, ack" : "add, getNextJob, moveJobToCompleted",
    load: isHttp ? LOAD : "shared, pipelined",
    works: WORKS,
    goal: isHttp ? 6 : null,
    async start(connections, dataRoot) {
      let ports = { http: 0, tcp: 0 };
      const server = await startServer(dataRoot, ({ port, secondPort, data }) => {
        ports = { http: port, tcp: secondPort };
        return {
          command: [
            ...[process.execPath, join(folder, "node_modules/bunqueue/dist/cli/index.js"), "start"],
            ...["--host", "127.0.0.1", "--http-port", String(port), "--tcp-port", String(secondPort)],
            ...["--data-path", join(data, "bunqueue.db")],
          ],
          // It takes 10,000 requests a minute from one address, if not told otherwise.
          env: { RATE_LIMIT_WINDOW_MS: "1", RATE_LIMIT_MAX_REQUESTS: "1000000000" },
        };
      });
      if (isHttp) return httpPeer(server, BUNQUEUE, connections);
      const source = join(import.meta.dir, "bunqueue-load.ts");
      const client = startLoadClient<BullmqJob, Measurement>([process.execPath, source], Measurement);
      const job = { folder, port: ports.tcp, workers: connections, ownConnections: false };
      return {
        pid: server.pid,
        run: (windowMs, work) => client.run({ ...job, work, windowMs }),
        async stop() {
          await Promise.all([client.stop(), server.stop()]);
        },
      };
    },
  };
}

function httpPeer(
  server: { pid: number; port: number; stop(): Promise<void> },
  scenario: string,
  connections: number,
  processes = 1,
): RunningPeer {
  const source = join(import.meta.dir, "../load.ts");
  const clients: readonly LoadClient<Job, Measurement>[] = Array.from({ length: processes }, () =>
    startLoadClient([process.execPath, source], Measurement),
  );
  return {
    pid: server.pid,
    run: (windowMs, work) =>
      together(clients, (client) =>
        client.run({
          ...{ ports: [server.port], secret: SECRET, scenario: nameWith(scenario, work) },
          ...{ connections: Math.ceil(connections / processes), windowMs, isChecked: true },
        }),
      ),
    async stop() {
      await Promise.all([...clients.map((client) => client.stop()), server.stop()]);
    },
  };
}
