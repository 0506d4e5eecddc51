/** What the page's renderer keeps and changes, in a real Chromium. Skipped without one; test/servers.test.ts says so. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PROJECT } from "../support/executable.ts";
import { CHROMIUM_MISSING, Page, WIDE, closeBrowser } from "./chromium.ts";

let page: Page;

/** Runs statements in the page, where the renderer's functions are known, and returns what the last ones return. */
function run(statements: string): Promise<unknown> {
  return page.eval(`(async () => {
    const { Fragment, h, useEffect, useId, useRef, useState } = window.dom;
    const drawn = () => new Promise((resolve) => setTimeout(resolve));
    const app = document.createElement("div");
    document.body.replaceChildren(app);
    let shown = null;
    const render = (next) => {
      const isFirst = shown === null;
      shown = next;
      if (isFirst) window.dom.render(() => ({ ...shown }), app);
      else window.dom.drawSoon();
      return drawn();
    };
    ${statements}
  })()`);
}

const reason = CHROMIUM_MISSING === null ? "" : ` (${CHROMIUM_MISSING})`;

describe.skipIf(CHROMIUM_MISSING !== null)(`the renderer${reason}`, () => {
  beforeAll(async () => {
    const built = await Bun.build({ entrypoints: [join(PROJECT, "src/web/page/dom.ts")], target: "browser" });
    const script = JSON.stringify(await built.outputs[0]?.text());
    page = new Page(WIDE);
    await page.open("about:blank");
    await page.eval(`import(URL.createObjectURL(new Blob([${script}], { type: "text/javascript" })))
      .then((module) => void (window.dom = module))`);
  });
  afterAll(() => {
    page[Symbol.dispose]();
    closeBrowser();
  });

  test("keeps the element, the text and the focus of a row by its key, wherever the row goes", async () => {
    const found = await run(`
      const rows = (keys) => h("ul", null, keys.map((key) => h("li", { key }, h("input", { name: key }))));
      const order = () => [...app.querySelectorAll("input")].map((input) => input.name).join("");
      await render(rows(["a", "b", "c"]));
      const field = app.querySelector('[name="b"]');
      field.value = "typed";
      field.focus();
      const seen = [];
      for (const keys of ["xabc", "bc", "b", "yzb", "bzy"]) {
        await render(rows([...keys]));
        seen.push([order(), app.querySelector('[name="b"]') === field, field.value]);
      }
      await render(rows(["b", "n"]));
      await render(rows(["m", "b"]));
      seen.push(document.activeElement === field || (field.focus(), await render(rows(["o", "m", "b", "p"])), document.activeElement === field));
      return seen;`);
    expect(found).toEqual([...["xabc", "bc", "b", "yzb", "bzy"].map((keys) => [keys, true, "typed"]), true]);
  });

  test("keeps what is beside something that comes and goes", async () => {
    const found = await run(`
      const view = (isShown) => h("p", null, isShown && h("b", null, "new"), h(Fragment, null, h("i", null, "old")), isShown ? "text" : null);
      await render(view(false));
      const old = app.querySelector("i");
      const seen = [];
      for (const isShown of [true, false, true]) {
        await render(view(isShown));
        seen.push([app.innerHTML, app.querySelector("i") === old]);
      }
      return seen;`);
    expect(found).toEqual([
      ["<p><b>new</b><i>old</i>text</p>", true],
      ["<p><i>old</i></p>", true],
      ["<p><b>new</b><i>old</i>text</p>", true],
    ]);
  });

  test("sets properties and attributes, and takes back what the user has changed", async () => {
    const found = await run(`
      const view = (props) => h("div", null, h("input", { type: "checkbox", ...props }), h("svg", null, h("path", { class: "line", d: "M0 0" })), h("a", { href: props.href, "aria-current": props.current }, "a"));
      await render(view({ checked: true, disabled: true, href: "#x", current: false }));
      const box = app.querySelector("input");
      box.checked = false;
      const before = [box.disabled, app.querySelector("path").namespaceURI, app.querySelector("a").outerHTML];
      await render(view({ checked: true }));
      return [...before, box.checked, box.disabled, app.querySelector("a").outerHTML];`);
    expect(found).toEqual([
      true,
      "http://www.w3.org/2000/svg",
      '<a href="#x" aria-current="false">a</a>',
      ...[true, false, "<a>a</a>"],
    ]);
  });

  test("draws the changes of a turn once, those of a part within it alone, and the same view not again", async () => {
    const found = await run(`
      const draws = [];
      const Row = ({ name }) => { draws.push(name); return h("li", null, name); };
      const same = h(Row, { name: "same" });
      let count;
      const List = () => {
        const [value, set] = useState(0);
        count = set;
        draws.push("list " + value);
        return h("ul", null, same, h(Row, { name: "other" }));
      };
      const App = () => { draws.push("app"); return h(List, null); };
      await render(h(App, null));
      draws.length = 0;
      count(1);
      count((old) => old + 1);
      await drawn();
      count(2);
      await drawn();
      return draws;`);
    expect(found).toEqual(["list 2", "other"]);
  });

  test("runs effects after the drawing, those within first, and ends them", async () => {
    const found = await run(`
      const log = [];
      const Inner = ({ value }) => {
        const place = useRef(null);
        useEffect(() => { log.push("in " + value + " " + place.current.isConnected); return () => log.push("end " + value); }, [value]);
        return h("b", { ref: place, id: useId() }, value);
      };
      const Outer = (props) => {
        useEffect(() => void log.push("out"));
        return props.value > 0 && h(Inner, props);
      };
      for (const value of [1, 1, 2, 0]) await render(h(Outer, { value }));
      return log;`);
    expect(found).toEqual(["in 1 true", "out", "out", "end 1", "in 2 true", "out", "end 2", "out"]);
  });
});
