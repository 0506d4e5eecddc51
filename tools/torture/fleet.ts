/**
 * Two hubs on one PostgreSQL and one Redis behind an nginx, with busy nodes, while a hub is killed or stands still, Redis
 * is cut off, and PostgreSQL crashes or stands still. All are the real programs; the nodes keep a ledger of every 2xx.
 */
import { tmpdir } from "node:os";
import { Hub, SECRET, TempDir, listOf, until } from "../../test/e2e/program.ts";
import { NGINX_MISSING, Nginx } from "../../test/support/nginx.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { RedisServer, withoutRedis } from "../../test/support/redis.ts";
import { Findings, checkDownloads, checkPostgres } from "./crash-checks.ts";
import { type Crowd, Ledger, Writer } from "./crash-writer.ts";
import { Follower, LogReader, Way } from "./fleet-callers.ts";
import { randomFrom } from "./random.ts";
import { type Figure, type Section, notRun } from "./section.ts";
import { type CutReport, Traffic } from "./traffic.ts";

const WRITERS = 8;
const PORTS = [19_304, 19_305] as const;
const BACK_WITHIN_MS = 5_000;
const WAKE_WITHIN_MS = 10;
const BEAT_EVERY_MS = 20_000;
const WORK = 100;
const WORK_OF_A_KIND = 5;

export function whyNoFleet(): string | null {
  if (POSTGRES_PROGRAMS === null) return "no PostgreSQL of our own can be started here";
  if (NGINX_MISSING !== null) return NGINX_MISSING;
  return withoutRedis(true) ? "no redis-server here" : null;
}

export type FleetReport = {
  readonly ledger: Ledger;
  readonly findings: Findings;
  readonly traffic: CutReport;
  readonly reader: LogReader;
  readonly follower: Follower;
  /** The messages of the followed node, as the event log has them. */
  followed: readonly string[];
  readonly way: Way;
  /** From a hub's end to the next write that was acknowledged, of those asked after it. */
  readonly goneOnMs: number[];
  /** From the moment Redis was there again until both hubs said so. */
  readonly redisBackMs: number[];
  /** From the moment PostgreSQL took connections again until both hubs took writes. */
  readonly postgresBackMs: number[];
  /** From the end of a standstill of a hub or of PostgreSQL until both hubs took writes. */
  readonly thawedMs: number[];
  /** From a sending at one hub to the return of a receive that waits at the other. */
  readonly wokenMs: readonly number[];
};

class Fleet implements AsyncDisposable {
  readonly dir = new TempDir();
  readonly hubs: Hub[] = [];
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  readonly nginx: Nginx;

  private constructor(postgres: PostgresServer, redis: RedisServer, nginx: Nginx) {
    this.postgres = postgres;
    this.redis = redis;
    this.nginx = nginx;
  }

  static async start(): Promise<Fleet> {
    const [first, second] = PORTS.map((port) => `${OWN_HOST}:${port}`);
    const [postgres, redis, nginx] = await Promise.all([
      PostgresServer.start(tmpdir()),
      RedisServer.start(),
      Nginx.start([[first ?? "", second ?? ""]]),
    ]);
    const fleet = new Fleet(postgres, redis, nginx);
    for (const i of PORTS.keys()) await fleet.startHub(i);
    return fleet;
  }

