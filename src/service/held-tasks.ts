/**
 * What holds open tasks back now (domain/held.ts): of all that are counted by type-stats.ts, and as a filter of
 * task-lists.ts. Computed at each call, from the lanes, the gate and the nodes.
 */
import {
  type HeldBy,
  type HeldCode,
  type Holds,
  type NodesAlike,
  WAIT_CODES,
  heldLane,
  heldOwners,
  takersOf,
} from "../domain/held.ts";
import type { Lane } from "../domain/lane.ts";
import { METRICS_PART, METRICS_TYPES_READ_MAX } from "../domain/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { nextTick } from "../lib/event-loop.ts";
import { partsOf } from "../lib/pages.ts";
import { gateOn } from "../store/sql/gate.ts";
import { nodesByAbilities, waitingTypes } from "../store/sql/stats.ts";
import type { HeldFilter } from "../store/sql/tasks.ts";
import type { Store } from "../store/store.ts";
import { lanesRead } from "./census.ts";

/** `none`: what nothing holds back; `any`: what anything does. */
export type HeldWord = HeldCode | "any" | "none";

type Picture = Holds & { readonly allLanes: readonly Lane[]; readonly nodes: readonly NodesAlike[] };

export class HeldTasks {
  readonly #store: Pick<Store, "read">;
  readonly #clock: Clock;

  constructor(store: Pick<Store, "read">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  async read(): Promise<Picture> {
    const now = this.#clock.now();
    const gate = await this.#store.read(gateOn(now));
    const nodes: NodesAlike[] = [];
    for await (const { alike } of partsOf((after) => this.#store.read(nodesByAbilities(after, METRICS_PART))))
      nodes.push(...alike);
    const allLanes = await lanesRead(this.#store);
    const lanes = new Map<string, HeldBy>();
    for (const lane of allLanes) {
      const held = heldLane(lane, takersOf(lane, nodes), gate, now);
      if (held !== null) lanes.set(lane.name, held);
      await nextTick();
    }
    const [creators, groups] = [heldOwners("creator", gate, now), heldOwners("group", gate, now)];
    return { allLanes, nodes, lanes, creators, groups };
  }

  async filter(word: HeldWord): Promise<HeldFilter> {
    const { allLanes, ...holds } = await this.read();
    const namesOf = (held: Holds["lanes"], which: HeldWord = word): readonly string[] =>
      [...held].flatMap(([name, { code }]) => (which === "any" || code === which ? [name] : []));
    const of = (which: HeldWord) => ({
      lanes: namesOf(holds.lanes, which),
      creators: namesOf(holds.creators, which),
      groups: namesOf(holds.groups, which),
    });
    const named = of(word);
    const waits = word === "any" ? WAIT_CODES : WAIT_CODES.filter((code) => code === word);
    const isHeld = word !== "none";
    const readable = isHeld
      ? named.lanes
      : allLanes.flatMap(({ name }) => (holds.lanes.has(name) ? [] : [name]));
    const types = waits.length === 0 ? [] : await this.#store.read(waitingTypes(METRICS_TYPES_READ_MAX));
    const isByOwner = isHeld && named.creators.length + named.groups.length > 0;
    const places = isByOwner ? null : { lanes: readable, waitingTypes: types };
    return { isHeld, ...named, waits, all: of("any"), places };
  }
}
