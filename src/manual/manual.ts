/**
 * The manual that a hub serves: the pages of docs/ as HTML, and the search over them. Loaded at the first request; each
 * file is rendered when it is first asked for, and kept. Must not: know a route or a request.
 */
import { posix, resolve } from "node:path";
import { must } from "../lib/assert.ts";
import { endOfTick } from "../lib/event-loop.ts";
import { type Html, html } from "../lib/html.ts";
import { FILES, nameOf } from "./files.ts";
import { frame } from "./frame.ts";
import { type Addresses, type Rendered, renderMarkdown } from "./markdown.ts";
import { ManualSearch } from "./search.ts";

export type ManualFile = {
  readonly content: string | Blob;
  readonly type: string;
  readonly etag: string;
};

const INDEX = "docs/README.md";

const PATHS: ReadonlyMap<string, string> = new Map([...FILES.keys()].map((path) => [nameOf(path), path]));

const TYPES: Readonly<Record<string, string>> = {
  md: "text/html; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
};

const files = new Map<string, ManualFile>();

/** "" is the index. */
export async function manualFile(name: string): Promise<ManualFile | null> {
  const path = PATHS.get(name);
  if (path === undefined) return null;
  const file = files.get(path) ?? (await makeFile(path));
  files.set(path, file);
  return file;
}

async function makeFile(path: string): Promise<ManualFile> {
  const type = TYPES[path.slice(path.lastIndexOf(".") + 1)] ?? "text/plain; charset=utf-8";
  const content = path.endsWith(".md") ? await page(path) : await read(path).bytes();
  const hash = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  return {
    content: typeof content === "string" ? content : new Blob([content]),
    type,
    etag: `"${hash.slice(0, 32)}"`,
  };
}

/** From source the path is absolute; in a bundle it is relative to the bundle. */
function read(path: string): Bun.BunFile {
  return Bun.file(resolve(import.meta.dir, must(FILES.get(path), `a file of the manual: ${path}`)));
}

// ---- Pages

async function page(path: string): Promise<string> {
  const base = path === INDEX ? "docs/" : "";
  const { title, body, sections } = await rendered(path);
  const ownSections = sections.filter(({ level }) => level === 2);
  return frame({ title, contents: await contents(base, path, ownSections), main: body }, base);
}

async function rendered(path: string): Promise<Rendered> {
  return renderMarkdown(await read(path).text(), addressesFrom(path));
}

function addressesFrom(path: string): Addresses {
  const folder = posix.dirname(path);
  const base = path === INDEX ? "docs/" : "";
  const addressOf = (target: string): string | null => {
    if (!FILES.has(target)) return null;
    const name = nameOf(target);
    return name === "" ? "../docs" : `${base}${name}`;
  };
  return {
    ofLink(target) {
      if (/^(?:https?:|#)/.test(target)) return target;
      const [file = "", anchor] = target.split("#");
      const address = addressOf(posix.join(folder, file));
      return address === null || anchor === undefined ? address : `${address}#${anchor}`;
    },
    ofPicture: (target) => must(addressOf(posix.join(folder, target)), `a picture of ${path}: ${target}`),
  };
}

async function contents(
  base: "docs/" | "",
  current: string | null = null,
  ownSections: Rendered["sections"] = [],
): Promise<Html> {
  const groups = Map.groupBy(await listed(), ({ heading }) => heading);
  return html`${[...groups].map(
    ([heading, links]) =>
      html`<h2>${heading}</h2>
        <ul>
          ${links.map(({ path, text }) =>
            path === current
              ? html`<li>
                  <a href="#top" aria-current="page">${text}</a>
                  <ul>
                    ${ownSections.map((section) => html`<li><a href="#${section.anchor}">${section.heading}</a></li> `)}
                  </ul>
                </li> `
              : html`<li><a href="${base}${nameOf(path)}">${text}</a></li> `,
          )}
        </ul> `,
  )}`;
}

async function listed(): Promise<readonly { path: string; text: string; heading: string }[]> {
  const { links } = await rendered(INDEX);
  return links.flatMap(({ address, text, heading }) => {
    const path = PATHS.get(posix.basename(address));
    return path === undefined ? [] : [{ path, text, heading }];
  });
}

// ---- Search

let searchable: Promise<ManualSearch> | null = null;

function search(): Promise<ManualSearch> {
  searchable ??= makeSearch().catch((error: unknown) => {
    searchable = null;
    throw error;
  });
  return searchable;
}

async function makeSearch(): Promise<ManualSearch> {
  const paths = new Set([...(await listed()).map(({ path }) => path), ...FILES.keys()]);
  const pages: { name: string; title: string; sections: Rendered["sections"] }[] = [];
  for (const path of paths) {
    if (!path.endsWith(".md") || path === INDEX) continue;
    const { title, sections } = await rendered(path);
    pages.push({ name: nameOf(path), title, sections });
    await endOfTick(); // other requests run between two pages
  }
  return new ManualSearch(pages);
}

export async function searchPage(query: string): Promise<string> {
  const { total, first } = (await search()).find(query);
  const shown = total > first.length ? `, the best ${first.length}` : "";
  const outcome =
    query === ""
      ? html`<p>Type one or more words. Each may be the beginning of a word: <code>auth</code>.</p>`
      : total === 0
        ? html`<p>No section has any of these words. Try their beginnings.</p>`
        : html`<p>${total} ${total === 1 ? "section" : "sections"}${shown}</p>`;
  const main = html`<h1>Search${query === "" ? "" : html`: ${query}`}</h1>
    ${outcome}
    <ol class="hits">
      ${first.map(
        (hit) =>
          html`<li>
            <a href="${hit.address}">${hit.heading}</a>
            ${hit.page === hit.heading ? "" : html`<p class="where">${hit.page}</p>`}
            <p>${hit.excerpt}</p>
          </li> `,
      )}
    </ol>`;
  return frame({ title: "Search", contents: await contents(""), main, query }, "");
}
