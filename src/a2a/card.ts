/**
 * The agent cards of A2A (its specification, 8): the skills and the address of the hub or of one node. The skills of the
 * hub are the capabilities of its nodes. They are in its open card only where node/list is open too; else they are in the
 * extended card, which needs the secret.
 */
import { AgentCard, type AgentSkill } from "@a2a-js/sdk";
import * as limit from "../domain/limits.ts";
import type { Node } from "../domain/model.ts";
import { httpDate, matchesEtag } from "../http/download.ts";
import { NO_SNIFF } from "../http/exchange.ts";
import { SECOND_MS } from "../lib/clock.ts";
import { VERSION } from "../version.ts";
import { Fault } from "./fault.ts";
import { HUB_PATH, type Session, nodePath } from "./session.ts";

export const PROTOCOL_VERSION = "1.0";

const CAPABILITIES = {
  streaming: true,
  pushNotifications: true,
  extendedAgentCard: false,
  extensions: [],
};

const HUB_SKILL = skill(
  "task",
  "Task",
  "Takes a task in words, with data and files, and has it done by a worker of its fleet.",
);

export async function answerCard(session: Session): Promise<Response> {
  const { call, shared, nodeId } = session;
  const node = nodeId === null ? null : await call.services.nodes.get(nodeId);
  const body = JSON.stringify(node ? nodeCard(shared.publicUrl(), node) : await hubCard(session, false));
  const etag = `"${Bun.SHA256.hash(body, "hex")}"`;
  const modifiedAt = node ? null : modifiedSince(session, etag);
  const headers = {
    ...NO_SNIFF,
    ETag: etag,
    "Cache-Control": `${node ? "private" : "public"}, max-age=${limit.A2A_CARD_MAX_AGE_SECONDS}`,
    ...(node ? { Vary: "X-Matrix-Secret, Authorization" } : {}),
    ...(modifiedAt === null ? {} : { "Last-Modified": new Date(modifiedAt).toUTCString() }),
  };
  if (isKnown(call.exchange.request.headers, etag, modifiedAt))
    return new Response(null, { status: 304, headers });
  return new Response(body, { headers: { ...headers, "Content-Type": "application/json" } });
}

/** Whether the caller has this card. If-None-Match precedes If-Modified-Since (RFC 9110 13.2.2), which has seconds. */
function isKnown(headers: Headers, etag: string, modifiedAt: number | null): boolean {
  const etags = headers.get("if-none-match");
  if (etags !== null) return matchesEtag(etags, etag);
  const since = httpDate(headers.get("if-modified-since"));
  return since !== null && modifiedAt !== null && modifiedAt < since + SECOND_MS;
}

/** When this hub first sent the card with this content: it does not remember the contents before. */
function modifiedSince({ call, shared: { sentCards } }: Session, etag: string): number {
  const name = call.variant.publicEndpoints ? "A" : "B";
  const sent = sentCards.get(name);
  if (sent?.etag === etag) return sent.at;
  const sentAt = call.clock().now;
  sentCards.set(name, { etag, at: sentAt });
  return sentAt;
}

function isOpen({ call, shared }: Session): boolean {
  return call.variant.publicEndpoints && !shared.isPrivate;
}

export async function extendedCard(session: Session): Promise<unknown> {
  if (session.nodeId === null && !isOpen(session)) return hubCard(session, true);
  const detail = "There is no extended agent card: the agent card says all.";
  throw new Fault("UnsupportedOperationError", detail);
}

async function hubCard(session: Session, isExtended: boolean): Promise<unknown> {
  const isComplete = isOpen(session) || isExtended;
  const capabilities = isComplete ? await session.call.services.nodes.lists.capabilities() : [];
  const skills = [HUB_SKILL, ...capabilities.slice(0, limit.A2A_SKILLS_MAX - 1).map(hubSkill)];
  const about = "A hub that has tasks done by a fleet of AI workers.";
  const card = cardOf(session.shared.publicUrl(), HUB_PATH, "luxhub", about, skills);
  const hasExtended = !isOpen(session);
  return AgentCard.toJSON({ ...card, capabilities: { ...CAPABILITIES, extendedAgentCard: hasExtended } });
}

function nodeCard(base: string, node: Node): unknown {
  const about = `The node ${node.nodeId} of a luxhub.`;
  return AgentCard.toJSON(cardOf(base, nodePath(node.nodeId), node.name, about, skillsOf(node)));
}

function hubSkill(capability: string): AgentSkill {
  const about = `Has tasks of the type ${capability} done: name it in metadata.luxhub.task_type of the request.`;
  return skill(`type:${capability}`, capability, about, [capability]);
}

/** A node that names no capabilities takes every task. */
function skillsOf({ capabilities }: Node): readonly AgentSkill[] {
  if (capabilities.length === 0) return [skill("task", "Task", "Takes a task of any type.")];
  return capabilities.map((capability) =>
    skill(capability, capability, `Takes tasks of the type ${capability}.`),
  );
}

function skill(id: string, name: string, description: string, tags = [id]): AgentSkill {
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
    capabilities: CAPABILITIES,
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
