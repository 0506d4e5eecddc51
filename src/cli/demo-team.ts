/**
 * The simulated nodes of `luxhub demo`. They keep the hub bounded: the oldest tasks and files are deleted, and with a
 * backlog nothing new is created.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  FatalError,
  LuxHub,
  LuxHubError,
  type Task,
  type TaskContext,
  type TaskResult,
} from "../client/index.ts";
import { must } from "../lib/assert.ts";
import texts from "./demo-texts.json" with { type: "json" };

type Kind = "research" | "coding" | "review" | "writing" | "operations";

const NODES: readonly { readonly id: string; readonly name: string; readonly takes: Kind }[] = [
  { id: "researcher", name: "Researcher", takes: "research" },
  { id: "coder-1", name: "Coder One", takes: "coding" },
  { id: "coder-2", name: "Coder Two", takes: "coding" },
  { id: "reviewer", name: "Reviewer", takes: "review" },
  { id: "writer", name: "Writer", takes: "writing" },
  { id: "operator", name: "Operator", takes: "operations" },
];

/** About one task a second: a story has two on average. */
const STORY_EVERY_MS = 1_700;
const STORIES_AT_START = 6;
const CONCURRENCY = 2;
const BACKLOG_MAX = 60;
const TASKS_KEPT = 2_000;
const FILES_KEPT = 100;
const DELETED_AT_ONCE = 50;
const PAUSE_MS = 1_000;
const RECEIVE_WAIT_S = 60;

/** @throws {LuxHubError} when the hub refuses the nodes: the secret was revoked */
export async function runTeam(hub: LuxHub, signal: AbortSignal): Promise<void> {
  const team = new Team(hub, signal);
  await Promise.all([
    ...NODES.flatMap(({ id, name, takes }) => [
      hub.worker(id, (task, context) => team.work(id, task, context), {
        name,
        capabilities: takes,
        concurrency: CONCURRENCY,
        signal,
        release: signal,
      }),
      team.repeat(() => team.readMail(id)),
    ]),
    team.repeat(() => team.plan()),
  ]);
}

class Team {
  readonly #hub: LuxHub;
  readonly #signal: AbortSignal;
  readonly #tasks: string[] = [];
  readonly #files: string[] = [];
  #hasBegun = false;

  constructor(hub: LuxHub, signal: AbortSignal) {
    this.#hub = hub;
    this.#signal = signal;
  }

