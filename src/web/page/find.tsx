/**
 * Finds anything by what the user types. Must not: show that there is nothing where it has not looked at everything.
 */
import { type VNode, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { LuxHubError } from "../../client/http.ts";
import type { TaskSummary, Variant } from "../../client/luxhub.ts";
import { LIST_SCANNED_MAX } from "../../domain/list-limits.ts";
import { type AnyTask, countOf, manyOf, sizeOf, stateOf } from "./format.ts";
import { useTyped } from "./field.tsx";
import { Modal } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { State } from "./parts.tsx";
import { go, to } from "./route.ts";
import { type Ask, describe } from "./session.ts";
import { drawn } from "./shared.ts";

export const isFindOpen = drawn(false);

const FEW = 6;

type Hit = {
  readonly href: string;
  readonly what: string;
  readonly title: string;
  readonly more: string;
  readonly state?: string;
};

type Found = { readonly hits: readonly Hit[]; readonly faults: readonly string[] };

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const NAME = /^[\w.:-]+$/;
const HAS_WORD = /[\p{L}\p{N}]/u;

function hit(what: string, href: string, title: string, more = "", state?: string): Hit {
  return { what, href, title, more, ...(state !== undefined && { state }) };
}

function hitOf(task: AnyTask | TaskSummary<Variant>): Hit {
  const why = task.failure?.message ?? task.task_type ?? "";
  return hit("task", to("tasks", task.task_id), task.title, why, stateOf(task));
}

async function tasksTitled(ask: Ask, q: string): Promise<readonly Hit[]> {
  const { tasks, next_cursor } = await ask("task/list?fields=summary", { q, per_page: FEW });
  const scanned = `Among the newest ${countOf(LIST_SCANNED_MAX)} tasks only; look further`;
  const title = tasks.length === FEW ? "More tasks with this title" : scanned;
  const onward = next_cursor === null ? [] : [hit("tasks", to("tasks", "", { q }), title)];
  return [...tasks.map(hitOf), ...onward];
}

async function tasksWith(ask: Ask, what: "type" | "tag", name: string): Promise<readonly Hit[]> {
  const filter = what === "type" ? { task_type: name } : { tag: name };
  const { tasks, total } = await ask("task/list?fields=summary", { ...filter, per_page: 1 });
  const count = total === null ? "many tasks" : manyOf(total, "task");
  return tasks.length === 0 ? [] : [hit(what, to("tasks", "", { [what]: name }), name, count)];
}

async function nodesCalled(ask: Ask, q: string): Promise<readonly Hit[]> {
  const { nodes } = await ask("node/list", { q, order: "id", per_page: FEW });
  return nodes.map(({ node_id, name, status }) =>
    hit("node", to("nodes", node_id), name, name === node_id ? "" : node_id, status),
  );
}

async function groupsCalled(ask: Ask, q: string): Promise<readonly Hit[]> {
  const { groups } = await ask("group/list", { q, limit: FEW });
  return groups.map(({ group, total }) =>
    hit("group", to("groups", group), group, `${countOf(total)} tasks`),
  );
}

async function filesCalled(ask: Ask, q: string): Promise<readonly Hit[]> {
  const { files } = await ask("file/list", { q, per_page: FEW });
  return files.map(({ name, size }) => hit("file", to("files", "", { q: name }), name, sizeOf(size)));
}

async function find(ask: Ask, text: string): Promise<Found> {
  const hasWord = HAS_WORD.test(text);
  const sources: readonly (Promise<readonly Hit[]> | false)[] = [
    ID.test(text) && ask("task/{task_id}", { task_id: text.toLowerCase() }).then(({ task }) => [hitOf(task)]),
    hasWord && tasksTitled(ask, text),
    nodesCalled(ask, text),
    NAME.test(text) && groupsCalled(ask, text),
    tasksWith(ask, "type", text),
    !text.includes(",") && tasksWith(ask, "tag", text),
    hasWord && filesCalled(ask, text),
  ];
  const settled = await Promise.allSettled(sources.filter((source) => source !== false));
  const hits = settled.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  const name = text.toLowerCase();
  const rankOf = ({ what, title }: Hit): number =>
    what === "tasks" ? 2 : title.toLowerCase() === name ? 0 : 1;
  const faults = settled.flatMap((result) => {
    if (result.status === "fulfilled") return [];
    const isMissing = result.reason instanceof LuxHubError && result.reason.status === 404;
    return isMissing ? [] : [describe(result.reason)];
  });
  // What has this name exactly is first; the search that goes on is last.
  return { hits: hits.toSorted((a, b) => rankOf(a) - rankOf(b)), faults: [...new Set(faults)] };
}

export function Find({
  pages,
}: {
  pages: readonly (readonly [name: string, title: string, ...unknown[]])[];
}): VNode {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const type = useTyped(({ text: typed = "" }) => {
    setText(typed);
    setAt(0);
  });
  const list = useRef<HTMLDivElement>(null);
  const loaded = useLoad(`find ${text}`, async (ask): Promise<Found> => {
    return text === "" ? { hits: [], faults: [] } : find(ask, text);
  });
  const opened = pages.filter(
    ([, title]) => text !== "" && title.toLowerCase().startsWith(text.toLowerCase()),
  );
  const hits: readonly Hit[] = [
    ...opened.map(([name, title]) => hit("page", to(name), title)),
    ...(loaded.value?.hits ?? []),
  ];
  const chosen = Math.min(at, hits.length - 1);
  useLayoutEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const close = (): void => {
    isFindOpen.value = false;
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt(Math.max(0, Math.min(hits.length - 1, chosen + step)));
    const hit = hits[chosen];
    if (event.key === "Enter" && hit !== undefined) {
      close();
      go(hit.href);
    }
    if (step !== undefined || event.key === "Enter") event.preventDefault();
  };
  return (
    <Modal title="Find" onClose={close} class="find">
      <input
        type="search"
        name="text"
        aria-label="Title, id, type, tag, group, node or file"
        placeholder="Title, id, type, tag, group, node or file"
        autofocus
        autocomplete="off"
        spellcheck={false}
        role="combobox"
        list={undefined}
        aria-expanded={hits.length > 0}
        aria-controls="found"
        aria-activedescendant={chosen >= 0 ? `hit-${chosen}` : undefined}
        onInput={(event) => type("text")(event.currentTarget.value)}
        onKeyDown={onKey}
      />
      <div id="found" role="listbox" aria-label="Found" ref={list}>
        {hits.map(({ href, what, title, more, state }, i) => (
          <a
            key={`${what} ${href} ${title}`}
            id={`hit-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === chosen}
            href={href}
            onClick={close}
          >
            <small>{what}</small>
            <span title={title}>{title}</span>
            {state !== undefined && <State word={state} />}
            <small title={more}>{more}</small>
          </a>
        ))}
      </div>
      <p class="quiet" role="status">
        {text !== "" && loaded.value === null && "Looking …"}
        {loaded.value?.faults.join(" ")}
        {text !== "" && loaded.value?.faults.length === 0 && hits.length === 0 && "Nothing of this name."}
      </p>
    </Modal>
  );
}
