/** Waiting calls without traffic: a stream for ten minutes, a receive of the longest timeout, and a repeat of it. */
import type { Hub } from "../../test/e2e/program.ts";
import { RawConnection, headOf, postOf } from "../../test/e2e/raw.ts";

const NODE = "quiet";
const SECOND_MS = 1_000;

export type QuietReport = {
  /** Whether the stream, the receive and the repeat of the receive were there to the end. */
  readonly held: readonly boolean[];
  readonly streamMs: number;
  readonly receiveMs: number;
};

/** The stream is told something only after `streamSeconds`; the receive waits for `receiveSeconds` and gets nothing. */
export async function measureQuiet(
  hub: Hub,
  streamSeconds: number,
  receiveSeconds: number,
): Promise<QuietReport> {
  await hub.register(NODE);
  await hub.register("nobody");
  const startedMs = performance.now();
  const stream = await RawConnection.open(hub.port);
  stream.send(headOf({ path: `/agent/sse?node_id=${NODE}` }));
  const body = { node_id: "nobody", blocking: true, timeout: receiveSeconds };
  const keyed = postOf("/message/receive", body).replace("\r\n", "\r\nIdempotency-Key: quiet\r\n");
  const receives = await Promise.all([keyed, keyed].map(() => RawConnection.open(hub.port)));
  const answered = receives.map(async (receive) => {
    receive.send(keyed);
    const [answer] = await receive.got(/^HTTP\/1\.1 200 [\s\S]*\}$/);
    return answer.includes('"count":0');
  });
  const held = await Promise.all(answered.map((answer) => answer.catch(() => false)));
  const receiveMs = performance.now() - startedMs;
  await Bun.sleep(Math.max(0, startedMs + streamSeconds * SECOND_MS - performance.now()));
  const streamMs = performance.now() - startedMs;
  await hub.post("/message/send", { from_node: "operator", to_node: NODE, content: "still there?" });
  const told = stream.got(/still there\?/).then(
    () => true,
    () => false,
  );
  const isOpen = await told;
  for (const one of [stream, ...receives]) one.cut();
  return { held: [isOpen, ...held], streamMs, receiveMs };
}
