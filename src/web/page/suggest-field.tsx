/** Fields with suggestions, which are loaded when the field has the focus. */
import { Fragment, type VNode, h } from "preact";
import { useId, useState } from "preact/hooks";
import { Field, type FieldProps, useLoad, useTyped } from "./parts.tsx";
import type { Ask } from "./session.ts";

const SUGGESTED = 20;

/** A value of the field, and what tells more about it. */
type Suggestion = readonly [value: string, label: string];

type Suggest = (ask: Ask, typed: string) => Promise<readonly Suggestion[]>;

/** Suggests the nodes whose id or name begins with the input; the busiest while it is empty. */
const nodes: Suggest = async (ask, q) => {
  const order = q === "" ? "busy" : "id";
  const { nodes } = await ask("node/list", { q, order, per_page: SUGGESTED });
  return nodes.map(({ node_id, name }) => [node_id, name]);
};

/** Suggests the types that tasks have now. */
const types: Suggest = async (ask) => {
  const { types } = await ask("stats/types");
  return types.flatMap(({ task_type, open }) => (task_type === null ? [] : [[task_type, `${open} open`]]));
};

export const NodeField = (props: FieldProps): VNode => <SuggestField {...props} suggest={nodes} />;
export const TypeField = (props: FieldProps): VNode => <SuggestField {...props} suggest={types} />;

function SuggestField({ suggest, ...field }: FieldProps & { suggest: Suggest }): VNode {
  const [typed, setTyped] = useState<string | null>(null);
  const found = useLoad(`${typed}`, async (ask) => (typed === null ? [] : suggest(ask, typed)));
  const list = useId();
  const type = useTyped(({ q = "" }) => setTyped(q))("q");
  const onInput = (value: string): void => {
    type(value);
    field.onInput?.(value);
  };
  return (
    <>
      <Field {...field} list={list} onInput={onInput} onFocus={() => setTyped((old) => old ?? "")} />
      <datalist id={list}>
        {found.value?.map(([value, label]) => (
          <option key={value} value={value} label={label} />
        ))}
      </datalist>
    </>
  );
}
