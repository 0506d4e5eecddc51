/** LUX: the leaderboards, the head of the ledger, and the entries of a node. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../client/luxhub.ts";
import { LUX_TOP_SCANNED_MAX } from "../../domain/list-limits.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { now } from "./clock.ts";
import { countOf, curlOf } from "./format.ts";
import { ListPage } from "./list-page.tsx";
import { List, type ListOf } from "./list.tsx";
import { useLoad } from "./load.ts";
import { Age, Button, Fault, Link, Paste, Ranges, Section } from "./parts.tsx";
import { route, to } from "./route.ts";
import { type Ask, hasSecret } from "./session.ts";

const PAGE = 50;

const WEEK_MS = 7 * DAY_MS;

type Earner = {
  readonly id: string;
  readonly name: string;
  readonly lux: number;
  /** Of payments, or of tasks that it has completed. */
  readonly count: number;
};

type Row = Earner & { readonly place: number };

function leaders(label: string, counted: string): ListOf<Row> {
  return {
    label,
    keyOf: ({ id }) => id,
    columns: [
      ["Place", ({ place }) => place, "number quiet"],
      ["Node", ({ id, name }) => <Link class="row" href={to("nodes", id)} text={name} />, "wide"],
      ["LUX", ({ lux }) => countOf(lux), "number"],
      [counted, ({ count }) => countOf(count), "number"],
    ],
  };
}

const WEEK = leaders("Earned in seven days", "Payments");
const BALANCES = leaders("Leaderboard", "Tasks done");

type Page = {
  readonly earners: readonly Earner[];
  /** Null: it is not known. */
  readonly sum: number | null;
  readonly exact: boolean;
  readonly next_cursor: string | null | undefined;
};

/** Who earned most in the last seven days, by the ledger. */
async function loadWeek(ask: Ask): Promise<Page> {
  const { nodes, exact } = await ask("lux/top", { since: new Date(now.value - WEEK_MS).toISOString() });
  const earners = nodes.map(({ node_id: id, lux_earned: lux, entries: count }) => ({
    id,
    name: id,
    lux,
    count,
  }));
  return { earners, sum: null, exact, next_cursor: null };
}

async function loadBalances(ask: Ask, cursor: string | undefined): Promise<Page> {
  const [{ lux_balance: sum }, { nodes, next_cursor }] = await Promise.all([
    ask("stats/nodes", {}),
    ask("node/list", { order: "lux", per_page: PAGE, cursor }),
  ]);
  const earners = nodes
    .filter(({ lux_balance }) => lux_balance > 0)
    .map(({ node_id: id, name, lux_balance: lux, tasks_completed: count }) => ({ id, name, lux, count }));
  return { earners, sum, exact: true, next_cursor: earners.length < PAGE ? null : next_cursor };
}

export function Lux(): VNode {
  const { range, place = "1", cursor } = route.value.query;
  const isWeek = range === "week";
  return (
    <ListPage
      title={isWeek ? "LUX of the week" : "LUX"}
      more={<Periods isWeek={isWeek} />}
      known={{ range: ["week"], place: null }}
      load={(ask) => (isWeek ? loadWeek(ask) : loadBalances(ask, cursor))}
      count={({ sum }) => sum !== null && countOf(sum)}
      concerns={/^lux\./}
      above={(page) =>
        page?.exact === false && (
          <p>Of the newest {countOf(LUX_TOP_SCANNED_MAX)} entries of the ledger only.</p>
        )
      }
      rows={({ earners }) => earners.map((earner, i) => ({ ...earner, place: Number(place) + i }))}
      list={isWeek ? WEEK : BALANCES}
      empty={
        isWeek
          ? ["No node has earned LUX in the last seven days."]
          : [
              "No node has earned LUX yet. A completed task pays its reward, and the daily bonus (signin) is 10 LUX:",
              curlOf("signin", { node_id: "worker-1" }),
            ]
      }
      turns={(page) => {
        const next = page?.next_cursor;
        return {
          back: cursor && ["First page", to("lux")],
          next: next && ["The next", to("lux", "", { place: String(Number(place) + PAGE), cursor: next })],
        };
      }}
      below={() => <LedgerHead />}
    />
  );
}

function Periods({ isWeek }: { isWeek: boolean }): VNode | null {
  if (!hasSecret()) return null; // the ledger needs it
  return (
    <Ranges
      links={[
        ["Balances", to("lux"), !isWeek],
        ["Earned in 7 days", to("lux", "", { range: "week" }), isWeek],
      ]}
    />
  );
}

/** The newest entry of the ledger: with its hash noted elsewhere, nobody can change the ledger unnoticed. */
function LedgerHead(): VNode | null {
  const { value, error } = useLoad(
    `head ${hasSecret()}`,
    async (ask) => (hasSecret() ? (await ask("lux/head", {})).head : null),
    /^lux\./,
  );
  const { seq = 0, hash = null } = value ?? {};
  if (hash === null) return <Fault text={error} />;
  return (
    <Section title="Head of the ledger" note={`${countOf(seq)} entries`}>
      <Paste text={hash} />
      <p class="quiet">
        Keep this hash elsewhere: <code>luxhub lux verify --head HASH</code> shows later whether anybody has
        changed the ledger up to here.
      </p>
    </Section>
  );
}

// ---- The ledger of a node, newest first

const ENTRIES_SHOWN = 10;

const ENTRIES: ListOf<AnswerOf<"lux/ledger">["entries"][number]> = {
  label: "Ledger",
  keyOf: ({ id }) => id,
  columns: [
    ["When", (entry) => <Age at={entry.at} />],
    ["LUX", (entry) => countOf(entry.amount), "number"],
    ["For", (entry) => entry.kind],
    [
      "Task",
      ({ task_id: id }) => id !== null && <Link href={to("tasks", id)} text={<code>{id}</code>} />,
      "wide",
    ],
    [
      "Hash",
      ({ hash }) => (
        <span title={hash ?? ""}>
          <code>{hash}</code>
        </span>
      ),
      "id",
    ],
  ],
};

export function Ledger({ node }: { node: string }): VNode {
  const [page, setPage] = useState(1);
  const { value, error } = useLoad(
    `${node} ${page}`,
    (ask) => ask("lux/ledger", { node_id: node, page, per_page: ENTRIES_SHOWN }),
    (event) => event.kind.startsWith("lux.") && event.node_id === node,
  );
  if (value === null) return <Fault text={error} />;
  return (
    <>
      <List list={ENTRIES} rows={value.entries} empty="This node has earned nothing yet." />
      <p class="pager">
        {page > 1 && <Button label="Newer" onClick={() => setPage(page - 1)} />}
        {page < value.pages && <Button label="Older" onClick={() => setPage(page + 1)} />}
      </p>
    </>
  );
}
