/**
 * The files of the manual: pages of docs/, pictures and examples, embedded in the executable. The names are fixed here:
 * no path comes from a request.
 */
import readme from "../../README.md" with { type: "file" };
import changelog from "../../CHANGELOG.md" with { type: "file" };
import contributing from "../../CONTRIBUTING.md" with { type: "file" };
import securityPolicy from "../../SECURITY.md" with { type: "file" };
import index from "../../docs/README.md" with { type: "file" };
import a2a from "../../docs/a2a.md" with { type: "file" };
import agents from "../../docs/agents.md" with { type: "file" };
import api from "../../docs/api.md" with { type: "file" };
import benchmarks from "../../docs/benchmarks.md" with { type: "file" };
import cli from "../../docs/cli.md" with { type: "file" };
import comparison from "../../docs/comparison.md" with { type: "file" };
import concepts from "../../docs/concepts.md" with { type: "file" };
import lanes from "../../docs/lanes.md" with { type: "file" };
import costs from "../../docs/costs.md" with { type: "file" };
import dashboardOverviewPng from "../../docs/dashboard-overview.png" with { type: "file" };
import dashboardPhonePng from "../../docs/dashboard-phone.png" with { type: "file" };
import dashboardTaskPng from "../../docs/dashboard-task.png" with { type: "file" };
import dashboard from "../../docs/dashboard.md" with { type: "file" };
import decisions from "../../docs/decisions.md" with { type: "file" };
import drawingHowLuxhubWorksSvg from "../../docs/drawing-how-luxhub-works.svg" with { type: "file" };
import drawingStatesOfATaskSvg from "../../docs/drawing-states-of-a-task.svg" with { type: "file" };
import errorsAndLimits from "../../docs/errors-and-limits.md" with { type: "file" };
import events from "../../docs/events.md" with { type: "file" };
import faultInjection from "../../docs/fault-injection.md" with { type: "file" };
import install from "../../docs/install.md" with { type: "file" };
import mcp from "../../docs/mcp.md" with { type: "file" };
import monitoring from "../../docs/monitoring.md" with { type: "file" };
import operations from "../../docs/operations.md" with { type: "file" };
import postgresql from "../../docs/postgresql.md" with { type: "file" };
import python from "../../docs/python.md" with { type: "file" };
import quotas from "../../docs/quotas.md" with { type: "file" };
import recipes from "../../docs/recipes.md" with { type: "file" };
import redis from "../../docs/redis.md" with { type: "file" };
import security from "../../docs/security.md" with { type: "file" };
import settings from "../../docs/settings.md" with { type: "file" };
import specificationNotes from "../../docs/specification-notes.md" with { type: "file" };
import troubleshooting from "../../docs/troubleshooting.md" with { type: "file" };
import tutorial from "../../docs/tutorial.md" with { type: "file" };
import typescript from "../../docs/typescript.md" with { type: "file" };
import versioning from "../../docs/versioning.md" with { type: "file" };
import webhooks from "../../docs/webhooks.md" with { type: "file" };
import attemptsPage from "../../docs/attempts.md" with { type: "file" };
import dispatchPage from "../../docs/dispatch.md" with { type: "file" };
import filesPage from "../../docs/files.md" with { type: "file" };
import groupsPage from "../../docs/groups.md" with { type: "file" };
import keysPage from "../../docs/keys.md" with { type: "file" };
import messagesPage from "../../docs/messages.md" with { type: "file" };
import nodesPage from "../../docs/nodes.md" with { type: "file" };
import notesPage from "../../docs/notes.md" with { type: "file" };
import questionsPage from "../../docs/questions.md" with { type: "file" };
import reviewsPage from "../../docs/reviews.md" with { type: "file" };
import schedulesPage from "../../docs/schedules.md" with { type: "file" };
import statisticsPage from "../../docs/statistics.md" with { type: "file" };
import taskListsPage from "../../docs/task-lists.md" with { type: "file" };
import tasksPage from "../../docs/tasks.md" with { type: "file" };
import secondCopyPage from "../../docs/second-copy.md" with { type: "file" };
import backupPage from "../../docs/backup.md" with { type: "file" };
import failuresPage from "../../docs/failures.md" with { type: "file" };
import hardeningPage from "../../docs/hardening.md" with { type: "file" };
import machinesPage from "../../docs/machines.md" with { type: "file" };
import pitfallsPage from "../../docs/pitfalls.md" with { type: "file" };
import postgresqlFailuresPage from "../../docs/postgresql-failures.md" with { type: "file" };
import releasePage from "../../docs/release.md" with { type: "file" };
import windowsPage from "../../docs/windows.md" with { type: "file" };
import codingAgents from "../../docs/coding-agents.md" with { type: "file" };
import pipelines from "../../docs/pipelines.md" with { type: "file" };
import workerCommand from "../../docs/worker-command.md" with { type: "file" };
import worker from "../../docs/worker.md" with { type: "file" };
import exampleGrafanaJson from "../../docs/examples/grafana.json" with { type: "file" };
import examplePlannerPy from "../../docs/examples/planner.py" with { type: "file" };
import exampleProducerSh from "../../docs/examples/producer.sh" with { type: "file" };
import exampleVerifyWebhookMjs from "../../docs/examples/verify-webhook.mjs" with { type: "file" };
import exampleWebhookReceiverPy from "../../docs/examples/webhook-receiver.py" with { type: "file" };
import exampleWorkerGo from "../../docs/examples/worker.go" with { type: "file" };
import exampleWorkerPy from "../../docs/examples/worker.py" with { type: "file" };
import exampleWorkerRs from "../../docs/examples/worker.rs" with { type: "file" };
import exampleWorkerSh from "../../docs/examples/worker.sh" with { type: "file" };

