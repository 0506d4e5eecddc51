/** The overview: what is wrong and where to click, tasks by state, the last hour, the fleet, and what failed. */
import { type ComponentChildren, Fragment, type JSX, h } from "preact";
import { useEffect } from "preact/hooks";
import type { AnswerOf, TaskSummary, TypeStats, Variant } from "../../client/luxhub.ts";
import { now } from "./clock.ts";
import { Chart } from "./chart.tsx";
import { Failures } from "./failures.tsx";
import { Fleet } from "./fleet.tsx";
import { commandOf, countOf, curlOf, durationOf, manyOf, oneOf } from "./format.ts";
import { type Finding, findingsOf } from "./health.ts";
import { Age, Empty, Head, None, NotLoaded, Table, useEvents, useLoad } from "./parts.tsx";
import { pausedWords, pulse } from "./pulse.ts";
import { WaitingQuestions } from "./question.tsx";
import { route, to, wrongQuery } from "./route.ts";
import { type Hub, isOnline } from "./session.ts";
import { DAY_MS } from "../../lib/clock.ts";

const FEW = 8;
const MINUTE_MS = 60_000;
/** How long the hub keeps its counts by type (STATS_KEPT_MS of domain/limits.ts). */
const TYPES_KEPT_MS = 2_000;

const RANGES = {
  hour: { short: "1 h", words: "the last hour" },
  day: { short: "24 h", words: "the last 24 hours" },
  month: { short: "30 d", words: "the last 30 days" },
} as const;

type Range = keyof typeof RANGES;

const WORDS = ["hour", "day", "month"] as const;

/** The names of the steps, by their seconds. */
const STEPS: Readonly<Record<number, string>> = { 60: "a minute", 600: "in 10 minutes", 3_600: "an hour" };

async function load(from: Hub, signal: AbortSignal) {
  const options = { signal };
  const [status, stats, fleet, busy, hour, byType] = await Promise.all([
    from.call("status", {}, options),
    from.call("task/stats", {}, options),
    from.call("stats/nodes", {}, options),
    from.call("task/list?fields=summary", { status: "assigned", per_page: FEW }, options),
    from.call("stats/minutes", {}, options),
    from.call("stats/types", {}, options),
  ]);
  return { status, stats, fleet, busy: busy.tasks, hour, byType };
}

