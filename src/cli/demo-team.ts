/**
 * The simulated nodes of `luxhub demo`: they create tasks for each other, do most of them, fail some, and send messages
 * and files. Must not: let the hub grow without bound. The oldest tasks and files are deleted, and with a backlog
 * nothing new is created.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { crc32, deflateSync } from "node:zlib";
import {
  FatalError,
  LuxHub,
  LuxHubError,
  type Task,
  type TaskContext,
  type TaskResult,
} from "../client/luxhub.ts";

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

/** Runs until the signal. @throws {LuxHubError} when the hub refuses the nodes: the secret was revoked */
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
  /** The ids of the tasks and files that the team created, oldest first. */
  readonly #tasks: string[] = [];
  readonly #files: string[] = [];
  #hasBegun = false;

  constructor(hub: LuxHub, signal: AbortSignal) {
    this.#hub = hub;
    this.#signal = signal;
  }

  /** Continues after a refusal: a person may delete nodes, tasks and files of the demo. */
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
      const content = oneOf(NEWS);
      await this.#hub.messages.broadcast({ from_node: "operator", content, type: "update" }, this.#options);
    }
    await this.#deleteOldest(this.#tasks, TASKS_KEPT, (task_id) => ({
      path: "task/delete",
      body: { task_id },
    }));
    await this.#deleteOldest(this.#files, FILES_KEPT, (file_id) => ({
      path: "file/delete",
      body: { file_id },
    }));
  }

  async #untilRegistered(nodeId: string): Promise<void> {
    for (;;) {
      const { nodes } = await this.#hub.nodes.list({}, this.#options);
      if (nodes.some(({ node_id }) => node_id === nodeId)) return;
      await this.#pause(50);
    }
  }

  /** Creates the tasks of one story, each dependent on the one before it. */
  async #createStory(): Promise<void> {
    const subject = oneOf(SUBJECTS);
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

  /** Ignores a refusal: a person has deleted the task or file already. */
  async #deleteOldest(
    ids: string[],
    kept: number,
    deletion: (
      id: string,
    ) =>
      | { readonly path: "task/delete"; readonly body: { readonly task_id: string } }
      | { readonly path: "file/delete"; readonly body: { readonly file_id: string } },
  ): Promise<void> {
    if (ids.length < kept + DELETED_AT_ONCE) return;
    await this.#hub.batch(ids.slice(0, DELETED_AT_ONCE).map(deletion), this.#options);
    ids.splice(0, DELETED_AT_ONCE);
  }

  /** Does a task: takes a few seconds, and fails now and then. */
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

  /** Sometimes uploads a file of the task, and sends a message to the node that created it. */
  async #share(nodeId: string, { task_id, title, creator_node }: Task): Promise<void> {
    const metadata = { task_id, node: nodeId };
    const kind = kindOf(nodeId);
    if (kind === "research" && chance(0.3)) {
      const chart = new Blob([chartPng()], { type: "image/png" });
      await this.#upload(chart, { name: "response-times.png", metadata });
    }
    if ((kind === "coding" || kind === "writing") && chance(0.15)) {
      const notes = `${title}\n\nWhat changed\n- ${CRAFTS[kind].steps.join("\n- ")}\n\nTask ${task_id}, by ${nodeId}\n`;
      await this.#upload(notes, { name: "notes.txt", type: "text/plain", metadata });
    }
    if (creator_node !== null && creator_node !== nodeId && chance(0.3))
      await this.#send(nodeId, creator_node, `Done: ${title}. ${oneOf(REMARKS)}`);
  }

  async #upload(content: Blob | string, fields: Parameters<LuxHub["files"]["upload"]>[1]): Promise<void> {
    const { file_id } = await this.#hub.files.upload(content, fields, this.#options);
    this.#files.push(file_id);
  }

  async #send(from_node: string, to_node: string, content: string): Promise<void> {
    await this.#hub.messages.send({ from_node, to_node, content, require_ack: chance(0.5) }, this.#options);
  }

  /** Receives and confirms messages, and replies to some. A reply gets no reply. */
  async readMail(nodeId: string): Promise<void> {
    const asked = { node_id: nodeId, blocking: true, timeout: RECEIVE_WAIT_S };
    const { messages } = await this.#hub.messages.receive(asked, this.#options);
    for (const { id, from_node, content, require_ack } of messages) {
      await this.#pause(500 + Math.random() * 1_500);
      if (require_ack) await this.#hub.messages.ack({ node_id: nodeId, message_id: id }, this.#options);
      if (content.startsWith("Done:") && chance(0.4)) await this.#send(nodeId, from_node, oneOf(ANSWERS));
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
  return NODES.find(({ id }) => id === nodeId)?.takes ?? "operations";
}

function chance(share: number): boolean {
  return Math.random() < share;
}

function oneOf<T>(list: readonly [T, ...T[]] | readonly T[]): T {
  const found = list[Math.floor(Math.random() * list.length)];
  if (found === undefined) throw new Error("the list is empty");
  return found;
}

// ---- Texts

const SUBJECTS: readonly string[] = [
  "the billing export",
  "the sign-in page",
  "the search index",
  "the invoice mailer",
  "the upload service",
  "the nightly import",
  "the audit log",
  "the webhook queue",
  "the price list",
  "the customer report",
  "the session cache",
  "the address form",
  "the stock forecast",
  "the support inbox",
];

type StoryTask = { readonly kind: Kind; readonly title: string; readonly description: string };

const REVIEW: StoryTask = {
  kind: "review",
  title: "Review the change to %",
  description:
    "Read the change to %. Look at error paths, limits and the names. Say what must change before it ships.",
};

/** The tasks of each story, in order. `%` stands for the subject. */
const STORIES: readonly (readonly StoryTask[])[] = [
  [
    {
      kind: "research",
      title: "Find out why % is slow on Mondays",
      description: "Users wait several seconds for % on Monday mornings. Measure where the time goes.",
    },
    {
      kind: "coding",
      title: "Make % answer within 200 ms",
      description: "Use what was measured. Keep the behaviour of %, and add a test for the slow case.",
    },
    REVIEW,
    {
      kind: "writing",
      title: "Release note: % is faster",
      description: "Two sentences for users about %: what is better now, and what they have to do (nothing).",
    },
  ],
  [
    {
      kind: "coding",
      title: "Fix the time zone in %",
      description:
        "Around midnight % shows the wrong day to users outside UTC. Store UTC, convert when shown.",
    },
    REVIEW,
  ],
  [
    {
      kind: "coding",
      title: "Retry failed calls in %",
      description: "A short network fault makes % fail. Retry with growing pauses, at most five times.",
    },
    REVIEW,
  ],
  [
    {
      kind: "research",
      title: "Compare two libraries for %",
      description: "Which one fits % better? Size, upkeep, licence, and how it fails.",
    },
    {
      kind: "writing",
      title: "Write down the decision about %",
      description: "One page: the question, the options, what we chose for % and why.",
    },
  ],
  [
    {
      kind: "writing",
      title: "Update the guide to %",
      description: "The screenshots of % are of last year, and step 4 no longer exists.",
    },
  ],
  [
    {
      kind: "operations",
      title: "Rotate the certificate of %",
      description: "It ends in two weeks. Renew it for %, reload, and check the chain from outside.",
    },
  ],
  [
    {
      kind: "operations",
      title: "Rehearse the restore of %",
      description: "Restore last night's backup of % on a spare machine, and compare the counts.",
    },
  ],
  [
    {
      kind: "operations",
      title: "Raise the disk quota of %",
      description: "% fills its disk within nine days at this rate.",
    },
  ],
];

type Craft = {
  readonly steps: readonly string[];
  readonly results: readonly TaskResult[];
  readonly faults: readonly string[];
};

const CRAFTS: Readonly<Record<Kind, Craft>> = {
  research: {
    steps: ["Collected a week of measurements", "Compared the candidates"],
    results: [
      {
        problem: "Nine tenths of the time went into one query without an index",
        improvement: "Named the index that is missing, and what it costs on disk",
        lesson: "Measure at the busy hour, not on an idle copy",
      },
      {
        problem: "Both options looked alike in their documentation",
        improvement: "Built the same small example with each; one needs half the code",
        lesson: "An hour with an example tells more than a table of features",
      },
    ],
    faults: ["The measurements of Monday are missing", "The trial account has expired"],
  },
  coding: {
    steps: ["Wrote a test that fails", "The test passes", "Ran the whole suite"],
    results: [
      {
        problem: "The local time was stored, and converted a second time when shown",
        improvement: "UTC is stored; one function converts for display",
        lesson: "Convert times at the edge only",
      },
      {
        problem: "A short fault of the network ended the whole run",
        improvement: "Retries with growing pauses, and a limit on all of them together",
        lesson: "A retry without a limit turns a small fault into a long one",
      },
      {
        problem: "Every row was loaded to show twenty",
        improvement: "Pages by cursor; the first answer comes after 40 ms",
        lesson: "Ask the database for what is shown",
      },
    ],
    faults: [
      "2 of 418 tests failed: rounds half a cent the wrong way",
      "The build ran out of memory",
      "Merge conflict in the schema of the database",
    ],
  },
  review: {
    steps: ["Read the change", "Tried it with empty and with large input"],
    results: [
      {
        problem: "An error path dropped the cause",
        improvement: "Asked for the cause in the message; the rest is good to ship",
        lesson: "Read the error paths first: tests rarely do",
      },
      {
        problem: "None that stops it; two names were unclear",
        improvement: "Proposed better names, approved",
        lesson: "Small changes are reviewed within the hour",
      },
    ],
    faults: ["The preview did not start", "The branch is behind and does not apply"],
  },
  writing: {
    steps: ["Made a first draft", "Shortened it by half"],
    results: [
      {
        problem: "The old text explained how it is built, not what to do",
        improvement: "Three steps with one picture each",
        lesson: "Begin with what the reader wants to do",
      },
      {
        problem: "Nobody remembered why it was decided",
        improvement: "One page with the options and the reason",
        lesson: "Write a decision down on the day it is made",
      },
    ],
    faults: ["The screenshots could not be taken: the staging system is down"],
  },
  operations: {
    steps: ["Took a snapshot first", "Made the change on one machine", "Checked it from outside"],
    results: [
      {
        problem: "The reminder came two weeks before the end",
        improvement: "It renews itself now, and an alarm rings 20 days before",
        lesson: "A calendar is no monitoring",
      },
      {
        problem: "The restore took 40 minutes; we had promised 30",
        improvement: "Restores in parallel now: 12 minutes, all counts equal",
        lesson: "A backup is worth what its last restore was",
      },
    ],
    faults: ["The spare machine does not answer", "The health check failed after the change: rolled back"],
  },
};

const REMARKS: readonly string[] = [
  "Please have a look before noon.",
  "One question is left, see the result.",
  "It was smaller than it looked.",
  "The next one in line can start.",
];

const ANSWERS: readonly string[] = [
  "Thank you, looks good.",
  "Read it, no questions.",
  "Good. I take the next step.",
  "Thank you. Can you add a line about the limits?",
];

const NEWS: readonly string[] = [
  "Staging is updated at 14:00 and away for five minutes.",
  "The release is frozen until the reviews are done.",
  "Backups of last night are complete and verified.",
];

// ---- A picture

const CHART = { width: 240, height: 120, bars: 12, gap: 4 } as const;

/** Draws a bar chart as PNG: one bit per pixel with a palette of two colours. */
function chartPng(): Uint8Array<ArrayBuffer> {
  const { width, height, bars, gap } = CHART;
  const tops = Array.from({ length: bars }, () => height * (0.1 + Math.random() * 0.7));
  const barWidth = width / bars;
  const rowBytes = width / 8;
  const rows = new Uint8Array((1 + rowBytes) * height); // each row begins with its filter: none
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const isBar = x % barWidth >= gap && y >= (tops[Math.floor(x / barWidth)] ?? height);
      const at = y * (1 + rowBytes) + 1 + (x >> 3);
      if (isBar) rows[at] = (rows[at] ?? 0) | (0x80 >> (x & 7));
    }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([1, 3], 8); // bits per pixel; colours by palette
  const palette = Uint8Array.of(0xf6, 0xf7, 0xf9, 0x2f, 0x6f, 0xb5);
  const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
  return new Uint8Array(
    Buffer.concat([
      signature,
      pngChunk("IHDR", header),
      pngChunk("PLTE", palette),
      pngChunk("IDAT", deflateSync(rows)),
      pngChunk("IEND", new Uint8Array()),
    ]),
  );
}

function pngChunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(data.length, 0);
  chunk.set(body, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return chunk;
}
