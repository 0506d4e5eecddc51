/** What work has cost: the sums by day, model, node, creator, type or group; and the budgets. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import type { AnswerOf } from "../../client/luxhub.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { type Action, type Fields, FormButton, type FormOf, act, deletion } from "./action.tsx";
import { clock } from "./clock.ts";
import { type AnyTask, commandOf, costOf, countOf, manyOf, numberOf, oneOf } from "./format.ts";
import { type FilterOf, ListPage } from "./list-page.tsx";
import { List, type ListOf } from "./list.tsx";
import { whole } from "./load.ts";
import { NodeLink, Section, State } from "./parts.tsx";
import { route, to } from "./route.ts";
import { call, isAdmin } from "./session.ts";

const PAGE = 50;

type Sum = AnswerOf<"usage">["all"];
/** The sum of a name, or (undefined) of all. */
type Row = Sum & { readonly name?: string | null; readonly share?: number };
type Budget = AnswerOf<"budget/list">["budgets"][number];

const BY = ["day", "model", "node", "creator", "type", "group"] as const;
const DAYS = "30";

const FILTERS: readonly FilterOf[] = [
  { name: "by", label: "By", options: BY },
  {
    name: "days",
    label: "Of the last",
    value: DAYS,
    options: [
      ["1", "today (UTC)"],
      ["7", "7 days"],
      ["30", "30 days"],
      ["366", "366 days"],
    ],
  },
];

const NO_USAGE = [
  "No worker has reported usage on these days. A worker reports what its task has used like this:",
  commandOf("task usage TASK --node worker-1 --seq 1 --input-tokens 900 --cost-usd 0.02"),
] as const;

export function Costs(): VNode {
  const { by: word, days = DAYS } = route.value.query;
  const kind = oneOf(BY, word) ?? "day";
  return (
    <ListPage
      title="Cost"
      filters={FILTERS}
      load={async (ask, { page }) => {
        const since = new Date(clock.now() - (Number(days) - 1) * DAY_MS).toISOString().slice(0, 10);
        const [sums, budgets] = await Promise.all([
          ask("usage", { by: kind, since, page: Number(page ?? 1), per_page: PAGE }),
          isAdmin()
            ? whole(
                (place) => ask("budget/list", place),
                (answer) => answer.budgets,
              )
            : null,
        ]);
        return { ...sums, budgets };
      }}
      count={({ all }) => costOf(all)}
      // Usage itself is no event: it mostly comes with these.
      concerns={/^(?:budget\..+|usage\.voided|task\.(?:completed|attempt_failed|failed|released))$/}
      // The sum of all is worth a row if it is the sum of the rows.
      rows={({ usage, all, pages }): readonly Row[] => {
        if (all.reports === 0) return [];
        const shares = usage.map((sum) => ({ ...sum, share: (sum.cost_usd ?? 0) / (all.cost_usd || 1) }));
        return usage.length > 1 && pages <= 1 ? [...shares, all] : shares;
      }}
      list={sumsOf(kind, isAdmin() && kind === "node" && days === "1")}
      empty={NO_USAGE}
      noMatch={NO_USAGE}
      below={(page) => page?.budgets && <Budgets budgets={page.budgets} />}
    />
  );
}

/** @param isVoidable each row is what a node has reported today, which an administrator may take back */
function sumsOf(by: (typeof BY)[number], isVoidable: boolean): ListOf<Row> {
  return {
    label: `Cost by ${by}`,
    keyOf: ({ name }) => name ?? `${name}`,
    columns: [
      [
        by.charAt(0).toUpperCase() + by.slice(1),
        ({ name }) => (name === undefined ? <b>All</b> : linkOf(by, name)),
        "wide",
      ],
      ["Cost", (row) => <Cost sum={row} />, "number"],
      ["Input tokens", (row) => countOf(row.input_tokens), "number"],
      ["Cached", (row) => countOf(row.cached_tokens), "number"],
      ["Output tokens", (row) => countOf(row.output_tokens), "number"],
      ["Share", ({ share }) => share !== undefined && `${Math.round(100 * share)} %`, "number"],
    ],
    actions: isVoidable && (({ name }) => (name ? [voiding(name)] : [])),
  };
}

function voiding(node: string): Action {
  return act(`void ${node}`, "Void", () => call("usage/void", { node_id: node }), "The reports are void.", {
    look: "danger",
    ask: { text: `Take all that ${node} has reported today (UTC) off the sums and budgets?`, yes: "Void" },
  });
}

