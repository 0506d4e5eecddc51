/** The dashboard: every action of it at both widths and on both variants, and every view at four widths in both colours. */
import { VARIANTS } from "../../test/api/scene.ts";
import { startHub } from "../../test/support/hub.ts";
import { ACTIONS, furnish, inspect } from "../../test/web/actions.ts";
import { CHROMIUM_MISSING, NARROW, NARROWEST, WIDE, WIDEST, closeBrowser } from "../../test/web/chromium.ts";
import { type Figure, type Section, notRun } from "./section.ts";

export const dashboardSection: Section = {
  name: "dashboard",
  title: "The dashboard",
  limitMs: 40 * 60_000,
  run: async (_scale, _seed, progress) => {
    if (CHROMIUM_MISSING !== null) return [notRun("The dashboard", CHROMIUM_MISSING)];
    const faults: string[] = [];
    const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
      progress(what);
      try {
        await work();
      } catch (error) {
        console.error(`dashboard: ${what}:`, error);
        faults.push(what);
      }
    };
    const figures: Figure[] = [];
    for (const variant of VARIANTS) {
      for (const size of [WIDE, NARROW]) {
        for (const { name, run } of ACTIONS)
          await attempt(`${name}; ${variant}, ${size.width} px`, async () => {
            await using hub = await startHub();
            await run({ hub, variant, size });
          });
        figures.push(figureOf(`Actions on ${variant} at ${size.width} px`, ACTIONS.length, faults));
      }
      const sizes = [NARROWEST, NARROW, WIDE, WIDEST];
      for (const isDark of [false, true]) {
        const colours = isDark ? "dark" : "light";
        await using hub = await startHub();
        const views = await furnish(hub);
        await attempt(`the views on ${variant}, ${colours}`, () =>
          inspect({ hub, variant, size: WIDE }, views, sizes, isDark),
        );
        const what = `Views on ${variant} at ${sizes.map(({ width }) => width).join(", ")} px, ${colours}`;
        figures.push(figureOf(what, views.length, faults));
      }
    }
    closeBrowser();
    return figures;
  },
};

/** Empties `faults`. */
function figureOf(what: string, count: number, faults: string[]): Figure {
  const failed = faults.splice(0);
  const value = failed.length === 0 ? `${count} hold` : `failed: ${failed.join("; ")}`;
  return { what, value, goal: `${count} hold`, held: failed.length === 0 };
}
