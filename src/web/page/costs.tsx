/** What work has cost: the sums by day, model, node, creator or type; and the budgets with their state. */
import { type ComponentChildren, Fragment, type JSX, h } from "preact";
import type { AnswerOf } from "../../client/luxhub.ts";
import { commandOf, costOf, countOf, oneOf } from "./format.ts";
import { clock } from "./clock.ts";
import {
  Empty,
  Fault,
  Head,
  NodeLink,
  Pager,
  Select,
  State,
  Table,
  useEvents,
  useList,
  whole,
} from "./parts.tsx";
import { route, setQuery, to } from "./route.ts";
import { type Hub, isAdmin } from "./session.ts";
import { Unknown } from "./usage.tsx";
import { DAY_MS } from "../../lib/clock.ts";

const PAGE = 50;

type By = AnswerOf<"usage">["by"];
type Sum = AnswerOf<"usage">["all"];
type Budget = AnswerOf<"budget/list">["budgets"][number];

const BY = ["day", "model", "node", "creator", "type"] as const;

const DAYS = [
  ["1", "today (UTC)"],
  ["7", "7 days"],
  ["30", "30 days"],
  ["366", "366 days"],
] as const;

export function Costs(): JSX.Element {
  const { query } = route.value;
  const by = oneOf(BY, query["by"]) ?? "day";
  const days = query["days"] ?? "30";
  const page = Number(query["page"] ?? 1);
  const known = { by: BY, days: DAYS.map(([word]) => word), page: null };
  const load = async (from: Hub, signal: AbortSignal) => {
    const since = new Date(clock.now() - (Number(days) - 1) * DAY_MS).toISOString().slice(0, 10);
    const [sums, budgets] = await Promise.all([
      from.call("usage", { by, since, page, per_page: PAGE }, { signal }),
      isAdmin()
        ? whole(async (asked) => {
            const answer = await from.call("budget/list", asked, { signal });
            return { rows: answer.budgets, pages: answer.pages };
          })
        : null,
    ]);
    return { sums, budgets };
  };
  const loaded = useList(known, load, isAdmin());
  // Usage itself is no event: it mostly comes with these.
  useEvents(
    ({ kind }) => /^(?:budget\..+|task\.(?:completed|attempt_failed|failed|released))$/.test(kind),
    loaded,
  );
  const set = (name: string) => (value: string) => setQuery({ [name]: value, page: undefined });
  const { value, error } = loaded;
  return (
    <>
      <Head>Cost {value && <small>{costOf(value.sums.all)}</small>}</Head>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Select label="By" name="by" value={by} options={BY} onInput={set("by")} />
        <Select label="Of the last" name="days" value={days} options={DAYS} onInput={set("days")} />
      </form>
      <Fault text={error} />
      {value && value.sums.all.reports === 0 && (
        <Empty
          text="No worker has reported usage on these days. A worker reports what its task has used like this:"
          line={commandOf(
            ...["task", "usage", "TASK", "--node", "worker-1", "--seq", "1", "--model", "large"],
            ...["--input-tokens", "900", "--output-tokens", "80", "--cost-usd", "0.02"],
          )}
        />
      )}
      {value && value.sums.all.reports > 0 && (
        <Sums by={by} rows={value.sums.usage} all={value.sums.all} isWhole={value.sums.pages <= 1} />
      )}
      <Pager
        back={page > 1 && ["First page", to("cost", "", { ...query, page: undefined })]}
        next={
          value &&
          page < value.sums.pages && ["Next page", to("cost", "", { ...query, page: String(page + 1) })]
        }
      />
      {value?.budgets && <Budgets budgets={value.budgets} />}
    </>
  );
}

type Row = AnswerOf<"usage">["usage"][number];

function Sums(props: { by: By; rows: readonly Row[]; all: Sum; isWhole: boolean }): JSX.Element {
  const { by, rows, all } = props;
  const head = by.charAt(0).toUpperCase() + by.slice(1);
  return (
    <Table label={`Cost by ${by}`} head={[head, "Cost", "Input tokens", "Cached", "Output tokens", "Share"]}>
      {rows.map((row) => (
        <tr key={row.name}>
          <td class="name">{linkOf(by, row.name)}</td>
          <Numbers sum={row} />
          <td class="wide">
            <meter
              aria-label="Share of all costs"
              min={0}
              max={all.cost_usd || 1}
              value={row.cost_usd ?? 0}
            />
          </td>
        </tr>
      ))}
      {rows.length > 1 && props.isWhole && (
        <tr>
          <td class="name">
            <b>All</b>
          </td>
          <Numbers sum={all} />
          <td class="wide" />
        </tr>
      )}
    </Table>
  );
}

function Numbers({ sum }: { sum: Sum }): JSX.Element {
  return (
    <>
      <td class="number">
        {costOf(sum)} <Unknown sum={sum} />
      </td>
      <td class="number">{countOf(sum.input_tokens)}</td>
      <td class="number">{countOf(sum.cached_tokens)}</td>
      <td class="number">{countOf(sum.output_tokens)}</td>
    </>
  );
}

function linkOf(by: By, name: string | null): ComponentChildren {
  if (name === null) return <span class="quiet">none</span>;
  if (by === "node" || by === "creator") return <NodeLink id={name} />;
  return by === "type" ? <a href={to("tasks", "", { type: name })}>{name}</a> : name;
}

function Budgets({ budgets }: { budgets: readonly Budget[] }): JSX.Element {
  return (
    <section>
      <h2>Budgets</h2>
      {budgets.length === 0 ? (
        <Empty
          text="There are no budgets. With one, the hub hands nothing out when it is used up:"
          line={commandOf("budget", "set", "hub", "--per", "month", "--cost-usd", "500")}
        />
      ) : (
        <Table label="Budgets" head={["State", "Budget", "Per", "Cost", "Tokens", "At the limit"]}>
          {budgets.map((budget) => (
            <tr key={`${budget.scope} ${budget.value} ${budget.per}`}>
              <td>
                <State word={budget.paused ? "paused" : budget.state} />
              </td>
              <td class="name">
                {budget.scope} {budget.scope !== "hub" && linkOf(budget.scope, budget.value)}
              </td>
              <td>
                {budget.per} {budget.since !== null && <small>since {budget.since}</small>}
              </td>
              <td class="number">
                {costOf(budget.spent)}
                {budget.cost_usd !== null && ` of ${countOf(budget.cost_usd)} USD`}{" "}
                <Unknown sum={budget.spent} />
              </td>
              <td class="number">
                {countOf(budget.spent.input_tokens + budget.spent.output_tokens)}
                {budget.tokens !== null && ` of ${countOf(budget.tokens)}`}
              </td>
              <td>{budget.on_limit}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
