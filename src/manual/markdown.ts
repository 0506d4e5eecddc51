/**
 * Renders a page of the manual: GitHub's Markdown to HTML, with the anchors that GitHub gives to headings. Raw HTML is
 * left out or becomes text.
 */
import { must } from "../lib/assert.ts";
import { Html, html } from "../lib/html.ts";

export type Section = {
  readonly level: number;
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
};

export type Link = { readonly address: string; readonly text: string; readonly heading: string };

export type Rendered = {
  readonly title: string;
  readonly body: Html;
  readonly sections: readonly Section[];
  readonly links: readonly Link[];
};

export type Addresses = {
  /** Null: the manual does not have it, and the link is plain text. */
  readonly ofLink: (target: string) => string | null;
  /** @throws when the manual does not have it */
  readonly ofPicture: (target: string) => string;
};

export function renderMarkdown(markdown: string, { ofLink, ofPicture }: Addresses): Rendered {
  const headings: Omit<Section, "text">[] = [];
  const links: Link[] = [];
  const anchors = new Map<string, number>();
  const inTag =
    (tag: string, end = "") =>
    (children: string) =>
      `<${tag}>${children}</${tag}>${end}`;
  const cell = (tag: string) => (children: string, meta?: { readonly align?: string }) =>
    `<${tag}${meta?.align === undefined ? "" : ` class="${meta.align}"`}>${children}</${tag}>`;
  const body = Bun.markdown.render(markdown, {
    text: (text) => Bun.escapeHTML(text),
    heading: (children, { level }) => {
      const heading = textOf(children);
      const anchor = uniqueAnchor(heading, anchors);
      headings.push({ level, heading, anchor });
      const link = level === 1 ? "" : html` <a href="#${anchor}" aria-label="link to ${heading}">#</a>`.text;
      return `<h${level} id="${anchor}">${children}${link}</h${level}>\n`;
    },
    code: (children, meta) =>
      meta?.language === "mermaid"
        ? drawing(textOf(children), ofPicture)
        : `<pre tabindex="0"><code>${children}</code></pre>\n`,
    html: () => "",
    link: (children, { href }) => {
      const address = ofLink(href);
      if (address === null) return children;
      links.push({ address, text: textOf(children), heading: headings.at(-1)?.heading ?? "" });
      return `<a href="${Bun.escapeHTML(address)}">${children}</a>`;
    },
    image: (children, { src }) => picture(ofPicture(src), textOf(children)).text,
    paragraph: inTag("p", "\n"),
    blockquote: inTag("blockquote", "\n"),
    listItem: inTag("li", "\n"),
    list: (children, { ordered, start }) =>
      ordered ? `<ol start="${start ?? 1}">${children}</ol>\n` : `<ul>${children}</ul>\n`,
    hr: () => "<hr>\n",
    table: (children) => `<div class="table" tabindex="0"><table>${children}</table></div>\n`,
    thead: inTag("thead"),
    tbody: inTag("tbody"),
    tr: inTag("tr", "\n"),
    th: (children, meta) => cell(children === "" ? "td" : "th")(children, meta),
    td: cell("td"),
    strong: inTag("strong"),
    emphasis: inTag("em"),
    codespan: inTag("code"),
    strikethrough: inTag("s"),
  });
  const [, ...parts] = body.split(/^<h[1-6] id=.*<\/h[1-6]>$/m);
  const sections = headings.map((heading, i) => ({
    ...heading,
    text: textOf(must(parts[i], "a heading begins a part")).replaceAll(/\s+/g, " "),
  }));
  return { title: headings[0]?.heading ?? "", body: new Html(body), sections, links };
}

/** GitHub numbers the later ones of equal headings. */
function uniqueAnchor(heading: string, taken: Map<string, number>): string {
  const anchor = heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");
  const count = taken.get(anchor) ?? 0;
  taken.set(anchor, count + 1);
  return count === 0 ? anchor : `${anchor}-${count}`;
}

/** The only entities are those of Bun.escapeHTML. */
function textOf(rendered: string): string {
  return rendered
    .replaceAll(/<\/(?:li|p|pre|td|th)>/g, " ")
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#x27;", "'")
    .replaceAll("&amp;", "&")
    .trim();
}

function picture(address: string, description: string): Html {
  return html`<img src="${address}" alt="${description}" />`;
}

/**
 * A drawing in Mermaid: GitHub draws it with a script of megabytes, the manual shows the picture of the same name
 * (docs/drawing-TITLE.svg), which a test compares with it.
 */
function drawing(mermaid: string, ofPicture: Addresses["ofPicture"]): string {
  const [, title = ""] = /^\s*accTitle: *(.+?) *$/m.exec(mermaid) ?? [];
  const [, description = title] = /^\s*accDescr: *(.+?) *$/m.exec(mermaid) ?? [];
  const name = title.toLowerCase().replaceAll(" ", "-");
  return `<p>${picture(ofPicture(`drawing-${name}.svg`), description).text}</p>\n`;
}
