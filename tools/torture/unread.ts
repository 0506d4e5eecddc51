/**
 * Callers that request the largest answers and read nothing: the hub's memory for all of them, the latency of other
 * requests, and whether the hub cuts them off in time.
 */
import { readdirSync } from "node:fs";
import { CONTENT_MAX_BYTES, MESSAGES_ANSWER_MAX_BYTES } from "../../src/domain/limits.ts";
import { type Hub, memoryMib, until } from "../../test/e2e/program.ts";
import { headOf, postOf } from "../../test/e2e/raw.ts";
import { forEach } from "./crowd.ts";
import { type Latency, probe } from "./probe.ts";

/** Only a hang lasts longer: how soon they are gone is a figure of the table. */
const LONGEST_STALL_MS = 400_000;

/** What they ask for; each caller of `receive` is a node of its own, all with the same messages. */
export const UNREAD_KINDS = ["history", "mailbox", "receive", "list"] as const;
export type UnreadKind = (typeof UNREAD_KINDS)[number];

export type UnreadReport = {
  /** What all asked for. */
  readonly askedMib: number;
  /** How much more the hub held at most. */
  readonly grewMib: number;
  readonly meanwhile: Latency;
  /** When the hub had none of them any more; null where nobody waited for that. */
  readonly goneAfterMs: number | null;
};

export async function measureUnread(
  hub: Hub,
  kind: UnreadKind,
  callers: number,
  probeMs: number,
  awaitGone: boolean,
): Promise<UnreadReport> {
  const pieces = MESSAGES_ANSWER_MAX_BYTES / CONTENT_MAX_BYTES;
  await hub.register("probe");
  await forEach(kind === "receive" ? callers : 1, (i) => hub.register(`reader-${i}`));
  const content = "x".repeat(CONTENT_MAX_BYTES);
  const description = "x".repeat(CONTENT_MAX_BYTES / 4);
  for (let i = 0; i < pieces * (kind === "list" ? 4 : 1); i++) {
    if (kind === "list") await hub.post("/task/create", { title: `${i}`, description });
    else await hub.post("/message/broadcast", { from_node: "probe", content });
  }
  const before = memoryMib(hub.pid, "VmHWM");
  const open = (): number => readdirSync(`/proc/${hub.pid}/fd`).length;
  const openBefore = open();
  const sockets: Bun.Socket[] = [];
  const startedMs = performance.now();
  await forEach(callers, async (i) => {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port: hub.port, socket: { data: () => {} } });
    socket.pause();
    socket.write(requestOf(kind, i));
    sockets.push(socket);
  });
  const meanwhile = await probe(hub, probeMs);
  let goneAfterMs: number | null = null;
  if (awaitGone) {
    await until(() => open() <= openBefore, LONGEST_STALL_MS, 100);
    goneAfterMs = performance.now() - startedMs;
  }
  const grewMib = memoryMib(hub.pid, "VmHWM") - before;
  for (const socket of sockets) socket.terminate();
  return { askedMib: (callers * MESSAGES_ANSWER_MAX_BYTES) / 2 ** 20, grewMib, meanwhile, goneAfterMs };
}

function requestOf(kind: UnreadKind, i: number): string {
  switch (kind) {
    case "history":
      return headOf({ path: "/message/history?node_id=reader-0&count=1000" });
    case "mailbox":
      return headOf({ path: "/agent/messages?node_id=reader-0&limit=1000" });
    case "receive":
      return postOf("/message/receive", { node_id: `reader-${i}`, count: 1000 });
    case "list":
      return headOf({ path: "/task/list?per_page=50" });
  }
}
