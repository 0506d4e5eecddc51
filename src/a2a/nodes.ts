/** The list of the nodes as agents (`GET /a2a/nodes`): where their cards are, and what they can do. */
import * as z from "zod/mini";
import { type Endpoint, readEndpoint } from "../api/endpoint.ts";
import * as field from "../api/request-fields.ts";
import { CARD_PATH, HUB_PATH, type Shared, nodePath } from "./session.ts";
import { A2A_PAGE_DEFAULT, A2A_PAGE_MAX } from "../domain/limits.ts";

/** With and without a slash at its end. */
export function nodeLists({ publicUrl }: Pick<Shared, "publicUrl">): readonly Endpoint[] {
  return [`${HUB_PATH}/nodes`, `${HUB_PATH}/nodes/`].map((path) =>
    readEndpoint({
      path,
      readsMany: true,
      auth: "secret",
      summary: "The nodes as agents, with the addresses of their cards (A2A)",
      rejections: [],
      input: () =>
        z.object({
          skill: z.optional(field.taker()),
          online: z.optional(field.queryFlag()),
          limit: z.optional(field.queryCount(A2A_PAGE_MAX)),
          cursor: z.optional(field.nodeCursor()),
        }),
      answer: () =>
        z.strictObject({
          nodes: z.array(
            z.strictObject({
              node_id: z.string(),
              name: z.string(),
              online: z.boolean(),
              url: z.string(),
              card: z.string(),
              skills: z.array(z.string()),
            }),
          ),
          next_cursor: z.nullable(z.string()),
        }),
      handle: ({ services }, { skill, online, limit = A2A_PAGE_DEFAULT, cursor }) => {
        const state = online === undefined ? null : online ? "online" : "offline";
        const query = { state, prefix: "", taking: skill ?? null, order: "id" } as const;
        const { lists } = services.nodes;
        return cursor
          ? lists.after(query, cursor.position, limit)
          : lists.page(query, { page: 1, perPage: limit });
      },
      encode: ({ nodes, next }) => ({
        nodes: nodes.map(({ nodeId, name, online, capabilities }) => {
          const url = publicUrl() + nodePath(nodeId);
          return { node_id: nodeId, name, online, url, card: url + CARD_PATH, skills: [...capabilities] };
        }),
        next_cursor: next && field.encodeNodeCursor("id", next),
      }),
    }),
  );
}
