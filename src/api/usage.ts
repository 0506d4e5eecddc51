/** The endpoints of what work has cost: usage, usage/void. */
import * as z from "zod/mini";
import { type Voided, dayOf } from "../domain/task/facet/spending.ts";
import * as limit from "../domain/limits.ts";
import type { SpendingPage, SummedBy } from "../service/spending.ts";
import type { Days } from "../store/sql/spending.ts";
import { type Endpoint, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { invalidField } from "./input.ts";
import * as field from "./request-fields.ts";
import { dayText, encodePage, encodeSpending, pageSchema, spendingSchema } from "./response-schemas.ts";
import { about, maybeString, optional, string } from "./about.ts";

const BY = "What is summed up: `day` if left out.";
const SINCE = "The first day, in UTC; 29 days before `until` if left out. At most 366 days.";
const UNTIL = "The last day, in UTC; today if left out.";
const DAY = "The day in UTC; today if left out.";

const usage = readEndpoint({
  path: "/api/v1/usage",
  readsMany: true,
  auth: "secret",
  summary: "What work has cost, by day, node, creator, type, model or group",
  input: () =>
    z.object({
      by: optional(field.word(["node", "creator", "type", "model", "group", "day"]), BY),
      since: optional(field.utcDay(), SINCE),
      until: optional(field.utcDay(), UNTIL),
      ...field.paging(),
    }),
  answer: () =>
    z.strictObject({
      by: string(BY),
      since: string(SINCE),
      until: string(UNTIL),
      usage: about(
        z.array(
          z.extend(spendingSchema(), {
            name: maybeString(
              "The node, creator, type, model, group or day; null for tasks without a creator or a type.",
            ),
          }),
        ),
        "A sum for each name, the most expensive first; of days the newest first.",
      ),
      all: about(spendingSchema(), "The sum of all names."),
      ...pageSchema(),
    }),
  handle: async ({ services, variant, at }, { by = "day", since, until, ...paging }) => {
    const days = daysOf(since, until, dayOf(at.now));
    const sums = await services.spending.summedBy(by, days, field.pageRequest(paging, variant.unpaged));
    return { ...sums, by, days };
  },
  encode: ({ page, all, by, days }: SpendingPage & { by: SummedBy; days: Days }) => ({
    by,
    since: dayText(days.since),
    until: dayText(days.until),
    all: encodeSpending(all),
    ...encodePage("usage", page, ({ name, spending }) => ({
      name: by === "day" ? dayText(Number(name)) : name || null,
      ...encodeSpending(spending),
    })),
  }),
});

function daysOf(since: number | undefined, until: number | undefined, today: number): Days {
  const last = until ?? Math.max(today, since ?? today);
  const first = since ?? last - limit.USAGE_DAYS_DEFAULT + 1;
  if (first > last) throw invalidField("since", "must not be after until");
  if (last - first < limit.USAGE_DAYS_MAX) return { since: first, until: last };
  throw invalidField("since", `must be at most ${limit.USAGE_DAYS_MAX} days before until`);
}

const voidUsage = writeEndpoint({
  path: "/api/v1/usage/void",
  auth: "admin",
  summary: "Takes what a node has reported on a day off all sums and budgets",
  rejections: ["usage_not_found"],
  input: () =>
    z.object({
      node_id: field.nodeId(),
      day: optional(field.utcDay(), DAY),
      reason: z.optional(field.reason()),
    }),
  answer: () =>
    z.strictObject({
      node_id: z.string(),
      day: string(DAY),
      voided: about(spendingSchema(), "What was taken off the sums."),
    }),
  handle: ({ services, transact }, { node_id: nodeId, day = null, reason = null }) =>
    services.spending.void(transact, { nodeId, day, reason }),
  encode: ({ nodeId, day, spending }: Voided) => ({
    node_id: nodeId,
    day: dayText(day),
    voided: encodeSpending(spending),
  }),
});

export const USAGE_ENDPOINTS: readonly Endpoint[] = [usage, voidUsage];
