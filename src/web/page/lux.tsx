/** LUX: the leaderboard, and the ledger of a node. */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import { now } from "./clock.ts";
import { countOf, curlOf } from "./format.ts";
import { Age, Empty, Fault, Table, useEvents, useLoad } from "./parts.tsx";
import { route, to } from "./route.ts";
import { hasSecret } from "./session.ts";

const PAGE = 50;

/** The entries of the ledger that are read for the sums of a week, the newest, and those of one request. */
const WEEK_ENTRIES_MAX = 20_000;
const STEP = 1_000;
const WEEK_MS = 7 * 86_400_000;

export function Lux(): JSX.Element {
  return route.value.query["range"] === "week" ? <Week /> : <Balances />;
}

function Ranges(): JSX.Element | null {
  const { range } = route.value.query;
  if (!hasSecret.value) return null; // the ledger needs it
  return (
    <p class="ranges">
      <a href={to("lux")} aria-current={range === undefined ? "true" : undefined}>
        Balances
      </a>
      <a href={to("lux", "", { range: "week" })} aria-current={range === "week" ? "true" : undefined}>
        Earned in 7 days
      </a>
    </p>
  );
}

/** Who earned most in the last seven days, by the ledger from its newest entry back. */
function Week(): JSX.Element {
  const loaded = useLoad("week", async (from, signal) => {
    const { head } = await from.call("lux/head", {}, { signal });
    const earned = new Map<string, { lux: number; tasks: number }>();
    const since = now.peek() - WEEK_MS;
    const end = Math.max(0, head.seq - WEEK_ENTRIES_MAX);
    let isWhole = false;
    for (let to = head.seq; to > end && !isWhole; to -= STEP) {
      const { entries } = await from.call(
        "lux/entries",
        { since: Math.max(end, to - STEP), limit: STEP },
        { signal },
      );
      for (const { seq, at, kind, node_id, amount } of entries) {
        if (seq > to) continue;
        if (Date.parse(at) < since) isWhole = true;
        else if (node_id !== null && (kind === "reward" || kind === "signin")) {
          const { lux = 0, tasks = 0 } = earned.get(node_id) ?? {};
          earned.set(node_id, { lux: lux + amount, tasks: tasks + (kind === "reward" ? 1 : 0) });
        }
      }
    }
    const nodes = [...earned].toSorted(([, a], [, b]) => b.lux - a.lux).slice(0, PAGE);
    return { nodes, isWhole: isWhole || end === 0 };
  });
  const { value, error } = loaded;
  const highest = value?.nodes[0]?.[1].lux ?? 1;
  return (
    <>
      <header class="head">
        <h1>LUX of the week</h1>
      </header>
      <Ranges />
      <Fault text={error} />
      {value?.nodes.length === 0 && <Empty text="No node has earned LUX in the last seven days." />}
      {value && !value.isWhole && (
        <p>Of the newest {countOf(WEEK_ENTRIES_MAX)} entries of the ledger only.</p>
      )}
      {value && value.nodes.length > 0 && (
        <Table label="Earned in seven days" head={["Place", "Node", "LUX", "Share", "Tasks done"]}>
          {value.nodes.map(([node, { lux, tasks }], i) => (
            <tr key={node}>
              <td class="number quiet">{i + 1}</td>
              <td class="name">
                <a class="row" href={to("nodes", node)}>
                  {node}
                </a>
              </td>
              <td class="number">{countOf(lux)}</td>
              <td class="wide">
                <meter aria-label="Share of the first node" min={0} max={highest} value={lux} />
              </td>
              <td class="number">{countOf(tasks)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function Balances(): JSX.Element {
  const { cursor, place = "1", most } = route.value.query;
  const first = Number(place);
  const loaded = useLoad(`lux ${cursor}`, async (from, signal) => {
    const [{ lux_balance }, { nodes, next_cursor }] = await Promise.all([
      from.call("stats/nodes", {}, { signal }),
      from.call("node/list", { order: "lux", per_page: PAGE, cursor }, { signal }),
    ]);
    const leaders = nodes.filter((node) => node.lux_balance > 0);
    return { sum: lux_balance, leaders, next: leaders.length < PAGE ? null : next_cursor };
  });
  useEvents(({ kind }) => kind.startsWith("lux."), loaded);
  const { value, error } = loaded;
  const highest = Number(most ?? value?.leaders[0]?.lux_balance ?? 1);
  const next = { place: String(first + PAGE), most: String(highest) };
  return (
    <>
      <header class="head">
        <h1>LUX {value && <small>{countOf(value.sum)}</small>}</h1>
      </header>
      <Ranges />
      <Fault text={error} />
      {value?.sum === 0 && (
        <Empty
          text="No node has earned LUX yet. A completed task pays its reward, and the daily bonus (signin) is 10 LUX:"
          line={curlOf("signin", { node_id: "worker-1" })}
        />
      )}
      {value && value.leaders.length > 0 && (
        <Table label="Leaderboard" head={["Place", "Node", "LUX", "Share", "Tasks done"]}>
          {value.leaders.map((node, i) => (
            <tr key={node.node_id}>
              <td class="number quiet">{first + i}</td>
              <td class="name">
                <a class="row" href={to("nodes", node.node_id)}>
                  {node.name}
                </a>
              </td>
              <td class="number">{countOf(node.lux_balance)}</td>
              <td class="wide">
                <meter aria-label="Share of the first node" min={0} max={highest} value={node.lux_balance} />
              </td>
              <td class="number">{countOf(node.tasks_completed)}</td>
            </tr>
          ))}
        </Table>
      )}
      <nav class="pager" aria-label="Pages">
        {cursor && <a href={to("lux")}>First page</a>}
        {value?.next && (
          <a rel="next" href={to("lux", "", { ...next, cursor: value.next })}>
            The next
          </a>
        )}
      </nav>
    </>
  );
}

export function Ledger({ node }: { node: string }): JSX.Element {
  const [page, setPage] = useState(1);
  const loaded = useLoad(`${node} ${page}`, (from, signal) =>
    from.call("lux/ledger", { node_id: node, page, per_page: 10 }, { signal }),
  );
  useEvents((event) => event.kind.startsWith("lux.") && event.node_id === node, loaded);
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  if (value.total === 0) return <p class="quiet">This node has earned nothing yet.</p>;
  return (
    <>
      <Table label="Ledger" head={["When", "LUX", "For", "Task"]}>
        {value.entries.map((entry) => (
          <tr key={entry.id}>
            <td>
              <Age at={entry.at} />
            </td>
            <td class="number">{countOf(entry.amount)}</td>
            <td>{entry.kind}</td>
            <td class="wide">
              {entry.task_id !== null && (
                <a href={to("tasks", entry.task_id)}>
                  <code>{entry.task_id}</code>
                </a>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <p class="pager">
        {page > 1 && (
          <button type="button" onClick={() => setPage(page - 1)}>
            Newer
          </button>
        )}
        {page < value.pages && (
          <button type="button" onClick={() => setPage(page + 1)}>
            Older
          </button>
        )}
      </p>
    </>
  );
}