export function Overview(): JSX.Element {
  const loaded = useLoad("overview", load);
  useEvents(({ kind }) => /^(?:task\.(?!progress)|node\.|hub\.|budget\.)/.test(kind), loaded, TYPES_KEPT_MS);
  const wrong = wrongQuery({ range: WORDS });
  const range = oneOf(WORDS, route.value.query["range"]) ?? "hour";
  // The longer ranges change slowly: they are loaded with the view, and each minute.
  const history = useLoad(range, async (from, signal) => {
    if (range === "hour") return null;
    const [sums, hours] = await Promise.all([
      from.call("stats/minutes", { range }, { signal }),
      range === "day" ? from.call("stats/minutes", { range: "month" }, { signal }) : null,
    ]);
    return { ...sums, dayBefore: hours && dayBefore(sums, hours) };
  });
  useEffect(() => {
    const timer = setInterval(history.reload, MINUTE_MS);
    return () => clearInterval(timer);
  }, []);
  const { value } = loaded;
  const error = wrong ?? (loaded.error || history.error);
  if (wrong !== null || value === null)
    return <NotLoaded title="Overview" error={error} back={[to("overview"), "The last hour"]} />;
  const { status, stats, fleet, hour, byType } = value;
  const shown = history.value ?? hour;
  const before = history.value?.dayBefore;
  const { words } = RANGES[history.value === null ? "hour" : range];
  const { types } = byType;
  const { total } = hour;
  const { minutes, total: sums } = shown;
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
    types: types.map((type) => ({
      type: type.task_type,
      open: type.open,
      oldestS: ageS(type.oldest_open_at, byType.at),
      nodesOnline: type.nodes_online,
      nodesRegistered: type.nodes_registered,
    })),
    stuck: byType.stuck.map((lane) => ({
      type: lane.task_type,
      open: lane.open,
      oldestS: ageS(lane.oldest_open_at, byType.at),
      nodesRegistered: lane.nodes_registered,
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
    stepMs: shown.step_s * 1_000,
    startedAt: now.value - status.uptime * 1_000,
  };
  const counted = (name: string, of: "tasks_created" | "tasks_completed" | "tasks_failed") => ({
    name,
    values: minutes.map((one) => one[of]),
    whole: sums[of],
  });
  const median = (name: string, of: "time_to_start" | "time_to_finish") => ({
    name,
    values: minutes.map((one) => one[of].p50_s),
    whole: sums[of].p50_s,
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
        <Step tone="wait" count={open} word="open" href={to("tasks", "", { status: "ready" })}>
          {oldest !== undefined && (
            <>
              oldest <Age at={oldest} />
            </>
          )}
        </Step>
        <Step tone="quiet" count={waiting} word="waiting" href={to("tasks", "", { status: "waiting" })}>
          for a time, tasks or an answer
        </Step>
        <Step tone="busy" count={running} word="running" href={to("tasks", "", { status: "assigned" })}>
          at {manyOf(fleet.by_status.online, "node")}
        </Step>
        <Step
          tone="good"
          count={total.tasks_completed}
          word="done in the last hour"
          href={to("tasks", "", { status: "completed", last: "3600" })}
        >
          {`${countOf(by["completed"] ?? 0)} in all · ${countOf(Math.round(total.lux_paid))} LUX paid`}
        </Step>
        <Step
          tone="bad"
          count={total.tasks_failed}
          word="failed in the last hour"
          href={to("tasks", "", { status: "failed", last: "3600" })}
        >
          {`${total.tasks_failed === 0 ? "" : `${((100 * total.tasks_failed) / ended).toFixed(1)} % · `}${countOf(by["failed"] ?? 0)} in all`}
        </Step>
      </ul>
      {fleet.total === 0 && stats.total === 0 && <Start />}
      <div class="columns charts">
        <section>
          <Ranges range={range} words={`Tasks ${STEPS[shown.step_s] ?? ""}, ${words}`} />
          <Chart
            label={`Tasks created, completed and failed: ${words}`}
            {...axis}
            series={[
              counted("created", "tasks_created"),
              counted("completed", "tasks_completed"),
              { ...counted("failed", "tasks_failed"), isDown: true },
              ...(before ? [{ name: "completed the day before", ...before, isThin: true }] : []),
            ]}
          />
        </section>
        <Fleet />
      </div>
      <div class="columns">
        <Types byType={byType} />
        <Failures />
        <section>
          <h2>
            Seconds to start and to finish (median) <span>{words}</span>
          </h2>
          <Chart
            label={`Median seconds from when a task is ready until it starts and until it is finished: ${words}`}
            {...axis}
            series={[median("to start", "time_to_start"), median("to finish", "time_to_finish")]}
          />
        </section>
        <section>
          <h2>Running now</h2>
          <Few tasks={value.busy} none="Nothing runs." />
        </section>
      </div>
    </>
  );
}

type Sums = AnswerOf<"stats/minutes", Variant>;

/** What was completed a day before each interval, of which the hub keeps only the sums of hours: each gets its part. */
function dayBefore(day: Sums, hours: Sums): { values: readonly number[]; whole: number } {
  const hourMs = hours.step_s * 1_000;
  const sums = new Map(hours.minutes.map(({ at, tasks_completed }) => [Date.parse(at), tasks_completed]));
  const values = day.minutes.map(({ at }) => {
    const time = Date.parse(at) - DAY_MS;
    return ((sums.get(time - (time % hourMs)) ?? 0) * day.step_s) / hours.step_s;
  });
  return { values, whole: values.reduce((sum, value) => sum + value, 0) };
}

function Ranges({ range, words }: { range: Range; words: string }): JSX.Element {
  return (
    <h2>
      {words}
      <span class="ranges">
        {WORDS.map((word) => (
          <a
            key={word}
            href={to("overview", "", { range: word === "hour" ? undefined : word })}
            aria-current={word === range ? "true" : undefined}
          >
            {RANGES[word].short}
          </a>
        ))}
      </span>
    </h2>
  );
}

/** What is wrong, the worst first. */
function Says({ findings }: { findings: readonly Finding[] }): JSX.Element {
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
  href: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <li class={`t-${props.tone}`}>
      <a href={props.href}>
        <b>{countOf(props.count)}</b> {props.word}
        <small>{props.children}</small>
      </a>
    </li>
  );
}

function Few({ tasks, none }: { tasks: readonly TaskSummary<Variant>[]; none: string }): JSX.Element {
  if (tasks.length === 0) return <p class="quiet">{none}</p>;
  return (
    <ul class="plain lines">
      {tasks.map((task) => (
        <li key={task.task_id}>
          <a href={to("tasks", task.task_id)} title={task.title}>
            {task.title}
          </a>
          <span title={task.assigned_node ?? ""}>{task.assigned_node}</span>
          <Age at={task.started_at ?? task.updated_at} />
        </li>
      ))}
    </ul>
  );
}

/** Both by the hub's clock. */
function ageS(since: string | null, at: string): number | null {
  return since === null ? null : (Date.parse(at) - Date.parse(since)) / 1_000;
}

function waitOf(seconds: number): string {
  return seconds < 0.1 ? "< 0.1 s" : durationOf(seconds);
}

/** Longer waits are worth a look. */
const LONG_S = 600;

function Types({ byType }: { byType: AnswerOf<"stats/types", Variant> }): JSX.Element {
  const { types, others, at } = byType;
  const head = ["Type", "Open", "Oldest", "Nodes", "Running", "Done/h", "Failed/h", "Wait p50 · p95"];
  return (
    <section class="types">
      <h2>
        By type <span>last hour{others > 0 && `; ${countOf(others)} smaller types are not shown`}</span>
      </h2>
      {types.length === 0 ? (
        <p class="quiet">No tasks.</p>
      ) : (
        <Table label="Tasks by type" head={head}>
          {types.map((type) => (
            <TypeRow key={type.task_type} type={type} at={at} />
          ))}
        </Table>
      )}
    </section>
  );
}

function TypeRow({ type, at }: { type: TypeStats; at: string }): JSX.Element {
  const { task_type, open, oldest_open_at, nodes_online, takers, time_to_start } = type;
  const waitsS = ageS(oldest_open_at, at) ?? 0;
  const { p50_s, p95_s } = time_to_start;
  return (
    <tr>
      <td class="names">
        {task_type === null ? (
          <i>no type</i>
        ) : (
          <a class="row" href={to("tasks", "", { type: task_type })}>
            {task_type}
          </a>
        )}
      </td>
      <td class="number">{countOf(open)}</td>
      <td class={waitsS > LONG_S ? "number s-failed" : "number"}>
        {oldest_open_at === null ? <None /> : durationOf(Math.floor(waitsS))}
      </td>
      <td class="number" title={`${countOf(takers)} with room now, ${countOf(nodes_online)} online`}>
        {nodes_online === 0 ? <b class={open > 0 ? "s-failed" : "quiet"}>none</b> : countOf(nodes_online)}
      </td>
      <td class="number">{countOf(type.assigned)}</td>
      <td class="number">{countOf(type.completed)}</td>
      <td class={type.failed > 0 ? "number s-failed" : "number"}>{countOf(type.failed)}</td>
      <td class="number quiet">{p50_s === null ? "–" : `${waitOf(p50_s)} · ${waitOf(p95_s ?? p50_s)}`}</td>
    </tr>
  );
}

function Start(): JSX.Element {
  return (
    <>
      <Empty
        text="The hub is empty. Put its secret into LUXHUB_SECRET in a shell, and register a node:"
        line={curlOf("node/register", { node_id: "worker-1", name: "Worker 1" })}
      />
      <Empty
        text="Then create a task:"
        line={commandOf("task", "add", "Say hello", "--description", "To everyone")}
      />
    </>
  );
}
