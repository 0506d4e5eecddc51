/**
 * The nodes with their load, what they do now and how often they fail, to be drained one by one or together; and one
 * node: what runs there now, what failed, and whether it is safe to stop.
 */
import { Fragment, type JSX, h } from "preact";
import { useRef, useState } from "preact/hooks";
import { now, useNow } from "./clock.ts";
import {
  type AnyNode,
  type Summary,
  capabilitiesOf,
  countOf,
  curlOf,
  durationOf,
  manyOf,
  noteOf,
  oneOf,
} from "./format.ts";
import { EventTable } from "./event-table.tsx";
import { Ledger } from "./ledger.tsx";
import {
  Age,
  Button,
  Empty,
  Fact,
  Fault,
  Field,
  Filters,
  Head,
  None,
  NotLoaded,
  Pager,
  Select,
  State,
  Table,
  runAction,
  runAsked,
  useEvents,
  useList,
  useLoad,
  useTyped,
} from "./parts.tsx";
import { go, route, setQuery, to, useSubject } from "./route.ts";
import { type Hub, hasSecret, hub, isAdmin, mayAct } from "./session.ts";
import { TaskTable } from "./tasks.tsx";

const PAGE = 50;

const STATES = ["online", "draining", "offline"] as const;

const ORDERS = [
  ["", "by load"],
  ["id", "by id"],
  ["lux", "by LUX"],
  ["fails", "by failures"],
] as const;

/** The nodes that fail most are these. */
const FAILING = 20;
const HOUR_S = 3_600;

/** The nodes that failed most in the last hour, with what they do. */
async function failing(ids: readonly string[], from: Hub, signal: AbortSignal) {
  // One that was deleted meanwhile is left out.
  const found = await Promise.all(
    ids.map((node_id) => from.call("node/{node_id}", { node_id }, { signal }).catch(() => null)),
  );
  const nodes = found.flatMap((one) => one?.node ?? []);
  return { nodes, tasks: [], next_cursor: null, total: null };
}

