/** Makes tasks from what their creator has sent, or like another task. */
import { must } from "../../lib/assert.ts";
import type { TaskTerms } from "../model.ts";
import { TASK_FIELDS, type TaskField, type TemplateName } from "./fields.ts";

export const TEMPLATE_FIELDS = Object.entries<TaskField>(TASK_FIELDS)
  .filter(([, { key, shown }]) => key !== undefined && shown?.schedule !== undefined)
  .map(([name, { key, ...field }]) => ({
    ...field,
    name: name as TemplateName, // its type says the same as the filter
    key: must(key, "a field of a template has a key") as keyof TaskTerms,
  }));

export type TemplateField = (typeof TEMPLATE_FIELDS)[number];

const KEYS: readonly (keyof TaskTerms)[] = TEMPLATE_FIELDS.map(({ key }) => key);

/** Half the cost of spreading them. */
export function withTerms<T extends object>(task: T, terms: TaskTerms): T & TaskTerms {
  const target: Partial<Record<keyof TaskTerms, unknown>> = task;
  for (const key of KEYS) target[key] = terms[key];
  return task as T & TaskTerms; // KEYS are its keys
}

export const DEFAULT_TERMS = Object.fromEntries(
  TEMPLATE_FIELDS.filter(({ required }) => !required).map(({ key, fallback }) => [key, fallback]),
) as Omit<TaskTerms, "title" | "description">;

export function isUnset(value: TaskTerms[keyof TaskTerms]): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}
