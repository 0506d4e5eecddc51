/** Every section of `bun run torture`, in the order in which they run. */
import { agentsSection } from "./agents.ts";
import { backupSection } from "./backup.ts";
import { copySection } from "./copy.ts";
import { crashSection } from "./crash.ts";
import { damageSection } from "./damage.ts";
import { dashboardSection } from "./dashboard.ts";
import { DECISIONS } from "./decisions.ts";
import { diskSection } from "./disk.ts";
import { BURSTS_SECTION, EDGE } from "./edge.ts";
import { failoverSection } from "./failover.ts";
import { FAIRNESS } from "./fairness.ts";
import { fleetSection } from "./fleet.ts";
import { FUZZ } from "./fuzz.ts";
import { lanesSection } from "./lanes.ts";
import { largeFilesSection } from "./large-files.ts";
import { LOG_FLOOD } from "./log-flood.ts";
import { mcpAgentsSection } from "./mcp-agents.ts";
import { mcpClientsSection } from "./mcp-clients.ts";
import { mcpSection } from "./mcp.ts";
import { MODEL } from "./model.ts";
import { OVERLOAD } from "./overload.ts";
import { pipelineSection } from "./pipeline.ts";
import { redisSection } from "./redis.ts";
import { codingAgentsSection, repositorySection } from "./repository.ts";
import { reviewSection } from "./review.ts";
import type { Section } from "./section.ts";
import { standbySection } from "./standby.ts";
import { TIME } from "./time.ts";
import { vanishedHubSection } from "./vanished-hub.ts";
import { webhooksSection } from "./webhooks.ts";

export const SECTIONS: readonly Section[] = [
  crashSection,
  copySection,
  standbySection,
  failoverSection,
  diskSection,
  damageSection,
  backupSection,
  OVERLOAD,
  EDGE,
  BURSTS_SECTION,
  FAIRNESS,
  DECISIONS,
  largeFilesSection,
  redisSection,
  fleetSection,
  vanishedHubSection,
  pipelineSection,
  lanesSection,
  reviewSection,
  repositorySection,
  codingAgentsSection,
  webhooksSection,
  FUZZ,
  MODEL,
  TIME,
  LOG_FLOOD,
  mcpSection,
  mcpAgentsSection,
  mcpClientsSection,
  agentsSection,
  dashboardSection,
];
