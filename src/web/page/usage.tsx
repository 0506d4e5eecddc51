/** What tasks have used, in the words of a person: cost and tokens. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf } from "../../client/luxhub.ts";
import { type AnyTask, costOf, countOf, manyOf } from "./format.ts";

type Sum = AnswerOf<"usage">["all"];

/** What a task, or all tasks of a group, have used. */
export function Usage({ usage }: { usage: NonNullable<AnyTask["usage"]> }): VNode {
  const { input_tokens, cached_tokens, output_tokens } = usage;
  const cached = cached_tokens === 0 ? "" : ` (${countOf(cached_tokens)} cached)`;
  return (
    <>
      {costOf(usage)} <Unknown sum={usage} />
      <br />
      <small>
        {countOf(input_tokens)} input tokens{cached}, {countOf(output_tokens)} output tokens
      </small>
    </>
  );
}

/** Says how many of the reports of a sum had no cost: it is larger than it looks. */
export function Unknown({ sum }: { sum: Pick<Sum, "reports" | "without_cost"> }): VNode | null {
  if (sum.without_cost === 0) return null;
  return (
    <small>
      {countOf(sum.without_cost)} of {manyOf(sum.reports, "report")} without a cost
    </small>
  );
}
