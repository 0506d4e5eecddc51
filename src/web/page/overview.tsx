/** The overview: what is wrong and where to click, tasks by state, the last hour, the fleet, and what failed. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import type { AnswerOf, TaskSummary, TypeStats, Variant } from "../../client/luxhub.ts";
import { now } from "./clock.ts";
import { Chart } from "./chart.tsx";
import { Failures } from "./failures.tsx";
import { Fleet } from "./fleet.tsx";
import { commandOf, countOf, curlOf, durationOf, manyOf, oneOf } from "./format.ts";
import { type Finding, findingsOf } from "./health.ts";
import {
  Age,
  Empty,
  Form,
  Head,
  None,
  NotLoaded,
  Ranges,
  Section,
  Table,
  TaskLink,
  TimeField,
  useEvery,
  useLoad,
} from "./parts.tsx";
import { pausedWords, pulse } from "./pulse.ts";
import { WaitingQuestions } from "./question.tsx";
import { type Query, go, route, to, wrongQuery } from "./route.ts";
import { type Ask, isOnline } from "./session.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { isoOf, timeOf } from "./times.ts";

const FEW = 8;
const MINUTE_MS = 60_000;
/** How long the hub keeps its counts by type (STATS_KEPT_MS of domain/limits.ts). */
const TYPES_KEPT_MS = 2_000;

const RANGES = {
  hour: { short: "1 h", words: "the last hour", ms: DAY_MS / 24 },
  day: { short: "24 h", words: "the last 24 hours", ms: DAY_MS },
  month: { short: "30 d", words: "the last 30 days", ms: 30 * DAY_MS },
} as const;

type Range = keyof typeof RANGES;

const WORDS = ["hour", "day", "month"] as const;

/** The names of the steps, by their seconds. */
const STEPS: Readonly<Record<number, string>> = { 60: "a minute", 600: "in 10 minutes", 3_600: "an hour" };

async function load(ask: Ask) {
  const [status, stats, fleet, busy, hour, byType] = await Promise.all([
    ask("status", {}),
    ask("task/stats", {}),
    ask("stats/nodes", {}),
    ask("task/list?fields=summary", { status: "assigned", per_page: FEW }),
    ask("stats/minutes", {}),
    ask("stats/types", {}),
  ]);
  return { status, stats, fleet, busy: busy.tasks, hour, byType };
}