export const FILES: ReadonlyMap<string, string> = new Map([
  ["README.md", readme],
  ["CHANGELOG.md", changelog],
  ["CONTRIBUTING.md", contributing],
  ["SECURITY.md", securityPolicy],
  ["docs/README.md", index],
  ["docs/a2a.md", a2a],
  ["docs/agents.md", agents],
  ["docs/api.md", api],
  ["docs/benchmarks.md", benchmarks],
  ["docs/cli.md", cli],
  ["docs/comparison.md", comparison],
  ["docs/concepts.md", concepts],
  ["docs/lanes.md", lanes],
  ["docs/costs.md", costs],
  ["docs/dashboard-overview.png", dashboardOverviewPng],
  ["docs/dashboard-phone.png", dashboardPhonePng],
  ["docs/dashboard-task.png", dashboardTaskPng],
  ["docs/dashboard.md", dashboard],
  ["docs/decisions.md", decisions],
  ["docs/drawing-how-luxhub-works.svg", drawingHowLuxhubWorksSvg],
  ["docs/drawing-states-of-a-task.svg", drawingStatesOfATaskSvg],
  ["docs/errors-and-limits.md", errorsAndLimits],
  ["docs/events.md", events],
  ["docs/fault-injection.md", faultInjection],
  ["docs/install.md", install],
  ["docs/mcp.md", mcp],
  ["docs/monitoring.md", monitoring],
  ["docs/operations.md", operations],
  ["docs/postgresql.md", postgresql],
  ["docs/python.md", python],
  ["docs/quotas.md", quotas],
  ["docs/recipes.md", recipes],
  ["docs/redis.md", redis],
  ["docs/security.md", security],
  ["docs/settings.md", settings],
  ["docs/specification-notes.md", specificationNotes],
  ["docs/troubleshooting.md", troubleshooting],
  ["docs/tutorial.md", tutorial],
  ["docs/typescript.md", typescript],
  ["docs/versioning.md", versioning],
  ["docs/webhooks.md", webhooks],
  ["docs/attempts.md", attemptsPage],
  ["docs/dispatch.md", dispatchPage],
  ["docs/files.md", filesPage],
  ["docs/groups.md", groupsPage],
  ["docs/keys.md", keysPage],
  ["docs/messages.md", messagesPage],
  ["docs/nodes.md", nodesPage],
  ["docs/notes.md", notesPage],
  ["docs/questions.md", questionsPage],
  ["docs/reviews.md", reviewsPage],
  ["docs/schedules.md", schedulesPage],
  ["docs/statistics.md", statisticsPage],
  ["docs/task-lists.md", taskListsPage],
  ["docs/tasks.md", tasksPage],
  ["docs/backup.md", backupPage],
  ["docs/second-copy.md", secondCopyPage],
  ["docs/failures.md", failuresPage],
  ["docs/hardening.md", hardeningPage],
  ["docs/machines.md", machinesPage],
  ["docs/pitfalls.md", pitfallsPage],
  ["docs/postgresql-failures.md", postgresqlFailuresPage],
  ["docs/release.md", releasePage],
  ["docs/windows.md", windowsPage],
  ["docs/coding-agents.md", codingAgents],
  ["docs/pipelines.md", pipelines],
  ["docs/worker-command.md", workerCommand],
  ["docs/worker.md", worker],
  ["docs/examples/grafana.json", String(exampleGrafanaJson)], // the compiler takes it for the JSON itself
  ["docs/examples/planner.py", examplePlannerPy],
  ["docs/examples/producer.sh", exampleProducerSh],
  ["docs/examples/verify-webhook.mjs", exampleVerifyWebhookMjs],
  ["docs/examples/webhook-receiver.py", exampleWebhookReceiverPy],
  ["docs/examples/worker.go", exampleWorkerGo],
  ["docs/examples/worker.py", exampleWorkerPy],
  ["docs/examples/worker.rs", exampleWorkerRs],
  ["docs/examples/worker.sh", exampleWorkerSh],
]);

const OTHER_NAMES: Readonly<Record<string, string>> = {
  "docs/README.md": "",
  "SECURITY.md": "security-policy",
};

/** The last part of a file's address, /docs/NAME: `tutorial`, `worker.sh`. The index, /docs itself, has none. */
export function nameOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return OTHER_NAMES[path] ?? (name.endsWith(".md") ? name.slice(0, -3).toLowerCase() : name);
}
