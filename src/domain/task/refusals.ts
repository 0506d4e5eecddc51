/** Why a request about a task is refused. */
import { type Rejected, reject } from "../decision.ts";
import type { Node, Task } from "../model.ts";
import { overspentMessage } from "./facet/spending.ts";
import type { CreatorRequest } from "./request.ts";

export function finishedAlready(task: Task): Rejected {
  if (task.status === "failed") {
    const detail = `Task ${task.taskId} has failed. Open it again with POST /api/v1/task/retry.`;
    return reject("task_failed", detail);
  }
  return reject("task_completed", `Task ${task.taskId} is completed and cannot change any more.`);
}

export function notOpen(task: Task): Rejected {
  return reject(
    "task_not_open",
    `Task ${task.taskId} is assigned to ${task.assignedNode}. Choose an open one with GET /api/v1/task/pull.`,
  );
}

export function heldAlready({ taskId, assignedNode }: Task): Rejected {
  const detail = `Task ${taskId} is assigned to ${assignedNode}. Only a task that nobody holds can change: take it back first with POST /api/v1/task/revoke.`;
  return reject("task_not_open", detail);
}

export function lowerReward({ taskId }: Task): Rejected {
  const detail = `The reward of task ${taskId} can only grow. To lower it, send the administrator key in the header X-Admin-Key too.`;
  return reject("lower_reward", detail);
}

export function notReady(task: Task): Rejected {
  return reject(
    "task_not_ready",
    task.quorum
      ? `Several nodes do copies of task ${task.taskId}, and it is not handed out itself. Take a copy with POST /api/v1/task/next.`
      : `Task ${task.taskId} waits for its start time, for other tasks or for an answer. Choose another with GET /api/v1/task/pull.`,
  );
}

export function notReadyForNode(): Rejected {
  const detail =
    "A task for one node must be ready: leave delay_s and not_before out and name only completed tasks in depends_on, or leave it to any node.";
  return reject("task_not_ready", detail);
}

export function notAssigned(task: Task, whatToDo: string): Rejected {
  return reject("task_not_assigned", `Task ${task.taskId} is assigned to no node. ${whatToDo}`);
}

export function notYours(task: Task, node: Node): Rejected {
  return reject(
    "not_assigned_to_node",
    `Task ${task.taskId} is not assigned to ${node.nodeId}. Only the node that holds a task can do this.`,
  );
}

export function notFailed({ taskId, status }: Task): Rejected {
  return reject("task_not_failed", `Task ${taskId} is ${status}. Only a failed task can be retried.`);
}

export function overspent(task: Task): Rejected {
  const detail = `${overspentMessage(task)} Send a larger max_cost_usd with this request to try it again.`;
  return reject("budget_exceeded", detail);
}

export function notTheirCreation(task: Task, { boundTo }: CreatorRequest): Rejected {
  return reject(
    "key_bound_to_other_node",
    `This key acts for ${boundTo} only, and ${boundTo} did not create task ${task.taskId}.`,
  );
}

export function staleLease(task: Task): Rejected {
  return reject(
    "stale_lease",
    `Task ${task.taskId} was taken back or handed out again since this lease began. Stop working on it.`,
  );
}

export function nodeExcluded(task: Task, nodeId: string): Rejected {
  const why =
    task.child?.as === "copy" ? `${nodeId} has another copy of it` : `it checks what ${nodeId} has done`;
  const detail = `Task ${task.taskId} is not for ${nodeId}: ${why}. Leave it to another node.`;
  return reject("node_excluded", detail);
}

export function requirementsNotMet({ taskId }: Task, { nodeId }: Node): Rejected {
  const detail = `Node ${nodeId} does not have what task ${taskId} requires, or uses it for other tasks. GET /api/v1/task/${taskId}/explain says what is missing.`;
  return reject("requirements_not_met", detail);
}

export function unavailable({ nodeId, online, draining }: Node): Rejected | null {
  if (!online) {
    return reject(
      "node_offline",
      `Node ${nodeId} is offline. Let it send a heartbeat, or choose a node that is online.`,
    );
  }
  if (!draining) return null;
  const detail = `Node ${nodeId} is draining. Choose another, or end the drain with POST /api/v1/node/drain.`;
  return reject("node_draining", detail);
}

export function ownWork(taskId: string): Rejected {
  const detail = `The result of task ${taskId} came from this node, or with this key: another one must review it.`;
  return reject("own_work", detail);
}

export function verdictMissing(task: Task, parentId: string): Rejected {
  const detail = `Task ${task.taskId} checks the result of task ${parentId}: its result, or the output in it, must have verdict, "pass" or "reject".`;
  return reject("verdict_missing", detail);
}

export function comparedValueMissing(task: Task, missing: string): Rejected {
  const detail = `The results of task ${task.taskId} are compared with those of others: the result must have ${missing}.`;
  return reject("compared_value_missing", detail);
}

export function typeNotTaken({ nodeId }: Node, taskType: string): Rejected {
  const detail = `Node ${nodeId} does not take the type ${taskType}. Send it a task of a type that it takes, or leave the task to any node.`;
  return reject("requirements_not_met", detail);
}

export function giftsLimit(nodeId: string, most: number): Rejected {
  const detail = `${most} tasks that you have sent to ${nodeId} wait there, which is the most. Wait until it has taken some, or leave the task to any node.`;
  return reject("gifts_limit", detail);
}

/** A task that waits for one node gets no limit key: each would be a lane more there. */
export function noKeyForOther({ taskId }: Task): Rejected {
  const detail = `Task ${taskId} waits for another node, and gets no limit key: each would be one more line at that node.`;
  return reject("gifts_limit", detail);
}
