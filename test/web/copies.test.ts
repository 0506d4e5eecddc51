/**
 * The dashboards of a pair of hubs, by the real program in a real Chromium: a standby is invited, follows, says what it
 * is, and is promoted, while the pages stay open. Skipped without a Chromium.
 */
import { afterAll, expect, test } from "bun:test";
import { ADMIN_KEY, Hub, SECRET, TempDir, run } from "../e2e/program.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { SPILLED, VIOLATIONS, loadAxe, signIn } from "./actions.ts";
import { CHROMIUM_MISSING, NARROWEST, Page, WIDE, closeBrowser } from "./chromium.ts";

afterAll(closeBrowser);

const reason = CHROMIUM_MISSING === null ? "" : ` (${CHROMIUM_MISSING})`;

const urlOf = ({ api }: Hub): string => api.replace("/api/v1", "");

async function openPage(hub: Hub): Promise<Page> {
  const page = new Page(WIDE);
  await page.open(`${urlOf(hub)}/`);
  await page.shows("Look without a secret");
  await signIn(page, SECRET, ADMIN_KEY);
  await page.shows("Overview");
  await loadAxe(page);
  return page;
}

async function isSound(page: Page, view: string): Promise<void> {
  await page.go(view);
  await page.until(`document.querySelector("main[data-view=${view}] section")`);
  for (const size of [WIDE, NARROWEST]) {
    await page.resize(size);
    await page.until(`innerWidth === ${size.width}`);
    expect([view, size.width, await page.eval(VIOLATIONS)]).toEqual([view, size.width, []]);
    expect([view, size.width, await page.eval(SPILLED)]).toEqual([view, size.width, []]);
  }
  await page.resize(WIDE);
}

test.skipIf(CHROMIUM_MISSING !== null)(
  `a standby is invited, says what it is, and is promoted; both pages go on by themselves${reason}`,
  async () => {
    using dir = new TempDir();
    await using first = await Hub.start({ data: dir.join("one"), host: OWN_HOST });
    using firstPage = await openPage(first);
    await firstPage.go("keys");
    await firstPage.press("open-standby");
    await firstPage.fill("name", "pi-2");
    await firstPage.fill("url", urlOf(first));
    await firstPage.press("invite-standby");
    await firstPage.shows("The invitation of pi-2");
    const line = String(await firstPage.eval(`document.querySelector("dialog code").textContent`));
    await firstPage.click("dialog form button");
    await firstPage.shows(/valid\s+pi-2\s+standby/);
    await firstPage.go("overview");
    await firstPage.shows("The standby pi-2 has not followed yet");

    const [, argument = ""] = /^luxhub join '?([^']+)'?$/.exec(line) ?? [];
    const joined = await run(["join", argument, "--data", dir.join("two")]);
    expect(joined.code).toBe(0);
    await using standby = await Hub.start({ data: dir.join("two"), host: OWN_HOST });
    await firstPage.until(`!document.body.innerText.includes("has not followed yet")`);
    await isSound(firstPage, "control");
    await firstPage.shows(new RegExp(`following\\s+pi-2\\s+${urlOf(standby)}\\s+0 entries, 0 s`));
    await firstPage.go("events?kind=standby.following");
    await firstPage.shows(/standby\.following[^]*standby pi-2/);
    await firstPage.go("overview");

    using page = await openPage(standby);
    await page.shows(
      new RegExp(`This hub is a standby\\s+of ${urlOf(first)}, which accepts writes; lag: 0 entries`),
    );
    await isSound(page, "overview");
    await isSound(page, "keys");
    await page.go("control");
    await page.press("open-pause");
    await page.press("pause-hub");
    await page.press("yes");
    await page.until(
      `document.querySelector(".notice.bad")?.innerText.startsWith("This hub is a standby: it answers reads only. Call http")`,
    );
    await page.eval(`document.querySelector("dialog").close()`);
    await isSound(page, "control");
    await page.go("overview");
    await page.click(`.todo a[href="#/control"]`);
    await page.press("promote");
    await page.shows(`Promote this standby? It takes what ${urlOf(first)} still has`);
    await page.press("yes");
    await page.shows(/This hub accepts writes[^]*Nothing is missing/);
    await page.click("dialog form button");
    await page.shows(/This hub\s+first/);
    await page.press("open-pause");
    await page.fill("reason", "after the promotion", "dialog");
    await page.press("pause-hub");
    await page.press("yes");
    await page.shows("after the promotion");
    await page.go("nodes");
    await standby.register("seen-live");
    await page.shows("seen-live");

    await firstPage.shows(new RegExp(`This hub was superseded\\s+${urlOf(standby)} accepts writes`));
    await isSound(firstPage, "control");
    expect(await firstPage.text()).toMatch(/This hub\s+superseded/);
    expect([...page.complaints, ...firstPage.complaints]).toEqual([]);
  },
);

test.skipIf(CHROMIUM_MISSING !== null)(
  `each page notices that the other hub is gone, and the promotion then says what may be missing${reason}`,
  async () => {
    using dir = new TempDir();
    await using first = await Hub.start({ data: dir.join("one"), host: OWN_HOST });
    const { body } = await first.admin("/standby/invite", { name: "pi-2", url: urlOf(first) });
    await run(["join", String(body["line"]), "--data", dir.join("two")]);
    await using standby = await Hub.start({ data: dir.join("two"), host: OWN_HOST });
    using page = await openPage(standby);
    await page.shows("lag: 0 entries");
    using firstPage = await openPage(first);
    standby.program.child.kill("SIGSTOP");
    await firstPage.shows(
      /The standby pi-2 does not follow\s+Without this hub you would lose what it lacks: /,
    );
    await firstPage.go("events");
    await firstPage.shows(/standby\.lost[^]*standby pi-2 · lag entries/);
    standby.program.child.kill("SIGCONT");
    await firstPage.go("overview");
    await firstPage.until(
      `document.querySelector(".todo") && !document.body.innerText.includes("does not follow")`,
    );
    await firstPage.go("keys"); // which loads nothing when its hub is gone
    first.program.child.kill("SIGKILL");
    await page.shows(/This standby does not follow\s+What you see of .* old/);
    await page.go("control");
    await page.shows("lost");
    await page.press("promote");
    await page.press("yes");
    await page.shows(/The first hub did not answer: whatever it wrote in the .* s before may be missing/);
    await page.click("dialog form button");
    await page.shows(/This hub\s+first/);
    await page.go("overview");
    await page.shows("The standby pi-2 has not followed yet");
    expect(page.complaints).toEqual([]);
  },
);
