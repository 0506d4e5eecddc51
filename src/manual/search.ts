/**
 * Finds the sections in which words of a query begin a word of the text, the page's title or the heading: first those
 * with the most of them, of which rare ones count for more. A few words of other products stand for ours.
 */
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

const WEIGHTS = { heading: 4, title: 2, text: 1 } as const;
/** Of the sections in which the query stands as it is. */
const PHRASE_BONUS = 2;
const SYNONYM_WEIGHT = 0.75;
/** A section with less of the best one's score is not shown. */
const SHOWN_FROM = 0.2;

/** By a word of a query, without hyphens: the words of these pages that also count for it. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries({
    airflow: "pipeline dependencies",
    autostart: "systemd service",
    boot: "systemd service",
    celery: "queue",
    container: "docker compose",
    dag: "pipeline dependencies needs graph",
    dlq: "dead letter parked",
    fanout: "matrix",
    gpu: "resources",
    ha: "several hubs",
    kubernetes: "container",
    locks: "lease",
    notifications: "webhook ntfy",
    opentelemetry: "trace",
    otel: "trace",
    parallel: "concurrency",
    max: "limits",
    password: "secret",
    purge: "delete retention",
    selfsigned: "tls certificate",
    slack: "webhook",
    timezone: "tz zone",
    token: "key secret",
    tracing: "trace",
    upgrade: "update",
    workflow: "pipeline dependencies",
    worktree: "repository branch",
  }).map(([word, others]) => [folded(word), wordsOf(others)]),
);
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
    const words = query.split(/\s+/).flatMap(meaningsOf);
    const rarities = words.map((meanings) => this.#rarityOf(meanings));
    const phrase = folded(query.trim());
    const scored = this.#entries
      .map((entry) => ({ entry, score: scoreOf(entry, words, rarities, phrase) }))
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score);
    const least = (scored[0]?.score ?? 0) * SHOWN_FROM;
    const good = scored.filter(({ score }) => score >= least);
    const first = good.slice(0, MANUAL_HITS_MAX).map(({ entry }) => hitOf(entry, words.flat()));
    return { total: good.length, first };
  }

  /** 0 for a word that every section has. */
  #rarityOf(meanings: readonly string[]): number {
    const having = this.#entries.filter((entry) => weightOf(entry, meanings) > 0).length;
    return Math.log((1 + this.#entries.length) / (1 + having));
  }
}

/** A word of a query, first itself; a compound is a word if it stands for others. */
function meaningsOf(text: string): readonly (readonly string[])[] {
  const others = SYNONYMS[folded(text).replaceAll("-", "")];
  if (others === undefined) return wordsOf(text).map((word) => [word]);
  return [[folded(text), ...others]];
}

/** How well a section has a word, or another of the same meaning. */
function weightOf({ in: places }: Entry, [word = "", ...others]: readonly string[]): number {
  const ofWord = (each: string): number =>
    (hasWord(places.heading, each) ? WEIGHTS.heading : 0) +
    (hasWord(places.title, each) ? WEIGHTS.title : 0) +
    (hasWord(places.text, each) ? WEIGHTS.text : 0);
  return ofWord(word) || Math.max(0, ...others.map(ofWord)) * SYNONYM_WEIGHT;
}

function scoreOf(
  entry: Entry,
  words: readonly (readonly string[])[],
  rarities: readonly number[],
  phrase: string,
): number {
  const scores = words.map((meanings, i) => weightOf(entry, meanings) * (rarities[i] ?? 0));
  const hasPhrase = entry.in.heading.includes(phrase) || entry.in.text.includes(phrase);
  const found = scores.filter((score) => score > 0).length;
  const sum = scores.reduce((total, score) => total + score, 0);
  return sum * (found / words.length) * (hasPhrase ? PHRASE_BONUS : 1);
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