export function Nodes(): JSX.Element {
  const { query } = route.value;
  const { q, cursor } = query;
  const status = oneOf(STATES, query["status"]);
  const order =
    oneOf(
      ORDERS.map(([word]) => word),
      query["order"],
    ) || "busy";
  const known = { q: null, status: ["", ...STATES], order: ORDERS.map(([word]) => word), cursor: null };
  const loaded = useList(known, async (from, signal) => {
    const [{ by_node }, { total }] = await Promise.all([
      from.call("stats/failures", { last: HOUR_S }, { signal }),
      from.call("stats/nodes", {}, { signal }),
    ]);
    const page =
      order === "fails"
        ? await failing(
            by_node.slice(0, FAILING).map(({ node_id }) => node_id),
            from,
            signal,
          )
        : await from.call("node/list", { q, status, order, cursor, tasks: "1", per_page: PAGE }, { signal });
    const doing = Map.groupBy(page.tasks ?? [], (task) => task.assigned_node);
    const { nodes, next_cursor: next, total: found } = page;
    const failed = new Map(by_node.map(({ node_id, count }) => [node_id, count]));
    return { nodes, next, total: found ?? null, all: total, doing, failed };
  });
  useEvents(({ kind }) => /^(?:node|task)\./.test(kind), loaded);
  const set = useTyped((changed) => setQuery({ ...changed, cursor: undefined }));
  const { value, error } = loaded;
  const nodes = useSteady(JSON.stringify(query), value?.nodes ?? []);
  const isFiltered = Boolean(q || status);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const selected = nodes.filter(({ node_id }) => chosen.has(node_id));
  const toggle = (nodeId: string): void => setChosen((old) => old.symmetricDifference(new Set([nodeId])));
  const drainAll = async (isOn: boolean): Promise<void> => {
    const requests = selected.map(({ node_id }) => ({
      path: "node/drain" as const,
      body: { node_id, drain: isOn },
    }));
    const isDone = await runAction(
      `${manyOf(selected.length, "node")} ${isOn ? "drain" : "take tasks again"}.`,
      async () => {
        const answers = await hub.value.batch(requests);
        for (const { body } of answers) if (!body.success) throw new Error(body.detail);
      },
    );
    if (isDone) setChosen(new Set());
  };
  return (
    <>
      <Head>
        Nodes{" "}
        {value && (
          <small>
            {isFiltered && value.total !== null
              ? `${countOf(value.total)} of ${countOf(value.all)}`
              : countOf(value.all)}
          </small>
        )}
      </Head>
      <Filters>
        <Field label="Id or name" name="q" type="search" value={q} onInput={set("q")} />
        <Select
          label="State"
          name="status"
          value={status}
          options={[["", "any"], ...STATES]}
          onInput={set("status")}
        />
        <Select label="Order" name="order" value={query["order"]} options={ORDERS} onInput={set("order")} />
        {isFiltered && (
          <a class="button" href={to("nodes")}>
            Clear
          </a>
        )}
      </Filters>
      <Fault text={error} />
      {value?.nodes.length === 0 && (
        <Empty
          text={isFiltered || cursor ? "No node matches." : "No nodes yet. Register one:"}
          {...(value.all === 0 && {
            line: curlOf("node/register", { node_id: "worker-1", name: "Worker 1" }),
          })}
        />
      )}
      {selected.length > 0 && (
        <p class="buttons act chosen">
          <span>{selected.length} selected:</span>
          <Button data-do="drain-selected" onClick={() => drainAll(true)}>
            Drain
          </Button>
          <Button data-do="undrain-selected" onClick={() => drainAll(false)}>
            End the drain
          </Button>
          <Button data-do="deselect" onClick={() => setChosen(new Set())}>
            Select none
          </Button>
        </p>
      )}
      {nodes.length > 0 && (
        <Table
          label="Nodes"
          head={["State", "Node", "Heartbeat", "Load", "Doing", "Failed/h", "Done", "LUX", "Capabilities"]}
        >
          {nodes.map((node) => {
            const failed = value?.failed.get(node.node_id) ?? 0;
            return (
              <tr key={node.node_id}>
                <td>
                  {mayAct() && (
                    <input
                      type="checkbox"
                      data-do="select"
                      aria-label={`Select ${node.name}`}
                      checked={chosen.has(node.node_id)}
                      onClick={() => toggle(node.node_id)}
                    />
                  )}{" "}
                  <State word={node.draining && node.status === "online" ? "draining" : node.status} />
                </td>
                <td class="name">
                  <a class="row" href={to("nodes", node.node_id)}>
                    {node.name}
                  </a>{" "}
                  {node.name !== node.node_id && <small>{node.node_id}</small>}
                </td>
                <td>
                  <Age at={node.last_heartbeat} />
                </td>
                <td>
                  <Load node={node} />
                </td>
                <td class="wide">
                  <Doing node={node} tasks={value?.doing.get(node.node_id) ?? []} />
                </td>
                <td class="number">
                  {failed > 0 && (
                    <a href={to("tasks", "", { failed_by: node.node_id, last: "3600" })}>{countOf(failed)}</a>
                  )}
                </td>
                <td class="number">{countOf(node.tasks_completed)}</td>
                <td class="number">{countOf(node.lux_balance)}</td>
                <td class="names">{capabilitiesOf(node).join(", ") || <span class="quiet">{"any"}</span>}</td>
              </tr>
            );
          })}
        </Table>
      )}
      <Pager
        back={cursor && ["First page", to("nodes", "", { ...query, cursor: undefined })]}
        next={value?.next && ["Next page", to("nodes", "", { ...query, cursor: value.next })]}
      />
    </>
  );
}

