/**
 * Time: a program that is stopped for longer than any node may be silent, and a wall clock that jumps repeatedly, by
 * minutes and by years.
 */
import fc from "fast-check";
import { Hub, TempDir, listOf } from "../../test/e2e/program.ts";
import { NO_SHIFTED_CLOCK, ShiftedClock } from "../../test/e2e/shifted-clock.ts";
import { type Figure, type Section, notRun } from "./section.ts";

/** More than the 90 s after which a node of B is offline. */
const STOPPED_MS = 95_000;
const LEASE_MS = 90_000;
/** A node that stays silent goes at the end of its lease, within a sweep or two. */
const MARGIN_MS = 4_000;
const NODES = 50;
const JUMPS = 100;
const YEAR_S = 365 * 86_400;

export const TIME: Section = {
  name: "time",
  title: "Time",
  limitMs: 10 * 60_000,
  async run(scale, seed, progress) {
    const figures = await Promise.all([stopped(progress), jumping(Math.ceil(JUMPS * scale), seed, progress)]);
    return figures.flat();
  },
};

/** A hub of B and its nodes. */
async function startB(dir: TempDir, env: Readonly<Record<string, string>> = {}): Promise<Hub> {
  const hub = await Hub.start({ data: dir.join("data"), args: ["--variant", "B"], env });
  for (let i = 0; i < NODES; i++) await hub.register(`n${i}`);
  return hub;
}

async function onlineIn(hub: Hub): Promise<number> {
  const nodes = listOf((await hub.get("/node/list")).body["nodes"]);
  return nodes.filter((node) => node["status"] === "online").length;
}

/** SIGSTOP and SIGCONT: by then every lease is over, by both clocks. */
async function stopped(progress: (line: string) => void): Promise<readonly Figure[]> {
  using dir = new TempDir();
  await using hub = await startB(dir);
  progress(`a hub is stopped for ${STOPPED_MS / 1_000} s`);
  hub.program.child.kill("SIGSTOP");
  await Bun.sleep(STOPPED_MS);
  hub.program.child.kill("SIGCONT");
  const continuedMs = performance.now();
  let online = NODES;
  let fewest = NODES;
  while (performance.now() - continuedMs < LEASE_MS - MARGIN_MS) {
    online = await onlineIn(hub);
    fewest = Math.min(fewest, online);
    await Bun.sleep(500);
  }
  // One of them has come back, the others are given up at the end of a whole interval.
  await hub.post("/node/heartbeat", { node_id: "n0" });
  await Bun.sleep(2 * MARGIN_MS);
  online = await onlineIn(hub);
  return [
    {
      what: `Nodes online in the ${(LEASE_MS - MARGIN_MS) / 1_000} s after a stop of ${STOPPED_MS / 1_000} s, at the least`,
      value: String(fewest),
      goal: String(NODES),
      held: fewest === NODES,
    },
    {
      what: `Of them ${(LEASE_MS + MARGIN_MS) / 1_000} s after it, when one has sent a heartbeat`,
      value: String(online),
      goal: "1",
      held: online === 1,
    },
  ];
}

/** A day's sign-in, a stored answer, a message that waits and the log, over jumps of every size in both directions. */
async function jumping(
  jumps: number,
  seed: number,
  progress: (line: string) => void,
): Promise<readonly Figure[]> {
  const what =
    "Jumps of the wall clock, by minutes to years, with every node online and nothing lost or paid twice";
  if (NO_SHIFTED_CLOCK !== null) return [notRun(what, NO_SHIFTED_CLOCK)];
  using dir = new TempDir();
  const clock = new ShiftedClock(dir);
  await using hub = await startB(dir, clock.env);
  const scene = await Scene.open(hub);
  let held = 0;
  for (const seconds of fc.sample(shift, { numRuns: jumps, seed })) {
    await clock.shiftTo(hub, seconds);
    const fault = await scene.fault(clock);
    if (fault !== null)
      return [{ what, value: `${fault}, after ${held} jumps`, goal: String(jumps), held: false }];
    held++;
    if (held % 10 === 0) progress(`${held} jumps`);
  }
  return [{ what, value: String(held), goal: String(jumps), held: true }];
}

/** How far from the real time; ahead of 2026, for a clock before it counts as not set. */
const shift = fc.oneof(
  fc.integer({ min: 60, max: 7_200 }),
  fc.integer({ min: 86_400 - 600, max: 86_400 + 600 }),
  fc.integer({ min: 0, max: 40 * YEAR_S }),
  fc.integer({ min: -20 * 86_400, max: -60 }),
);

class Scene {
  readonly #hub: Hub;
  readonly #days = new Set<string>();
  #earned = 0;

  private constructor(hub: Hub) {
    this.#hub = hub;
  }

  static async open(hub: Hub): Promise<Scene> {
    const scene = new Scene(hub);
    await hub.post("/message/send", { from_node: "op", to_node: "n1", content: "waits" });
    await scene.#isReplayed();
    return scene;
  }

  /** What does not hold any more; null when all does. */
  async fault(clock: ShiftedClock): Promise<string | null> {
    for (let i = 0; i < NODES; i++) await this.#hub.post("/node/heartbeat", { node_id: `n${i}` });
    if ((await onlineIn(this.#hub)) !== NODES) return "a node went offline";
    const { body } = await this.#hub.post("/signin", { node_id: "n0" });
    this.#earned += Number(body["lux_earned"]);
    this.#days.add(new Date(clock.now()).toISOString().slice(0, 10));
    if (this.#earned > 10 * this.#days.size) return "a day was paid twice";
    if (!(await this.#isReplayed())) return "a stored answer was lost";
    const history = await this.#hub.get("/message/history?node_id=n1");
    if (listOf(history.body["messages"]).length !== 1) return "a message was lost";
    const events = listOf((await this.#hub.get("/events?since=0&limit=1000")).body["events"]);
    if (!events.every((event, i) => event["id"] === i + 1)) return "the log has a gap";
    if (events.some((event) => event["kind"] === "node.offline")) return "a node went offline";
    return null;
  }

  async #isReplayed(): Promise<boolean> {
    const init = { method: "POST", headers: { "Idempotency-Key": "once" }, body: '{"node_id":"n2"}' };
    const { headers } = await this.#hub.call("POST", "/signin", init);
    return headers.get("idempotent-replayed") === "true";
  }
}
