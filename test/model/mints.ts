/**
 * Random sequences of what promises rewards: tasks are created alone, in batches and by schedules, and raised, with keys
 * with and without a limit, while the day turns, the clock is set, tasks end and the hub restarts. The oracle keeps
 * every promise, and adds up those of a key and a day when it needs the sum.
 */
import { expect } from "bun:test";
import fc from "fast-check";
import { DAY_MS } from "../../src/lib/clock.ts";
import { as } from "../api/key-commands.ts";
import { RESULT, list, ok, record } from "../api/scene.ts";
import { ADMIN_KEY, type Answer, type CallOptions } from "../support/hub.ts";
import { Real } from "./real.ts";
import { commandsOf } from "./world.ts";

const COMMANDS_MAX = 40;
const START = Date.UTC(2027, 4, 1, 12);
const HOUR_MS = 3_600_000;
const MICRO = 1_000_000;
const ADMIN = { "X-Admin-Key": ADMIN_KEY };
const NODE = "n0";
const NEW = { title: "t", description: "d" };
const LIMITS: Readonly<Record<string, number | null>> = { ten: 10, three: 3, free: null };
const KEYS = Object.keys(LIMITS);

type Promised = { readonly key: string; readonly day: number; readonly micro: number };
type Task = { readonly id: string; micro: number };

class State {
  readonly secrets: ReadonlyMap<string, string>;
  readonly promises: Promised[] = [];
  tasks: Task[] = [];
  refusals = 0;
  schedules = 0;

  constructor(secrets: ReadonlyMap<string, string>) {
    this.secrets = secrets;
  }

  with(key: string, headers: Readonly<Record<string, string>> = {}): CallOptions {
    return as(this.secrets.get(key) ?? "", { headers });
  }

  left(key: string, now: number): number {
    const limit = LIMITS[key] ?? null;
    if (limit === null) return Number.POSITIVE_INFINITY;
    const today = this.promises.filter((one) => one.key === key && one.day === Math.floor(now / DAY_MS));
    return limit * MICRO - today.reduce((sum, { micro }) => sum + micro, 0);
  }

  /** Whether the key may promise so much more now. If so, it has. */
  mints(key: string, micro: number, now: number): boolean {
    if (micro > 0 && micro > this.left(key, now)) {
      this.refusals++;
      return false;
    }
    this.promises.push({ key, day: Math.floor(now / DAY_MS), micro });
    return true;
  }
}

const command = commandsOf<State>();

const key = fc.constantFrom("ten", "ten", "three", "free");
const micro = fc.constantFrom(0, 1, MICRO, 2 * MICRO, 3 * MICRO, 5 * MICRO, 7 * MICRO, 10 * MICRO);
const which = fc.nat({ max: 5 });

/** An answer to what would promise a reward, which `may` be or not; its body if it may. */
function expectAnswer(
  { status, body }: Pick<Answer, "status" | "body">,
  may: boolean,
): Answer["body"] | null {
  expect({ status, error: body["error"] }).toEqual(
    may ? { status: 200, error: undefined } : { status: 403, error: "mint_limit" },
  );
  return may ? body : null;
}

/** `repeats`: it is sent again, as the same request. */
const create = command(
  "create",
  fc.record({ key, micro, repeats: fc.boolean() }),
  async (state, real, { key, micro, repeats }) => {
    const once = { "Idempotency-Key": `create-${state.promises.length}-${state.refusals}` };
    const options = state.with(key, repeats ? once : {});
    const send = () => real.hub.post("/task/create", { ...NEW, lux_reward: micro / MICRO }, options);
    const body = expectAnswer(await send(), state.mints(key, micro, real.now()));
    if (body === null) return;
    if (repeats) expect(await ok(send())).toEqual(body);
    state.tasks.push({ id: String(body["task_id"]), micro });
  },
);

const batch = command(
  "batch",
  fc.record({ key, micros: fc.array(micro, { minLength: 2, maxLength: 4 }) }),
  async (state, real, { key, micros }) => {
    const requests = micros.map((one) => ({
      path: "task/create",
      body: { ...NEW, lux_reward: one / MICRO },
    }));
    const answers = list(await ok(real.hub.post("/batch", { requests }, state.with(key))), "answers");
    for (const [i, micro] of micros.entries()) {
      const answer = { status: Number(answers[i]?.["status"]), body: record(answers[i]?.["body"]) };
      const body = expectAnswer(answer, state.mints(key, micro, real.now()));
      if (body !== null) state.tasks.push({ id: String(body["task_id"]), micro });
    }
  },
);

/** What a reward is raised by counts for the key that raises it. A lower reward, of an administrator, gives nothing back. */
const update = command(
  "update",
  fc.record({ key, which, micro }),
  async (state, real, { key, which, micro }) => {
    const task = state.tasks.at(-1 - which);
    if (!task) return;
    const asked = { task_id: task.id, lux_reward: micro / MICRO };
    const options = micro < task.micro ? state.with(key, ADMIN) : state.with(key);
    const answer = await real.hub.post("/task/update", asked, options);
    const may = state.mints(key, Math.max(0, micro - task.micro), real.now());
    if (expectAnswer(answer, may) !== null) task.micro = micro;
  },
);

