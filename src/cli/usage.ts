/** `luxhub usage` and `luxhub task usage`: what work has cost, and what a step of it has used. */
import { appendFileSync } from "node:fs";
import type { Environment } from "../config.ts";
import type { RequestOf, Used } from "../client/index.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, collect, limitOf, recordOf, rowsOf, runRemote } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, print, printJson, printJsonList, printTable } from "./table.ts";

const SUMMED_BY = ["day", "node", "creator", "type", "model", "group"] as const;

export function usageCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote("usage", show, argv, env);
}

async function show(remote: Remote): Promise<number> {
  const { hub, json, values } = remote;
  const by = values.choice("by", SUMMED_BY) ?? "day";
  const asked: RequestOf<"usage"> = { by, since: values.text("since"), until: values.text("until") };
  let all: Parameters<typeof rowOf>[0] | undefined;
  const load = async (page: { readonly page: number; readonly per_page: number }) => {
    const answer = await hub.costs.usage({ ...asked, ...page });
    all = answer.all;
    return { rows: answer.usage, pages: answer.pages };
  };
  const sums = rowsOf(load, ({ name }) => name ?? "", limitOf(remote));
  if (json) {
    await printJsonList(sums);
    return EXIT.OK;
  }
  const rows = (await collect(sums)).map((sum) => [plain(sum.name ?? "-"), ...rowOf(sum)]);
  if (rows.length === 0 || all === undefined) print("No usage was reported on these days.");
  else printTable([by.toUpperCase(), ...HEAD], [...rows, ["all", ...rowOf(all)]]);
  return EXIT.OK;
}

const HEAD = ["USD", "WITHOUT COST", "INPUT", "CACHED", "OUTPUT", "REPORTS"];

type Sum = {
  readonly cost_usd: number | null;
  readonly without_cost: number;
  readonly input_tokens: number;
  readonly cached_tokens: number;
  readonly output_tokens: number;
  readonly reports: number;
};

function rowOf({ cost_usd, without_cost, input_tokens, cached_tokens, output_tokens, reports }: Sum) {
  return [cost_usd, without_cost, input_tokens, cached_tokens, output_tokens, reports];
}

/** Without an ID: in a command of `luxhub worker`, through its report file, so that it needs no secret. */
export async function reportUsage(
  { hub, json, values, words: [taskId, extra] }: Remote,
  env: Environment,
): Promise<number> {
  if (extra !== undefined) throw new UsageError(`unexpected ${JSON.stringify(extra)}`, "task usage");
  const needed = (flag: "input-tokens" | "output-tokens"): number => {
    values.needed(flag);
    return values.whole(flag) ?? 0;
  };
  const used: Used = {
    model: values.needed("model"),
    input_tokens: needed("input-tokens"),
    output_tokens: needed("output-tokens"),
    cached_tokens: values.whole("cached-tokens"),
    cost_usd: values.number("cost-usd"),
  };
  if (taskId === undefined) {
    const report = env["LUXHUB_REPORT"];
    if (!report)
      throw new UsageError("task usage needs ID, except in a command of luxhub worker", "task usage");
    appendFileSync(report, `${JSON.stringify({ usage: used })}\n`);
    return EXIT.OK;
  }
  values.needed("seq");
  const usage = [{ ...used, seq: values.whole("seq") ?? 0 }];
  const holder = { task_id: taskId, node_id: values.needed("node"), epoch: values.whole("epoch") };
  const answer = recordOf(await hub.tasks.extend({ ...holder, usage }));
  if (json) {
    printJson(answer);
    return EXIT.OK;
  }
  const left = answer.budget_left_usd;
  return writeLine(`${taskId}  ${answer.status}${left === null ? "" : `  ${left} USD left`}`);
}
