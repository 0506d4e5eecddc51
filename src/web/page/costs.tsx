/** What work has cost: the sums by day, model, node, creator or type; and the budgets with their state. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import type { AnswerOf } from "../../client/luxhub.ts";
import { commandOf, costOf, countOf, oneOf } from "./format.ts";
import { clock } from "./clock.ts";
import {
  Button,
  Empty,
  Fault,
  Head,
  NodeLink,
  Pager,
  Section,
  Select,
  State,
  Table,
  runAsked,
  useFilters,
  useList,
  whole,
} from "./parts.tsx";
import { here, route, to } from "./route.ts";
import { type Ask, call, isAdmin } from "./session.ts";
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

export function Costs(): VNode {
  const { query } = route.value;
  const by = oneOf(BY, query["by"]) ?? "day";
  const days = query["days"] ?? "30";
  const page = Number(query["page"] ?? 1);
  const known = { by: BY, days: DAYS.map(([word]) => word), page: null };
  const load = async (ask: Ask) => {
    const since = new Date(clock.now() - (Number(days) - 1) * DAY_MS).toISOString().slice(0, 10);
    const [sums, budgets] = await Promise.all([
      ask("usage", { by, since, page, per_page: PAGE }),
      isAdmin()
        ? whole(async (asked) => {
            const answer = await ask("budget/list", asked);
            return { rows: answer.budgets, pages: answer.pages };
          })
        : null,
    ]);
    return { sums, budgets };
  };
  const loaded = useList(
    known,
    load,
    // Usage itself is no event: it mostly comes with these.
    /^(?:budget\..+|usage\.voided|task\.(?:completed|attempt_failed|failed|released))$/,
    isAdmin(),
  );
  const filter = useFilters();
  const { value, error } = loaded;
  return (
    <>
      <Head>Cost {value && <small>{costOf(value.sums.all)}</small>}</Head>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Select label="By" options={BY} {...filter("by")} value={by} />
        <Select label="Of the last" options={DAYS} {...filter("days")} value={days} />
      </form>
      <Fault text={error} />
      {value && value.sums.all.reports === 0 && (
        <Empty
          text="No worker has reported usage on these days. A worker reports what its task has used like this:"
          line={commandOf("task usage TASK --node worker-1 --seq 1 --input-tokens 900 --cost-usd 0.02")}
        />
      )}
      {value && value.sums.all.reports > 0 && (
        <Sums
          by={by}
          rows={value.sums.usage}
          all={value.sums.all}
          isWhole={value.sums.pages <= 1}
          voidable={isAdmin() && by === "node" && days === "1"}
        />
      )}
      <Pager
        back={page > 1 && ["First page", here({ page: undefined })]}
        next={value && page < value.sums.pages && ["Next page", here({ page: String(page + 1) })]}
      />
      {value?.budgets && <Budgets budgets={value.budgets} />}
    </>
  );
}

type Row = AnswerOf<"usage">["usage"][number];

/**
 * `isWhole`: these rows are all there are, so that their sum is worth a row. `voidable`: each is what a node has reported
 * today, which an administrator may take back.
 */
function Sums(props: { by: By; rows: readonly Row[]; all: Sum; isWhole: boolean; voidable: boolean }): VNode {
  const { by, rows, all, isWhole, voidable } = props;
  const most = all.cost_usd || 1;
  return (
    <Table
      label={`Cost by ${by}`}
      rows={rows.length > 1 && isWhole ? [...rows, all] : rows}
      keyOf={(sum) => ("name" in sum ? sum.name : "")}
      columns={[
        [
          by.charAt(0).toUpperCase() + by.slice(1),
          (sum: Row | Sum) => ("name" in sum ? linkOf(by, sum.name) : <b>All</b>),
          "name",
        ],
        [
          "Cost",
          (sum) => (
            <>
              {costOf(sum)} <Unknown sum={sum} />
            </>
          ),
          "number",
        ],
        ["Input tokens", (sum) => countOf(sum.input_tokens), "number"],
        ["Cached", (sum) => countOf(sum.cached_tokens), "number"],
        ["Output tokens", (sum) => countOf(sum.output_tokens), "number"],
        [
          "Share",
          (sum) =>
            "name" in sum && (
              <meter aria-label="Share of all costs" min={0} max={most} value={sum.cost_usd ?? 0} />
            ),
          "wide",
        ],
        ...(voidable
          ? [
              [
                "Actions",
                (sum: Row | Sum) => "name" in sum && sum.name !== null && <Void node={sum.name} />,
              ] as const,
            ]
          : []),
      ]}
    />
  );
}

function Void({ node }: { node: string }): VNode {
  const question = `Take all that ${node} has reported today (UTC) off the sums and budgets?`;
  return (
    <Button
      class="danger"
      data-do={`void ${node}`}
      onClick={() =>
        runAsked(question, "Void", "The reports are void.", () => call("usage/void", { node_id: node }))
      }
    >
      Void
    </Button>
  );
}

function linkOf(by: By, name: string | null): ComponentChildren {
  if (name === null) return <span class="quiet">none</span>;
  if (by === "node" || by === "creator") return <NodeLink id={name} />;
  return by === "type" ? <a href={to("tasks", "", { type: name })}>{name}</a> : name;
}

function Budgets({ budgets }: { budgets: readonly Budget[] }): VNode {
  return (
    <Section title="Budgets">
      {budgets.length === 0 ? (
        <Empty
          text="There are no budgets. With one, the hub hands nothing out when it is used up:"
          line={commandOf("budget set hub --per month --cost-usd 500")}
        />
      ) : (
        <Table
          label="Budgets"
          rows={budgets}
          keyOf={(budget) => `${budget.scope} ${budget.value} ${budget.per}`}
          columns={[
            ["State", (budget) => <State word={budget.paused ? "paused" : budget.state} />],
            [
              "Budget",
              (budget) => (
                <>
                  {budget.scope} {budget.scope !== "hub" && linkOf(budget.scope, budget.value)}
                </>
              ),
              "name",
            ],
            [
              "Per",
              (budget) => (
                <>
                  {budget.per} {budget.since !== null && <small>since {budget.since}</small>}
                </>
              ),
            ],
            [
              "Cost",
              (budget) => (
                <>
                  {costOf(budget.spent)}
                  {budget.cost_usd !== null && ` of ${countOf(budget.cost_usd)} USD`}{" "}
                  <Unknown sum={budget.spent} />
                </>
              ),
              "number",
            ],
            [
              "Tokens",
              (budget) => (
                <>
                  {countOf(budget.spent.input_tokens + budget.spent.output_tokens)}
                  {budget.tokens !== null && ` of ${countOf(budget.tokens)}`}
                </>
              ),
              "number",
            ],
            ["At the limit", (budget) => budget.on_limit],
          ]}
        />
      )}
    </Section>
  );
}
