/**
 * Slow callers, in a process of their own so that they do not slow down the measurement: opens connections that send a
 * byte a second, until the hub closes each. Prints one line when all are open and one of JSON when all are closed.
 * Arguments: PORT COUNT KIND, where KIND is head, body, chunks or upload.
 */
import { RawConnection, headOf, uploadOf } from "../../test/e2e/raw.ts";

export type DripReport = {
  readonly cut: number;
  /** When the last one was cut, since it was opened. */
  readonly slowestMs: number;
  /** Statuses of answers that came before the end; a connection that was cut without one has none. */
  readonly statuses: readonly string[];
};

const [port, count, kind = "head"] = process.argv.slice(2);
/** The bytes of each second are sent in so many portions: no burst that others would have to wait behind. */
const PORTIONS = 20;

function beginning(): string {
  const secret = { "Content-Type": "application/json" };
  if (kind === "head") return headOf({ path: "/status" }).slice(0, 40);
  if (kind === "upload") return uploadOf(100_000).head + uploadOf(100_000).before;
  const framing = kind === "chunks" ? { "Transfer-Encoding": "chunked" } : { "Content-Length": "100000" };
  const head = headOf({ method: "POST", path: "/task/create", headers: { ...secret, ...framing } });
  return kind === "chunks" ? `${head}1\r\n{\r\n` : `${head}{`;
}

const DROP = kind === "head" ? "a" : kind === "chunks" ? "1\r\n \r\n" : " ";

const callers: { connection: RawConnection; openedMs: number; tookMs: number }[] = [];
for (let i = 0; i < Number(count); i++) {
  const connection = await RawConnection.open(Number(port));
  connection.send(beginning());
  const caller = { connection, openedMs: performance.now(), tookMs: Number.NaN };
  void connection.ended().then(() => (caller.tookMs = performance.now() - caller.openedMs));
  callers.push(caller);
}
console.log("open");

let portion = 0;
const timer = setInterval(() => {
  portion++;
  for (let i = portion % PORTIONS; i < callers.length; i += PORTIONS) {
    const caller = callers[i];
    if (caller?.connection.ending === null) caller.connection.send(DROP);
  }
}, 1_000 / PORTIONS);

await Promise.all(callers.map(({ connection }) => connection.ended()));
clearInterval(timer);
const report: DripReport = {
  cut: callers.length,
  slowestMs: Math.max(...callers.map(({ tookMs }) => tookMs)),
  statuses: [...new Set(callers.map(({ connection }) => connection.received.slice(9, 12)))],
};
console.log(JSON.stringify(report));