export function Overview(): VNode {
  const loaded = useLoad("overview", load, /^(?:task\.(?!progress)|node\.|hub\.|budget\.)/, TYPES_KEPT_MS);
  const { query } = route.value;
  const wrong = wrongQuery({ range: WORDS, from: null, to: null }) ?? wrongTime(query["from"], query["to"]);
  const from = Date.parse(query["from"] ?? "");
  const until = Date.parse(query["to"] ?? "");
  const range = rangeOf(from) ?? oneOf(WORDS, query["range"]) ?? "hour";
  // The longer ranges change slowly: they are loaded with the view, and each minute.
  const history = useLoad(range, async (ask) => {
    if (range === "hour") return null;
    const [sums, hours] = await Promise.all([
      ask("stats/minutes", { range }),
      range === "day" ? ask("stats/minutes", { range: "month" }) : null,
    ]);
    return { ...sums, minutes: hours ? withDayBefore(sums, hours) : sums.minutes };
  });
  useEvery(MINUTE_MS, history.reload);
  const { value } = loaded;
  const error = wrong ?? (loaded.error || history.error);
  if (wrong !== null || value === null)
    return <NotLoaded title="Overview" error={error} back={[to("overview"), "The last hour"]} />;
  const { status, stats, fleet, hour, byType } = value;
  const shown: Omit<Sums, "minutes"> & { readonly minutes: readonly Minute[] } = history.value ?? hour;
  const { types } = byType;
  const { total } = hour;
  // What the address leaves out is not cut: a comparison with no time is false.
  const isCut = !Number.isNaN(from) || !Number.isNaN(until);
  const stepMs = shown.step_s * 1_000;
  const minutes = shown.minutes.filter(
    ({ at }) => !(Date.parse(at) + stepMs <= from || Date.parse(at) >= until),
  );
  const before = minutes.flatMap(({ day_before }) => day_before ?? []);
  const end = minutes.at(-1) === shown.minutes.at(-1) ? "" : timeOf(until);
  const words = isCut
    ? `${timeOf(minutes[0]?.at ?? from)} – ${end || "now"}`
    : RANGES[history.value === null ? "hour" : range].words;
  const by: Readonly<Record<string, number>> = stats.by_status;
  const sumOf = (count: (type: TypeStats) => number): number =>
    types.reduce((sum, one) => sum + count(one), 0);
  // Variant B counts open, waiting and running tasks as one: types have them apart, if not of the smallest types.
  const waiting = sumOf((type) => type.waiting);
  const running = by["assigned"] ?? sumOf((type) => type.assigned);
  const open = Math.max(0, (by["open"] ?? (by["pending"] ?? 0) - running) - waiting);
  const oldest = types
    .flatMap(({ oldest_open_at }) => oldest_open_at ?? [])
    .toSorted()
    .at(0);
  const findings = findingsOf({
    isOnline: isOnline.value,
    canWrite: status.status === "ok",
    diskWarning: status.storage.warning,
    paused: (status.paused ?? []).map(pausedWords),
    open,
    running,
    nodesOnline: fleet.by_status.online,
    nodesDraining: fleet.draining,
    types: types.map((type) => ({ ...factsOf(type, byType.at), nodesOnline: type.nodes_online })),
    stuck: byType.stuck.map((lane) => ({
      ...factsOf(lane, byType.at),
      missing: lane.missing,
      taskId: lane.task_id,
    })),
    done: total.tasks_completed,
    failed: total.tasks_failed,
    deadLetters: pulse.value.deadLetters,
    webhooksSuspended: status.webhooks_suspended ?? 0,
  });
  const axis = {
    times: minutes.map(({ at }) => at),
    stepMs,
    end,
    startedAt: now.value - status.uptime * 1_000,
  };
  const counted = (name: string, of: "tasks_created" | "tasks_completed" | "tasks_failed") => ({
    name,
    values: minutes.map((one) => one[of]),
    whole: isCut ? sumOfAll(minutes.map((one) => one[of])) : shown.total[of],
  });
  const median = (name: string, of: "time_to_start" | "time_to_finish") => ({
    name,
    values: minutes.map((one) => one[of].p50_s),
    whole: isCut ? null : shown.total[of].p50_s, // there is no median of medians
  });
  const ended = total.tasks_completed + total.tasks_failed;
  return (
    <>
      <Head error={error}>
        Overview{" "}
        <small>
          up {durationOf(status.uptime)} · {status.software}
        </small>
      </Head>
      <Says findings={findings} />
      <WaitingQuestions />
      <ul class="flow">
        <Step tone="wait" count={open} word="open" tasks={{ status: "ready" }}>
          {oldest !== undefined && (
            <>
              oldest <Age at={oldest} />
            </>
          )}
        </Step>
        <Step tone="quiet" count={waiting} word="waiting" tasks={{ status: "waiting" }}>
          for a time, tasks or an answer
        </Step>
        <Step tone="busy" count={running} word="running" tasks={{ status: "assigned" }}>
          at {manyOf(fleet.by_status.online, "node")}
        </Step>
        <Step
          tone="good"
          count={total.tasks_completed}
          word="done in the last hour"
          tasks={{ status: "completed", last: "3600" }}
        >
          {`${countOf(by["completed"] ?? 0)} in all · ${countOf(Math.round(total.lux_paid))} LUX paid`}
        </Step>
        <Step
          tone="bad"
          count={total.tasks_failed}
          word="failed in the last hour"
          tasks={{ status: "failed", last: "3600" }}
        >
          {`${total.tasks_failed === 0 ? "" : `${((100 * total.tasks_failed) / ended).toFixed(1)} % · `}${countOf(by["failed"] ?? 0)} in all, with the cancelled`}
        </Step>
      </ul>
      {fleet.total === 0 && stats.total === 0 && <Start />}
      <div class="columns charts">
        <section>
          <h2>
            Tasks {STEPS[shown.step_s]}, {words}
            <Ranges
              links={WORDS.map((word) => [
                RANGES[word].short,
                to("overview", "", { range: word === "hour" ? undefined : word }),
                word === range && !isCut,
              ])}
            />
          </h2>
          <Chart
            label={`Tasks created, completed and failed: ${words}`}
            {...axis}
            series={[
              counted("created", "tasks_created"),
              counted("completed", "tasks_completed"),
              { ...counted("failed", "tasks_failed"), isDown: true },
              ...(before.length > 0
                ? [
                    {
                      name: "completed the day before",
                      values: before,
                      whole: sumOfAll(before),
                      isThin: true,
                    },
                  ]
                : []),
            ]}
          />
          <Between />
        </section>
        <Fleet />
      </div>
      <div class="columns">
        <Types byType={byType} />
        <Failures />
        <Section
          title={
            <>
              Seconds to start and to finish (median) <span>{words}</span>
            </>
          }
        >
          <Chart
            label={`Median seconds from when a task is ready until it starts and until it is finished: ${words}`}
            {...axis}
            series={[median("to start", "time_to_start"), median("to finish", "time_to_finish")]}
          />
        </Section>
        <Section title="Running now">
          <Few tasks={value.busy} none="Nothing runs." />
        </Section>
      </div>
    </>
  );
}

