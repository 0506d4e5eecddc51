/** LUX: the leaderboard, and the head of the ledger. */
import { Fragment, type VNode, h } from "preact";
import { LUX_TOP_SCANNED_MAX } from "../../domain/list-limits.ts";
import { now } from "./clock.ts";
import { countOf, curlOf } from "./format.ts";
import { Empty, Fault, Head, Pager, Paste, Ranges, Section, Table, useLoad } from "./parts.tsx";
import { route, to } from "./route.ts";
import { hasSecret } from "./session.ts";
import { DAY_MS } from "../../lib/clock.ts";

const PAGE = 50;

const WEEK_MS = 7 * DAY_MS;

export function Lux(): VNode {
  return route.value.query["range"] === "week" ? <Week /> : <Balances />;
}

function Periods(): VNode | null {
  const isWeek = route.value.query["range"] === "week";
  if (!hasSecret()) return null; // the ledger needs it
  return (
    <p>
      <Ranges
        links={[
          ["Balances", to("lux"), !isWeek],
          ["Earned in 7 days", to("lux", "", { range: "week" }), isWeek],
        ]}
      />
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
}): VNode | null {
  if (props.earners.length === 0) return null;
  return (
    <Table
      label={props.label}
      rows={props.earners}
      keyOf={({ id }) => id}
      columns={[
        ["Place", (_, i) => props.first + i, "number quiet"],
        [
          "Node",
          ({ id, name }) => (
            <a class="row" href={to("nodes", id)}>
              {name}
            </a>
          ),
          "name",
        ],
        ["LUX", ({ lux }) => countOf(lux), "number"],
        [
          "Share",
          ({ lux }) => <meter aria-label="Share of the first node" min={0} max={props.highest} value={lux} />,
          "wide",
        ],
        [props.counted, ({ count }) => countOf(count), "number"],
      ]}
    />
  );
}

/** Who earned most in the last seven days, by the ledger. */
function Week(): VNode {
  const loaded = useLoad(
    "week",
    (ask) => ask("lux/top", { since: new Date(now.value - WEEK_MS).toISOString() }),
    /^lux\./,
  );
  const { value, error } = loaded;
  const earners = (value?.nodes ?? []).map(({ node_id, lux_earned, entries }) => ({
    ...{ id: node_id, name: node_id, lux: lux_earned, count: entries },
  }));
  return (
    <>
      <Head>LUX of the week</Head>
      <Periods />
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
function LedgerHead(): VNode | null {
  const loaded = useLoad(
    `head ${hasSecret()}`,
    async (ask) => (hasSecret() ? (await ask("lux/head", {})).head : null),
    /^lux\./,
  );
  const { seq = 0, hash = null } = loaded.value ?? {};
  if (hash === null) return <Fault text={loaded.error} />;
  return (
    <Section
      title={
        <>
          Head of the ledger <span>{countOf(seq)} entries</span>
        </>
      }
    >
      <Paste text={hash} />
      <p class="quiet">
        Keep this hash elsewhere: <code>luxhub lux verify --head HASH</code> shows later whether anybody has
        changed the ledger up to here.
      </p>
    </Section>
  );
}

function Balances(): VNode {
  const { cursor, place = "1", most } = route.value.query;
  const first = Number(place);
  const loaded = useLoad(
    `lux ${cursor}`,
    async (ask) => {
      const [{ lux_balance }, { nodes, next_cursor }] = await Promise.all([
        ask("stats/nodes", {}),
        ask("node/list", { order: "lux", per_page: PAGE, cursor }),
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
    },
    /^lux\./,
  );
  const { value, error } = loaded;
  const highest = Number(most ?? value?.leaders[0]?.lux ?? 1);
  const next = { place: String(first + PAGE), most: String(highest) };
  return (
    <>
      <Head>LUX {value && <small>{countOf(value.sum)}</small>}</Head>
      <Periods />
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