  /** A person may delete nodes, tasks and files of the demo. */
  async repeat(step: () => Promise<void>): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        await step();
      } catch (error) {
        if (this.#signal.aborted) return;
        if (!(error instanceof LuxHubError)) throw error;
        await this.#pause(PAUSE_MS).catch(() => {});
      }
    }
  }

  async plan(): Promise<void> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      for (const { id } of NODES) await this.#untilRegistered(id);
      for (const { id } of NODES) await this.#hub.lux.signIn({ node_id: id }, this.#options);
      for (let i = 0; i < STORIES_AT_START; i++) await this.#createStory();
    }
    await this.#pause(STORY_EVERY_MS * (0.5 + Math.random()));
    const { by_status } = await this.#hub.tasks.stats({}, this.#options);
    if (by_status.open < BACKLOG_MAX) await this.#createStory();
    if (chance(0.02)) {
      const content = oneOf(texts.news);
      await this.#hub.messages.broadcast({ from_node: "operator", content, type: "update" }, this.#options);
    }
    await this.#deleteOldest(this.#tasks, TASKS_KEPT, "task/delete");
    await this.#deleteOldest(this.#files, FILES_KEPT, "file/delete");
  }

  async #untilRegistered(nodeId: string): Promise<void> {
    for (;;) {
      const { nodes } = await this.#hub.nodes.list({}, this.#options);
      if (nodes.some(({ node_id }) => node_id === nodeId)) return;
      await this.#pause(50);
    }
  }

  async #createStory(): Promise<void> {
    const subject = oneOf(texts.subjects);
    const creator = oneOf(NODES).id;
    let before: string | null = null;
    for (const { kind, title, description } of oneOf(STORIES)) {
      const { task } = await this.#hub.tasks.create(
        {
          title: title.replace("%", subject),
          description: description.replace("%", subject),
          task_type: kind,
          priority: oneOf(["p0", "p1", "p1", "p1", "p2", "p5"]),
          creator_node: creator,
          lux_reward: (1 + Math.floor(Math.random() * 12)) / 4,
          max_attempts: 3,
          backoff_s: 3,
          timeout_s: 300,
          depends_on: before === null ? [] : [before],
        },
        this.#options,
      );
      before = task.task_id;
      this.#tasks.push(task.task_id);
    }
  }

  /** A person may have deleted it already. */
  async #deleteOldest(ids: string[], kept: number, path: "task/delete" | "file/delete"): Promise<void> {
    if (ids.length < kept + DELETED_AT_ONCE) return;
    const requests = ids
      .slice(0, DELETED_AT_ONCE)
      .map((id) =>
        path === "task/delete" ? { path, body: { task_id: id } } : { path, body: { file_id: id } },
      );
    await this.#hub.batch(requests, this.#options);
    ids.splice(0, DELETED_AT_ONCE);
  }

  async work(nodeId: string, task: Task, { signal, extend }: TaskContext): Promise<TaskResult> {
    const { steps, results, faults } = CRAFTS[kindOf(nodeId)];
    for (const step of steps) {
      await sleep(500 + Math.random() * 2_000, undefined, { signal });
      await extend(step);
    }
    await sleep(500 + Math.random() * 1_000, undefined, { signal });
    if (chance(0.1)) throw new Error(oneOf(faults));
    if (chance(0.04)) throw new FatalError(`Gave up: ${oneOf(faults)}`);
    try {
      await this.#share(nodeId, task);
    } catch (error) {
      if (!(error instanceof LuxHubError)) throw error; // the task does not depend on the file or the message
    }
    return oneOf(results);
  }

  async #share(nodeId: string, { task_id, title, creator_node }: Task): Promise<void> {
    const metadata = { task_id, node: nodeId };
    const kind = kindOf(nodeId);
    if (kind === "research" && chance(0.3)) {
      const chart = new Blob([Uint8Array.fromBase64(texts.chart)], { type: "image/png" });
      await this.#upload(chart, { name: "response-times.png", metadata });
    }
    if ((kind === "coding" || kind === "writing") && chance(0.15)) {
      const notes = `${title}\n\nWhat changed\n- ${CRAFTS[kind].steps.join("\n- ")}\n\nTask ${task_id}, by ${nodeId}\n`;
      await this.#upload(notes, { name: "notes.txt", type: "text/plain", metadata });
    }
    if (creator_node !== null && creator_node !== nodeId && chance(0.3))
      await this.#send(nodeId, creator_node, `Done: ${title}. ${oneOf(texts.remarks)}`);
  }

  async #upload(content: Blob | string, fields: Parameters<LuxHub["files"]["upload"]>[1]): Promise<void> {
    const { file_id } = await this.#hub.files.upload(content, fields, this.#options);
    this.#files.push(file_id);
  }

  async #send(from_node: string, to_node: string, content: string): Promise<void> {
    await this.#hub.messages.send({ from_node, to_node, content, require_ack: chance(0.5) }, this.#options);
  }

  /** A reply gets no reply. */
  async readMail(nodeId: string): Promise<void> {
    const request = { node_id: nodeId, blocking: true, timeout: RECEIVE_WAIT_S };
    const { messages } = await this.#hub.messages.receive(request, this.#options);
    for (const { id, from_node, content, require_ack } of messages) {
      await this.#pause(500 + Math.random() * 1_500);
      if (require_ack) await this.#hub.messages.ack({ node_id: nodeId, message_id: id }, this.#options);
      if (content.startsWith("Done:") && chance(0.4))
        await this.#send(nodeId, from_node, oneOf(texts.answers));
    }
  }

  get #options(): { readonly signal: AbortSignal } {
    return { signal: this.#signal };
  }

  #pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#signal });
  }
}

function kindOf(nodeId: string): Kind {
  return must(
    NODES.find(({ id }) => id === nodeId),
    "the node is of the demo",
  ).takes;
}

function chance(share: number): boolean {
  return Math.random() < share;
}

function oneOf<T>(list: readonly T[]): T {
  return must(list[Math.floor(Math.random() * list.length)], "the list of texts has one");
}

// ---- Texts

type StoryTask = { readonly kind: Kind; readonly title: string; readonly description: string };

/** `%` stands for the subject. */
const STORIES: readonly (readonly StoryTask[])[] = texts.stories.map((steps) =>
  steps.map((step) => ({ ...step, kind: kindNamed(step.kind) })),
);

type Craft = {
  readonly steps: readonly string[];
  readonly results: readonly TaskResult[];
  readonly faults: readonly string[];
};

const CRAFTS: Readonly<Record<Kind, Craft>> = texts.crafts;

function kindNamed(word: string): Kind {
  return must(
    NODES.find(({ takes }) => takes === word),
    `a node of the demo takes ${word}`,
  ).takes;
}
