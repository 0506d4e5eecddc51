/** Finds sections in which every word of a query begins a word of the text, the page's title or the heading. */
import { MANUAL_HITS_MAX } from "../domain/limits.ts";
import { type Html, html } from "../lib/html.ts";
import { folded, hasWord, wordsOf } from "../lib/word-search.ts";
import type { Section } from "./markdown.ts";

type Entry = {
  readonly page: string;
  readonly name: string;
  readonly section: Section;
  readonly in: { readonly title: string; readonly heading: string; readonly text: string };
};

export type Hit = {
  readonly page: string;
  readonly heading: string;
  readonly address: string;
  readonly excerpt: Html;
};

export type Hits = { readonly total: number; readonly first: readonly Hit[] };

type SearchedPage = {
  readonly name: string;
  readonly title: string;
  readonly sections: readonly Section[];
};

const WEIGHTS = { heading: 8, title: 4, text: 1 } as const;
const PHRASE_WEIGHT = 16;
const EXCERPT_CHARS = { before: 60, after: 200 } as const;

export class ManualSearch {
  readonly #entries: readonly Entry[];

  /** Of equally good sections the earlier is first. */
  constructor(pages: readonly SearchedPage[]) {
    this.#entries = pages.flatMap(({ name, title, sections }) =>
      sections.map((section) => ({
        page: title,
        name,
        section,
        in: {
          title: folded(title),
          heading: folded(section.heading),
          text: folded(section.text),
        },
      })),
    );
  }

  find(query: string): Hits {
    const words = wordsOf(query);
    if (words.length === 0) return { total: 0, first: [] };
    const phrase = folded(query.trim());
    const scored = this.#entries
      .map((entry) => ({ entry, score: scoreOf(entry, words, phrase) }))
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score);
    const first = scored.slice(0, MANUAL_HITS_MAX).map(({ entry }) => hitOf(entry, words));
    return { total: scored.length, first };
  }
}

function scoreOf({ in: places }: Entry, words: readonly string[], phrase: string): number {
  let score = places.heading.includes(phrase) || places.text.includes(phrase) ? PHRASE_WEIGHT : 0;
  for (const word of words) {
    let ofWord = 0;
    if (hasWord(places.heading, word)) ofWord += WEIGHTS.heading;
    if (hasWord(places.title, word)) ofWord += WEIGHTS.title;
    if (hasWord(places.text, word)) ofWord += WEIGHTS.text;
    if (ofWord === 0) return 0;
    score += ofWord;
  }
  return score;
}

function hitOf({ page, name, section }: Entry, words: readonly string[]): Hit {
  const { heading, anchor, text } = section;
  return { page, heading, address: `${name}#${anchor}`, excerpt: excerptOf(text, words) };
}

function excerptOf(text: string, words: readonly string[]): Html {
  const anyWord = new RegExp(
    `(?<![\\p{L}\\p{N}\\p{M}])(${words.map((word) => RegExp.escape(word)).join("|")})`,
    "iu",
  );
  const start = Math.max(0, text.search(anyWord));
  const from = start <= EXCERPT_CHARS.before ? 0 : text.indexOf(" ", start - EXCERPT_CHARS.before) + 1;
  const part = text.slice(from, start + EXCERPT_CHARS.after);
  const isCut = start + EXCERPT_CHARS.after < text.length;
  const whole = isCut ? part.slice(0, part.lastIndexOf(" ")) : part;
  const pieces = whole
    .split(new RegExp(anyWord.source, "giu"))
    .map((piece, i) => (i % 2 === 1 ? html`<mark>${piece}</mark>` : piece));
  return html`${from === 0 ? "" : "… "}${pieces}${isCut ? " …" : ""}`;
}
