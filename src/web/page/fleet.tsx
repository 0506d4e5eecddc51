/**
 * The fleet as lamps, whose brightness is the load. At most LAMPS, so that a fleet of any size costs the page the same.
 */
import { type VNode, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { type AnyNode, countOf, manyOf } from "./format.ts";
import { onEvent } from "./live.ts";
import { pagesOf, useEvery, useLoad } from "./load.ts";
import { Fault, Section } from "./parts.tsx";
import { go, to } from "./route.ts";
import type { Ask } from "./session.ts";

const LAMPS = 500;
const PAGE = 50;
const FEW = 60;
/** Between two loads the events say what changes. */
const RELOAD_MS = 30_000;
/** A node without a limit is as bright as one that has this many. */
const FULL = 4;
/** Fewer failures in the last hour are no pattern. */
const FAILS_MIN = 3;

const ENDS = /^task\.(?:completed|failed|attempt_failed|timed_out|released|requeued|revoked)$/;

async function load(ask: Ask) {
  const stats = await ask("stats/nodes", {});
  const nodes: AnyNode[] = [];
  if (stats.total <= LAMPS) nodes.push(...(await ask("node/list", {})).nodes);
  else
    for await (const page of pagesOf((cursor) =>
      ask("node/list", { order: "busy", per_page: PAGE, cursor }),
    )) {
      nodes.push(...page.nodes);
      if (nodes.length >= LAMPS) break;
    }
  nodes.sort((a, b) => (a.node_id < b.node_id ? -1 : 1));
  return { stats, nodes };
}

/** @param byNode the attempts that failed in the last hour */
export function Fleet({ byNode }: { byNode: AnswerOf<"stats/failures", Variant>["by_node"] }): VNode {
  const loaded = useLoad("fleet", load, /^node\.(?!updated)/);
  const place = useRef<HTMLDivElement>(null);
  const { value, error, reload } = loaded;
  useEvery(RELOAD_MS, reload);
  useLayoutEffect(() => {
    const lamps = new Map(
      [...(place.current?.querySelectorAll(".lamp") ?? [])].map((lamp) => [
        lamp.getAttribute("data-node"),
        lamp,
      ]),
    );
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    return onEvent((event) => {
      if (event === null) return;
      const lamp = lamps.get(event.node_id);
      const isNew = event.kind === "task.assigned" && event.data["by"] !== "resume";
      const step = isNew ? 1 : ENDS.test(event.kind) ? -1 : 0;
      if (!(lamp instanceof HTMLElement) || step === 0) return;
      shine(lamp, Math.max(0, Number(lamp.dataset["has"]) + step));
      if (event.kind === "task.completed" && !isCalm) flash(lamp);
    });
  }, [value]);
  if (value === null) return <Fault text={error} />;
  const { stats, nodes } = value;
  const fails = new Map(byNode.map(({ node_id, attempts }) => [node_id, attempts]));
  const most = Math.max(0, ...fails.values());
  const failures = [...fails.values()].reduce((sum, count) => sum + count, 0);
  // Red stands out: the one that fails most, and those that fail twice as often as their like.
  const worst = Math.max(FAILS_MIN, Math.min(most, (2 * failures) / stats.total));
  const { online, offline } = stats.by_status;
  const words = `${countOf(online)} on · ${countOf(stats.draining)} drain · ${countOf(offline)} off`;
  return (
    <Section title={<a href={to("nodes")}>{manyOf(stats.total, "node")}</a>} note={words}>
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
        {poolsOf(nodes).map(([pool, ofPool]) => (
          <div key={pool} class="pool">
            <span title={pool}>{pool}</span>
            <div>
              {ofPool.map((node) => (
                <Lamp key={node.node_id} node={node} fails={fails.get(node.node_id) ?? 0} worst={worst} />
              ))}
            </div>
            <span>
              {ofPool.filter(({ status }) => status === "online").length}/{ofPool.length}
            </span>
          </div>
        ))}
      </div>
      {stats.total > nodes.length && (
        <p class="quiet">
          The {countOf(nodes.length)} busiest. <a href={to("nodes")}>All {countOf(stats.total)}</a>
        </p>
      )}
      <p class="legend quiet" aria-hidden="true">
        {LEGEND.map(([look, words]) => (
          <span>
            <i class={`lamp ${look}`} style="--load:100%" /> {words}
          </span>
        ))}
      </p>
    </Section>
  );
}

/** Fewer nodes with names that begin alike are no pool. */
const POOL_MIN = 2;
const OTHERS = "others";

/** The nodes whose ids differ only in the number at their end. */
function poolsOf(nodes: readonly AnyNode[]): readonly (readonly [string, readonly AnyNode[]])[] {
  const nameOf = ({ node_id }: AnyNode): string => node_id.replace(/[-_.:]?\d+$/, "") || OTHERS;
  const pools = Map.groupBy(nodes, nameOf);
  const isSmall = (node: AnyNode): boolean => (pools.get(nameOf(node))?.length ?? 0) < POOL_MIN;
  const others = nodes.filter(isSmall);
  const large = [...pools].filter(([, ofPool]) => ofPool.length >= POOL_MIN);
  return others.length === 0 ? large : [...large, [large.length === 0 ? "all" : OTHERS, others]];
}

const LEGEND = [
  ["", "works (brighter: fuller)"],
  ["idle", "idle"],
  ["drains idle", "drains"],
  ["fails", "fails most"],
  ["off", "off"],
] as const;

function Lamp({ node, fails, worst }: { node: AnyNode; fails: number; worst: number }): VNode {
  const { node_id, name, status, draining, tasks_assigned: has, max_tasks: most } = node;
  const isOff = status !== "online";
  const look = ["lamp", isOff ? "off" : "", draining ? "drains" : "", fails >= worst ? "fails" : ""];
  const words = isOff
    ? "offline"
    : `${has}${most === null ? "" : ` of ${most}`} tasks${draining ? ", drains" : ""}`;
  const lamp = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
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
