/**
 * Finds anything by what the user types: a page, a task by id, title, type, group or tag, a node, a file. It says how far
 * it has looked. Must not: show that there is nothing where it has not looked at everything.
 */
import { type VNode, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { LuxHubError } from "../../client/http.ts";
import type { TaskSummary, Variant } from "../../client/luxhub.ts";
import { LIST_SCANNED_MAX } from "../../domain/list-limits.ts";
import { type AnyTask, countOf, manyOf, sizeOf, stateOf } from "./format.ts";
import { useTyped } from "./field.tsx";
import { useLoad } from "./load.ts";
import { Modal, State } from "./parts.tsx";
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

/** The ids of the hub. */
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** What groups and nodes may be called. */
const NAME = /^[\w.:-]+$/;
const HAS_WORD = /[\p{L}\p{N}]/u;

const nothing: readonly Hit[] = [];

function hitOf(task: AnyTask | TaskSummary<Variant>): Hit {
  const why = task.failure?.message ?? task.task_type ?? "";
  return {
    href: to("tasks", task.task_id),
    what: "task",
    title: task.title,
    more: why,
    state: stateOf(task),
  };
}

/** What has no list by beginnings is found by its whole name. */
async function tasksWith(ask: Ask, what: "type" | "tag", name: string): Promise<readonly Hit[]> {
  const filter = what === "type" ? { task_type: name } : { tag: name };
  const { tasks, total } = await ask("task/list?fields=summary", { ...filter, per_page: 1 });
  if (tasks.length === 0) return nothing;
  const more = total === null ? "many tasks" : manyOf(total, "task");
  return [{ href: to("tasks", "", { [what]: name }), what, title: name, more }];
}

async function find(ask: Ask, text: string): Promise<Found> {
  const isName = NAME.test(text);
  const hasWord = HAS_WORD.test(text);
  const sources: readonly (Promise<readonly Hit[]> | false)[] = [
    ID.test(text) && ask("task/{task_id}", { task_id: text.toLowerCase() }).then(({ task }) => [hitOf(task)]),
    hasWord &&
      ask("task/list?fields=summary", { q: text, per_page: FEW }).then(({ tasks, next_cursor }) => {
        const hits = tasks.map(hitOf);
        if (next_cursor === null) return hits;
        const title =
          tasks.length === FEW
            ? "More tasks with this title"
            : `Among the newest ${countOf(LIST_SCANNED_MAX)} tasks only; look further`;
        return [...hits, { href: to("tasks", "", { q: text }), what: "tasks", title, more: "" }];
      }),
    ask("node/list", { q: text, order: "id", per_page: FEW }).then(({ nodes }) =>
      nodes.map(({ node_id, name, status }) => ({
        href: to("nodes", node_id),
        what: "node",
        title: name,
        more: name === node_id ? "" : node_id,
        state: status,
      })),
    ),
    isName &&
      ask("group/list", { q: text, limit: FEW }).then(({ groups }) =>
        groups.map(({ group, total }) => ({
          href: to("groups", group),
          what: "group",
          title: group,
          more: `${countOf(total)} tasks`,
        })),
      ),
    tasksWith(ask, "type", text),
    !text.includes(",") && tasksWith(ask, "tag", text),
    hasWord &&
      ask("file/list", { q: text, per_page: FEW }).then(({ files }) =>
        files.map(({ name, size }) => ({
          href: to("files", "", { q: name }),
          what: "file",
          title: name,
          more: sizeOf(size),
        })),
      ),
  ];
  const settled = await Promise.allSettled(sources.filter((source) => source !== false));
  const hits = settled.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const faults = settled.flatMap((one) => {
    if (one.status === "fulfilled") return [];
    const isMissing = one.reason instanceof LuxHubError && one.reason.status === 404;
    return isMissing ? [] : [describe(one.reason)];
  });
  return { hits, faults: [...new Set(faults)] };
}

/** @param pages the pages that the user may open, by name and title */
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
    return text === "" ? { hits: nothing, faults: [] } : find(ask, text);
  });
  const opened = pages.filter(
    ([, title]) => text !== "" && title.toLowerCase().startsWith(text.toLowerCase()),
  );
  const hits: readonly Hit[] = [
    ...opened.map(([name, title]) => ({ href: to(name), what: "page", title, more: "" })),
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
