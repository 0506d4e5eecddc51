/**
 * The fleet by the types of task that its nodes take: the balancer for many tasks at once, by the rules of `pick`.
 *
 * What a node takes is entered once. Who comes first of those who take a type is found by a queue, made when the type is
 * first asked for. So a task that nobody takes costs one look, and one that somebody takes a few steps of its queue,
 * however many nodes there are. Invariant: while a queue stands, its nodes only fall back in it.
 */
import { Heap } from "../lib/heap.ts";
import { type Candidate, comesBefore, isAvailable } from "./balancer.ts";
import type { Task } from "./model.ts";

/** Of a task, what says who may have it. */
export type Wanting = Pick<Task, "taskType" | "revokedFrom">;

export type Given<T> = { readonly task: T; readonly nodeId: string };

type Member = {
  readonly nodeId: string;
  capabilities: readonly string[];
  online: boolean;
  maxTasks: number | null;
  tasksAssigned: number;
  idleSince: number;
  /** As of which look at the fleet this holds. */
  seenAt: number;
};

/** Where a node stood when it was last looked at: it stands there still, or further back. */
type Place = { readonly nodeId: string; readonly member: Member; tasksAssigned: number; idleSince: number };

const NOBODY: readonly Member[] = [];

export class Fleet {
  readonly #wanted: ReadonlySet<string> | null;
  readonly #members = new Map<string, Member>();
  /** By type: who has it among their capabilities. */
  readonly #takers = new Map<string, Member[]>();
  /** Who has no capabilities. */
  readonly #takersOfAll: Member[] = [];
  /** By type, "" for tasks of none; null for those who take all. */
  readonly #queues = new Map<string | null, Heap<Place>>();
  #looks = 0;

  /** @param wanted the only types that are asked for; null: any may be */
  constructor(wanted: ReadonlySet<string> | null = null) {
    this.#wanted = wanted;
  }

  /** Says how the nodes are now. Those that are not among them are not available. */
  see(nodes: readonly Candidate[]): void {
    this.#looks += 1;
    this.meet(nodes);
  }

  /** Says how some more of the nodes are. The same list of capabilities as before is not looked into again. */
  meet(nodes: readonly Candidate[]): void {
    this.#queues.clear();
    for (const { nodeId, capabilities, online, maxTasks, tasksAssigned, idleSince } of nodes) {
      const known = this.#members.get(nodeId);
      const now = { online, maxTasks, tasksAssigned, idleSince, seenAt: this.#looks };
      if (known?.capabilities === capabilities) {
        Object.assign(known, now);
        continue;
      }
      if (known) this.#leave(known);
      this.#enter({ nodeId, capabilities, ...now });
    }
  }

  /** Whether somebody who is available takes tasks of any type. */
  get takesAll(): boolean {
    return settled(this.#queueOf(null)) !== undefined;
  }

  /** Whether somebody who is available takes tasks of this type ("": of none). Makes no queue for it. */
  takes(taskType: string): boolean {
    if (this.takesAll) return true;
    const queue = this.#queues.get(taskType);
    if (queue) return settled(queue) !== undefined;
    for (const member of this.#membersOf(taskType)) if (this.#isThere(member)) return true;
    return false;
  }

  /** The types that are taken by name; with nobody left who does, some may still be among them. */
  get types(): ReadonlyMap<string, unknown> {
    return this.#takers;
  }

  /** Gives each task in turn to the best node, as if each were given by itself: who was given one has it, and is not idle. */
  give<T extends Wanting>(tasks: readonly T[], now: number): readonly Given<T>[] {
    const given: Given<T>[] = [];
    for (const task of tasks) {
      const member = this.#best(task);
      if (!member) continue;
      member.tasksAssigned += 1;
      member.idleSince = now;
      given.push({ task, nodeId: member.nodeId });
    }
    return given;
  }

  #best({ taskType, revokedFrom }: Wanting): Member | null {
    const able = taskType === "" || this.#takers.has(taskType) ? this.#firstOf(taskType, revokedFrom) : null;
    const anyway = taskType === "" ? null : this.#firstOf(null, revokedFrom);
    if (!able || !anyway) return able ?? anyway;
    return comesBefore(able, anyway) ? able : anyway;
  }

  /** The first of a queue, but for one node: never straight back to whom the task was taken from. */
  #firstOf(key: string | null, notNode: string | null): Member | null {
    const queue = this.#queueOf(key);
    const first = settled(queue);
    if (first?.nodeId !== notNode) return first?.member ?? null;
    queue.takeFirst();
    const second = settled(queue);
    if (first) queue.put(first);
    return second?.member ?? null;
  }

  #queueOf(key: string | null): Heap<Place> {
    let queue = this.#queues.get(key);
    if (!queue) this.#queues.set(key, (queue = new Heap(this.#placesOf(key), comesBefore)));
    return queue;
  }

  #placesOf(key: string | null): Place[] {
    const places: Place[] = [];
    for (const member of this.#membersOf(key)) {
      const { nodeId, tasksAssigned, idleSince } = member;
      if (this.#isThere(member)) places.push({ nodeId, member, tasksAssigned, idleSince });
    }
    return places;
  }

  #membersOf(key: string | null): Iterable<Member> {
    if (key === null) return this.#takersOfAll;
    return key === "" ? this.#members.values() : (this.#takers.get(key) ?? NOBODY);
  }

  #isThere(member: Member): boolean {
    return member.seenAt === this.#looks && isAvailable(member);
  }

  #enter(member: Member): void {
    this.#members.set(member.nodeId, member);
    if (member.capabilities.length === 0) this.#takersOfAll.push(member);
    for (const type of member.capabilities) {
      if (this.#wanted && !this.#wanted.has(type)) continue;
      const takers = this.#takers.get(type);
      if (takers) takers.push(member);
      else this.#takers.set(type, [member]);
    }
  }

  #leave(member: Member): void {
    if (member.capabilities.length === 0) remove(this.#takersOfAll, member);
    for (const type of member.capabilities) remove(this.#takers.get(type), member);
  }
}

/** The balancer over a few nodes, or for once: see Fleet. */
export function balance<T extends Wanting>(
  tasks: readonly T[],
  nodes: readonly Candidate[],
  now: number,
): readonly Given<T>[] {
  const fleet = new Fleet(new Set(tasks.map(({ taskType }) => taskType)));
  fleet.see(nodes);
  return fleet.give(tasks, now);
}

/** Looks again at who stands first until it is who does; who is full leaves the queue. */
function settled(queue: Heap<Place>): Place | undefined {
  for (;;) {
    const { first } = queue;
    if (!first) return undefined;
    const { member } = first;
    if (!isAvailable(member)) queue.takeFirst();
    else if (first.tasksAssigned !== member.tasksAssigned) {
      first.tasksAssigned = member.tasksAssigned;
      first.idleSince = member.idleSince;
      queue.sinkFirst();
    } else return first;
  }
}

function remove(members: Member[] | undefined, member: Member): void {
  const at = members?.indexOf(member) ?? -1;
  if (at >= 0) members?.splice(at, 1);
}