function linkOf(by: string, name: string | null): ComponentChildren {
  if (name === null) return <span class="quiet">none</span>;
  if (by === "node" || by === "creator") return <NodeLink id={name} />;
  if (by === "group") return <a href={to("groups", name)}>{name}</a>;
  return by === "type" ? <a href={to("tasks", "", { type: name })}>{name}</a> : name;
}

const BUDGETS: ListOf<Budget> = {
  label: "Budgets",
  keyOf: ({ scope, value, per }) => `${scope} ${value} ${per}`,
  columns: [
    ["State", ({ paused, state }) => <State word={paused ? "paused" : state} />],
    ["Budget", ({ scope, value }) => [scope, " ", scope !== "hub" && linkOf(scope, value)], "name"],
    ["Per", ({ per, since }) => [per, " ", since !== null && <small>since {since}</small>]],
    ["Cost", ({ spent, cost_usd }) => <Cost sum={spent} of={cost_usd} />, "number"],
    [
      "Tokens",
      ({ spent, tokens }) =>
        `${countOf(spent.input_tokens + spent.output_tokens)}${tokens === null ? "" : ` of ${countOf(tokens)}`}`,
      "number",
    ],
    ["At the limit", (budget) => budget.on_limit],
  ],
  actions: ({ scope, value: named, per, cost_usd, tokens, on_limit }) => {
    const value = named ?? undefined;
    const limits = { cost_usd: cost_usd ?? undefined, tokens: tokens ?? undefined, on_limit };
    return [
      deletion(
        "delete-budget",
        `Delete the budget of ${value ?? "the hub"} per ${per}?`,
        () => call("budget/delete", { scope, value, per }),
        { undo: () => call("budget/set", { scope, value, per, ...limits }) },
      ),
    ];
  },
};

const SCOPES = ["hub", "type", "node", "creator", "group"] as const;
const PERIODS = ["day", "month", "total"] as const;

function setBudget({ scope, value, per, cost_usd, tokens, on_limit }: Fields): Promise<unknown> {
  return call("budget/set", {
    scope: oneOf(SCOPES, scope) ?? "hub",
    value,
    per: oneOf(PERIODS, per) ?? "day",
    cost_usd: numberOf(cost_usd),
    tokens: numberOf(tokens),
    on_limit: oneOf(["pause", "warn"] as const, on_limit),
  });
}

function budgeting(): FormOf {
  return {
    action: act("set-budget", "Set", setBudget, "The budget is set.", { look: "primary" }),
    fields: [
      [
        { name: "scope", label: "Budget of", options: [["hub", "the whole hub"], ...SCOPES.slice(1)] },
        { name: "value", label: "Which (not for the whole hub)" },
        { name: "per", label: "Per", options: PERIODS },
      ],
      [
        { name: "cost_usd", label: "USD", type: "number" },
        { name: "tokens", label: "Tokens", type: "number" },
        { name: "on_limit", label: "At the limit", options: ["pause", "warn"] },
      ],
    ],
  };
}

function Budgets({ budgets }: { budgets: readonly Budget[] }): VNode {
  return (
    <Section title="Budgets" note={<FormButton label="Set a budget" name="open-budget" form={budgeting} />}>
      <List list={BUDGETS} rows={budgets} empty="There are no budgets." />
    </Section>
  );
}

// ---- Costs in the words of a person

type Reported = Pick<AnswerOf<"usage">["all"], "cost_usd" | "reports" | "without_cost">;

export function Usage({ usage }: { usage: NonNullable<AnyTask["usage"]> }): VNode {
  const { input_tokens, cached_tokens, output_tokens } = usage;
  const cached = cached_tokens === 0 ? "" : ` (${countOf(cached_tokens)} cached)`;
  const tokens = `${countOf(input_tokens)} input tokens${cached}, ${countOf(output_tokens)} output tokens`;
  return (
    <>
      <Cost sum={usage} />
      <br />
      <small>{tokens}</small>
    </>
  );
}

export function Cost({ sum, of = null }: { sum: Reported; of?: number | null }): VNode {
  const unknown = `${countOf(sum.without_cost)} of ${manyOf(sum.reports, "report")} without a cost`;
  return (
    <>
      <span title={sum.cost_usd === null ? undefined : `${countOf(sum.cost_usd)} USD`}>{costOf(sum)}</span>
      {of !== null && ` of ${countOf(of)} USD`} {sum.without_cost > 0 && <small>{unknown}</small>}
    </>
  );
}
