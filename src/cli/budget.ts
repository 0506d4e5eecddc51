/** `luxhub budget …`: sets, lists and deletes what work may cost, and voids what a node has reported. */
import type { Environment } from "../config.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type Run, printRows, runGroup } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, printJson } from "./table.ts";

export function budgetCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("budget", RUNS, argv, env);
}

const PERIODS = ["day", "month", "total"] as const;
const SCOPES = ["hub", "node", "creator", "type", "group"] as const;

const RUNS: Readonly<Record<string, Run>> = {
  "budget set": async (remote) => {
    const { hub, values, json } = remote;
    const { budget } = await hub.costs.setBudget({
      ...keyOf(remote, "budget set"),
      cost_usd: values.number("cost-usd"),
      tokens: values.whole("tokens"),
      on_limit: values.choice("on-limit", ["pause", "warn"]),
    });
    if (json) printJson(budget);
    return json ? EXIT.OK : writeLine(`${nameOf(budget)}  ${budget.state}`);
  },
  "budget list": (remote) =>
    printRows(remote, {
      load: async (page) => {
        const { budgets, pages } = await remote.hub.costs.budgets(page);
        return { rows: budgets, pages };
      },
      nameOf,
      none: "There are no budgets.",
      head: ["BUDGET", "STATE", "USD", "OF", "WITHOUT COST", "TOKENS", "OF", "AT THE LIMIT"],
      cells: (budget) => [
        plain(nameOf(budget)),
        budget.paused ? "paused" : budget.state,
        budget.spent.cost_usd,
        budget.cost_usd,
        budget.spent.without_cost,
        budget.spent.input_tokens + budget.spent.output_tokens,
        budget.tokens,
        budget.on_limit,
      ],
    }),
  "budget delete": async (remote) => {
    const { budget } = await remote.hub.costs.deleteBudget(keyOf(remote, "budget delete"));
    if (remote.json) printJson(budget);
    return remote.json ? EXIT.OK : writeLine(`${nameOf(budget)}  deleted`);
  },
  "budget void": async (remote) => {
    const { hub, values, json } = remote;
    const asked = { node_id: nodeIn(remote), day: values.text("day"), reason: values.text("reason") };
    const answer = await hub.costs.voidUsage(asked);
    if (json) {
      printJson(answer);
      return EXIT.OK;
    }
    const { node_id, day, voided } = answer;
    const reports = voided.reports === 1 ? "1 report" : `${voided.reports} reports`;
    return writeLine(`${node_id} on ${day}  ${reports}, ${voided.cost_usd ?? 0} USD voided`);
  },
};

function nodeIn({ words: [node, extra] }: Remote): string {
  if (node === undefined) throw new UsageError("budget void needs NODE", "budget void");
  if (extra !== undefined) throw new UsageError(`unexpected ${JSON.stringify(extra)}`, "budget void");
  return node;
}

function keyOf({ words: [word = "", value, extra], values }: Remote, command: string) {
  const scope = SCOPES.find((one) => one === word);
  if (scope === undefined) throw new UsageError(`${command} needs ${SCOPES.join(", ")}`, command);
  if (extra !== undefined) throw new UsageError(`unexpected ${JSON.stringify(extra)}`, command);
  values.needed("per");
  return { scope, value, per: values.choice("per", PERIODS) ?? "day" };
}

type Named = { readonly scope: string; readonly value: string | null; readonly per: string };

function nameOf({ scope, value, per }: Named): string {
  return `${scope === "hub" ? "hub" : `${scope} ${value ?? "(none)"}`} per ${per}`;
}
