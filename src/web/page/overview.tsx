/** The overview: what is wrong and where to click, tasks by state, the activity, the fleet, and what failed. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import type { AnswerOf, TaskSummary, TypeStats, Variant } from "../../client/luxhub.ts";
import { Counts, Medians, activityOf, useHistory, wrongSpan } from "./activity.tsx";
import { now } from "./clock.ts";
import { Failures } from "./failures.tsx";
import { Fleet } from "./fleet.tsx";
import { commandOf, countOf, curlOf, durationOf, manyOf } from "./format.ts";
import { type Facts, type Finding, findingsOf } from "./health.ts";
import { List, type ListOf } from "./list.tsx";
import { useLoad } from "./load.ts";
import { Age, Empty, Head, Link, None, NotLoaded, Section, TaskLink } from "./parts.tsx";
import { pausedWords, pulse } from "./pulse.ts";
import { WaitingQuestions } from "./questions.tsx";
import { type Query, to } from "./route.ts";
import { type Ask, isOnline } from "./session.ts";

const FEW = 8;
/** How long the hub keeps its counts by type (STATS_KEPT_MS of domain/limits.ts). */
const TYPES_KEPT_MS = 2_000;

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

type Loaded = Awaited<ReturnType<typeof load>>;

export function Overview(): VNode | null {
  const concerns = /^(?:task\.(?!progress)|node\.|hub\.|budget\.)/;
  const { value, error } = useLoad("overview", load, concerns, TYPES_KEPT_MS);
  const history = useHistory();
  const wrong = wrongSpan();
  const fault = wrong ?? (error || history.error);
  if (wrong !== null || value === null)
    return <NotLoaded title="Overview" error={fault} back={[to("overview"), "The last hour"]} />;
  const { status, stats, fleet, byType } = value;
  const counts = countsOf(value);
  const activity = activityOf(value.hour, history.value, now.value - status.uptime * 1_000);
  return (
    <>
      <Head error={fault}>
        Overview{" "}
        <small>
          up {durationOf(status.uptime)} · {status.software}
        </small>
      </Head>
      <Says findings={findingsOf(factsOf(value, counts))} />
      <WaitingQuestions />
      <Flow tiles={tilesOf(value, counts)} />
      {fleet.total === 0 && stats.total === 0 && <Start />}
      <div class="columns charts">
        <Counts activity={activity} />
        <Fleet />
      </div>
      <div class="columns">
        <Types byType={byType} />
        <Failures />
        <Medians activity={activity} />
        <Section title="Running now">
          <List list={RUNNING} rows={value.busy} empty="Nothing runs." />
        </Section>
      </div>
    </>
  );
}

// ---- What is wrong

type StateCounts = { readonly open: number; readonly waiting: number; readonly running: number };

/** Variant B counts open, waiting and running tasks as one: types have them apart, if not of the smallest types. */
function countsOf({ stats, byType: { types } }: Loaded): StateCounts {
  const states: Readonly<Record<string, number>> = stats.by_status;
  const sumOf = (countOfType: (type: TypeStats) => number): number =>
    types.reduce((sum, type) => sum + countOfType(type), 0);
  const waiting = sumOf((type) => type.waiting);
  const running = states["assigned"] ?? sumOf((type) => type.assigned);
  const unstarted = states["open"] ?? (states["pending"] ?? 0) - running;
  return { open: Math.max(0, unstarted - waiting), waiting, running };
}

function factsOf({ status, fleet, byType, hour }: Loaded, { open, running }: StateCounts): Facts {
  const { types, stuck, at } = byType;
  return {
    isOnline: isOnline.value,
    canWrite: status.status === "ok",
    diskWarning: status.storage.warning,
    paused: (status.paused ?? []).map(pausedWords),
    open,
    running,
    nodesOnline: fleet.by_status.online,
    nodesDraining: fleet.draining,
    types: types.map((type) => ({ ...waitingFacts(type, at), nodesOnline: type.nodes_online })),
    stuck: stuck.map((lane) => ({ ...waitingFacts(lane, at), missing: lane.missing, taskId: lane.task_id })),
    done: hour.total.tasks_completed,
    failed: hour.total.tasks_failed,
    deadLetters: pulse.value.deadLetters,
    webhooksSuspended: status.webhooks_suspended ?? 0,
  };
}

type Waiting = Pick<TypeStats, "task_type" | "open" | "oldest_open_at" | "nodes_registered">;

function waitingFacts({ task_type: type, open, oldest_open_at, nodes_registered }: Waiting, at: string) {
  return { type, open, oldestS: ageS(oldest_open_at, at), nodesRegistered: nodes_registered };
}

/** Both by the hub's clock. */
function ageS(since: string | null, at: string): number | null {
  return since === null ? null : (Date.parse(at) - Date.parse(since)) / 1_000;
}

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

