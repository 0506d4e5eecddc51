/**
 * Draws the page: JSX makes views, and a drawing changes the document where a view is not what is shown. Components are
 * functions; what they keep from one drawing to the next are hooks, as other libraries have them.
 * Invariant: a part keeps its element, its fields and its focus as long as its place has a view of the same type and key.
 */

/** What JSX makes: an element (a tag), or a component, with its properties. */
export type Markup = {
  readonly type: string | Component;
  readonly key: unknown;
  readonly props: Props;
};
/** What may stand between two tags. What is no view, no text and no number is nothing. */
export type Children = Markup | string | number | boolean | null | undefined | readonly Children[];

type Props = Readonly<Record<string, unknown>>;
type Component = (props: never) => Children;

/** JSX calls it. The children of a component are its property `children`. */
export function h(type: string | Component, props: Props | null, ...children: readonly Children[]): Markup {
  const { key, ...rest } = props ?? {};
  return { type, key, props: children.length > 0 ? { ...rest, children } : rest };
}

export function Fragment({ children }: { children?: Children }): Children {
  return children;
}

const TEXT = "#text";

function viewOf(child: Children): Markup | null {
  if (Array.isArray(child)) return h(Fragment, null, ...child);
  if (typeof child === "object") return child as Markup | null; // an array is no view
  return typeof child === "string" || typeof child === "number" ? h(TEXT, { data: child }) : null;
}

// ---- Parts: what is shown

/** What a hook keeps: `start` and `end` are of an effect. */
type Hook = { start?: (() => void) | undefined; end?: (() => void) | undefined };

type Part = {
  view: Markup;
  /** The part around it; null for the node that the page is drawn in. */
  readonly up: Part | null;
  /** Of a tag or a text. A component has only the nodes of the parts within. */
  readonly node: Element | Text | null;
  /** In their order; null where there is nothing. */
  parts: readonly (Part | null)[];
  readonly hooks: Hook[];
  isGone: boolean;
};

const SVG = "http://www.w3.org/2000/svg";

function partOf({ type, key }: Markup, up: Part): Part {
  const isSvg = type === "svg" || hostOf(up).node instanceof SVGElement;
  const node =
    typeof type === "function"
      ? null
      : type === TEXT
        ? new Text()
        : isSvg
          ? document.createElementNS(SVG, type)
          : document.createElement(type);
  return { view: { type, key, props: {} }, up, node, parts: [], hooks: [], isGone: false };
}

/** The part whose node has the nodes of a component. */
function hostOf(part: Part): Part {
  return part.node === null && part.up !== null ? hostOf(part.up) : part;
}

/** Draws a part as the view says. */
function update(part: Part, view: Markup): void {
  const { type, props } = view;
  const old = part.view.props;
  part.view = view;
  undrawn.delete(part);
  if (typeof type === "function") {
    drawing = part;
    hookCount = 0;
    const made = type(props as never);
    updateParts(part, Array.isArray(made) ? made : [made]);
    done.push(part);
  } else if (part.node !== null) {
    for (const name in { ...old, ...props }) setProperty(part.node, name, old[name], props[name]);
    updateParts(part, (props["children"] ?? []) as readonly Children[]);
    placeIn(part.node, part);
  }
}

function updateParts(part: Part, children: readonly Children[]): void {
  const before = part.parts;
  const left = new Set(before);
  const byKey = new Map(before.map((one) => [one?.view.key, one]));
  part.parts = children.map((child, i) => {
    const view = viewOf(child);
    if (view === null) return null;
    const known = view.key === undefined ? before[i] : byKey.get(view.key);
    const isSame = known && left.has(known) && known.view.type === view.type && known.view.key === view.key;
    const one = isSame ? known : partOf(view, part);
    left.delete(one);
    if (one.view !== view) update(one, view); // the same view shows the same
    return one;
  });
  for (const one of left) if (one) remove(one);
}

/** Puts the nodes of a part into a node, before another. Nodes that stand right are not touched: they keep the focus. */
function placeIn(host: Node, { parts }: Part, next: Node | null = null): Node | null {
  for (const part of parts.toReversed()) {
    if (part?.node) {
      if (part.node.parentNode !== host || part.node.nextSibling !== next) host.insertBefore(part.node, next);
      next = part.node;
    } else if (part) next = placeIn(host, part, next);
  }
  return next;
}

function remove(part: Part, isWithin = false): void {
  part.isGone = true;
  undrawn.delete(part);
  for (const { end } of part.hooks) end?.();
  if (!isWithin) part.node?.remove();
  for (const one of part.parts) if (one) remove(one, isWithin || part.node !== null);
}

/** These are read-only, or do not take every value, as properties. */
const ATTRIBUTES: ReadonlySet<string> = new Set(["list", "href", "download", "role", "width", "height"]);

function setProperty(node: Element | Text, name: string, old: unknown, value: unknown): void {
  if (name === "ref") return void ((value as Ref<unknown>).current = node);
  const key = name.startsWith("on") ? name.toLowerCase() : name;
  // The user changes these too.
  const before: unknown = key === "checked" || key === "value" ? Reflect.get(node, key) : old;
  if (key === "children" || value === before) return;
  if (key in node && !(node instanceof SVGElement) && !ATTRIBUTES.has(key))
    Reflect.set(node, key, value ?? "");
  else if (node instanceof Element && (value == null || (value === false && !key.startsWith("aria-"))))
    node.removeAttribute(key);
  else if (node instanceof Element) node.setAttribute(key, String(value));
}

// ---- Drawing

/** The components that have changed. */
const undrawn = new Set<Part>();
/** The components of this drawing, those within before those around them. */
const done: Part[] = [];
let root: Part | null = null;
let isDue = false;

