/**
 * The views that few people open (seldom-views.ts) are a script of their own, which the page loads with the first of
 * them that is opened. Must not: be imported by these views.
 */
import { type JSX, h } from "preact";
import { NotLoaded, useLoad } from "./parts.tsx";
import { to } from "./route.ts";
import { drawn } from "./shared.ts";

export type SeldomViews = typeof import("./seldom-views.ts");

/** Kept, so that the next one is drawn at once. */
const views = drawn<SeldomViews | null>(null);

export function Seldom({ draw }: { draw: (views: SeldomViews) => JSX.Element }): JSX.Element {
  const { error } = useLoad("seldom", async () => {
    views.value ??= await import("./seldom-views.ts").catch(() => {
      throw new Error(
        "A part of the page could not be loaded: the hub is unreachable or was updated. Reload the page.",
      );
    });
  });
  return views.value === null ? (
    <NotLoaded title="Not loaded" error={error} back={[to("overview"), "To the overview"]} />
  ) : (
    draw(views.value)
  );
}