// ---- Tasks by state, from left to right as they go

/** `tasks`: the address of those that it counts. */
type Tile = readonly [tone: string, count: number, word: string, tasks: Query, note: ComponentChildren];

function tilesOf({ stats, fleet, hour, byType }: Loaded, counts: StateCounts): readonly Tile[] {
  const { tasks_completed: done, tasks_failed: failed, lux_paid } = hour.total;
  const states: Readonly<Record<string, number>> = stats.by_status;
  const [oldest] = byType.types.flatMap(({ oldest_open_at }) => oldest_open_at ?? []).toSorted();
  const nodes = manyOf(fleet.by_status.online, "node");
  const paid = `${countOf(states["completed"] ?? 0)} in all · ${countOf(Math.round(lux_paid))} LUX paid`;
  const part = failed === 0 ? "" : `${((100 * failed) / (done + failed)).toFixed(1)} % · `;
  const ended = `${part}${countOf(states["failed"] ?? 0)} in all, with the cancelled`;
  const last = "3600";
  return [
    [
      "wait",
      counts.open,
      "open",
      { status: "ready" },
      oldest !== undefined && ["oldest ", <Age at={oldest} />],
    ],
    ["quiet", counts.waiting, "waiting", { status: "waiting" }, "for a time, tasks or an answer"],
    ["busy", counts.running, "running", { status: "assigned" }, `at ${nodes}`],
    ["good", done, "done in the last hour", { status: "completed", last }, paid],
    ["bad", failed, "failed in the last hour", { status: "failed", last }, ended],
  ];
}

function Flow({ tiles }: { tiles: readonly Tile[] }): VNode {
  return (
    <ul class="flow">
      {tiles.map(([tone, count, word, tasks, note]) => (
        <li key={word} class={`t-${tone}`}>
          <a href={to("tasks", "", tasks)}>
            <b>{countOf(count)}</b> {word}
            <small>{note}</small>
          </a>
        </li>
      ))}
    </ul>
  );
}

const RUNNING: ListOf<TaskSummary<Variant>> = {
  look: "lines",
  keyOf: ({ task_id }) => task_id,
  item: (task) => (
    <>
      <TaskLink task={task} />
      <span title={task.assigned_node ?? ""}>{task.assigned_node}</span>
      <Age at={task.started_at ?? task.updated_at} />
    </>
  ),
};

// ---- Types

const LONG_S = 600;

type TypeRow = TypeStats & { readonly oldestS: number | null };

const TYPES: ListOf<TypeRow> = {
  label: "Tasks by type",
  keyOf: ({ task_type }) => String(task_type),
  columns: [
    ["Type", typeOf, "names"],
    ["Open", ({ open }) => countOf(open), "number"],
    ["Oldest", waitOf, "number"],
    ["Nodes", takersOf, "number"],
    ["Running", ({ assigned }) => countOf(assigned), "number"],
    ["Done/h", ({ completed }) => countOf(completed), "number"],
    [
      "Failed/h",
      ({ failed }) => <span class={failed > 0 ? "s-failed" : ""}>{countOf(failed)}</span>,
      "number",
    ],
    ["Wait p50 · p95", startedAfter, "number quiet"],
  ],
};

function Types({ byType }: { byType: AnswerOf<"stats/types", Variant> }): VNode {
  const { types, others, at } = byType;
  const rows = types.map((type) => ({ ...type, oldestS: ageS(type.oldest_open_at, at) }));
  const note = `last hour${others > 0 ? `; ${countOf(others)} smaller types are not shown` : ""}`;
  return (
    <Section class="types" title="By type" note={note}>
      <List list={TYPES} rows={rows} empty="No tasks." />
    </Section>
  );
}

function typeOf({ task_type: type }: TypeRow): VNode {
  return type === null ? <i>no type</i> : <Link class="row" href={to("tasks", "", { type })} text={type} />;
}

function waitOf({ oldestS }: TypeRow): VNode {
  if (oldestS === null) return <None />;
  return <span class={oldestS > LONG_S ? "s-failed" : ""}>{durationOf(Math.floor(oldestS))}</span>;
}

function takersOf({ nodes_online: online, takers, open }: TypeRow): VNode {
  return (
    <span title={`${countOf(takers)} with room now, ${countOf(online)} online`}>
      {online === 0 ? <b class={open > 0 ? "s-failed" : "quiet"}>none</b> : countOf(online)}
    </span>
  );
}

function startedAfter({ time_to_start: { p50_s, p95_s } }: TypeRow): string {
  const [p50, p95] = [p50_s, p95_s].map((seconds) =>
    seconds !== null && seconds < 0.1 ? "< 0.1 s" : durationOf(seconds ?? 0),
  );
  return p50_s === null ? "–" : `${p50} · ${p95_s === null ? p50 : p95}`;
}