/** Draws the page in a node of the document, now and after each change. */
export function render(page: () => Children, node: Element): void {
  const host: Part = {
    ...{ view: h(node.tagName, null), up: null, node },
    ...{ parts: [], hooks: [], isGone: false },
  };
  root = partOf(h(page, null), host);
  host.parts = [root];
  draw(root);
  runEffects();
}

/** Draws the whole page again. */
export function drawSoon(): void {
  if (root) changed(root);
}

/** Draws a component again, with what is within; once for all changes of one turn. */
function changed(part: Part): void {
  if (part.isGone) return;
  undrawn.add(part);
  if (isDue) return;
  isDue = true;
  queueMicrotask(() => {
    isDue = false;
    if (root && undrawn.has(root)) draw(root); // mostly all of them
    for (const one of undrawn) draw(one);
    runEffects();
  });
}

function draw(part: Part): void {
  update(part, part.view);
  const host = hostOf(part);
  if (host.node) placeIn(host.node, host);
}

function runEffects(): void {
  for (const { hooks, isGone } of done.splice(0)) if (!isGone) for (const hook of hooks) hook.start?.();
}

// ---- Hooks: each component calls the same ones in the same order

let drawing: Part;
let hookCount = 0;

function hook<T extends object>(make: () => T): T & Hook {
  const { hooks } = drawing;
  const i = hookCount++;
  hooks[i] ??= make();
  return hooks[i] as T & Hook; // made by the same call
}

/**
 * A value that the component keeps, and the function that changes it: by a value, or by a function of the old one. The
 * component is drawn again then.
 */
export function useState<T>(first: T): [value: T, set: (next: T | ((old: T) => T)) => void] {
  const part = drawing;
  const state = hook(() => ({ value: first }));
  const set = (next: T | ((old: T) => T)): void => {
    const value = next instanceof Function ? next(state.value) : next;
    if (Object.is(value, state.value)) return;
    state.value = value;
    changed(part);
  };
  return [state.value, set];
}

export type Ref<T> = { current: T };

/** A value that changes without a drawing; or the element whose property `ref` this is. */
export function useRef<T>(first: T): Ref<T>;
export function useRef<T>(first: null): Ref<T | null>;
export function useRef<T>(first: T): Ref<T> {
  return hook(() => ({ current: first }));
}

/**
 * Runs after the drawing, before it is seen, if one of the values has changed; without values after each. What it returns
 * ends it: before it runs again, and when the component is gone.
 */
export function useEffect(start: () => (() => void) | void, values?: readonly unknown[]): void {
  const effect = hook((): { values?: readonly unknown[] | undefined } => ({}));
  const old = effect.values;
  if (old && values?.every((value, i) => Object.is(value, old[i]))) return;
  effect.values = values;
  effect.start = () => {
    effect.start = undefined;
    effect.end?.();
    effect.end = start() ?? undefined;
  };
}

let idCount = 0;

/** An id in the document. */
export function useId(): string {
  return hook(() => ({ id: `id-${++idCount}` })).id;
}

// ---- Types of JSX

/** An event, at the element whose handler gets it. */
export type At<T, E = Event> = E & { readonly currentTarget: T };
type Handler<E, T> = (event: At<T, E>) => unknown;

type Handlers<T> = {
  readonly onClick?: Handler<MouseEvent, T>;
  readonly onInput?: Handler<Event, T>;
  readonly onChange?: Handler<Event, T>;
  readonly onFocus?: Handler<FocusEvent, T> | undefined;
  readonly onBlur?: Handler<FocusEvent, T>;
  readonly onKeyDown?: Handler<KeyboardEvent, T>;
  readonly onPointerMove?: Handler<PointerEvent, T>;
  readonly onPointerLeave?: Handler<PointerEvent, T>;
  readonly onSubmit?: Handler<SubmitEvent, T>;
  readonly onClose?: Handler<Event, T>;
  readonly onToggle?: Handler<Event, T>;
};

type Attribute =
  | ("class" | "id" | "role" | "style" | "tabIndex" | "title" | "autofocus" | "popover" | `aria-${string}`)
  | (
      | `data-${string}`
      | "name"
      | "value"
      | "defaultValue"
      | "type"
      | "autocomplete"
      | "spellcheck"
      | "required"
    )
  | ("disabled" | "checked" | "selected" | "multiple" | "readOnly" | "rows" | "step" | "min" | "max" | "list")
  | ("placeholder" | "label" | "href" | "download" | "rel" | "method" | "open" | "scope" | "dateTime" | "src")
  | (
      | "alt"
      | "width"
      | "height"
      | "viewBox"
      | "preserveAspectRatio"
      | "shape-rendering"
      | "d"
      | "x"
      | "y"
      | "rx"
    );

type Attributes = { readonly [A in Attribute]?: string | number | boolean | null | undefined };

type Intrinsic<T> = Attributes & Handlers<T> & { readonly ref?: Ref<T | null>; readonly children?: Children };

export declare namespace h {
  namespace JSX {
    type ElementType = string | Component;
    type Element = Markup;
    interface ElementChildrenAttribute {
      readonly children: unknown;
    }
    interface IntrinsicAttributes {
      readonly key?: string | number | null | undefined;
    }
    type IntrinsicElements = {
      readonly [T in keyof HTMLElementTagNameMap]: Intrinsic<HTMLElementTagNameMap[T]> & IntrinsicAttributes;
    } & {
      readonly [T in "svg" | "path" | "g" | "rect" | "text"]: Intrinsic<SVGElement> & IntrinsicAttributes;
    };
  }
}