type Sums = AnswerOf<"stats/minutes", Variant>;

/** The shortest range that goes back to a time; undefined without a time. */
function rangeOf(from: number): Range | undefined {
  if (Number.isNaN(from)) return undefined;
  return WORDS.find((word) => RANGES[word].ms >= now.value - from) ?? "month";
}

/** What is wrong with a time in the address. */
function wrongTime(...times: readonly (string | undefined)[]): string | null {
  const wrong = times.find((time) => time && Number.isNaN(Date.parse(time)));
  return wrong === undefined ? null : `The address has the time ${wrong}, which is none.`;
}

type Minute = Sums["minutes"][number] & { readonly day_before?: number };

/** With what was completed a day before, of which the hub keeps only the sums of hours: each interval gets its part. */
function withDayBefore(day: Sums, hours: Sums): readonly Minute[] {
  const hourMs = hours.step_s * 1_000;
  const sums = new Map(hours.minutes.map(({ at, tasks_completed }) => [Date.parse(at), tasks_completed]));
  return day.minutes.map((minute) => {
    const time = Date.parse(minute.at) - DAY_MS;
    const completed = sums.get(time - (time % hourMs)) ?? 0;
    return { ...minute, day_before: (completed * day.step_s) / hours.step_s };
  });
}

function sumOfAll(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** The part of the chart between two times, which the address has, so that it can be shared. */
function Between(): VNode {
  const { from, to: until } = route.value.query;
  return (
    <details class="more" open={Boolean(from || until)}>
      <summary>From, to</summary>
      <Form
        class="filters"
        onSend={({ from, to: until }) => go(to("overview", "", { from: isoOf(from), to: isoOf(until) }))}
      >
        <TimeField label="From" name="from" value={from} />
        <TimeField label="To" name="to" value={until} />
        <button data-do="show-between">Show</button>
      </Form>
    </details>
  );
}

/** What is wrong, the worst first. */
function Says({ findings }: { findings: readonly Finding[] }): VNode {
  return (
    <div role="status">
      {findings.map(({ tone, what, why, link }) => (
        <p key={what} class={`say t-${tone}`}>
          <b>{what}</b> <span>{why}</span>{" "}
          {link && <a href={to(link.view, link.id, link.query)}>{link.words}</a>}
        </p>
      ))}
    </div>
  );
}

function Step(props: {
  tone: string;
  count: number;
  word: string;
  /** Leads to the tasks that it counts. */
  tasks: Query;
  children: ComponentChildren;
}): VNode {
  return (
    <li class={`t-${props.tone}`}>
      <a href={to("tasks", "", props.tasks)}>
        <b>{countOf(props.count)}</b> {props.word}
        <small>{props.children}</small>
      </a>
    </li>
  );
}

function Few({ tasks, none }: { tasks: readonly TaskSummary<Variant>[]; none: string }): VNode {
  if (tasks.length === 0) return <p class="quiet">{none}</p>;
  return (
    <ul class="plain lines">
      {tasks.map((task) => (
        <li key={task.task_id}>
          <TaskLink task={task} />
          <span title={task.assigned_node ?? ""}>{task.assigned_node}</span>
          <Age at={task.started_at ?? task.updated_at} />
        </li>
      ))}
    </ul>
  );
}

type Waiting = Pick<TypeStats, "task_type" | "open" | "oldest_open_at" | "nodes_registered">;

function factsOf({ task_type: type, open, oldest_open_at, nodes_registered }: Waiting, at: string) {
  return { type, open, oldestS: ageS(oldest_open_at, at), nodesRegistered: nodes_registered };
}

/** Both by the hub's clock. */
function ageS(since: string | null, at: string): number | null {
  return since === null ? null : (Date.parse(at) - Date.parse(since)) / 1_000;
}

/** Longer waits are worth a look. */
const LONG_S = 600;

function Types({ byType }: { byType: AnswerOf<"stats/types", Variant> }): VNode {
  const { types, others, at } = byType;
  return (
    <section class="types">
      <h2>
        By type <span>last hour{others > 0 && `; ${countOf(others)} smaller types are not shown`}</span>
      </h2>
      {types.length === 0 ? (
        <p class="quiet">No tasks.</p>
      ) : (
        <Table
          label="Tasks by type"
          rows={types}
          keyOf={({ task_type }) => task_type}
          columns={[
            ["Type", typeOf, "names"],
            ["Open", ({ open }) => countOf(open), "number"],
            ["Oldest", ({ oldest_open_at }) => waitOf(ageS(oldest_open_at, at)), "number"],
            ["Nodes", takersOf, "number"],
            ["Running", ({ assigned }) => countOf(assigned), "number"],
            ["Done/h", ({ completed }) => countOf(completed), "number"],
            [
              "Failed/h",
              ({ failed }) => <span class={failed > 0 ? "s-failed" : ""}>{countOf(failed)}</span>,
              "number",
            ],
            ["Wait p50 · p95", ({ time_to_start }) => startedAfter(time_to_start), "number quiet"],
          ]}
        />
      )}
    </section>
  );
}

function typeOf({ task_type: type }: TypeStats): VNode {
  return type === null ? (
    <i>no type</i>
  ) : (
    <a class="row" href={to("tasks", "", { type })}>
      {type}
    </a>
  );
}

function waitOf(seconds: number | null): VNode {
  if (seconds === null) return <None />;
  return <span class={seconds > LONG_S ? "s-failed" : ""}>{durationOf(Math.floor(seconds))}</span>;
}

/** The nodes that could take tasks of the type. */
function takersOf({ nodes_online: online, takers, open }: TypeStats): VNode {
  return (
    <span title={`${countOf(takers)} with room now, ${countOf(online)} online`}>
      {online === 0 ? <b class={open > 0 ? "s-failed" : "quiet"}>none</b> : countOf(online)}
    </span>
  );
}

function startedAfter({ p50_s, p95_s }: TypeStats["time_to_start"]): string {
  const [p50, p95] = [p50_s, p95_s].map((seconds) =>
    seconds !== null && seconds < 0.1 ? "< 0.1 s" : durationOf(seconds ?? 0),
  );
  return p50_s === null ? "–" : `${p50} · ${p95_s === null ? p50 : p95}`;
}

function Start(): VNode {
  return (
    <>
      <Empty
        text="The hub is empty. Put its secret into LUXHUB_SECRET in a shell, and register a node:"
        line={curlOf("node/register", { node_id: "worker-1", name: "Worker 1" })}
      />
      <Empty
        text="Then create a task:"
        line={commandOf("task add 'Say hello' --description 'To everyone'")}
      />
    </>
  );
}
