/**
 * The frame of every page of the manual: head, search, contents, style. A page needs no script and no further request;
 * with JavaScript the results of a search appear as one types.
 */
import { SOFTWARE } from "../version.ts";
import { MANUAL_QUERY_MAX_CHARS } from "../domain/limits.ts";
import { Html, html } from "../lib/html.ts";

export type FramedPage = {
  readonly title: string;
  readonly contents: Html;
  readonly main: Html;
  readonly query?: string;
};

/** @param base the way from the page to /docs/: "docs/" for the page /docs, "" for the pages below it */
export function frame({ title, contents, main, query = "" }: FramedPage, base: "docs/" | ""): string {
  const home = base === "" ? "../docs" : "docs";
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · luxhub</title>
        <link rel="icon" href="data:," />
        ${new Html(`<style>${STYLE}</style>`)}
      </head>
      <body>
        <header>
          <a class="brand" href="${home}">luxhub</a>
          <a href="${base}api-reference">API reference</a>
          <a class="to-contents" href="#contents">Contents</a>
          <form role="search" action="${base}search">
            <input
              type="search"
              name="q"
              value="${query}"
              maxlength="${MANUAL_QUERY_MAX_CHARS}"
              placeholder="Search"
              aria-label="Search the manual"
            />
            <button>Search</button>
          </form>
        </header>
        <main id="found" aria-live="polite" hidden></main>
        <main id="top">${main}</main>
        <nav id="contents" aria-label="Contents">
          ${contents}
          <p class="software">${SOFTWARE}</p>
        </nav>
        ${new Html(`<script>${SCRIPT}</script>`)}
      </body>
    </html> `.text;
}

/** Shows the results of a search in the place of the page. */
const SCRIPT = `
const form = document.querySelector("form[role=search]"), found = document.getElementById("found");
const page = document.getElementById("top"), box = form.elements.q;
const show = (isSearch) => { found.hidden = !isSearch; page.hidden = isSearch; };
let typed = 0, timer;
const search = async (query) => {
  const turn = ++typed;
  if (query === "") return show(false);
  const answer = await fetch(form.action + "?q=" + encodeURIComponent(query));
  const results = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("top");
  if (turn !== typed || !answer.ok) return;
  for (const link of results.querySelectorAll("a")) link.href = new URL(link.getAttribute("href"), answer.url);
  found.replaceChildren(...results.childNodes);
  show(true);
};
box.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => search(box.value.trim()).catch(() => show(false)), 150);
});
found.addEventListener("click", ({ target }) => { if (target.closest("a")) show(false); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target === box) return;
  event.preventDefault();
  box.focus();
});
`;

const STYLE = `
:root { --ink: #1c2024; --soft: #5a6470; --line: #dfe3e8; --back: #ffffff; --block: #f5f7f9; --link: #1f5fbf;
  --mark: #fff1a8; --get: #1a7f4b; --post: #1f5fbf; --delete: #b42318; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #98a2ad; --line: #30363d; --back: #14171a; --block: #1c2126; --link: #7fb2ff;
    --mark: #5c4d00; --get: #5ecb92; --post: #7fb2ff; --delete: #ff8f84; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; display: grid; grid-template: auto 1fr / 17rem minmax(0, 1fr); color: var(--ink);
  background: var(--back); font: 15px/1.55 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
main p a, main li a, main td a { text-decoration: underline; text-decoration-color: var(--line);
  text-underline-offset: .2em; }
[hidden] { display: none !important; }
header { grid-column: 1 / -1; display: flex; flex-wrap: wrap; align-items: center; gap: .4rem 1.4rem;
  padding: .6rem 1.4rem; border-bottom: 1px solid var(--line); }
header .brand { color: inherit; font-size: 17px; font-weight: 600; }
header .to-contents { display: none; }
header form { display: flex; gap: .4rem; flex: 1 1 14rem; justify-content: flex-end; }
header input { flex: 0 1 22rem; min-width: 0; padding: .3rem .6rem; border: 1px solid var(--line); border-radius: 6px;
  color: inherit; background: var(--block); font: inherit; }
header button { padding: .3rem .8rem; border: 1px solid var(--line); border-radius: 6px; color: inherit;
  background: var(--block); font: inherit; cursor: pointer; }
nav { grid-area: 2 / 1; position: sticky; top: 0; max-height: 100vh; overflow-y: auto; scrollbar-width: thin;
  padding: 1.2rem 1rem 2rem 1.4rem; border-right: 1px solid var(--line); font-size: 13px; }
nav h2 { margin: 1.1rem 0 .2rem; font-size: 13px; }
nav h2:first-child { margin-top: 0; }
nav h2 a { color: inherit; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav ul ul { margin: .1rem 0 .4rem; padding-left: .8rem; border-left: 1px solid var(--line); }
nav li a { display: block; padding: .12rem 0; color: var(--soft); overflow-wrap: anywhere; }
nav li a[aria-current] { color: var(--link); font-weight: 600; }
nav li b { display: inline-block; width: 4.4em; font-size: 10px; }
nav .software { margin: 2rem 0 0; color: var(--soft); }
main { grid-area: 2 / 2; width: 100%; max-width: 62rem; padding: 1.6rem 2.2rem 6rem; overflow-wrap: break-word; }
h1 { margin: 0 0 1rem; font-size: 26px; line-height: 1.25; }
main h2 { margin: 2.6rem 0 .6rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); font-size: 21px; }
h3 { margin: 2rem 0 .3rem; font-size: 16px; overflow-wrap: anywhere; }
h4 { margin: 1.2rem 0 .3rem; font-size: 14px; }
article h4 { font-size: 12px; color: var(--soft); text-transform: uppercase; letter-spacing: .05em; }
main h2 > a[aria-label], h3 > a[aria-label], h4 > a[aria-label] { visibility: hidden; font-weight: 400; }
main h2:hover > a, h3:hover > a, h4:hover > a, main h2 > a:focus, h3 > a:focus, h4 > a:focus { visibility: visible; }
p { margin: .4rem 0 .7rem; }
main ul, main ol { padding-left: 1.4rem; }
main li { margin: .25rem 0; }
main li p { margin: .2rem 0; }
blockquote { margin: .8rem 0; padding: .1rem 1rem; border-left: 3px solid var(--line); color: var(--soft); }
img { max-width: 100%; height: auto; }
b.GET { color: var(--get); } b.POST { color: var(--post); } b.DELETE { color: var(--delete); }
.access { padding: .05rem .5rem; border: 1px solid var(--line); border-radius: 1rem; color: var(--soft);
  font-size: 12px; white-space: nowrap; }
.errors { font-size: 13.5px; color: var(--soft); }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
p code, li code, td code, th code { padding: .05em .3em; border-radius: 3px; background: var(--block); }
pre { margin: .5rem 0 .9rem; padding: .7rem .9rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 6px;
  background: var(--block); line-height: 1.45; }
pre.answer { max-height: 24rem; overflow-y: auto; }
.table { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-size: 14px; }
article table, .errors-table table { width: 100%; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; font-size: 12.5px; }
.right { text-align: right; } .center { text-align: center; }
article td:first-child { white-space: nowrap; }
article td:nth-child(2) { min-width: 9rem; max-width: 18rem; overflow-wrap: anywhere; }
td i { color: var(--soft); font-style: normal; }
mark { color: inherit; background: var(--mark); border-radius: 2px; }
.hits { padding: 0; list-style: none; }
.hits li { margin: 0 0 1.1rem; }
.hits p { margin: .1rem 0; }
.hits .where { font-size: 13px; color: var(--soft); }
:target { background: color-mix(in srgb, var(--link) 18%, transparent); border-radius: 3px; }
main:target, nav:target { background: none; }
@media (max-width: 56rem) {
  body { display: block; }
  header { padding: .6rem 1rem; gap: .4rem 1rem; }
  header .to-contents { display: inline; }
  header form { flex-basis: 100%; }
  header input { flex: 1; }
  nav { position: static; max-height: none; border-right: 0; border-top: 1px solid var(--line); font-size: 15px; }
  nav h2 { font-size: 15px; }
  nav li a { padding: .3rem 0; }
  main { padding: 1.2rem 1rem 3rem; }
}
@media print { body { display: block; } nav, header { display: none; } pre.answer { max-height: none; } }
`;

const hashOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("base64");

export const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hashOf(STYLE)}'`,
  `script-src 'sha256-${hashOf(SCRIPT)}'`,
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");
