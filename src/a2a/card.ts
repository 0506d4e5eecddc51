/** The agent cards of A2A (its specification, 8): the skills and the address of the hub or of one node. */
import { AgentCard, type AgentSkill } from "@a2a-js/sdk";
import * as limit from "../domain/limits.ts";
import type { Node } from "../domain/model.ts";
import { matchesEtag } from "../http/download.ts";
import { NO_SNIFF } from "../http/exchange.ts";
import { VERSION } from "../version.ts";
import { HUB_PATH, type Session, nodePath } from "./session.ts";

export const PROTOCOL_VERSION = "1.0";

const HUB_SKILL = skill(
  "task",
  "Task",
  "Takes a task in words, with data and files, and has it done by a worker of its fleet.",
);

export async function answerCard({ call, shared, nodeId }: Session): Promise<Response> {
  const node = nodeId === null ? null : await call.services.nodes.get(nodeId);
  const base = shared.publicUrl();
  const card = node
    ? cardOf(base, nodePath(node.nodeId), node.name, `The node ${node.nodeId} of a luxhub.`, skillsOf(node))
    : cardOf(base, HUB_PATH, "luxhub", "A hub that has tasks done by a fleet of AI workers.", [HUB_SKILL]);
  const body = JSON.stringify(AgentCard.toJSON(card));
  const headers = {
    ...NO_SNIFF,
    ETag: `"${Bun.SHA256.hash(body, "hex")}"`,
    "Cache-Control": `${node ? "private" : "public"}, max-age=${limit.A2A_CARD_MAX_AGE_SECONDS}`,
    ...(node ? { Vary: "X-Matrix-Secret, Authorization" } : {}),
  };
  const known = call.exchange.request.headers.get("if-none-match");
  if (known !== null && matchesEtag(known, headers.ETag)) return new Response(null, { status: 304, headers });
  return new Response(body, { headers: { ...headers, "Content-Type": "application/json" } });
}

/** A node that names no capabilities takes every task. */
function skillsOf({ capabilities }: Node): readonly AgentSkill[] {
  if (capabilities.length === 0) return [skill("task", "Task", "Takes a task of any type.")];
  return capabilities.map((capability) =>
    skill(capability, capability, `Takes tasks of the type ${capability}.`),
  );
}

function skill(id: string, name: string, description: string): AgentSkill {
  const tags = [id];
  const none = { examples: [], inputModes: [], outputModes: [], securityRequirements: [] };
  return { id, name, description, tags, ...none };
}

function cardOf(
  base: string,
  path: string,
  name: string,
  description: string,
  skills: readonly AgentSkill[],
): AgentCard {
  const url = base + path;
  const bindings = ["JSONRPC", "HTTP+JSON"];
  return {
    name,
    description,
    version: VERSION,
    supportedInterfaces: bindings.map((protocolBinding) => ({
      url,
      protocolBinding,
      protocolVersion: PROTOCOL_VERSION,
      tenant: "",
    })),
    provider: undefined,
    documentationUrl: `${base}/docs`,
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { description: "A key of the hub.", scheme: "Bearer", bearerFormat: "" },
        },
      },
      secret: {
        scheme: {
          $case: "apiKeySecurityScheme",
          value: { description: "The same key.", location: "header", name: "X-Matrix-Secret" },
        },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }, { schemes: { secret: { list: [] } } }],
    defaultInputModes: ["text/plain", "application/json", "application/octet-stream"],
    defaultOutputModes: ["text/plain", "application/json", "application/octet-stream"],
    skills: [...skills],
    signatures: [],
  };
}
