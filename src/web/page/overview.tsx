/** Is all well: the health of the hub, tasks by state, the last hour, the nodes, and what failed last. */
import type { JSX } from "preact";
import { Chart } from "./chart.tsx";
import { type AnyTask, commandOf, countOf, curlOf, durationOf, stateOf } from "./format.ts";
import { Load } from "./nodes.tsx";
import { Age, Empty, Fault, State, useEvents, useLoad } from "./parts.tsx";
import { to } from "./route.ts";
import type { Hub } from "./session.ts";

async function load(from: Hub, signal: AbortSignal) {
  const options = { signal };
  const [status, stats, failed, busy, hour] = await Promise.all([
    from.status({}, options),
    from.tasks.stats({}, options),
    from.tasks.list({ status: "failed", per_page: 6 }, options),
    from.tasks.list({ status: "assigned", per_page: 8 }, options),
    from.minutes({}, options),
  ]);
  return { status, stats, failed: failed.tasks, busy: busy.tasks, hour };
}

export function Overview(): JSX.Element {
  const loaded = useLoad("overview", load);
  useEvents(() => true, loaded);
  // By itself: a large fleet is much to load.
  const fleet = useLoad("fleet", async (from, signal) => (await from.nodes.list({}, { signal })).nodes);
  useEvents(({ kind }) => /^(?:node|task|lux)\./.test(kind), fleet);
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  const { status, stats, hour } = value;
  const nodes = fleet.value ?? [];
  const { minutes, total } = hour;
  const online = nodes.filter((node) => node.status === "online");
  const isWell = status.status === "ok";
  const lux = nodes.reduce((sum, node) => sum + node.lux_balance, 0);
  return (
    <>
      <header class="head">
        <h1>
          Overview{" "}
          <small class={isWell ? "well" : "unwell"}>
            {isWell ? "All is well" : "The hub cannot write"} · up {durationOf(status.uptime)} ·{" "}
            {status.software}
          </small>
        </h1>
      </header>
      <Fault text={error} />
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
              {countOf(online.length)}
              <small> of {countOf(status.nodes_count)}</small>
            </b>{" "}
            nodes online
          </a>
        </li>
        <li>
          <a href={to("lux")}>
            <b>{countOf(Math.round(lux))}</b> LUX, {countOf(Math.round(total.lux_paid))} in this hour
          </a>
        </li>
      </ul>
      {status.nodes_count === 0 && stats.total === 0 && <Start />}
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
          <h2>What failed last</h2>
          <Few tasks={value.failed} none="Nothing has failed." />
        </section>
        <section>
          <h2>Busiest nodes</h2>
          {fleet.value && online.length === 0 && <p class="quiet">No node is online.</p>}
          <ul class="plain lines">
            {online
              .toSorted((a, b) => b.tasks_assigned - a.tasks_assigned)
              .slice(0, 8)
              .map((node) => (
                <li key={node.node_id}>
                  <a href={to("nodes", node.node_id)}>{node.name}</a>
                  <span>
                    <Load node={node} /> {node.tasks_assigned === 1 ? "task" : "tasks"}
                  </span>
                </li>
              ))}
          </ul>
        </section>
        <section>
          <h2>Who did most</h2>
          {stats.top_nodes.length === 0 && <p class="quiet">Nobody yet.</p>}
          <ol class="plain lines">
            {stats.top_nodes.slice(0, 8).map((node) => (
              <li key={node.node_id}>
                <a href={to("nodes", node.node_id)}>{node.node_id}</a>
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
          <a href={to("tasks", task.task_id)}>{task.title}</a>
          <span>
            {stateOf(task) === "failed" ? (task.failure?.message ?? task.failure?.kind) : task.assigned_node}
          </span>
          <Age at={task.updated_at} />
        </li>
      ))}
    </ul>
  );
}

function Start(): JSX.Element {
  return (
    <>
      <Empty
        text="The hub is empty. First register a node:"
        line={curlOf("node/register", { node_id: "worker-1", name: "Worker 1" })}
      />
      <Empty
        text="Then give it something to do:"
        line={commandOf("task", "add", "Say hello", "--description", "To everyone")}
      />
    </>
  );
}
