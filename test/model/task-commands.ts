/** The commands of tasks: each runs on the hub and on the model, and both must agree. */
import { expect } from "bun:test";
import fc from "fast-check";
import { MICRO_PER_USD, TASK_AHEAD_MAX_SECONDS } from "../../src/domain/limits.ts";
import { DAY_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { ADMIN_KEY, type TestHub } from "../support/hub.ts";
import {
  type Budget,
  type Model,
  REVIEW_MS,
  type Report,
  type Schedule,
  type Task,
  type VariantName,
  isInReview,
} from "./model.ts";
import { type Real, arrayOf, same } from "./real.ts";
import {
  STATUS_WORDS,
  contextWords,
  questionWords,
  lux,
  resultOf,
  spendingWords,
  statusWord,
  taskAnswer,
  taskWords,
} from "./words.ts";
import { type Command, type World, command, node, recent, variant } from "./world.ts";

const PER_PAGE = 3;
const GROUP = "g";
const micro = fc.constantFrom(0, 1, 100_000, 2_500_000, 1_000_000_000_000_000);

const PRIORITY_ASKED = { 0: 0, 1: "medium", 2: 2, 5: "p5" } as const;

/** What a task may have to wait for, and when it ends; most have nothing of it. */
const schedule = fc.record({
  maxAttempts: fc.constantFrom(null, null, 1, 2),
  backoffMs: fc.constantFrom(0, 5_000),
  timeoutMs: fc.constantFrom(null, null, 20_000, 60_000),
  maxRunMs: fc.constantFrom(null, null, 30_000, 90_000),
  delayMs: fc.constantFrom(null, null, null, 10_000),
  expiresInMs: fc.constantFrom(null, null, null, 60_000),
  dependsOn: fc.constantFrom<readonly number[]>([], [], [], [0], [0, 2]),
  runsAnyway: fc.boolean(),
  maxCostMicro: fc.constantFrom(null, null, 0, 1_500_000),
  reviewed: fc.constantFrom(null, null, "pay" as const, "reject" as const),
  group: fc.constantFrom(null, null, GROUP),
  unique: fc.constantFrom(
    ...[null, null, null, null, null, null],
    ...[
      { key: "u0", forMs: null },
      { key: "u1", forMs: 45_000 },
    ],
  ),
});
type Wanted = typeof schedule extends fc.Arbitrary<infer W> ? W : never;

function wantedBody(wanted: Wanted, now: number) {
  const { maxAttempts, backoffMs, timeoutMs, maxRunMs, delayMs, expiresInMs, maxCostMicro, unique } = wanted;
  return {
    max_attempts: maxAttempts,
    backoff_s: backoffMs / SECOND_MS,
    timeout_s: timeoutMs === null ? null : timeoutMs / SECOND_MS,
    max_run_s: maxRunMs === null ? null : maxRunMs / SECOND_MS,
    delay_s: delayMs === null ? null : delayMs / SECOND_MS,
    expires_at: expiresInMs === null ? null : new Date(now + expiresInMs).toISOString(),
    on_dependency: wanted.runsAnyway ? "run" : null,
    max_cost_usd: maxCostMicro === null ? undefined : maxCostMicro / MICRO_PER_USD,
    ...(wanted.reviewed && {
      review: "creator",
      review_within_s: REVIEW_MS / SECOND_MS,
      on_review_timeout: wanted.reviewed,
    }),
    group: wanted.group,
    unique_key: unique?.key,
    unique_for_s: unique?.forMs == null ? undefined : unique.forMs / SECOND_MS,
  };
}

function draftOf({ unique, ...wanted }: Wanted) {
  return { ...wanted, uniqueKey: unique?.key ?? null, uniqueForMs: unique?.forMs ?? null };
}

const creation = (files: fc.Arbitrary<readonly number[]>): fc.Arbitrary<Command> =>
  command(
    "create",
    fc.record({
      variant,
      type: fc.constantFrom("", "x", "z"),
      priority: fc.constantFrom(0, 1, 2, 5),
      micro,
      schedule,
      files,
    }),
    ({ model, taskIds, fileIds }, { hub }, { variant, type, priority, micro, schedule, files }) => {
      const isFree = (id: string | undefined): boolean =>
        model.files.some((file) => file.id === id && file.taskId === null);
      const own = files.flatMap((n) => fileIds.at(-1 - n) ?? []).filter(isFree);
      const dependsOn = schedule.dependsOn.flatMap((n) => model.tasks.at(-1 - n)?.id ?? []);
      const asked = hub.post(
        "/task/create",
        {
          title: "t",
          description: "d",
          task_type: type,
          lux_reward: lux(micro),
          priority: PRIORITY_ASKED[priority],
          ...wantedBody(schedule, model.now),
          depends_on: dependsOn,
          files: own,
        },
        { variant },
      );
      return same(asked, (answer) => {
        const draft = { ...draftOf(schedule), dependsOn, type, priority, rewardMicro: micro };
        const holder = model.holderOf(draft.uniqueKey);
        if (holder) return { ...taskAnswer(model, holder, variant), deduplicated: true };
        const id = String(answer["task_id"]);
        taskIds.push(id);
        return taskAnswer(model, model.create(variant, draft, id, own), variant);
      });
    },
  );

export const create = creation(fc.constantFrom<readonly number[]>([], [], [], [0], [0, 2]));
/** For a batch: two of its requests must not name the same file, of which the model hears after the batch. */
export const createWithoutFiles = creation(fc.constant([]));

/** A graph in one batch: a later task depends on earlier ones, which it names by their refs. */
export const graph = command(
  "graph",
  fc.record({
    variant,
    wanted: fc.array(fc.record({ schedule, type: fc.constantFrom("", "x"), on: fc.subarray([0, 1, 2]) }), {
      minLength: 2,
      maxLength: 4,
    }),
  }),
  async ({ model, taskIds }, { hub }, { variant, wanted }) => {
    const refsOf = (on: readonly number[], i: number): readonly number[] => on.filter((n) => n < i);
    const requests = wanted.map(({ schedule, type, on }, i) => ({
      ref: `t${i}`,
      path: "task/create",
      body: {
        title: "t",
        description: "d",
        task_type: type,
        ...wantedBody({ ...schedule, unique: null }, model.now),
        depends_on: refsOf(on, i).map((n) => ({ $ref: `t${n}` })),
      },
    }));
    const ids: string[] = [];
    await same(hub.post("/batch", { requests }, { variant }), ({ answers }) => {
      for (const [i, answer] of arrayOf(answers).entries()) {
        const { schedule = null, type = "", on = [] } = wanted[i] ?? {};
        if (schedule === null) throw new Error("a batch has an answer for each request");
        const id = String(Object(answer["body"])["task_id"]);
        const dependsOn = refsOf(on, i).map((n) => ids[n] ?? "");
        ids.push(id);
        taskIds.push(id);
        const draft = { ...draftOf({ ...schedule, unique: null }), dependsOn, type };
        const task = model.create(variant, { ...draft, priority: 1, rewardMicro: 0 }, id);
        expect(answer).toMatchObject({ status: 200, body: taskAnswer(model, task, variant) });
      }
      return {};
    });
  },
);

const NAME = "s";

export const putSchedule = command(
  "put schedule",
  fc.record({
    variant: fc.constant<VariantName>("A"),
    everyMs: fc.constantFrom(30_000, 45_000, 3_600_000),
    catchUp: fc.constantFrom("none", "one"),
    paused: fc.constantFrom(false, false, true),
  }),
  ({ model }, { hub }, { variant, everyMs, catchUp, paused }) => {
    const task = { title: "t", description: "d", task_type: "x" };
    const timing = { every_s: everyMs / SECOND_MS, catch_up: catchUp, overlap: "skip", paused };
    return same(hub.post("/schedule/put", { name: NAME, task, ...timing }, { variant }), () => ({
      schedule: scheduleWords(model.putSchedule({ everyMs, catchUp, paused })),
    }));
  },
);

export const deleteSchedule = command(
  "delete schedule",
  fc.record({ variant }),
  ({ model }, { hub }, { variant }) =>
    same(hub.post("/schedule/delete", { name: NAME }, { variant }), () => {
      model.deleteSchedule();
      return { name: NAME };
    }),
);

export const runSchedule = command(
  "run schedule",
  fc.record({ variant }),
  ({ model, taskIds }, { hub }, { variant }) =>
    same(hub.post("/schedule/run", { name: NAME }, { variant }), (answer) => {
      const id = String(answer["task_id"]);
      const task = model.runSchedule(id);
      taskIds.push(id);
      return { task_id: id, task: taskWords(model, task, variant) };
    }),
);

export function sameSchedule(model: Model, hub: TestHub): Promise<void> {
  return same(hub.get("/schedule/list"), () => ({
    schedules: model.schedule ? [scheduleWords(model.schedule)] : [],
  }));
}

function scheduleWords({ everyMs, catchUp, paused, nextAt, lastTaskId }: Schedule) {
  const next_at = nextAt === null ? null : new Date(nextAt).toISOString();
  return {
    name: NAME,
    every_s: everyMs / SECOND_MS,
    catch_up: catchUp,
    paused,
    next_at,
    last_task_id: lastTaskId,
  };
}

export const group = command("group", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  sameGroup(model, hub, variant),
);

export function sameGroup(model: Model, hub: TestHub, variant: VariantName): Promise<void> {
  return same(hub.get(`/group/${GROUP}`, { variant }), ({ by_status }) => {
    const counts: Record<string, number> = {};
    for (const [status, count] of model.group(GROUP)) {
      const word = statusWord(status, variant);
      counts[word] = (counts[word] ?? 0) + count;
    }
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const own = model.tasks.filter((task) => task.group === GROUP);
    const inReview = own.filter(isInReview).length;
    const unfinished = total - (counts["completed"] ?? 0) - (counts["failed"] ?? 0) + inReview;
    // What people cancel, or what expires, is no failure.
    const cancelled = own.filter(
      ({ status, failure }) => status === "failed" && (failure === "cancelled" || failure === "expired"),
    ).length;
    const words = { ...counts, failed: (counts["failed"] ?? 0) - cancelled };
    const shown = (all: object) => Object.fromEntries(Object.entries(all).filter(([, count]) => count !== 0));
    expect(shown(Object(by_status))).toEqual(shown(words));
    const waiting = { ...(inReview > 0 && { in_review: inReview }), ...(cancelled > 0 && { cancelled }) };
    return { group: GROUP, total, unfinished, ...waiting, done: unfinished === 0 };
  });
}

/** A task of the group that is never ready: so the group does not end, which it would in a commit of its own. */
export function anchor({ model }: World, { hub }: Real): Promise<void> {
  const ahead = { delay_s: TASK_AHEAD_MAX_SECONDS };
  const asked = { title: "t", description: "d", group: GROUP, ...ahead };
  return same(hub.post("/task/create", asked), (answer) => {
    const none = {
      maxAttempts: null,
      timeoutMs: null,
      maxRunMs: null,
      expiresInMs: null,
      maxCostMicro: null,
    };
    const draft = {
      ...none,
      ...{
        type: "",
        priority: 1 as const,
        rewardMicro: 0,
        backoffMs: 5_000,
        runsAnyway: false,
        dependsOn: [],
      },
      ...{ delayMs: TASK_AHEAD_MAX_SECONDS * SECOND_MS, group: GROUP, uniqueKey: null, uniqueForMs: null },
      reviewed: null,
    } as const;
    return taskAnswer(model, model.create("A", draft, String(answer["task_id"])), "A");
  });
}

const taskAndNode = fc.record({ variant, task: recent, node });

export function take(by: "assign" | "claim"): fc.Arbitrary<Command> {
  return command(by, taskAndNode, (world, { hub }, { variant, task, node }) => {
    const taskId = world.task(task);
    return same(hub.post(`/task/${by}`, { task_id: taskId, node_id: node }, { variant }), () =>
      taskAnswer(world.model, world.model.take(taskId, node, by), variant),
    );
  });
}

/** The task of the answer is that of this moment: others may change it later. */
export const next = command(
  "next",
  fc.record({
    variant,
    node,
    types: fc.constantFrom(null, null, ["x"], ["y", "z"]),
    resume: fc.boolean(),
  }),
  ({ model }, { hub }, { variant, node, types, resume }) =>
    same(hub.post("/task/next", { node_id: node, task_types: types, resume }, { variant }), () => {
      const { task, node: asker } = model.next(node, types, resume);
      return {
        task: task && taskWords(model, task, variant),
        lease: task && { epoch: task.epoch },
        drain: asker.draining,
      };
    }),
);

/** Who asks about a task: its holder or any node, with its epoch, with the one before, or without. */
const asker = fc.record({
  variant,
  task: recent,
  node,
  byHolder: fc.constantFrom(true, true, false),
  epochBack: fc.constantFrom(null, null, 0, 1),
});
type Asker = typeof asker extends fc.Arbitrary<infer A> ? A : never;

function holderOf(world: World, { task, node, byHolder, epochBack }: Asker) {
  const taskId = world.task(task);
  const known = world.model.tasks.find(({ id }) => id === taskId);
  const nodeId = byHolder ? (known?.node ?? node) : node;
  const epoch = epochBack === null ? null : Math.max(0, (known?.epoch ?? 0) - epochBack);
  return { taskId, nodeId, epoch, body: { task_id: taskId, node_id: nodeId, epoch } };
}

const checkpoint = fc.constantFrom(null, null, "page 1", "page 2");

/** Few numbers, so that reports repeat: also within one request, and with another cost. */
const usage = fc.oneof(
  { weight: 3, arbitrary: fc.constant<readonly Report[]>([]) },
  fc.array(
    fc.record({
      seq: fc.nat({ max: 3 }),
      tokens: fc.constantFrom(0, 7, 1_000_000_000),
      micro: fc.constantFrom(null, 0, 1, 500_000),
    }),
    { minLength: 1, maxLength: 3 },
  ),
);

function usageBody(usage: readonly Report[]) {
  const reports = usage.map(({ seq, tokens, micro }) => ({
    seq,
    model: "m",
    input_tokens: tokens,
    output_tokens: 1,
    cost_usd: micro === null ? null : micro / MICRO_PER_USD,
  }));
  return reports.length === 0 ? {} : { usage: reports };
}

export const costs = command(
  "usage",
  fc.record({ variant, by: fc.constantFrom("node", "type") }),
  ({ model }, { hub }, { variant, by }) => sameCosts(model, by, hub, variant),
);

export async function sameCosts(
  model: Model,
  by: "node" | "type",
  hub: TestHub,
  variant: VariantName,
): Promise<void> {
  const until = new Date(model.now).toISOString().slice(0, 10);
  const since = new Date(model.now - 300 * DAY_MS).toISOString().slice(0, 10);
  const query = `by=${by}&since=${since}&until=${until}&per_page=50`;
  await same(hub.get(`/usage?${query}`, { variant }), (answer) => {
    const sums = Map.groupBy(model.spent, (report) => report[by]);
    const named = [...sums].map(([name, reports]) => ({ name: name || null, ...spendingWords(reports) }));
    const byName = (a: { name: unknown }, b: { name: unknown }): number =>
      String(a.name) < String(b.name) ? -1 : 1;
    expect(arrayOf(answer["usage"]).map(withName).toSorted(byName)).toEqual(named.toSorted(byName));
    return model.spent.length === 0 ? {} : { all: spendingWords(model.spent) };
  });
}

const budgetKey = fc.record({
  about: fc.constantFrom({ scope: "hub", value: "" } as const, { scope: "type", value: "x" } as const),
  per: fc.constantFrom("day", "total"),
});

export const setBudget = command(
  "set budget",
  fc.record({ variant, key: budgetKey, micro: fc.constantFrom(500_000, 2_500_000) }),
  ({ model }, { hub }, { variant, key: { about, per }, micro }) => {
    const fields = { ...about, value: about.value || null, per, cost_usd: micro / MICRO_PER_USD };
    return same(hub.admin("/budget/set", { ...fields, on_limit: "warn" }, { variant }), () => ({
      budget: budgetWords(model, model.setBudget({ ...about, per }, micro)),
    }));
  },
);

export const deleteBudget = command(
  "delete budget",
  fc.record({ variant, key: budgetKey }),
  ({ model }, { hub }, { variant, key: { about, per } }) =>
    same(hub.admin("/budget/delete", { ...about, value: about.value || null, per }, { variant }), () => ({
      budget: budgetWords(model, model.deleteBudget({ ...about, per })),
    })),
);

export async function sameBudgets(model: Model, hub: TestHub): Promise<void> {
  await same(hub.get("/budget/list", { headers: { "X-Admin-Key": ADMIN_KEY } }), ({ budgets }) => {
    const words = [...model.budgets.values()].map((budget) => budgetWords(model, budget));
    const byKey = (a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): number =>
      `${String(a["scope"])} ${String(a["per"])}` < `${String(b["scope"])} ${String(b["per"])}` ? -1 : 1;
    expect(arrayOf(budgets).toSorted(byKey)).toMatchObject(words.toSorted(byKey));
    return {};
  });
}

function budgetWords(model: Model, budget: Budget) {
  return {
    scope: budget.scope,
    value: budget.value || null,
    per: budget.per,
    cost_usd: budget.limitMicro / MICRO_PER_USD,
    on_limit: "warn",
    state: model.stateOf(budget),
    paused: false,
    spent: spendingWords(model.spentOf(budget)),
  };
}

function withName(row: Readonly<Record<string, unknown>>) {
  return { name: row["name"], ...row };
}

export const release = command(
  "release",
  fc.record({ asker, checkpoint, usage }),
  (world, { hub }, { asker, checkpoint, usage }) => {
    const { taskId, nodeId, epoch, body } = holderOf(world, asker);
    const { variant } = asker;
    return same(hub.post("/task/release", { ...body, checkpoint, ...usageBody(usage) }, { variant }), () =>
      taskAnswer(world.model, world.model.release(taskId, nodeId, epoch, checkpoint, usage), variant),
    );
  },
);

export const fail = command(
  "fail",
  fc.record({ asker, checkpoint, usage, retry: fc.constantFrom(true, true, false) }),
  (world, { hub }, { asker, checkpoint, usage, retry }) => {
    const { taskId, nodeId, epoch, body } = holderOf(world, asker);
    const { variant } = asker;
    const asked = { ...body, error: "e", retry, checkpoint, ...usageBody(usage) };
    return same(hub.post("/task/fail", asked, { variant }), () =>
      taskAnswer(world.model, world.model.fail(taskId, nodeId, epoch, retry, checkpoint, usage), variant),
    );
  },
);

export const extend = command(
  "extend",
  fc.record({ asker, checkpoint, usage, note: fc.boolean() }),
  (world, { hub }, { asker, checkpoint, usage, note }) => {
    const { taskId, nodeId, epoch, body } = holderOf(world, asker);
    const { variant } = asker;
    const asked = { ...body, note: note ? "n" : null, checkpoint, ...usageBody(usage) };
    return same(hub.post("/task/extend", asked, { variant }), () =>
      taskAnswer(world.model, world.model.extend(taskId, nodeId, epoch, note, checkpoint, usage), variant),
    );
  },
);

/** Offsets are those of the model's text, or beside them: a repeat, an overlap, a gap. */
export const output = command(
  "output",
  fc.record({ asker, back: fc.constantFrom(0, 0, 0, 1, 3, -1), data: fc.constantFrom("a", "bcd", "efghij") }),
  (world, { hub }, { asker, back, data }) => {
    const { taskId, nodeId, epoch, body } = holderOf(world, asker);
    const known = world.model.tasks.find(({ id }) => id === taskId);
    const size = known?.outputs.find((one) => one.epoch === known.epoch)?.text.length ?? 0;
    const offset = Math.max(0, size - back);
    return same(hub.post("/task/output", { ...body, offset, data }, { variant: asker.variant }), () => {
      const { attempt, next } = world.model.output(taskId, nodeId, epoch, offset, data);
      return { task_id: taskId, attempt, next_offset: next };
    });
  },
);

export const readOutput = command(
  "read output",
  fc.record({ variant, task: recent }),
  (world, { hub }, asked) => sameOutput(world.model, world.task(asked.task), hub, asked.variant),
);

export async function sameOutput(
  model: Model,
  taskId: string,
  hub: TestHub,
  variant: VariantName,
): Promise<void> {
  const known = model.tasks.find(({ id }) => id === taskId);
  for (const asked of known && known.outputs.length > 0 ? known.outputs : [null])
    await same(hub.get(`/task/${taskId}/output?attempt=${asked?.epoch ?? ""}`, { variant }), () => {
      const task = model.task(taskId);
      const { epoch = null, text = "" } = asked ?? {};
      const isRunning = task.status === "assigned" && task.epoch === epoch;
      const isFinished = task.status === "completed" || task.status === "failed";
      return {
        task_id: taskId,
        status: statusWord(task.status, variant),
        attempt: epoch,
        offset: 0,
        data: text,
        next_offset: text.length,
        dropped: 0,
        size: text.length,
        ended: asked === null ? isFinished : !isRunning,
        attempts: task.outputs.map((one) => ({
          attempt: one.epoch,
          node_id: one.node,
          size: one.text.length,
        })),
      };
    });
}

export const ask = command(
  "ask",
  fc.record({
    asker,
    text: fc.constantFrom("a?", "b?"),
    withinMs: fc.constantFrom(20_000, 86_400_000),
    park: fc.boolean(),
  }),
  (world, { hub }, { asker, text, withinMs, park }) => {
    const { taskId, nodeId, epoch, body } = holderOf(world, asker);
    const asked = { ...body, question: text, within_s: withinMs / SECOND_MS, park };
    return same(hub.post("/task/ask", asked, { variant: asker.variant }), (answer) => {
      const id = String(Object(answer["question"])["question_id"]);
      const question = world.model.ask({ taskId, nodeId, epoch, text, park }, withinMs, id);
      return { question: questionWords(question) };
    });
  },
);

export const answer = command(
  "answer",
  fc.record({ variant, task: recent, back: fc.nat({ max: 2 }), word: fc.constantFrom("yes", "yes", "no") }),
  (world, { hub }, { variant, task, back, word }) => {
    const taskId = world.task(task);
    const known = world.model.tasks.find(({ id }) => id === taskId);
    const questionId = known?.questions.at(-1 - back)?.id ?? "no-question";
    const body = { task_id: taskId, question_id: questionId, answer: word };
    return same(hub.post("/task/answer", body, { variant }), () => ({
      question: questionWords(world.model.answer(taskId, questionId, word)),
    }));
  },
);

export const context = command("context", fc.record({ task: recent }), (world, { hub }, { task }) =>
  sameContext(world.model, world.task(task), hub),
);

export async function sameContext(model: Model, taskId: string, hub: TestHub): Promise<void> {
  await same(hub.get(`/task/${taskId}?context=1`), (answer) => {
    const words = contextWords(model, model.task(taskId));
    // Lessons have tests of their own (api/lessons.test.ts).
    const told = Object.keys(answer["context"] ?? {}).filter((name) => name !== "lessons");
    expect(told.toSorted()).toEqual(Object.keys(words).toSorted());
    return answer["context"] === undefined ? {} : { context: words };
  });
}

export const cancel = command(
  "cancel",
  fc.record({ variant, task: recent }),
  (world, { hub }, { variant, task }) => {
    const taskId = world.task(task);
    return same(hub.post("/task/cancel", { task_id: taskId }, { variant }), () =>
      taskAnswer(world.model, world.model.cancel(taskId), variant),
    );
  },
);

export const update = command(
  "update",
  fc.record({
    variant,
    task: recent,
    priority: fc.constantFrom(0, 1, 2, 5),
    start: fc.constantFrom("keep", "past", "none"),
    staysOn: fc.boolean(),
  }),
  (world, { hub }, { variant, task, priority, start, staysOn }) => {
    const { model } = world;
    const taskId = world.task(task);
    const times = {
      ...(start !== "keep" && {
        not_before: start === "none" ? null : new Date(model.now - SECOND_MS).toISOString(),
      }),
      ...(staysOn && { expires_at: null }),
    };
    const body = { task_id: taskId, priority: PRIORITY_ASKED[priority], ...times };
    return same(hub.post("/task/update", body, { variant }), () =>
      taskAnswer(model, model.update(taskId, priority, start, staysOn), variant),
    );
  },
);

export const retry = command(
  "retry",
  fc.record({ variant, task: recent, keeps: fc.constantFrom(undefined, true, false) }),
  (world, { hub }, { variant, task, keeps }) => {
    const taskId = world.task(task);
    return same(hub.post("/task/retry", { task_id: taskId, keep_checkpoint: keeps }, { variant }), () =>
      taskAnswer(world.model, world.model.retry(taskId, keeps), variant),
    );
  },
);

export const retryAll = command(
  "retry with dependents",
  fc.record({ variant, task: recent }),
  (world, { hub }, { variant, task }) => {
    const body = { task_id: world.task(task), with_dependents: true };
    return same(hub.post("/task/retry", body, { variant }), () => {
      const { task, opened, left } = world.model.retryAll(body.task_id);
      return { ...taskAnswer(world.model, task, variant), dependents: { opened, left } };
    });
  },
);

export const complete = command(
  "complete",
  fc.record({ asker, usage, word: fc.constantFrom("this", "that") }),
  (world, { hub }, { asker, usage, word }) => {
    const { variant } = asker;
    const { taskId, nodeId, epoch, body } = holderOf(world, asker);
    const asked = { ...body, result: resultOf(word), ...usageBody(usage) };
    return same(hub.post("/task/complete", asked, { variant }), (answer) => {
      const done = world.model.complete(variant, taskId, nodeId, word, epoch, usage);
      const isHeld = isInReview(done);
      const paid = isHeld ? 0 : lux(done.rewardMicro);
      const held = done.reviewed && { lux_held: isHeld ? lux(done.rewardMicro) : 0 };
      if (isHeld) return { status: "completed", lux_paid: 0, ...held, receipt: null, task_id: taskId };
      if (paid === 0) done.receipt = null;
      else
        expect(answer).toMatchObject({ receipt: { amount: paid, hash: expect.stringMatching(/^\w{64}$/) } });
      done.receipt ??= answer["receipt"]; // a repeat must return the same
      return { status: "completed", lux_paid: paid, ...held, receipt: done.receipt, task_id: taskId };
    });
  },
);

export const review = command(
  "review",
  fc.record({
    variant,
    task: recent,
    verdict: fc.constantFrom("pass" as const, "pass" as const, "reject" as const),
  }),
  (world, { hub }, { variant, task, verdict }) => {
    const taskId = world.task(task);
    return same(hub.post("/task/review", { task_id: taskId, verdict }, { variant }), () =>
      taskAnswer(world.model, world.model.judge(taskId, verdict), variant),
    );
  },
);

export const revoke = command(
  "revoke",
  fc.record({ variant, task: recent, to: fc.option(node) }),
  (world, { hub }, { variant, task, to }) => {
    const taskId = world.task(task);
    const asked = to === null ? { task_id: taskId } : { task_id: taskId, node_id: to };
    return same(hub.admin("/task/revoke", asked, { variant }), () => {
      // The answer tells of the moment of the revoke; what comes back to whom it was taken from comes after it.
      const revoked = world.model.revoke(taskId, to);
      return taskAnswer(world.model, revoked, variant);
    });
  },
);

export const remove = command(
  "delete",
  fc.record({ variant, task: recent }),
  (world, { hub }, { variant, task }) => {
    const taskId = world.task(task);
    return same(hub.admin("/task/delete", { task_id: taskId }, { variant }), () => {
      world.model.delete(taskId);
      return { task_id: taskId };
    });
  },
);

export const batchAssignListed = command(
  "batch-assign A",
  fc.array(fc.record({ task: recent, node }), { minLength: 1, maxLength: 4 }),
  (world, { hub }, pairs) => {
    const named = pairs.map(({ task, node }) => ({ taskId: world.task(task), nodeId: node }));
    const assignments = named.map(({ taskId, nodeId }) => ({ task_id: taskId, node_id: nodeId }));
    return same(hub.post("/task/batch-assign", { assignments }), () => {
      const codes = world.model.assignListed(named);
      return {
        results: assignments.map((one, i) => ({ ...one, success: codes[i] === null, error: codes[i] })),
      };
    });
  },
);

export const batchAssignAll = command("batch-assign B", fc.constant(null), ({ model }, { hub }) =>
  same(hub.post("/task/batch-assign", undefined, { variant: "B" }), () => {
    const { assigned, pending } = model.runBalancer();
    const assignments = assigned.map((task) => ({ task_id: task.id, node_id: task.node }));
    return { assigned: assigned.length, pending, assignments };
  }),
);

export const pull = command("pull", fc.record({ variant, node }), ({ model }, { hub }, { variant, node }) =>
  same(hub.get(`/task/pull?node_id=${node}`, { variant }), () => ({
    tasks: model
      .pull(node)
      .slice(0, 20)
      .map((task) => taskWords(model, task, variant)),
  })),
);

const STATES: Readonly<Record<string, readonly Task["status"][]>> = {
  open: ["open"],
  assigned: ["assigned"],
  pending: ["open", "assigned"],
  completed: ["completed"],
  failed: ["failed"],
};

export const list = command(
  "list",
  fc.record({
    variant,
    status: fc.option(fc.constantFrom(...Object.keys(STATES))),
    node: fc.option(node),
    page: fc.constantFrom(1, 2),
  }),
  ({ model }, { hub }, { variant, status, node, page }) => {
    const query = new URLSearchParams({ page: String(page), per_page: String(PER_PAGE) });
    if (status !== null) query.set("status", status);
    if (node !== null) query.set("node_id", node);
    return same(hub.get(`/task/list?${query}`, { variant }), () => {
      const states = status === null ? ["open", "assigned", "completed", "failed"] : (STATES[status] ?? []);
      const found = model.tasks
        .filter((task) => states.includes(task.status) && (node === null || task.node === node))
        .toReversed();
      const tasks = found.slice((page - 1) * PER_PAGE, page * PER_PAGE);
      const pages = Math.ceil(found.length / PER_PAGE);
      return { tasks: tasks.map((task) => taskWords(model, task, variant)), total: found.length, pages };
    });
  },
);

export const stats = command("stats", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/task/stats", { variant }), () => {
    const counted = STATUS_WORDS[variant].map((word) => {
      return [word, model.tasks.filter(({ status }) => statusWord(status, variant) === word).length] as const;
    });
    const ranked = [...model.nodes.values()].map(({ id, ledger }) => ({
      node_id: id,
      completed: model.held(id, "completed"),
      lux_earned: lux(
        ledger.filter(({ kind }) => kind === "reward").reduce((sum, entry) => sum + entry.micro, 0),
      ),
    }));
    const top = ranked
      .filter(({ completed }) => completed > 0)
      .toSorted(
        (a, b) =>
          b.completed - a.completed || b.lux_earned - a.lux_earned || (a.node_id < b.node_id ? -1 : 1),
      );
    return { total: model.tasks.length, by_status: Object.fromEntries(counted), top_nodes: top };
  }),
);
