/** The endpoints of keys: key/*. They never show a hash, and a secret only in the answer of key/add. */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import { ADDED_KEY_ROLES, type KeyRecord, type Moment } from "../domain/model.ts";
import { usageBy } from "../domain/quota.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { SECOND_MS } from "../lib/clock.ts";
import type { NewKey } from "../service/keys.ts";
import type { Variant } from "../variant/variant.ts";
import { keyBoundElsewhere } from "./error-table.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import { encodeKey, encodePage, keySchema, pageSchema } from "./response-schemas.ts";
import { about, optional, string } from "./about.ts";

const list = readEndpoint({
  path: "/api/v1/key/list",
  auth: "admin",
  summary: "All keys, without their secrets",
  input: () => z.object(field.paging()),
  answer: () =>
    z.strictObject({
      keys: about(
        z.array(keySchema()),
        "The keys, including the two of the first start; without `page` and `per_page` all of them.",
      ),
      ...pageSchema(),
    }),
  handle: async ({ services }, paging) => ({
    // Without paging fields all of them: nobody may miss a key.
    page: await services.keys.list(field.pageRequest(paging, limit.KEYS_MAX)),
    usage: await services.quotas.usage(),
  }),
  encode: ({ page, usage }, _, at) =>
    encodePage("keys", page, (key) => encodeKey(key, at, usageBy(key, usage))),
});

const NAME = "The name of the key.";
const NEW_NAME = "A name that no key has or had.";

const add = writeEndpoint({
  path: "/api/v1/key/add",
  auth: "admin",
  summary: "Creates a key; only this response shows its secret",
  rejections: ["key_bound_to_other_node", "key_exists", "keys_limit"],
  answersSecret: true,
  input: () =>
    z.object({
      name: about(field.keyName(), NEW_NAME),
      role: about(
        z._default(field.word(ADDED_KEY_ROLES), "full"),
        "What the key may do; `full` if left out. A viewer can read all but message contents; `admin` is for `X-Admin-Key`.",
      ),
      variant: optional(
        field.variant(),
        "The variant of the responses to requests with the key, on any listener.",
      ),
      node_id: optional(
        field.keyNode(),
        "The node that the key is bound to: it acts only for this node. With `.*` at the end also for its sessions, `NODE.2` to `NODE.99`, of which `X-Node-Id` names one.",
      ),
      mint_per_day: z.optional(field.luxReward()),
      expires_at: optional(field.date(), "When the key expires; at most ten years ahead."),
      expires_in_s: optional(field.keyLifetime(), "Seconds until the key expires, instead of `expires_at`."),
    }),
  answer: () =>
    z.strictObject({
      name: string(NEW_NAME),
      secret: string(
        "The secret of the new key. The hub does not store the secret and cannot show it again.",
      ),
      key: keySchema(),
    }),
  handle: ({ services, transact, key, at }, input) => {
    if (key !== null && key.nodeId !== null && key.nodeId !== input.node_id)
      throw keyBoundElsewhere(key.nodeId);
    checkDraft(input, at);
    const { variant = null, node_id: nodeId = null, mint_per_day: mintMicro = null } = input;
    const expiresAt =
      input.expires_at ?? (input.expires_in_s === undefined ? null : at.now + input.expires_in_s);
    const draft = { keyId: input.name, role: input.role, variant, nodeId, mintMicro, expiresAt };
    return services.keys.add(transact, draft, {});
  },
  encode: ({ key, secret }: NewKey, _: Variant, at: Moment) => ({
    name: key.keyId,
    secret,
    key: encodeKey(key, at),
  }),
});

type Draft = {
  readonly role: KeyRecord["role"];
  readonly variant?: string | undefined;
  readonly node_id?: string | undefined;
  readonly mint_per_day?: number | undefined;
  readonly expires_at?: number | undefined;
  readonly expires_in_s?: number | undefined;
};

function checkDraft(draft: Draft, { now }: Moment): void {
  const errors: FieldError[] = [];
  if (draft.role === "admin")
    for (const path of ["variant", "node_id", "mint_per_day"] as const)
      if (draft[path] !== undefined)
        errors.push({ path, message: "must not be sent for an administrator key" });
  const { expires_at: expiresAt } = draft;
  if (expiresAt !== undefined && draft.expires_in_s !== undefined)
    errors.push({ path: "expires_in_s", message: "must not be sent together with expires_at" });
  if (expiresAt !== undefined && expiresAt <= now)
    errors.push({ path: "expires_at", message: "must be in the future" });
  if (expiresAt !== undefined && expiresAt > now + limit.KEY_EXPIRES_MAX_SECONDS * SECOND_MS)
    errors.push({ path: "expires_at", message: `must be at most ${limit.KEY_EXPIRES_MAX_SECONDS} s ahead` });
  if (errors.length > 0) throw invalidRequest(errors);
}

const revoke = writeEndpoint({
  path: "/api/v1/key/revoke",
  auth: "admin",
  summary: "Revokes a key permanently; its calls and streams end within a second",
  rejections: ["key_bound_to_other_node", "key_not_found"],
  input: () => z.object({ name: about(field.keyName(), NAME) }),
  answer: () => z.strictObject({ name: string(NAME), key: keySchema() }),
  handle: ({ services, transact, key }, { name }) => {
    if (key !== null && key.nodeId !== null) throw keyBoundElsewhere(key.nodeId);
    return services.keys.revoke(transact, name);
  },
  encode: (key: KeyRecord, _: Variant, at: Moment) => ({ name: key.keyId, key: encodeKey(key, at) }),
});

export const KEY_ENDPOINTS: readonly Endpoint[] = [list, add, revoke];