/** The first tasks that a node holds, and how many more it has. */
function Doing({ node, tasks }: { node: AnyNode; tasks: readonly Summary[] }): JSX.Element {
  const [first] = tasks;
  const more = node.tasks_assigned - 1;
  if (!first)
    return <>{node.draining && node.tasks_assigned === 0 && <small>nothing: safe to stop</small>}</>;
  return (
    <>
      <a href={to("tasks", first.task_id)} title={first.title}>
        {first.title}
      </a>{" "}
      {more > 0 && <a href={to("tasks", "", { node: node.node_id, status: "assigned" })}>and {more} more</a>}
      {first.progress !== null && (
        <div class="why" title={first.progress}>
          {first.progress}
        </div>
      )}
    </>
  );
}

/** What is read does not move: a node that comes to the page takes the place of one that left it. */
function useSteady(key: string, nodes: readonly AnyNode[]): readonly AnyNode[] {
  const shown = useRef<{ key: string; ids: readonly string[] }>({ key, ids: [] });
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const before = shown.current.key === key ? shown.current.ids : [];
  const known = new Set(before);
  const come = nodes.map(({ node_id }) => node_id).filter((nodeId) => !known.has(nodeId));
  const kept = before.flatMap((nodeId) => (byId.has(nodeId) ? nodeId : come.splice(0, 1)));
  shown.current = { key, ids: [...kept, ...come] };
  return shown.current.ids.flatMap((nodeId) => byId.get(nodeId) ?? []);
}

export function Load({ node }: { node: AnyNode }): JSX.Element {
  const { tasks_assigned: has, max_tasks: most } = node;
  if (most === null) return <>{countOf(has)}</>;
  return (
    <span class="load">
      <meter
        aria-label="Load"
        class={has > most ? "over" : undefined}
        min={0}
        max={Math.max(1, most)}
        value={has}
      />{" "}
      {has} of {most}
    </span>
  );
}

/** Tasks of each of the lists of a node. */
const RUNNING = 50;
const ENDED = 10;
const EVENTS = 30;

