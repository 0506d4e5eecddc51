/** Text that is HTML, and the template tag that makes it: every other text is escaped. */

export class Html {
  readonly text: string;

  /** `text` must be HTML already. */
  constructor(text: string) {
    this.text = text;
  }
}

export type HtmlPart = Html | string | number | readonly HtmlPart[];

export function html(texts: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return new Html(texts.reduce((page, text, i) => page + textOf(parts[i - 1] ?? "") + text));
}

function textOf(part: HtmlPart): string {
  if (part instanceof Html) return part.text;
  if (typeof part === "string" || typeof part === "number") return Bun.escapeHTML(String(part));
  return part.map(textOf).join("");
}
