/** `luxhub usage` and `luxhub task usage`: what work has cost, and what a step of it has used. */
import { appendFileSync } from "node:fs";
import type { AnswerOf, Used } from "../client/index.ts";
import { UsageError } from "./arguments.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, limitOf, recordOf } from "./remote.ts";
import { rowsOf } from "./resource.ts";
import { writeLine } from "./standard-output.ts";
import { print, printJson, printJsonList, printTable } from "./table.ts";

const SUMMED_BY = ["day", "node", "creator", "type", "model", "group"] as const;

export const RUNS: ClientRuns = {
  usage: async (remote) => {
    const { hub, json, values } = remote;
    const sumBy = values.choice("by", SUMMED_BY) ?? "day";
    const request = { by: sumBy, since: values.text("since"), until: values.text("until") };
    let total: Sum | undefined;
    const sums = rowsOf(hub, "usage", request, limitOf(remote), ({ all }) => (total = all));
    if (json) {
      await printJsonList(sums);
      return EXIT.OK;
    }
    const rows = await Array.fromAsync(sums, (sum) => [sum.name, ...rowOf(sum)]);
    if (rows.length === 0 || total === undefined) print("No usage was reported on these days.");
    else printTable([sumBy.toUpperCase(), ...HEAD], [...rows, ["all", ...rowOf(total)]]);
    return EXIT.OK;
  },
};

const HEAD = ["USD", "WITHOUT COST", "INPUT", "CACHED", "OUTPUT", "REPORTS"];

type Sum = Omit<AnswerOf<"usage">["usage"][number], "name">;

function rowOf({ cost_usd, without_cost, input_tokens, cached_tokens, output_tokens, reports }: Sum) {
  return [cost_usd, without_cost, input_tokens, cached_tokens, output_tokens, reports];
}

/** Without an ID: in a command of `luxhub worker`, through its report file, so that it needs no secret. */
export async function reportUsage({ hub, json, values, env, words: [taskId] }: Remote): Promise<number> {
  const used: Used = {
    model: values.needed("model"),
    input_tokens: values.neededWhole("input-tokens"),
    output_tokens: values.neededWhole("output-tokens"),
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
  const usage = [{ ...used, seq: values.neededWhole("seq") }];
  const holder = { task_id: taskId, node_id: values.needed("node"), epoch: values.whole("epoch") };
  const answer = recordOf(await hub.tasks.extend({ ...holder, usage }));
  if (json) {
    printJson(answer);
    return EXIT.OK;
  }
  const usd = answer.budget_left_usd;
  return writeLine(`${taskId}  ${answer.status}${usd === null ? "" : `  ${usd} USD left`}`);
}