export function NodePage({ id }: { id: string }): JSX.Element {
  const loaded = useLoad(id, async (from, signal) => {
    const options = { signal };
    const since = new Date(now.value - HOUR_S * 1_000).toISOString();
    const [{ node }, running, failed, failures, done, { events }] = await Promise.all([
      from.call("node/{node_id}", { node_id: id }, options),
      from.call("task/list?fields=summary", { status: "assigned", node_id: id, per_page: RUNNING }, options),
      from.call(
        "task/list?fields=summary",
        { failed_by: id, since, order: "updated", per_page: ENDED },
        options,
      ),
      from.call("task/count", { failed_by: id, since }, options),
      from.call("task/list?fields=summary", { status: "completed", node_id: id, per_page: ENDED }, options),
      from.call("events", { node_id: id, limit: EVENTS }, options),
    ]);
    return { node, running: running.tasks, failed: failed.tasks, failures, done: done.tasks, events };
  });
  useEvents((event) => event.node_id === id, loaded);
  const { value, error } = loaded;
  useSubject(value?.node.name ?? "");
  if (value === null) return <NotLoaded title="Node" error={error} back={[to("nodes"), "All nodes"]} />;
  const { node, running, failed, failures, done, events } = value;
  const drain = (isOn: boolean): void =>
    void runAction(isOn ? "The node is draining: it gets no new tasks." : "The node takes tasks again.", () =>
      hub.value.call("node/drain", { node_id: id, drain: isOn }),
    );
  const remove = async (): Promise<void> => {
    const question = "Delete this registration? The unfinished tasks of the node will be open again.";
    const work = () => hub.value.call("node/delete", { node_id: id });
    if (await runAsked(question, "Delete", "Deleted.", work)) go(to("nodes"));
  };
  return (
    <>
      <Head error={error}>
        <State word={node.draining && node.status === "online" ? "draining" : node.status} /> {node.name}{" "}
        {node.name !== node.node_id && <small>{node.node_id}</small>}
      </Head>
      <p class="buttons">
        {mayAct() && (
          <Button data-do="drain" onClick={() => drain(!node.draining)}>
            {node.draining ? "End the drain" : "Drain"}
          </Button>
        )}
        {mayAct() && (
          <a class="button" href={to("messages", id)}>
            Messages
          </a>
        )}
        {isAdmin() && (
          <Button class="danger" data-do="delete" onClick={() => remove()}>
            Delete
          </Button>
        )}
      </p>
      {node.draining && (
        <p class={`say t-${node.tasks_assigned === 0 ? "good" : "wait"}`} role="status">
          {node.tasks_assigned === 0 ? (
            <>
              <b>Drained: nothing runs here.</b> It is safe to stop the node.
            </>
          ) : (
            <>
              <b>
                Drains: {manyOf(node.tasks_assigned, "task")} still{" "}
                {node.tasks_assigned === 1 ? "runs." : "run."}
              </b>{" "}
              The node gets no new ones.
            </>
          )}
        </p>
      )}
      <dl class="facts inline">
        <Fact name="Heartbeat">
          <Age at={node.last_heartbeat} />
        </Fact>
        <Fact name="Load">
          <Load node={node} />
        </Fact>
        <Fact name="Done">{countOf(node.tasks_completed)}</Fact>
        <Fact name="LUX">{countOf(node.lux_balance)}</Fact>
        <Fact name="Capabilities">{capabilitiesOf(node).join(", ") || "any"}</Fact>
        {Object.entries(node.resources ?? {}).map(([name, amount]) => (
          <Fact key={name} name={name}>
            {countOf(node.resources_used?.[name] ?? 0)} of {countOf(amount)} in use
          </Fact>
        ))}
        <Fact name="Automatic assignment">{node.auto_assign ? "on" : "off"}</Fact>
      </dl>
      <section>
        <h2>Runs now</h2>
        {running.length === 0 ? <p class="quiet">Nothing.</p> : <Running tasks={running} />}
        {node.tasks_assigned > running.length && (
          <a href={to("tasks", "", { node: id, status: "assigned" })}>All {countOf(node.tasks_assigned)}</a>
        )}
      </section>
      <section>
        <h2>Failed in the last hour</h2>
        {failed.length === 0 ? (
          <p class="quiet">No task.</p>
        ) : (
          <>
            <TaskTable tasks={failed} isOfNode />
            <a href={to("tasks", "", { failed_by: id, last: "3600" })}>
              All {countOf(failures.count)}
              {!failures.exact && "+"}
            </a>
          </>
        )}
      </section>
      <section>
        <h2>Completed last</h2>
        {done.length === 0 ? <p class="quiet">No task.</p> : <TaskTable tasks={done} isOfNode />}
        <a href={to("tasks", "", { node: id })}>All its tasks</a>
      </section>
      {hasSecret() && (
        <section>
          <h2>Ledger</h2>
          <Ledger node={id} />
        </section>
      )}
      <section>
        <h2>Events</h2>
        <EventTable events={events.toReversed()} />
        <a href={to("events", "", { node: id })}>All its events</a>
      </section>
    </>
  );
}

/** What a node does now, each task with its last note, how long it has run, and how long it has been silent. */
function Running({ tasks }: { tasks: readonly Summary[] }): JSX.Element {
  return (
    <Table label="Runs now" head={["Task", "Type", "Runs for", "Last change"]}>
      {tasks.map((task) => (
        <tr key={task.task_id}>
          <td class="wide">
            <a class="row" href={to("tasks", task.task_id)} title={task.title}>
              {task.title}
            </a>
            <div class="why">{noteOf(task)}</div>
          </td>
          <td class="id">{task.task_type ?? <None />}</td>
          <td>
            {task.started_at === null ? (
              <span class="quiet">not started</span>
            ) : (
              <RunsFor since={task.started_at} />
            )}
          </td>
          <td>
            <Age at={task.updated_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function RunsFor({ since }: { since: string }): JSX.Element {
  return <>{useNow((time) => durationOf(Math.max(0, Math.round((time - Date.parse(since)) / 1_000))))}</>;
}
