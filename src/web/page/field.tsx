/** A field of a form or of a filter, drawn from its declaration. Must not: know a form. */
import { Fragment, type TargetedInputEvent, type VNode, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { once, useLoad } from "./load.ts";
import type { Ask } from "./session.ts";
import { useUniqueId } from "./shared.ts";
import { isoOf, typedOf } from "./times.ts";

/** A value that is its own label stands alone. */
export type Options = readonly (string | readonly [value: string, label: string])[];

/** What a field is. Without a type, options or suggestions it is a line of text. */
export type FieldOf = {
  readonly name: string;
  readonly label: string;
  /** `time`: a moment, which the field gives in its ISO form. */
  readonly type?: "search" | "number" | "password" | "file" | "time" | "check";
  /** The field is a choice of these; it begins with the first. */
  readonly options?: Options;
  /** What the field proposes while the user types. */
  readonly suggest?: Suggest;
  readonly value?: string | undefined;
  readonly required?: boolean;
  readonly multiple?: boolean;
  readonly rows?: number;
};

type Live = { readonly onInput?: ((value: string) => void) | undefined };

export function Field(props: FieldOf & Live): VNode {
  const { type, onInput, suggest, options, value } = props;
  if (options !== undefined) return <Choice {...props} options={options} />;
  if (suggest !== undefined) return <Suggesting {...props} suggest={suggest} />;
  if (type === "check")
    return (
      <label class="check">
        <input type="checkbox" name={props.name} /> {props.label}
      </label>
    );
  if (type !== "time") return <Input {...props} />;
  return <Input {...props} value={typedOf(value)} onInput={(typed) => onInput?.(isoOf(typed) ?? "")} />;
}

type InputProps = FieldOf & Live & { readonly list?: string; readonly onFocus?: () => void };

function Input(props: InputProps): VNode {
  const { label, rows, value = "", name, required = false, type = "text", list, onFocus } = props;
  const common = {
    ...{ name, required, defaultValue: value, autocomplete: "off" as const, spellcheck: false },
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      props.onInput?.(event.currentTarget.value),
  };
  // The value of the URL may change without typing: by Clear, or by the browser's Back.
  const place = useRef<HTMLLabelElement>(null);
  useLayoutEffect(() => {
    const field = place.current?.querySelector<HTMLInputElement | HTMLTextAreaElement>("input, textarea");
    if (field && field !== document.activeElement && field.type !== "file") field.value = value;
  }, [value]);
  return (
    <label class="field" ref={place}>
      <span>{label}</span>
      {rows !== undefined ? (
        <textarea {...common} rows={rows} />
      ) : type === "number" ? (
        <input {...common} type={type} step="any" />
      ) : type === "file" || type === "password" ? (
        <input {...common} type={type} multiple={props.multiple === true} />
      ) : (
        <input
          {...common}
          type={type === "search" ? type : type === "time" ? "datetime-local" : "text"}
          list={list}
          onFocus={onFocus}
        />
      )}
    </label>
  );
}

function Choice(props: FieldOf & Live & { readonly options: Options }): VNode {
  const options = props.options.map((option) =>
    typeof option === "string" ? ([option, option] as const) : option,
  );
  const chosen = options.find(([value]) => value === (props.value ?? "")) ?? options[0];
  return (
    <label class="field">
      <span>{props.label}</span>
      <select name={props.name} onChange={(event) => props.onInput?.(event.currentTarget.value)}>
        {options.map(([value, label]) => (
          <option key={value} value={value} selected={value === chosen?.[0]}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

// ---- Typing

const TYPING_MS = 250;

/** Debounced input: calls `change` once the typing has ended, with all fields that changed, by name. */
export function useTyped(
  change: (changed: Readonly<Record<string, string>>) => void,
): (name: string) => (value: string) => void {
  const latest = useRef(change);
  latest.current = change;
  const [pending] = useState(() => {
    let changed: Record<string, string> = {};
    const timer = once(() => {
      const ended = changed;
      changed = {};
      latest.current(ended);
    });
    const type = (name: string, value: string): void => {
      changed[name] = value.trim();
      timer.restart(TYPING_MS);
    };
    const stop = (): void => {
      changed = {};
      timer.stop();
    };
    return { type, stop };
  });
  useLayoutEffect(() => {
    addEventListener("hashchange", pending.stop); // what is typed is for this page
    return () => {
      removeEventListener("hashchange", pending.stop);
      pending.stop();
    };
  }, []);
  return (name) => (value) => pending.type(name, value);
}

// ---- Suggestions, which are loaded when the field has the focus

type Suggest = (ask: Ask, typed: string) => Promise<readonly (readonly [value: string, label: string])[]>;

const SUGGESTED = 20;

export const nodeNames: Suggest = async (ask, q) => {
  const order = q === "" ? "busy" : "id";
  const { nodes } = await ask("node/list", { q, order, per_page: SUGGESTED });
  return nodes.map(({ node_id, name }) => [node_id, name]);
};

export const taskTypes: Suggest = async (ask) => {
  const { types } = await ask("stats/types");
  return types.flatMap(({ task_type, open }) => (task_type === null ? [] : [[task_type, `${open} open`]]));
};

export const timeZones: Suggest = () =>
  Promise.resolve(Intl.supportedValuesOf("timeZone").map((zone) => [zone, zone]));

function Suggesting({ suggest, ...field }: FieldOf & Live & { readonly suggest: Suggest }): VNode {
  const [typed, setTyped] = useState<string | null>(null);
  const loaded = useLoad(`${typed}`, async (ask) => (typed === null ? [] : suggest(ask, typed)));
  const list = useUniqueId();
  const type = useTyped(({ q = "" }) => setTyped(q))("q");
  const onInput = (value: string): void => {
    type(value);
    field.onInput?.(value);
  };
  return (
    <>
      <Input {...field} list={list} onInput={onInput} onFocus={() => setTyped((old) => old ?? "")} />
      <datalist id={list}>
        {loaded.value?.map(([value, label]) => (
          <option key={value} value={value} label={label} />
        ))}
      </datalist>
    </>
  );
}
