/** The overview: what is wrong and where to click, tasks by state, the last hour, the fleet, and what failed. */
import type { JSX } from "preact";
import { Chart } from "./chart.tsx";
import { Fleet } from "./fleet.tsx";
import { type AnyTask, commandOf, countOf, curlOf, durationOf, stateOf } from "./format.ts";
import { type Finding, findingsOf } from "./health.ts";
import { Load } from "./nodes.tsx";
import { Age, Empty, Fault, useEvents, useLoad } from "./parts.tsx";
import { pulse } from "./pulse.ts";
import { WaitingQuestions } from "./questions.tsx";
import { to } from "./route.ts";
import { type Hub, isOnline } from "./session.ts";

const FEW = 8;
const MINUTE_MS = 60_000;

async function load(from: Hub, signal: AbortSignal) {
  const options = { signal };
  const [status, stats, fleet, busiest, failed, busy, hour] = await Promise.all([
    from.status({}, options),
    from.tasks.stats({}, options),
    from.nodes.stats({}, options),
    from.nodes.list({ status: "online", order: "busy", per_page: FEW }, options),
    from.tasks.list({ status: "failed", per_page: FEW }, options),
    from.tasks.list({ status: "assigned", per_page: FEW }, options),
    from.minutes({}, options),
  ]);
  return { status, stats, fleet, nodes: busiest.nodes, failed: failed.tasks, busy: busy.tasks, hour };
}

export function Overview(): JSX.Element {
  const loaded = useLoad("overview", load);
  useEvents(() => true, loaded);
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  const { status, stats, fleet, hour } = value;
  const { minutes, total } = hour;
  const by: Readonly<Record<string, number>> = stats.by_status;
  const running = by["assigned"] ?? 0;
  const open = by["open"] ?? by["pending"] ?? 0;
  const findings = findingsOf({
    isOnline: isOnline.value,
    canWrite: status.status === "ok",
    diskWarning: status.storage.warning,
    open,
    running,
    nodesOnline: fleet.by_status.online,
    nodesDraining: fleet.draining,
    done: total.tasks_completed,
    failed: total.tasks_failed,
    deadLetters: pulse.value.deadLetters,
  });
  const startedAt = Date.parse(minutes.at(-1)?.at ?? "") - status.uptime * 1_000;
  const ended = total.tasks_completed + total.tasks_failed;
  return (
    <>
      <header class="head">
        <h1>
          Overview{" "}
          <small>
            up {durationOf(status.uptime)} · {status.software}
          </small>
        </h1>
      </header>
      <Fault text={error} />
      <Says findings={findings} />
      <WaitingQuestions />
      <ul class="flow">
        <Step
          tone="wait"
          count={open}
          word={by["pending"] === undefined ? "open" : "pending"}
          more=""
          href={to("tasks", "", { status: by["pending"] === undefined ? "open" : "pending" })}
        />
        {by["assigned"] !== undefined && (
          <Step
            tone="busy"
            count={running}
            word="running"
            more=""
            href={to("tasks", "", { status: "assigned" })}
          />
        )}
        <Step
          tone="good"
          count={total.tasks_completed}
          word="done in the last hour"
          more={`${countOf(by["completed"] ?? 0)} in all · ${countOf(Math.round(total.lux_paid))} LUX paid`}
          href={to("tasks", "", { status: "completed" })}
        />
        <Step
          tone="bad"
          count={total.tasks_failed}
          word="failed in the last hour"
          more={`${total.tasks_failed === 0 ? "" : `${((100 * total.tasks_failed) / ended).toFixed(1)} % · `}${countOf(by["failed"] ?? 0)} in all`}
          href={to("tasks", "", { status: "failed" })}
        />
      </ul>
      {fleet.total === 0 && stats.total === 0 && <Start />}
      <div class="columns charts">
        <section>
          <h2>Tasks a minute, the last hour</h2>
          <Chart
            label="Tasks created, completed and failed in each minute of the last hour"
            times={minutes.map(({ at }) => at)}
            stepMs={MINUTE_MS}
            startedAt={startedAt}
            series={[
              {
                name: "created",
                values: minutes.map((minute) => minute.tasks_created),
                whole: total.tasks_created,
              },
              {
                name: "completed",
                values: minutes.map((minute) => minute.tasks_completed),
                whole: total.tasks_completed,
              },
              {
                name: "failed",
                values: minutes.map((minute) => minute.tasks_failed),
                whole: total.tasks_failed,
                isDown: true,
              },
            ]}
          />
        </section>
        <Fleet />
      </div>
      <div class="columns">
        <section>
          <h2>Seconds to start and to finish (median)</h2>
          <Chart
            label="Median seconds from its creation until a task starts and until it is finished, the last hour"
            times={minutes.map(({ at }) => at)}
            stepMs={MINUTE_MS}
            startedAt={startedAt}
            series={[
              {
                name: "to start",
                values: minutes.map((minute) => minute.time_to_start.p50_s),
                whole: total.time_to_start.p50_s,
              },
              {
                name: "to finish",
                values: minutes.map((minute) => minute.time_to_finish.p50_s),
                whole: total.time_to_finish.p50_s,
              },
            ]}
          />
        </section>
        <section>
          <h2>Running now</h2>
          <Few tasks={value.busy} none="Nothing runs." />
        </section>
        <section>
          <h2>Failed tasks, newest first</h2>
          <Few tasks={value.failed} none="Nothing has failed." />
        </section>
        <section>
          <h2>Busiest nodes</h2>
          {value.nodes.length === 0 && <p class="quiet">No node is online.</p>}
          <ul class="plain lines">
            {value.nodes.map((node) => (
              <li key={node.node_id}>
                <a href={to("nodes", node.node_id)} title={node.name}>
                  {node.name}
                </a>
                <span>
                  <Load node={node} />{" "}
                  {node.tasks_assigned === 1 && node.max_tasks === null ? "task" : "tasks"}
                </span>
              </li>
            ))}
          </ul>
        </section>
      </div>
    </>
  );
}

/** What is wrong, the worst first. */
function Says({ findings }: { findings: readonly Finding[] }): JSX.Element {
  return (
    <div role="status">
      {findings.map(({ tone, what, why, link }) => (
        <p key={what} class={`say t-${tone}`}>
          <b>{what}</b> <span>{why}</span> {link && <a href={to(link.view, "", link.query)}>{link.words}</a>}
        </p>
      ))}
    </div>
  );
}

function Step(props: { tone: string; count: number; word: string; more: string; href: string }): JSX.Element {
  return (
    <li class={`t-${props.tone}`}>
      <a href={props.href}>
        <b>{countOf(props.count)}</b> {props.word}
        <small>{props.more}</small>
      </a>
    </li>
  );
}

function Few({ tasks, none }: { tasks: readonly AnyTask[]; none: string }): JSX.Element {
  if (tasks.length === 0) return <p class="quiet">{none}</p>;
  return (
    <ul class="plain lines">
      {tasks.map((task) => (
        <li key={task.task_id}>
          <a href={to("tasks", task.task_id)} title={task.title}>
            {task.title}
          </a>
          <Why task={task} />
          <Age at={task.updated_at} />
        </li>
      ))}
    </ul>
  );
}

/** Who holds it, or why it failed. */
function Why({ task }: { task: AnyTask }): JSX.Element {
  const failure = task.failure?.message ?? task.failure?.kind ?? "";
  const text = stateOf(task) === "failed" ? failure : (task.assigned_node ?? "");
  return <span title={text}>{text}</span>;
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
