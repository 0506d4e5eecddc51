/** `luxhub reviews`: lists the results that wait for a review, the most urgent first. */
import type { Environment } from "../config.ts";
import type { LuxHub, PendingReview } from "../client/luxhub.ts";
import { EXIT } from "./exit-codes.ts";
import { PAGE, collect, limitOf, runRemote } from "./remote.ts";
import { printJsonList, printTable, timeText } from "./table.ts";

export function reviewsCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runRemote(
    "reviews",
    async (remote) => {
      const reviews = pendingReviews(remote.hub, limitOf(remote));
      if (remote.json) {
        await printJsonList(reviews);
        return EXIT.OK;
      }
      printTable(
        ["TASK", "UNTIL", "REVIEWER", "DONE BY", "LUX", "TITLE"],
        (await collect(reviews)).map(({ task_id, title, assigned_node, lux_held, review }) => [
          task_id,
          review.until === null ? "" : timeText(review.until),
          review.by,
          assigned_node ?? "",
          String(lux_held),
          title,
        ]),
      );
      return EXIT.OK;
    },
    argv,
    env,
  );
}

async function* pendingReviews(hub: LuxHub, limit: number): AsyncGenerator<PendingReview, void, undefined> {
  let count = 0;
  for (let cursor: string | undefined; ;) {
    const page = await hub.tasks.inReview({ limit: PAGE, cursor });
    for (const review of page.reviews) {
      yield review;
      if (++count >= limit) return;
    }
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}