/** A schedule that was put with one key is run with another, which is the one that promises; then its time comes. */
const schedule = command(
  "schedule",
  fc.record({ putter: key, runner: key, micro }),
  async (state, real, { putter, runner, micro }) => {
    const { hub } = real;
    const name = `s${state.schedules++}`;
    const asked = {
      name,
      every_s: HOUR_MS / 1_000,
      overlap: "queue",
      task: { ...NEW, lux_reward: micro / MICRO },
    };
    await ok(hub.post("/schedule/put", asked, state.with(putter)));
    const run = await hub.post("/schedule/run", { name }, state.with(runner));
    const body = expectAnswer(run, state.mints(runner, micro, real.now()));
    if (body !== null) state.tasks.push({ id: String(body["task_id"]), micro });
    await real.pass(HOUR_MS);
    const may = state.mints(putter, micro, real.now());
    const events = list(await ok(hub.get("/events?since=0&limit=1000&kind=schedule.skipped")), "events");
    const reasons = events.map(({ data }) => record(data)).filter((data) => data["name"] === name);
    expect(reasons.map(({ reason }) => reason)).toEqual(may ? [] : ["mint_limit"]);
    await ok(hub.post("/schedule/delete", { name }, state.with(putter)));
  },
);

/** Nothing is given back, however a task ends. */
const end = command(
  "end",
  fc.record({ which, how: fc.constantFrom("complete", "cancel", "delete") }),
  async (state, { hub }, { which, how }) => {
    const task = state.tasks.at(-1 - which);
    if (!task) return;
    const task_id = task.id;
    if (how === "complete") {
      await ok(hub.post("/node/heartbeat", { node_id: NODE }));
      await ok(hub.post("/task/claim", { task_id, node_id: NODE }));
      await ok(hub.post("/task/complete", { task_id, node_id: NODE, result: RESULT }));
    } else {
      await ok(hub.post("/task/cancel", { task_id }));
      if (how === "delete") await ok(hub.admin("/task/delete", { task_id }));
    }
    state.tasks = state.tasks.filter((one) => one !== task);
  },
);

const pass = command("pass", fc.constantFrom(1, 5, 12, 24), (_, real, hours) => real.pass(hours * HOUR_MS));

/** To the last millisecond of the day, or to the first of the next. */
const midnight = command("midnight", fc.constantFrom(-1, 0), (_, real, ms) =>
  real.pass(DAY_MS - (real.now() % DAY_MS) + ms),
);

const jump = command("jump", fc.constantFrom(-24, -12, -1, 12), (_, real, hours) =>
  real.jump(hours * HOUR_MS),
);

const restart = command("restart", fc.constant(null), (_, real) => real.restart());

const COMMANDS = [
  ...[create, create, create, create, create, batch, batch, update, update, update],
  ...[schedule, end, end, pass, midnight, jump, restart],
];

async function begin(real: Real): Promise<State> {
  const secrets = new Map<string, string>();
  for (const name of KEYS) {
    const limit = LIMITS[name] ?? null;
    const asked = { name, ...(limit !== null && { mint_per_day: limit }) };
    secrets.set(name, String((await ok(real.hub.admin("/key/add", asked)))["secret"]));
  }
  await ok(real.hub.post("/node/register", { node_id: NODE, name: NODE, auto_assign: false }));
  return new State(secrets);
}

/** Every limited key may promise what is left to it today, and not a millionth more. */
async function spendAll(state: State, real: Real): Promise<void> {
  for (const key of KEYS.filter((one) => LIMITS[one] !== null)) {
    const left = state.left(key, real.now());
    for (const [micro, may] of [
      [left + 1, false],
      [left, true],
      [1, false],
    ] as const)
      expectAnswer(
        await real.hub.post("/task/create", { ...NEW, lux_reward: micro / MICRO }, state.with(key)),
        may,
      );
  }
}

/** Throws with seed, path and the shortest failing sequence. */
export async function playMints(
  count: number,
  seed: number,
): Promise<{ promises: number; refusals: number }> {
  const played = { promises: 0, refusals: 0 };
  const sequence = fc.commands(COMMANDS, { maxCommands: COMMANDS_MAX, size: "max" });
  const property = fc.asyncProperty(sequence, async (chosen) => {
    await using real = await Real.start(START);
    const state = await begin(real);
    await fc.asyncModelRun(() => ({ model: state, real }), chosen);
    await spendAll(state, real);
    played.promises += state.promises.length;
    played.refusals += state.refusals;
  });
  await fc.assert(property, { seed, numRuns: count });
  return played;
}