  async startHub(i: number): Promise<void> {
    this.hubs[i] = await Hub.start({
      data: this.dir.join(`hub-${i}`),
      env: {
        LUXHUB_DATABASE: this.postgres.url,
        LUXHUB_REDIS: this.redis.url,
        LUXHUB_HOST: OWN_HOST,
        LUXHUB_PORT: String(PORTS[i]),
        LUXHUB_TRUST_PROXY: "127.0.0.1",
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.nginx.ports[0]}`;
  }

  async ask(i: number, path: string, body: object | null = null): Promise<Response> {
    const init = body === null ? {} : { method: "POST", body: JSON.stringify(body) };
    const url = `http://${OWN_HOST}:${PORTS[i]}/api/v1${path}`;
    return fetch(url, { ...init, headers: { "X-Matrix-Secret": SECRET }, keepalive: false });
  }

  async transports(): Promise<readonly unknown[]> {
    const read = async (i: number): Promise<unknown> => {
      const status: unknown = await (await this.ask(i, "/status")).json();
      return Object(status).transport;
    };
    return Promise.all([...PORTS.keys()].map(read));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of this.hubs) await hub[Symbol.asyncDispose]();
    await Promise.all([this.nginx.close(), this.redis.close(), this.postgres.remove()]);
    this.dir[Symbol.dispose]();
  }
}

export type FleetTimes = {
  readonly cycles: number;
  /** Load before, between and after what is done to the fleet. */
  readonly aroundMs: number;
  /** How long Redis is cut, a killed hub is away, and a hub or PostgreSQL stands still. */
  readonly awayMs: number;
};

/** Runs so many cycles of: a hub killed, Redis cut, PostgreSQL crashed and restarted, a hub and PostgreSQL frozen. */
export async function runFleet(
  times: FleetTimes,
  seed: number,
  progress: (line: string) => void,
): Promise<FleetReport> {
  await using fleet = await Fleet.start();
  const random = randomFrom(seed);
  const ledger = new Ledger();
  const wokenMs = await measureWaking(fleet, ledger);
  const [way, quiet] = [new Way(fleet.url), new Way(fleet.url)];
  const report: FleetReport = {
    ...{ ledger, findings: new Findings(), reader: new LogReader(), follower: new Follower() },
    ...{ goneOnMs: [], redisBackMs: [], postgresBackMs: [], thawedMs: [], followed: [], way, wokenMs },
    traffic: new Traffic(async () => ({ status: 0, body: {} })).report,
  };
  let keys = 0;
  // Each with a key of its own, so that each is done once however often it is asked.
  const traffic = new Traffic((path, body) =>
    quiet.post(path, body, { headers: { "Idempotency-Key": `traffic-${++keys}` } }),
  );
  const stopTraffic = await traffic.start();
  const reading = report.reader.read(quiet);
  const [box = ""] = traffic.boxes;
  const following = report.follower.follow(quiet.api, box);
  const stopWriters = await startWriters(way, report.ledger, random);
  for (let cycle = 1; cycle <= times.cycles; cycle++) {
    await Bun.sleep(times.aroundMs); // load, for so long: what happens when is what this is about
    await killHub(fleet, report, cycle % 2, times);
    await Bun.sleep(times.aroundMs);
    await cutRedis(fleet, report, traffic, times);
    await Bun.sleep(times.aroundMs);
    await crashPostgres(fleet, report);
    await Bun.sleep(times.aroundMs);
    const frozen = fleet.hubs[cycle % 2]?.program.child;
    await standStill(fleet, report, times, async () => {
      frozen?.kill("SIGSTOP");
      return async () => void frozen?.kill("SIGCONT");
    });
    await standStill(fleet, report, times, () => fleet.postgres.freeze());
    const { acknowledged } = report.ledger;
    progress(`cycle ${cycle}: ${acknowledged} writes acknowledged, ${traffic.sent.size} messages sent`);
  }
  await Bun.sleep(times.aroundMs);
  await until(() => isEnough(ledger, traffic)); // however slow the machine
  await stopWriters();
  await stopTraffic();
  await endReading(report, quiet, box, { reading, following });
  takeOver(traffic, report);
  await checkPostgres(fleet.postgres.url, report.ledger, report.findings);
  await checkDownloads(quiet, report.ledger.files, report.findings);
  return { ...report, traffic: traffic.report };
}

/** Who never gets to work proves nothing. */
function isEnough({ acknowledged, completed, received, acked, files, signedIn }: Ledger, { sent }: Traffic) {
  const kinds = [completed, received, acked, files, signedIn];
  return acknowledged > WORK && sent.size > WORK && kinds.every(({ size }) => size > WORK_OF_A_KIND);
}

async function startWriters(way: Way, ledger: Ledger, random: () => number): Promise<() => Promise<void>> {
  const nodes = Array.from({ length: WRITERS }, (_, i) => `node-${i}`);
  for (const nodeId of nodes) {
    await way.post("/node/register", { node_id: nodeId, name: nodeId });
    ledger.nodes.add(nodeId);
  }
  const crowd: Crowd = { hub: way, ledger, random, nodes, open: [], adminKey: null };
  let isWorking = true;
  const working = nodes.map(async (nodeId, i) => {
    const writer = new Writer(crowd, nodeId, i);
    while (isWorking) await writer.work();
  });
  const beats = setInterval(() => {
    for (const nodeId of nodes) void way.post("/node/heartbeat", { node_id: nodeId }).catch(() => {});
  }, BEAT_EVERY_MS);
  return async () => {
    clearInterval(beats);
    isWorking = false;
    way.close();
    await Promise.all(working);
  };
}

/** The proxy uses the other hub. */
async function killHub(fleet: Fleet, { ledger, goneOnMs }: FleetReport, i: number, times: FleetTimes) {
  const hub = fleet.hubs[i];
  hub?.program.child.kill("SIGKILL");
  await hub?.program.ended;
  const killedAt = performance.now();
  const before = ledger.acknowledged;
  await until(() => ledger.acknowledged > before + WRITERS); // more than were on their way
  goneOnMs.push(performance.now() - killedAt);
  await Bun.sleep(times.awayMs);
  await fleet.startHub(i);
}

async function cutRedis(fleet: Fleet, report: FleetReport, traffic: Traffic, times: FleetTimes) {
  await until(async () => (await fleet.transports()).every((transport) => transport === "redis"));
  fleet.redis.freeze();
  await until(async () => !(await fleet.transports()).includes("redis"));
  await Bun.sleep(times.awayMs);
  fleet.redis.thaw();
  const backAt = performance.now();
  const before = [...traffic.sent.keys()];
  await until(
    async () =>
      before.every((id) => traffic.got.has(id)) &&
      (await fleet.transports()).every((transport) => transport === "redis"),
  );
  report.redisBackMs.push(performance.now() - backAt);
}

/** The other hub must not wait for a frozen one, nor what is frozen change anything when it goes on. */
async function standStill(
  fleet: Fleet,
  { thawedMs }: FleetReport,
  { awayMs }: FleetTimes,
  freeze: () => Promise<() => Promise<void>>,
): Promise<void> {
  const thaw = await freeze();
  await Bun.sleep(awayMs);
  await thaw();
  thawedMs.push(await untilBothWrite(fleet));
}

async function untilBothWrite(fleet: Fleet): Promise<number> {
  const backAt = performance.now();
  const beat = { node_id: "node-0" };
  for (const i of PORTS.keys())
    await until(async () => (await fleet.ask(i, "/node/heartbeat", beat)).status === 200);
  return performance.now() - backAt;
}

async function crashPostgres(fleet: Fleet, { findings, postgresBackMs }: FleetReport): Promise<void> {
  await fleet.postgres.down("immediate");
  const answer = await fetch(`${fleet.url}/api/v1/status`);
  if (answer.status !== 503 || !answer.headers.has("Retry-After"))
    findings.add("unequal", `without PostgreSQL: ${answer.status} ${await answer.text()}`);
  await fleet.postgres.up();
  postgresBackMs.push(await untilBothWrite(fleet));
}

type Readers = { readonly reading: Promise<void>; readonly following: Promise<void> };

/** One more message for the follower, which ends it; then what the log says that it should have seen. */
async function endReading(report: FleetReport, way: Way, box: string, { reading, following }: Readers) {
  report.follower.stop();
  const headers = { "Idempotency-Key": "last" };
  await way.post("/message/send", { from_node: "op", to_node: box, content: "last" }, { headers });
  await following;
  report.reader.stop();
  await reading;
  const followed: string[] = [];
  for (let cursor = 0; ;) {
    const { body } = await way.get(`/events?since=${cursor}&kind=message.sent&limit=1000`);
    const events = listOf(body["events"]);
    if (events.length === 0) break;
    for (const { node_id, data } of events)
      if (node_id === box) followed.push(String(Object(data).message_id));
    cursor = Number(body["cursor"]);
  }
  report.followed = followed;
}

/** What the traffic was told counts for the database as well. */
function takeOver({ sent, got }: Traffic, { ledger }: FleetReport): void {
  for (const [id, { to, requireAck }] of sent) ledger.sent.set(id, { toNode: to, requireAck });
  for (const id of got) ledger.received.set(id, 1);
}

const ROUNDS = 40;

async function measureWaking(fleet: Fleet, ledger: Ledger): Promise<readonly number[]> {
  await fleet.ask(0, "/node/register", { node_id: "sleeper", name: "sleeper" });
  const tookMs: number[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    const asked = { node_id: "sleeper", blocking: true, timeout: 10 };
    const woken = fleet.ask(n % 2, "/message/receive", asked);
    await Bun.sleep(WAKE_WITHIN_MS); // so that it waits already: from outside nobody can see that
    const message = { from_node: "op", to_node: "sleeper", content: `wake ${n}` };
    const sentAt = performance.now();
    const sending = fleet.ask((n + 1) % 2, "/message/send", message);
    const received: unknown = await (await woken).json();
    ledger.takes(listOf(Object(received).messages));
    tookMs.push(performance.now() - sentAt);
    await sending;
  }
  return tookMs.toSorted((a, b) => a - b);
}

/** What the report comes to; the suite's test and the table are of the same. */
export function verdictOf({ ledger, findings, traffic, reader, follower, followed, way }: FleetReport) {
  const { refused, lost, twice, disordered } = traffic;
  const shown = follower.messages.join() === followed.join();
  return {
    missing: findings.missing,
    doneTwice: findings.twice,
    unequal: findings.unequal,
    words: findings.words,
    faults: [...ledger.faults, ...refused],
    lost,
    twice,
    disordered,
    gaps: reader.breaks,
    stream: shown ? "as the log" : `${follower.messages.length} of ${followed.length}, or in another order`,
    impolite: way.impolite,
  };
}

/** What verdictOf() has to be. */
export const NOTHING_WRONG: ReturnType<typeof verdictOf> = {
  ...{ missing: 0, doneTwice: 0, unequal: 0, words: [], faults: [], lost: [], twice: [], disordered: [] },
  ...{ gaps: [], stream: "as the log", impolite: 0 },
};

export const p50 = (sorted: readonly number[]): number => sorted[sorted.length >> 1] ?? Number.NaN;

function figuresOf(report: FleetReport): readonly Figure[] {
  const { ledger, traffic, reader, follower, way, goneOnMs, redisBackMs, postgresBackMs, thawedMs, wokenMs } =
    report;
  const verdict = verdictOf(report);
  const told = (what: string, value: string): Figure => ({ what, value, goal: "", held: true });
  const none = (what: string, ...found: readonly (number | readonly string[])[]): Figure => {
    const counts = found.map((one) => (typeof one === "number" ? one : one.length));
    const goal = counts.map(() => "0").join("; ");
    return { what, value: counts.join("; "), goal, held: counts.join("; ") === goal };
  };
  const within = (what: string, tookMs: readonly number[], goalMs: number): Figure => {
    const most = Math.max(...tookMs);
    return { what, value: most.toFixed(0), goal: `< ${goalMs}`, held: most < goalMs };
  };
  return [
    told(
      "Writes acknowledged; messages sent; events read",
      `${ledger.acknowledged}; ${traffic.sent}; ${reader.ids.length}`,
    ),
    told(
      "Answers 503; of unknown outcome; breaks of the stream",
      `${way.unavailable}; ${way.unknown}; ${follower.breaks}`,
    ),
    none(
      "Acknowledged and missing; done twice; sums that differ",
      verdict.missing,
      verdict.doneTwice,
      verdict.unequal,
    ),
    none("Messages lost; handed out twice; out of order", verdict.lost, verdict.twice, verdict.disordered),
    none("Answers that must not be; 503 with no Retry-After", verdict.faults, verdict.impolite),
    none("Gaps and repeats in the log; in the stream", verdict.gaps, verdict.stream === "as the log" ? 0 : 1),
    within("A hub killed: writes go on after, slowest, ms", goneOnMs, BACK_WITHIN_MS),
    within("Redis back: caught up after, slowest, ms", redisBackMs, BACK_WITHIN_MS),
    within("PostgreSQL back: writes at both hubs after, slowest, ms", postgresBackMs, BACK_WITHIN_MS),
    within(
      "A hub or PostgreSQL stood still: writes at both hubs after, slowest, ms",
      thawedMs,
      BACK_WITHIN_MS,
    ),
    {
      what: "Sent at one hub, received by who waits at the other, p50, ms",
      value: p50(wokenMs).toFixed(1),
      goal: `< ${WAKE_WITHIN_MS}`,
      held: p50(wokenMs) < WAKE_WITHIN_MS,
    },
  ];
}

const CYCLES = 4;
const LONG_AWAY_S = 30;

export const fleetSection: Section = {
  name: "fleet",
  title: "Two hubs behind nginx",
  limitMs: 10 * 60_000,
  async run(scale, seed, progress) {
    const reason = whyNoFleet();
    if (reason !== null) return [notRun("Two hubs behind nginx", reason)];
    const cycles = Math.max(1, Math.round(CYCLES * scale));
    const awayMs = Math.max(1_000, Math.round(LONG_AWAY_S * 1_000 * scale));
    const report = await runFleet({ cycles, aroundMs: 2_000, awayMs }, seed, progress);
    const { words, faults, lost, twice, disordered, gaps } = verdictOf(report);
    for (const word of [...words, ...faults, ...lost, ...twice, ...disordered, ...gaps].slice(0, 40))
      progress(word);
    return figuresOf(report);
  },
};
