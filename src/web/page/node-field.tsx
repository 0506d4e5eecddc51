/** A field for a node, with suggestions: nodes whose id or name begins with the input; the busiest while it is empty. */
import { Fragment, type JSX, h } from "preact";
import { useId, useState } from "preact/hooks";
import { Field, useLoad, useTyped } from "./parts.tsx";

const SUGGESTED = 20;

export function NodeField(props: {
  label: string;
  name: string;
  value?: string | undefined;
  required?: boolean;
  onInput?: (value: string) => void;
}): JSX.Element {
  const [typed, setTyped] = useState<string | null>(null);
  const found = useLoad(`nodes ${typed}`, async (from, signal) => {
    if (typed === null) return []; // the field has not had the focus yet
    const order = typed === "" ? "busy" : "id";
    return (await from.call("node/list", { q: typed, order, per_page: SUGGESTED }, { signal })).nodes;
  });
  const list = useId();
  const type = useTyped(({ q = "" }) => setTyped(q))("q");
  const onInput = (value: string): void => {
    type(value);
    props.onInput?.(value);
  };
  return (
    <>
      <Field {...props} list={list} onInput={onInput} onFocus={() => setTyped((old) => old ?? "")} />
      <datalist id={list}>
        {found.value?.map((node) => (
          <option key={node.node_id} value={node.node_id} label={node.name} />
        ))}
      </datalist>
    </>
  );
}
