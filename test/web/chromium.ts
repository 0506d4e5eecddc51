/** A page in a real Chromium (Bun.WebView), for the tests of the dashboard. Without a Chromium they are skipped. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HANG_MS } from "../support/hang.ts";

const PROGRAM = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]
  .map((name) => Bun.which(name))
  .find((path) => path !== null);

/** Why tests that need a Chromium are skipped; null when they run. */
export const CHROMIUM_MISSING: string | null =
  PROGRAM === undefined ? "no Chromium here; install Debian's chromium" : null;

export type Size = { readonly width: number; readonly height: number };
export const WIDE: Size = { width: 1_440, height: 900 };
export const NARROW: Size = { width: 390, height: 844 };
export const WIDEST: Size = { width: 2_560, height: 1_440 };
/** The narrowest in which a row of a table is a row. */
export const TABLES: Size = { width: 921, height: 900 };
export const NARROWEST: Size = { width: 360, height: 780 };

/** How long a page looks before it is asked again: it may have gone elsewhere, or be gone. */
const LOOK_MS = 2_000;

/** Where the browser puts its profile and temporary files: it leaves them behind when it is killed, as by closeAll(). */
let scratch = "";
/** What Bun started the browser with: a directory that Bun made for its profile, and does not remove, is named there. */
const ARGUMENTS = "arguments";

/** The program that runs Chromium with the scratch directory. */
function launcher(): string {
  if (scratch === "") {
    scratch = mkdtempSync(join(tmpdir(), "luxhub-test-"));
    const script = `#!/bin/sh\nprintf '%s\\n' "$@" >'${scratch}/${ARGUMENTS}'\nTMPDIR='${scratch}' exec '${PROGRAM}' "$@" --user-data-dir='${scratch}'\n`;
    writeFileSync(join(scratch, "chromium"), script, { mode: 0o700 });
  }
  return join(scratch, "chromium");
}

/** Ends the browser, and removes what it left. */
export function closeBrowser(): void {
  Window.closeAll();
  if (scratch === "") return;
  const started = join(scratch, ARGUMENTS);
  const [, profile] = existsSync(started)
    ? (/^--user-data-dir=(.+\.bun-chrome)$/m.exec(readFileSync(started, "utf8")) ?? [])
    : [];
  for (const left of [profile, scratch])
    if (left !== undefined) rmSync(left, { recursive: true, force: true, maxRetries: 3 });
  scratch = "";
}

/** A window of the browser. One after the other, pages share it: to open one takes longer than most tests of a page. */
class Window {
  static readonly #idle: Window[] = [];
  readonly view: Bun.WebView;
  #complaints: string[] = [];
  #cleared: Promise<unknown> = Promise.resolve();

  private constructor({ width, height }: Size) {
    this.view = new Bun.WebView({
      width,
      height,
      // Its sandbox needs what containers and root do not have; the page that it shows is ours.
      backend: { type: "chrome", path: launcher(), argv: ["--no-sandbox", "--disable-dev-shm-usage"] },
      console: (type: string, ...args: unknown[]) => {
        if (type === "error" || type === "warning" || type === "warn") this.#complaints.push(args.join(" "));
      },
    });
  }

  static take(size: Size): Window {
    const used = Window.#idle.pop();
    if (!used) return new Window(size);
    used.#cleared = used.#cleared.then(() => used.view.resize(size.width, size.height));
    return used;
  }

  static closeAll(): void {
    Bun.WebView.closeAll();
    Window.#idle.length = 0;
  }

  /** Shows a page as a new window would. Its complaints go to `complaints`. */
  async open(url: string, complaints: string[]): Promise<void> {
    await this.#cleared;
    this.#complaints = complaints;
    await this.view.navigate(url);
  }

  /** Forgets the page and what it has stored: an open page would give its session to others of the hub. */
  giveBack(): void {
    const forget = `void (sessionStorage.clear(), localStorage.clear())`;
    this.#cleared = this.view.evaluate(forget).then(() => this.view.navigate("about:blank"));
    this.#cleared.catch(() => undefined); // the next page of the window awaits it; without one the browser is closed
    Window.#idle.push(this);
  }
}

export class Page {
  readonly #window: Window;
  readonly #view: Bun.WebView;
  /** What the page wrote to its console as a warning or an error: refusals of its policy too. */
  readonly complaints: string[] = [];

  constructor(size: Size) {
    this.#window = Window.take(size);
    this.#view = this.#window.view;
  }

  open(url: string): Promise<void> {
    return this.#window.open(url, this.complaints);
  }

  /** Evaluates an expression in the page. */
  async eval(expression: string): Promise<unknown> {
    return this.#view.evaluate(expression);
  }

  /** What a person reads. */
  async text(): Promise<string> {
    return String(await this.eval(`document.body?.innerText ?? ""`));
  }

  /** Waits until the page shows this. */
  async shows(wanted: string | RegExp): Promise<void> {
    const text = `(document.body?.innerText ?? "")`;
    const holds =
      typeof wanted === "string" ? `${text}.includes(${JSON.stringify(wanted)})` : `${wanted}.test(${text})`;
    await this.#comes(holds, `the page never showed ${wanted}`);
  }

