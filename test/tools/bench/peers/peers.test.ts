// The code that measures the peers, without the peers, which a test cannot install: the load client for beanstalkd
// against a server that answers in pieces, and the report on a missing peer.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Measurement } from "../../../../tools/bench/job.ts";
import { startLoadClient } from "../../../../tools/bench/load-client.ts";
import type { BeanstalkdJob } from "../../../../tools/bench/peers/beanstalkd-job.ts";
import { Missing, findProgram } from "../../../../tools/bench/peers/install.ts";
import { startServer } from "../../../../tools/bench/peers/peer.ts";
import { HANG_MS } from "../../../support/hang.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** Speaks as much of beanstalkd as the load client needs; answers each command in pieces of `pieceBytes`. */
function fakeBeanstalkd(pieceBytes: number, inserted: string): { port: number; jobs: Map<number, string> } {
  const jobs = new Map<number, string>();
  let lastId = 0;
  const reply = (command: string): string => {
    const [head = "", body = ""] = command.split("\r\n");
    const [word = "", id = ""] = head.split(" ");
    if (word === "put") {
      jobs.set(++lastId, body);
      return `${inserted} ${lastId}\r\n`;
    }
    if (word === "delete") return jobs.delete(Number(id)) ? "DELETED\r\n" : "NOT_FOUND\r\n";
    const [first] = jobs;
    return first === undefined ? "" : `RESERVED ${first[0]} ${first[1].length}\r\n${first[1]}\r\n`;
  };
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      async data(socket, chunk) {
        const answer = reply(chunk.toString());
        for (let at = 0; at < answer.length; at += pieceBytes) {
          socket.write(answer.slice(at, at + pieceBytes));
          socket.flush();
          await Bun.sleep(0);
        }
      },
    },
  });
  ends.push(() => server.stop(true));
  return { port: server.port, jobs };
}

function startClient() {
  const command = [
    process.execPath,
    join(import.meta.dir, "../../../../tools/bench/peers/beanstalkd-load.ts"),
  ];
  const client = startLoadClient<BeanstalkdJob, Measurement>(command, Measurement);
  ends.push(() => client.stop());
  return client;
}

test("the load client for beanstalkd does whole cycles and reads answers in pieces", async () => {
  const { port, jobs } = fakeBeanstalkd(100, "INSERTED");
  const measure = (windowMs: number) => startClient().run({ port, work: "16 kB", connections: 1, windowMs });
  let found = await measure(100);
  // A slow machine ends no cycle in so short a window.
  for (let windowMs = 400; found.cycles === 0 && windowMs < HANG_MS; windowMs *= 4)
    found = await measure(windowMs);
  expect(found.failures).toBe(0);
  expect(found.cycles).toBeGreaterThan(0);
  expect(found.cyclesInAll).toBeGreaterThanOrEqual(found.cycles);
  expect(found.requests).toBeGreaterThanOrEqual(3 * found.cycles);
  expect(jobs.size).toBe(0);
});

test("an unexpected answer fails the measurement", async () => {
  const { port } = fakeBeanstalkd(100, "BURIED");
  const run = startClient().run({ port, work: "170 B", connections: 1, windowMs: 100 });
  await expect(run).rejects.toThrow("INSERTED was due, BURIED came");
});

test("a missing program is one line that says how to get it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "luxhub-peers-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  const name = "no-such-queue-of-luxhub";
  const error = await findProgram(name, [name], folder, "-v").catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Missing);
  expect(String(error)).toContain(`apt-get install ${name}`);
  expect(String(error)).not.toContain("\n");
});

test("a server that ends before it listens is reported with its last output", async () => {
  const launch = () => ({ command: ["sh", "-c", "echo first; echo no room >&2; exit 3"], env: {} });
  await expect(startServer(tmpdir(), launch)).rejects.toThrow(/^sh does not listen: no room$/);
});
