/** The overview: the health of the hub, tasks by state, the last hour, the nodes, and the newest failed tasks. */
import type { JSX } from "preact";
import { Chart } from "./chart.tsx";
import { type AnyTask, commandOf, countOf, curlOf, durationOf, stateOf } from "./format.ts";
import { Load } from "./nodes.tsx";
import { Age, Empty, Fault, State, useEvents, useLoad } from "./parts.tsx";
import { WaitingQuestions } from "./questions.tsx";
import { to } from "./route.ts";
import type { Hub } from "./session.ts";

const FEW = 8;

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
  const isWell = status.status === "ok";
  return (
    <>
      <header class="head">
        <h1>
          Overview{" "}
          <small class={isWell ? "well" : "unwell"}>
            {isWell ? "Healthy" : "The hub cannot write"} · up {durationOf(status.uptime)} · {status.software}
          </small>
        </h1>
      </header>
      <Fault text={error} />
      <Fault text={status.storage.warning ?? ""} />
      <WaitingQuestions />
      <ul class="tiles">
        {Object.entries(stats.by_status).map(([word, count]) => (
          <li key={word}>
            <a href={to("tasks", "", { status: word === "pending" ? "open" : word })}>
              <b>{countOf(count)}</b> <State word={word} />
            </a>
          </li>
        ))}
        <li>
          <a href={to("nodes")}>
            <b>
              {countOf(fleet.by_status.online)}
              <small> of {countOf(fleet.total)}</small>
            </b>{" "}
            nodes online
          </a>
        </li>
        <li>
          <a href={to("lux")}>
            <b>{countOf(Math.round(fleet.lux_balance))}</b> LUX, {countOf(Math.round(total.lux_paid))} in this
            hour
          </a>
        </li>
      </ul>
      {fleet.total === 0 && stats.total === 0 && <Start />}
      <div class="columns charts">
        <section>
          <h2>Tasks a minute, the last hour</h2>
          <Chart
            label="Tasks created, completed and failed in each minute of the last hour"
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
              },
            ]}
          />
        </section>
        <section>
          <h2>Seconds to start and to finish (median)</h2>
          <Chart
            label="Median seconds from its creation until a task starts and until it is finished, the last hour"
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
      </div>
      <div class="columns">
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
        <section>
          <h2>Top nodes</h2>
          {stats.top_nodes.length === 0 && <p class="quiet">No task is completed yet.</p>}
          <ol class="plain lines">
            {stats.top_nodes.slice(0, FEW).map((node) => (
              <li key={node.node_id}>
                <a href={to("nodes", node.node_id)} title={node.node_id}>
                  {node.node_id}
                </a>
                <span>
                  {countOf(node.completed)} done · {countOf(node.lux_earned)} LUX
                </span>
              </li>
            ))}
          </ol>
        </section>
      </div>
    </>
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
