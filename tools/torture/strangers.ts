/**
 * Callers without the secret who ask for much and read nothing: what the hub holds for them, and whether those who have
 * the secret get their answers meanwhile.
 */
import { RESULT_TEXT_MAX_BYTES } from "../../src/domain/limits.ts";
import { MIB, upload } from "../../test/e2e/large-file.ts";
import { join } from "node:path";
import { RawConnection, headOf } from "../../test/e2e/raw.ts";
import { type Hub, listOf, memoryMib } from "../../test/e2e/program.ts";
import { forEach } from "./crowd.ts";

/** Far more than the sockets of one connection hold. */
const FILE_MIB = 64;
/** How long the unread answers are watched. */
const WATCH_MS = 3_000;
const BIG_TASKS = 50;
/** A control character is six bytes of JSON. */
const BIG_DESCRIPTION = "\u0001".repeat(RESULT_TEXT_MAX_BYTES);

/** By which the whole file is sent, or a part of it, as the one who asks chooses. */
export const RANGES = { none: null, one: "bytes=1-", two: "bytes=0-1,4-5", invalid: "bytes=9-2" } as const;
export type RangeKind = keyof typeof RANGES;

/** So many requests without the secret whose answers are not read. */
export async function askAndReadNothing(
  port: number,
  path: string,
  callers: number,
  headers: readonly string[] = [],
): Promise<{ hangUp(): void }> {
  const sockets: Bun.Socket[] = [];
  const head = ["Host: 127.0.0.1", ...headers].join("\r\n");
  await forEach(callers, async () => {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
    socket.pause();
    socket.write(`GET /api/v1${path} HTTP/1.1\r\n${head}\r\n\r\n`);
    sockets.push(socket);
  });
  return { hangUp: () => sockets.forEach((socket) => socket.terminate()) };
}

/** How much more memory the hub holds, in MiB, while so many callers with each range do not read the file they ask for. */
export async function measureUnreadDownloads(
  hub: Hub,
  kinds: readonly RangeKind[],
  callers: number,
): Promise<number> {
  const { fileId } = await upload(hub, FILE_MIB);
  const before = memoryMib(hub.pid, "VmRSS");
  const crowds = await Promise.all(
    kinds.map((kind) => {
      const headers = RANGES[kind] === null ? [] : [`Range: ${RANGES[kind]}`];
      return askAndReadNothing(hub.port, `/file/download/${fileId}`, callers, headers);
    }),
  );
  let most = before;
  for (let waitedMs = 0; waitedMs < WATCH_MS; waitedMs += 100) {
    await Bun.sleep(100);
    most = Math.max(most, memoryMib(hub.pid, "VmRSS"));
  }
  for (const crowd of crowds) crowd.hangUp();
  return most - before;
}

export type BesideStrangers = {
  /** How much more memory the hub held at most, in MiB. */
  readonly grewMib: number;
  /** Of a receive, with the secret, of as much as one answer carries. */
  readonly status: number;
  readonly count: number;
  readonly tookMs: number;
};

/** A large receive beside so many callers without the secret who do not read the lists they ask for. */
export async function measureBesideStrangers(hub: Hub, callers: number): Promise<BesideStrangers> {
  for (let i = 0; i < BIG_TASKS; i++)
    await hub.post("/task/create", { title: `${i}`, description: BIG_DESCRIPTION });
  await hub.register("receiver");
  for (let i = 0; i < 8; i++) {
    const content = "x".repeat(MIB / 4);
    await hub.post("/message/send", { from_node: "operator", to_node: "receiver", content });
  }
  const before = memoryMib(hub.pid, "VmRSS");
  const crowd = await askAndReadNothing(hub.port, "/task/list?per_page=50", callers);
  await Bun.sleep(WATCH_MS);
  const startedMs = performance.now();
  const { status, body } = await hub.post("/message/receive", { node_id: "receiver", count: 1_000 });
  const tookMs = performance.now() - startedMs;
  const grewMib = memoryMib(hub.pid, "VmHWM") - before;
  crowd.hangUp();
  return { grewMib, status, count: listOf(body["messages"]).length, tookMs };
}

/** The slowest of the others' requests, in ms, while one commit wakes so many polls; and how many polls it answered. */
export async function measureWoken(
  hub: Hub,
  polls: number,
): Promise<{ slowestMs: number; answered: number }> {
  const waiting: RawConnection[] = [];
  await forEach(polls, async () => {
    const poll = await RawConnection.open(hub.port);
    poll.send(headOf({ path: "/poll?timeout=60" }));
    waiting.push(poll);
  });
  await Bun.sleep(WATCH_MS);
  const others = startOthers(hub.port);
  await others.ready;
  await hub.post("/task/create", { title: "for all", description: "d" });
  await Promise.all(waiting.map((poll) => poll.got(/task\.created/)));
  const slowestMs = await others.stop();
  for (const poll of waiting) poll.cut();
  return { slowestMs, answered: waiting.length };
}

/** Somebody else, in a process of its own: receiving thousands of answers here would delay what it sees. */
function startOthers(port: number): { readonly ready: Promise<unknown>; stop(): Promise<number> } {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "others.ts"), String(port)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const line = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value);
  return {
    ready: line(),
    stop: async () => {
      await child.stdin.end();
      return Number(await line());
    },
  };
}