  /** Waits until an expression is true in the page. */
  until(expression: string): Promise<void> {
    return this.#comes(expression, `never true: ${expression}`);
  }

  /** Waits in the page: each question from here takes the browser longer than what most tests do. */
  async #comes(condition: string, what: string): Promise<void> {
    const look = `new Promise((resolve) => {
      const endsAt = performance.now() + ${LOOK_MS};
      const look = () => {
        try {
          if (${condition}) return resolve("");
        } catch (error) {
          return resolve(String(error));
        }
        if (performance.now() < endsAt) setTimeout(look, 25);
        else resolve(null);
      };
      look();
    })`;
    const until = performance.now() + HANG_MS;
    for (;;) {
      // A page that goes elsewhere meanwhile takes the promise with it.
      const seen = await this.eval(look).catch(() => null);
      if (seen === "") return;
      if (typeof seen === "string") throw new Error(`${what}: ${seen}`);
      if (performance.now() > until) throw new Error(`${what}; the page: ${await this.text()}`);
    }
  }

  /**
   * Clicks as a hand does. A page that is loaded again may move between the look and the click: a click that would meet
   * something else is stopped before the page has it, and done once more.
   */
  async click(selector: string): Promise<void> {
    const aim = `{
      globalThis.aim?.ended.abort();
      const aim = (globalThis.aim = { ended: new AbortController(), missed: false });
      const options = { capture: true, once: true, signal: aim.ended.signal };
      addEventListener("click", (event) => {
        aim.missed = event.target.closest(${JSON.stringify(selector)}) === null;
        if (!aim.missed) return;
        event.preventDefault();
        event.stopImmediatePropagation();
      }, options);
    }`;
    const until = performance.now() + HANG_MS;
    for (;;) {
      await this.#view.scrollTo(selector, { timeout: HANG_MS });
      await this.eval(`(() => ${aim})()`);
      await this.#view.click(selector, { timeout: HANG_MS });
      const missed = await this.eval(`globalThis.aim?.missed === true`).catch(() => false); // the click led elsewhere
      if (missed !== true) return;
      if (performance.now() > until)
        throw new Error(`${selector} is covered; the page: ${await this.text()}`);
    }
  }

  /** Presses a button by its `data-do`; one in a closed menu, once the menu is open. Resolves with the number of clicks. */
  async press(action: string): Promise<number> {
    const button = `[data-do="${action}"]`;
    await this.until(`document.querySelector('${button}')`);
    const menu = `document.querySelector('${button}').closest("[popover]:not(:popover-open)")?.id ?? ""`;
    const id = String(await this.eval(menu));
    if (id !== "") await this.click(`[popovertarget="${id}"]`);
    await this.click(button);
    return id === "" ? 1 : 2;
  }

  async key(
    key: string,
    held: { readonly shiftKey?: boolean; readonly isComposing?: boolean } = {},
  ): Promise<void> {
    const event = JSON.stringify({ key, bubbles: true, cancelable: true, ...held });
    await this.eval(
      `void (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", ${event}))`,
    );
  }

  /** Fills a field in by its name, in the part of the page that `within` selects. */
  async fill(name: string, value: string, within = "main"): Promise<void> {
    await this.until(`document.querySelector('${within} [name="${name}"]')`);
    await this.eval(`(() => {
      const field = document.querySelector('${within} [name="${name}"]');
      field.value = ${JSON.stringify(value)};
      field.dispatchEvent(new Event(field.matches("select") ? "change" : "input", { bubbles: true }));
    })()`);
  }

  async go(address: string): Promise<void> {
    await this.eval(`void (location.hash = ${JSON.stringify(`#/${address}`)})`);
  }

  /** Counts the requests of the page that are under way, without its event stream. */
  async watch(): Promise<void> {
    await this.eval(`void (() => {
      const asked = fetch;
      window.underWay = 0;
      window.fetch = async (url, init) => {
        // What waits for more is never answered while nothing happens.
        if (/events\\/stream|\\/output\\?.*wait=[1-9]/.test(String(url))) return asked(url, init);
        window.underWay++;
        try { return await asked(url, init); } finally { setTimeout(() => window.underWay--); }
      };
    })()`);
  }

  /** Waits until a watched page has loaded what it shows, and has drawn it. */
  async settled(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet++) {
      await this.eval("new Promise((resolve) => requestAnimationFrame(() => resolve(0)))");
      if ((await this.eval("window.underWay")) !== 0) quiet = -1;
    }
  }

  async resize({ width, height }: Size): Promise<void> {
    await this.#view.resize(width, height);
  }

  /** A command of the browser's own protocol. */
  protocol<T>(method: string, params: Record<string, unknown> = {}): Promise<T> {
    return this.#view.cdp<T>(method, params);
  }

  screenshot(): Promise<Blob> {
    return this.#view.screenshot();
  }

  [Symbol.dispose](): void {
    this.#window.giveBack();
  }
}
