/**
 * The columns of the terms that few tasks have: which of them requests change, and which the summary of a task has, as
 * TASK_FIELDS says. toTask() of rows.ts does not compile until each term has a column.
 */
import type { TaskTerms } from "../../domain/model.ts";
import type { SummaryName, TaskFields } from "../../domain/task/fields.ts";
import { type TemplateField, TEMPLATE_FIELDS, isUnset } from "../../domain/task/template.ts";
import { must } from "../../lib/assert.ts";
import { type FieldOf, fieldOf } from "./table.ts";
import { TASK_FEATURES } from "./tables.ts";

const COLUMNS = TASK_FEATURES.columns;
type Terms = typeof COLUMNS;
type Name = { [N in keyof Terms]: Terms[N] extends { readonly isTerm: true } ? N : never }[keyof Terms];
type SummaryColumn = {
  [N in Name]: FieldOf<N, Terms[N]> extends TaskFields[SummaryName]["key"] ? N : never;
}[Name];

export const FEW_NAMES = Object.entries(COLUMNS)
  .filter(([, column]) => "isTerm" in column)
  .map(([name]) => name as Name); // as its type says

const fields = new Map<string, TemplateField>(TEMPLATE_FIELDS.map((declared) => [declared.key, declared]));
const declaredOf = (name: Name): TemplateField =>
  must(fields.get(fieldOf(name, COLUMNS[name])), "the column of a term holds a field of TASK_FIELDS");

export const PATCHED_NAMES = FEW_NAMES.filter((name) => declaredOf(name).patch !== undefined);
export const SUMMARY_NAMES = FEW_NAMES.filter((name) => declaredOf(name).shown?.summary) as SummaryColumn[];

const KEYS = FEW_NAMES.map((name) => declaredOf(name).key);

export const hasFewTerms = (task: TaskTerms): boolean => KEYS.some((key) => !isUnset(task[key]));
