/**
 * A Redis that fails under load: frozen (its sockets stay open, and it does not answer), or killed and restarted empty.
 * Meanwhile senders and receivers continue, and keep a ledger of answers with 200, received and acknowledged messages.
 */
import { Hub, TempDir, listOf, objectOf, SECRET, until } from "../../test/e2e/program.ts";
import { MailHubs } from "../../test/mail/hubs.ts";
import { RedisServer, withoutRedis } from "../../test/support/redis.ts";
import { type Figure, type Section, notRun } from "./section.ts";
import { type CutReport, Traffic } from "./traffic.ts";

const BACK_WITHIN_MS = 5_000;
const WORK = 100;

export type Cut = "frozen" | "killed";

/** Runs traffic over hubs that share `redis`, fails it for `cutMs`, and reports. */
export async function cutUnderLoad(
  apis: readonly string[],
  redis: RedisServer,
  cut: Cut,
  { aroundMs, cutMs }: { readonly aroundMs: number; readonly cutMs: number },
): Promise<CutReport> {
  const traffic = new Traffic(async (path, body, turn) => {
    const headers = { "X-Matrix-Secret": SECRET };
    const url = `${apis[turn % apis.length]}${path}`;
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, body: objectOf(await answer.text()) };
  });
  const since = Math.max(...(await Promise.all(apis.map((api) => lastEvent(api)))));
  const stop = await traffic.start();
  const carrier = (): string | undefined => traffic.report.transports.at(-1);
  await until(() => carrier() === "redis"); // however slow the machine
  await Bun.sleep(aroundMs); // load: the test is about its timing
  if (cut === "frozen") redis.freeze();
  else await redis.kill();
  await Bun.sleep(cutMs);
  await until(() => carrier() !== "redis");
  if (cut === "frozen") redis.thaw();
  else await redis.run();
  const backAt = performance.now();
  const before = [...traffic.sent.keys()];
  await until(
    async () =>
      before.every((id) => traffic.got.has(id)) &&
      (await Promise.all(apis.map(transportOf))).every((transport) => transport === "redis"),
  );
  traffic.report.caughtUpMs = performance.now() - backAt;
  await Bun.sleep(aroundMs);
  await until(() => traffic.sent.size > WORK && carrier() === "redis"); // also on a slow machine: without traffic the run proves nothing
  await stop();
  const events = await ask(`${apis[0]}/events?since=${since}&limit=1000&kind=transport.changed`);
  for (const { data } of listOf(events["events"])) {
    traffic.report.changes.push(String(Object(data)["to"]));
  }
  return traffic.report;
}

async function ask(url: string): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(url, { headers: { "X-Matrix-Secret": SECRET } });
  return objectOf(await answer.text());
}

async function transportOf(api: string): Promise<unknown> {
  return (await ask(`${api}/status`))["transport"];
}

async function lastEvent(api: string): Promise<number> {
  return Number((await ask(`${api}/events?limit=1`))["cursor"]);
}

/** One hub with a Redis of its own, which fails once. */
export async function cutOneHub(cut: Cut, times: { aroundMs: number; cutMs: number }): Promise<CutReport> {
  await using redis = await RedisServer.start();
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data"), env: { LUXHUB_REDIS: redis.url } });
  return await cutUnderLoad([hub.api], redis, cut, times);
}

function figuresOf(cut: Cut, seconds: number, report: CutReport): readonly Figure[] {
  const { sent, received, acked, refused, lost, twice, disordered, changes, caughtUpMs } = report;
  const name = `Redis ${cut} for ${seconds} s`;
  const none = (what: string, found: readonly string[]): Figure => ({
    what: `${name}: ${what}`,
    value: String(found.length),
    goal: "0",
    held: found.length === 0,
  });
  return [
    {
      what: `${name}: sent, received, acknowledged`,
      value: `${sent}, ${received}, ${acked}`,
      goal: "",
      held: true,
    },
    none("answers other than 200", refused),
    none("messages lost", lost),
    none("messages delivered twice", twice),
    none("messages out of their sender's order", disordered),
    {
      what: `${name}: events transport.changed`,
      value: changes.join(", "),
      goal: "sqlite, redis",
      held: changes.join() === "sqlite,redis",
    },
    {
      what: `${name}: caught up, ms after it was back`,
      value: caughtUpMs.toFixed(0),
      goal: `< ${BACK_WITHIN_MS}`,
      held: caughtUpMs < BACK_WITHIN_MS,
    },
  ];
}

const LONG_CUT_S = 30;
const ROUNDS = 2_000;
const WAKE_WITHIN_MS = 10;

/** Time from a send at one hub to a waiting receiver at another: two hubs in this process, over one store. */
async function measureWaking(rounds: number): Promise<Figure> {
  await using redis = await RedisServer.start();
  await using hubs = await MailHubs.open(redis.url, redis.url);
  const [a, b] = hubs.both;
  const tookMs: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const waiting = b.receive(LONG_CUT_S * 1_000);
    await until(() => b.waiters.size === 1, 1_000, 0);
    const startedMs = performance.now();
    await a.send([`m${i}`]);
    await waiting;
    tookMs.push(performance.now() - startedMs);
  }
  tookMs.sort((x, y) => x - y);
  const at = (part: number): string => (tookMs[Math.floor(part * tookMs.length)] ?? Number.NaN).toFixed(1);
  return {
    what: "Sent at one hub, received by who waits at another, p50 / p99 ms",
    value: `${at(0.5)} / ${at(0.99)}`,
    goal: `p50 < ${WAKE_WITHIN_MS}`,
    held: Number(at(0.5)) < WAKE_WITHIN_MS,
  };
}

/** The long form. */
export const redisSection: Section = {
  name: "redis",
  title: "Redis failing under load",
  limitMs: 4 * 60_000,
  async run(scale, _seed, progress) {
    if (withoutRedis(true)) {
      return [notRun("Redis failing under load", "no redis-server here")];
    }
    const figures: Figure[] = [];
    const seconds = Math.max(1, Math.round(LONG_CUT_S * scale));
    for (const cut of ["frozen", "killed"] as const) {
      const report = await cutOneHub(cut, { aroundMs: 3_000, cutMs: seconds * 1_000 });
      progress(
        `${cut} for ${seconds} s: ${report.sent} sent, caught up in ${report.caughtUpMs.toFixed(0)} ms`,
      );
      for (const word of [...report.refused, ...report.lost, ...report.twice, ...report.disordered].slice(
        0,
        20,
      )) {
        progress(word);
      }
      figures.push(...figuresOf(cut, seconds, report));
    }
    figures.push(await measureWaking(Math.max(100, Math.round(ROUNDS * scale))));
    return figures;
  },
};
