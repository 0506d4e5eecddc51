/** LUX: the leaderboard, and the head of the ledger. */
import { Fragment, type JSX, h } from "preact";
import { LUX_TOP_SCANNED_MAX } from "../../domain/list-limits.ts";
import { now } from "./clock.ts";
import { countOf, curlOf } from "./format.ts";
import { Empty, Fault, Head, Pager, Paste, Table, useEvents, useLoad } from "./parts.tsx";
import { route, to } from "./route.ts";
import { hasSecret } from "./session.ts";
import { DAY_MS } from "../../lib/clock.ts";

const PAGE = 50;

const WEEK_MS = 7 * DAY_MS;

export function Lux(): JSX.Element {
  return route.value.query["range"] === "week" ? <Week /> : <Balances />;
}

function Ranges(): JSX.Element | null {
  const { range } = route.value.query;
  if (!hasSecret()) return null; // the ledger needs it
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

type Earner = {
  readonly id: string;
  readonly name: string;
  readonly lux: number;
  readonly count: number;
};

/** @param counted what `count` of an earner is */
function Leaders(props: {
  label: string;
  counted: string;
  earners: readonly Earner[];
  first: number;
  highest: number;
}): JSX.Element | null {
  if (props.earners.length === 0) return null;
  return (
    <Table label={props.label} head={["Place", "Node", "LUX", "Share", props.counted]}>
      {props.earners.map(({ id, name, lux, count }, i) => (
        <tr key={id}>
          <td class="number quiet">{props.first + i}</td>
          <td class="name">
            <a class="row" href={to("nodes", id)}>
              {name}
            </a>
          </td>
          <td class="number">{countOf(lux)}</td>
          <td class="wide">
            <meter aria-label="Share of the first node" min={0} max={props.highest} value={lux} />
          </td>
          <td class="number">{countOf(count)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Who earned most in the last seven days, by the ledger. */
function Week(): JSX.Element {
  const loaded = useLoad("week", (from, signal) =>
    from.call("lux/top", { since: new Date(now.value - WEEK_MS).toISOString() }, { signal }),
  );
  useEvents(({ kind }) => kind.startsWith("lux."), loaded);
  const { value, error } = loaded;
  const earners = (value?.nodes ?? []).map(({ node_id, lux_earned, entries }) => ({
    ...{ id: node_id, name: node_id, lux: lux_earned, count: entries },
  }));
  return (
    <>
      <Head>LUX of the week</Head>
      <Ranges />
      <Fault text={error} />
      {value && earners.length === 0 && <Empty text="No node has earned LUX in the last seven days." />}
      {value?.exact === false && (
        <p>Of the newest {countOf(LUX_TOP_SCANNED_MAX)} entries of the ledger only.</p>
      )}
      <Leaders
        label="Earned in seven days"
        counted="Payments"
        earners={earners}
        first={1}
        highest={earners[0]?.lux ?? 1}
      />
      <LedgerHead />
    </>
  );
}

/** The newest entry of the ledger: with its hash noted elsewhere, nobody can change the ledger unnoticed. */
function LedgerHead(): JSX.Element | null {
  const loaded = useLoad(`head ${hasSecret()}`, async (from, signal) =>
    hasSecret() ? (await from.call("lux/head", {}, { signal })).head : null,
  );
  useEvents(({ kind }) => kind.startsWith("lux."), loaded);
  const { seq = 0, hash = null } = loaded.value ?? {};
  if (hash === null) return <Fault text={loaded.error} />;
  return (
    <section>
      <h2>
        Head of the ledger <span>{countOf(seq)} entries</span>
      </h2>
      <Paste text={hash} />
      <p class="quiet">
        Keep this hash elsewhere: <code>luxhub lux verify --head HASH</code> shows later whether anybody has
        changed the ledger up to here.
      </p>
    </section>
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
    const leaders = nodes
      .filter((node) => node.lux_balance > 0)
      .map(({ node_id, name, lux_balance: lux, tasks_completed: count }) => ({
        id: node_id,
        name,
        lux,
        count,
      }));
    return { sum: lux_balance, leaders, next: leaders.length < PAGE ? null : next_cursor };
  });
  useEvents(({ kind }) => kind.startsWith("lux."), loaded);
  const { value, error } = loaded;
  const highest = Number(most ?? value?.leaders[0]?.lux ?? 1);
  const next = { place: String(first + PAGE), most: String(highest) };
  return (
    <>
      <Head>LUX {value && <small>{countOf(value.sum)}</small>}</Head>
      <Ranges />
      <Fault text={error} />
      {value?.sum === 0 && (
        <Empty
          text="No node has earned LUX yet. A completed task pays its reward, and the daily bonus (signin) is 10 LUX:"
          line={curlOf("signin", { node_id: "worker-1" })}
        />
      )}
      <Leaders
        label="Leaderboard"
        counted="Tasks done"
        earners={value?.leaders ?? []}
        first={first}
        highest={highest}
      />
      <Pager
        back={cursor && ["First page", to("lux")]}
        next={value?.next && ["The next", to("lux", "", { ...next, cursor: value.next })]}
      />
      <LedgerHead />
    </>
  );
}
