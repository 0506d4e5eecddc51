/** Encodes the model's nodes, tasks and messages in a variant, as the hub's answers must have them. */
import { MICRO_PER_USD } from "../../src/domain/limits.ts";
import {
  type Message,
  type Model,
  type Node,
  type Question,
  type Report,
  type Task,
  type VariantName,
  isAsking,
  isInReview,
} from "./model.ts";

type Words = Readonly<Record<string, unknown>>;

const PRIORITY_A = { 0: 0, 1: 1, 2: 2, 5: 2 } as const;
const PRIORITY_B = { 0: "high", 1: "medium", 2: "low", 5: "p5" } as const;

export const STATUS_WORDS = {
  A: ["open", "assigned", "completed", "failed"],
  B: ["pending", "completed", "failed"],
} as const;

export function statusWord(status: Task["status"], variant: VariantName): string {
  return variant === "A" || status === "completed" || status === "failed" ? status : "pending";
}

export function taskWords(model: Model, task: Task, variant: VariantName): Words {
  const own = model.files.filter(({ taskId }) => taskId === task.id);
  return {
    task_id: task.id,
    task_type: task.type === "" ? null : task.type,
    priority: variant === "A" ? PRIORITY_A[task.priority] : PRIORITY_B[task.priority],
    status: statusWord(task.status, variant),
    lux_reward: lux(task.rewardMicro),
    max_cost_usd: task.maxCostMicro === null ? null : task.maxCostMicro / MICRO_PER_USD,
    usage: task.usage.size === 0 ? null : spendingWords([...task.usage.values()]),
    assigned_node: task.node,
    ready: model.isReady(task),
    started_at: task.startedAt === null ? null : new Date(task.startedAt).toISOString(),
    attempts: task.attempts,
    max_attempts: task.maxAttempts,
    restarts: task.restarts,
    timeout_s: task.timeoutMs === null ? null : task.timeoutMs / 1_000,
    max_run_s: task.maxRunMs === null ? null : task.maxRunMs / 1_000,
    depends_on: task.dependsOn,
    waiting_for: isAsking(task) ? "answer" : isInReview(task) ? "review" : null,
    ...(task.reviewed && {
      review: { state: task.review?.state ?? null, timed_out: task.review?.timedOut ?? false },
    }),
    failure: task.failure === null ? null : { kind: task.failure },
    result: task.result === null ? null : resultOf(task.result),
    files: own.map(({ id }) => id),
    inputs: own.filter(({ isOutput }) => !isOutput).map(({ id }) => id),
    outputs: own.filter(({ isOutput }) => isOutput).map(({ id }) => id),
  };
}

export function spendingWords(reports: readonly Report[]) {
  const priced = reports.filter(({ micro }) => micro !== null);
  return {
    input_tokens: reports.reduce((sum, { tokens }) => sum + tokens, 0),
    output_tokens: reports.length,
    cached_tokens: 0,
    cost_usd:
      priced.length === 0 ? null : priced.reduce((sum, { micro }) => sum + (micro ?? 0), 0) / MICRO_PER_USD,
    reports: reports.length,
    without_cost: reports.length - priced.length,
  };
}

export function contextWords(model: Model, task: Task): Words {
  const { dependsOn, checkpoint, attemptsFailed, questions } = task;
  const inputs = dependsOn.map((id) => {
    const task = model.tasks.find((one) => one.id === id);
    const files = model.files.filter(({ taskId }) => taskId === id); // those of a deleted task stay
    return {
      task_id: id,
      status: task?.status ?? null,
      result: task?.result == null || isInReview(task) ? null : resultOf(task.result),
      files: files.map((file) => ({ file_id: file.id, attached: file.isOutput ? "output" : "input" })),
    };
  });
  return {
    ...(inputs.length > 0 && { inputs }),
    ...(checkpoint && {
      checkpoint: { data: checkpoint.data, epoch: checkpoint.epoch, node_id: checkpoint.node },
    }),
    ...(questions.length > 0 && { answers: questions.slice(-20).map(questionWords) }),
    ...(task.review?.state === "rejected" && { review: { reviewed_by: null } }),
    ...(attemptsFailed.length > 0 && { failures: attemptsFailed.map((kind) => ({ kind })) }),
  };
}

export function questionWords({ id, text, askedBy, state, answer, until }: Question): Words {
  const times = { until: new Date(until).toISOString() };
  return { question_id: id, question: text, asked_by: askedBy, state, answer, ...times };
}

export function taskAnswer(model: Model, task: Task, variant: VariantName): Words {
  const words = taskWords(model, task, variant);
  const lease = { epoch: task.epoch };
  return { task_id: task.id, status: words["status"], assigned_node: task.node, lease, task: words };
}

export function nodeWords(model: Model, node: Node, variant: VariantName): Words {
  return {
    node_id: node.id,
    status: node.online ? "online" : "offline",
    capabilities: variant === "A" ? node.capabilities.join(",") : node.capabilities,
    max_tasks: Number.isFinite(node.maxTasks) ? node.maxTasks : null,
    auto_assign: node.autoAssign,
    draining: node.draining,
    lux_balance: balanceOf(node),
    tasks_assigned: model.held(node.id, "assigned"),
    tasks_completed: model.held(node.id, "completed"),
  };
}

export function messageWords({ id, from, content, requireAck, broadcast, to }: Message): Words {
  const recipient = broadcast ? null : [...to.keys()][0];
  return { id, from_node: from, to_node: recipient, content, require_ack: requireAck };
}

const STATE_WORDS = {
  waiting: "waiting",
  leased: "delivered",
  gone: "delivered",
  acked: "acked",
  parked: "parked",
} as const;

export function fateWords(message: Message, nodeId: string): Words {
  const { broadcast, from, to } = message;
  const delivery = broadcast ? to.get(nodeId) : [...to.values()][0];
  const counts = { waiting: 0, delivered: 0, acked: 0, parked: 0 };
  for (const { state } of to.values()) counts[STATE_WORDS[state]]++;
  return {
    ...messageWords(message),
    state: delivery ? STATE_WORDS[delivery.state] : null,
    deliveries: delivery?.times ?? null,
    recipients: broadcast && from === nodeId ? counts : null,
  };
}

export function balanceOf({ ledger }: Node): number {
  return lux(ledger.reduce((sum, { micro }) => sum + micro, 0));
}

export function lux(micro: number): number {
  return micro / 1_000_000;
}

export function resultOf(word: string): Words {
  return { problem: word, improvement: word, lesson: word };
}
