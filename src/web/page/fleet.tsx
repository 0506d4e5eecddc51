/**
 * The fleet as lamps: a small square for each node. Its brightness is the load; it flashes when the node completes a
 * task. At most LAMPS of the busiest nodes, so that a fleet of any size costs the page the same.
 */
import { type JSX, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { type AnyNode, countOf, manyOf } from "./format.ts";
import { onEvent } from "./live.ts";
import { Fault, pagesOf, useLoad } from "./parts.tsx";
import { go, to } from "./route.ts";
import type { Hub } from "./session.ts";

const LAMPS = 500;
const PAGE = 50;
/** So few lamps may be larger. */
const FEW = 60;
/** Between two loads the events say what changes. */
const RELOAD_MS = 30_000;
/** A node without a limit is as bright as one that has this many. */
const FULL = 4;
/** Fewer failures in the last hour are no pattern. */
const FAILS_MIN = 3;

/** Changes of the number of a node's tasks. */
const STEPS: Readonly<Partial<Record<Event["kind"], number>>> = {
  "task.assigned": 1,
  "task.completed": -1,
  "task.failed": -1,
  "task.attempt_failed": -1,
  "task.timed_out": -1,
  "task.released": -1,
  "task.requeued": -1,
  "task.revoked": -1,
};

async function load(from: Hub, signal: AbortSignal) {
  const options = { signal };
  const [stats, { by_node }] = await Promise.all([
    from.call("stats/nodes", {}, options),
    from.call("stats/failures", {}, options),
  ]);
  const nodes: AnyNode[] = [];
  if (stats.total <= LAMPS) nodes.push(...(await from.call("node/list", {}, options)).nodes);
  else
    for await (const page of pagesOf((cursor) =>
      from.call("node/list", { order: "busy", per_page: PAGE, cursor }, options),
    )) {
      nodes.push(...page.nodes);
      if (nodes.length >= LAMPS) break;
    }
  nodes.sort((a, b) => (a.node_id < b.node_id ? -1 : 1));
  const fails = new Map(by_node.map(({ node_id, count }) => [node_id, count]));
  return { stats, nodes, fails };
}

export function Fleet(): JSX.Element {
  const loaded = useLoad("fleet", load);
  const place = useRef<HTMLDivElement>(null);
  const { value, error, reload } = loaded;
  useEffect(() => {
    const timer = setInterval(reload, RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    const lamps = new Map(
      [...(place.current?.children ?? [])].map((lamp) => [lamp.getAttribute("data-node"), lamp]),
    );
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    return onEvent((event) => {
      if (event === null) return;
      if (/^node\.(?!updated)/.test(event.kind)) return void scheduleReload();
      const lamp = lamps.get(event.node_id);
      const step = STEPS[event.kind];
      if (!(lamp instanceof HTMLElement) || step === undefined) return;
      shine(lamp, Math.max(0, Number(lamp.dataset["has"]) + step));
      if (event.kind === "task.completed" && !isCalm) flash(lamp);
    });
  }, [value]);
  const soon = useRef<ReturnType<typeof setTimeout> | null>(null);
  const scheduleReload = (): void => {
    soon.current ??= setTimeout(() => {
      soon.current = null;
      reload();
    }, 3_000);
  };
  useEffect(() => () => clearTimeout(soon.current ?? undefined), []);
  if (value === null) return <Fault text={error} />;
  const { stats, nodes, fails } = value;
  const most = Math.max(0, ...fails.values());
  const all = [...fails.values()].reduce((sum, count) => sum + count, 0);
  // Red stands out: the one that fails most, and those that fail twice as often as their like.
  const worst = Math.max(FAILS_MIN, Math.min(most, (2 * all) / stats.total));
  const { online, offline } = stats.by_status;
  const words = `${countOf(online)} on · ${countOf(stats.draining)} drain · ${countOf(offline)} off`;
  return (
    <section>
      <h2>
        <a href={to("nodes")}>{manyOf(stats.total, "node")}</a> <span>{words}</span>
      </h2>
      <div
        class={nodes.length <= FEW ? "fleet few" : "fleet"}
        role="img"
        aria-label={`The nodes as lamps: ${words}`}
        ref={place}
        onClick={({ target }) => {
          const id = target instanceof HTMLElement ? target.dataset["node"] : undefined;
          if (id !== undefined) go(to("nodes", id));
        }}
      >
        {nodes.map((node) => (
          <Lamp key={node.node_id} node={node} fails={fails.get(node.node_id) ?? 0} worst={worst} />
        ))}
      </div>
      {stats.total > nodes.length && (
        <p class="quiet">
          The {countOf(nodes.length)} busiest. <a href={to("nodes")}>All {countOf(stats.total)}</a>
        </p>
      )}
      <p class="legend quiet" aria-hidden="true">
        <span>
          <i class="lamp" style="--load:100%" /> works (brighter: fuller)
        </span>
        <span>
          <i class="lamp idle" /> idle
        </span>
        <span>
          <i class="lamp drains idle" /> drains
        </span>
        <span>
          <i class="lamp fails" /> fails most
        </span>
        <span>
          <i class="lamp off" /> off
        </span>
      </p>
    </section>
  );
}

function Lamp({ node, fails, worst }: { node: AnyNode; fails: number; worst: number }): JSX.Element {
  const { node_id, name, status, draining, tasks_assigned: has, max_tasks: most } = node;
  const isOff = status !== "online";
  const look = ["lamp", isOff ? "off" : "", draining ? "drains" : "", fails >= worst ? "fails" : ""];
  const words = isOff
    ? "offline"
    : `${has}${most === null ? "" : ` of ${most}`} tasks${draining ? ", drains" : ""}`;
  const lamp = useRef<HTMLElement>(null);
  useEffect(() => {
    if (lamp.current) shine(lamp.current, has);
  });
  return (
    <i
      ref={lamp}
      class={look.join(" ").trim()}
      data-node={node_id}
      data-most={most ?? FULL}
      title={`${name}: ${words}${fails > 0 ? `, ${fails} failed` : ""}`}
    />
  );
}

const FLASH_MS = 300;

/** On and off, without a frame in between: an animation would keep the page busy. */
function flash(lamp: HTMLElement): void {
  lamp.classList.add("flash");
  setTimeout(() => lamp.classList.remove("flash"), FLASH_MS);
}

function shine(lamp: HTMLElement, has: number): void {
  const part = Math.min(1, has / Math.max(1, Number(lamp.dataset["most"])));
  lamp.dataset["has"] = String(has);
  lamp.classList.toggle("idle", has === 0);
  lamp.style.setProperty("--load", `${Math.round(30 + part * 70)}%`);
}
