/**
 * `bun run pictures [MINUTES]`: takes the pictures of README.md and docs/dashboard.md from a demo hub that has run for so
 * long (10), so that the charts have something to show. Needs a Chromium. The suite does the same at once, to see that the
 * pictures can be taken.
 */
import { join } from "node:path";
import { LuxHub } from "../../src/client/index.ts";
import { Page, type Size, closeBrowser } from "../../test/web/chromium.ts";

const PROJECT = join(import.meta.dir, "../..");
const MINUTES = 10;
const MINUTE_MS = 60_000;

type Theme = "light" | "dark";
type Picture = {
  readonly file: string;
  readonly view: string;
  readonly size: Size;
  readonly theme: Theme;
  /** What the page shows when it is ready. */
  readonly shows: string | RegExp;
};

export type PicturedHub = { readonly url: string; readonly secret: string; readonly adminKey: string };

/** A finished task with a story: the newest that was tried more than once, or else the newest. */
async function taskOf({ url, secret }: PicturedHub): Promise<string> {
  const { tasks } = await new LuxHub({ url, secret }).tasks.summaries({ status: "completed", per_page: 50 });
  const task = tasks.find(({ attempts }) => attempts > 0) ?? tasks[0];
  if (task === undefined) throw new Error("the hub has completed no task yet");
  return task.task_id;
}

/** Takes every picture. Resolves with them by file name. */
export async function takePictures(hub: PicturedHub): Promise<ReadonlyMap<string, Blob>> {
  const wide = { width: 1_280, height: 860 };
  const pictures: readonly Picture[] = [
    { file: "dashboard-overview.png", view: "overview", size: wide, theme: "dark", shows: "Why tasks fail" },
    {
      file: "dashboard-task.png",
      view: `tasks/${await taskOf(hub)}`,
      size: wide,
      theme: "light",
      shows: "Result",
    },
    {
      file: "dashboard-phone.png",
      view: "overview",
      size: { width: 390, height: 844 },
      theme: "dark",
      shows: "Why tasks fail",
    },
  ];
  const taken = new Map<string, Blob>();
  for (const { file, view, size, theme, shows } of pictures) {
    using page = new Page(size);
    await page.open(`${hub.url}/`);
    await page.resize(size); // a new window is smaller than it was told to be
    await page.until(`innerHeight === ${size.height}`);
    await page.fill("secret", hub.secret);
    await page.fill("admin", hub.adminKey);
    await page.press("sign-in");
    await page.until(`document.querySelector(".bar")`);
    await page.until(`document.querySelector('[data-do="theme"]')`);
    const isDark = await page.eval(`document.querySelector('[data-do="theme"]').title === "Light colours"`);
    if (isDark !== (theme === "dark")) await page.press("theme");
    await page.watch();
    await page.go(view);
    await page.shows(shows);
    await page.settled();
    taken.set(file, await page.screenshot());
  }
  return taken;
}

async function main(): Promise<void> {
  const minutes = Number(Bun.argv[2] ?? MINUTES);
  const program = [process.execPath, join(PROJECT, "src/main.ts"), "demo"];
  const demo = Bun.spawn(program, { stdout: "pipe", stderr: "inherit" });
  try {
    const hub = await readAddress(demo.stdout);
    console.log(`The hub runs at ${hub.url} for ${minutes} minutes.`);
    await Bun.sleep(minutes * MINUTE_MS);
    for (const [file, picture] of await takePictures(hub)) {
      await Bun.write(join(PROJECT, "docs", file), picture);
      console.log(`docs/${file}`);
    }
  } finally {
    closeBrowser();
    demo.kill("SIGTERM");
    await demo.exited;
  }
}

/** What the demo prints first: its URL, the secret and the administrator key. */
async function readAddress(output: ReadableStream<Uint8Array>): Promise<PicturedHub> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of output) {
    text += decoder.decode(chunk, { stream: true });
    const [, url, secret, adminKey] = /(http\S+)[^]*secret +(\S+)[^]*admin key +(\S+)/.exec(text) ?? [];
    if (url !== undefined && secret !== undefined && adminKey !== undefined)
      return { url: url.replace(/\/$/, ""), secret, adminKey };
  }
  throw new Error(`the demo has not started: ${text}`);
}

if (import.meta.main) await main();
