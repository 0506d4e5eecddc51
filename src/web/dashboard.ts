/**
 * The files of the dashboard, built from page/. In the executable they are embedded: `bun build` has built the imported
 * HTML with all that it names. From source they are built at the first request. Must not: know a route or a request.
 */
import page from "./page/index.html";

export type DashboardFile = { readonly content: string; readonly type: string; readonly etag: string };

export type Dashboard = {
  /** The HTML of the page, whose scripts have this nonce (Content-Security-Policy). */
  readonly page: (nonce: string) => string;
  /** Scripts and styles, by names that change with their contents. */
  readonly assets: ReadonlyMap<string, DashboardFile>;
};

/** The page names its assets by paths that begin with this, relative to its own. */
export const ASSETS = "assets/";

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** By the name of the hub. */
const made = new Map<string | null, Promise<Dashboard>>();

/**
 * @param name what people call this hub: the page has it as its `application-name`, so that it is there before a sign-in
 * @throws when the page cannot be built from source; the next call tries again
 */
export function dashboard(name: string | null): Promise<Dashboard> {
  const named =
    made.get(name) ??
    make(name).catch((error: unknown) => {
      made.delete(name);
      throw error;
    });
  made.set(name, named);
  return named;
}

async function make(name: string | null): Promise<Dashboard> {
  const files = await (page.files === undefined ? build(page.index) : embedded(page.files));
  let html = "";
  const assets = new Map<string, DashboardFile>();
  for (const [file, text] of files) {
    if (file.endsWith(".html")) html = text;
    else assets.set(file, fileOf(file, text));
  }
  // In the executable the bundler writes paths from the root; relative ones also work behind a proxy with a prefix.
  const relative = html
    .replaceAll(/\s*\n\s*/g, "\n")
    .replaceAll(/(href|src)="[./]*\/([^"/]+\.(?:css|js))"/g, `$1="${ASSETS}$2"`);
  const named = name === null ? "" : `<meta name="application-name" content="${name}">`; // it has no character to escape
  return {
    page: (nonce) =>
      relative.replace("</head>", `${named}</head>`).replaceAll("<script", `$& nonce="${nonce}"`),
    assets,
  };
}

type Texts = readonly (readonly [name: string, text: string])[];

async function build(entry: string): Promise<Texts> {
  // Without it, JSX is compiled with names of files and numbers of lines.
  const define = { "process.env.NODE_ENV": '"production"' };
  const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser", minify: true, define });
  return Promise.all(outputs.map(async (file) => [nameOf(file.path), await file.text()] as const));
}

function embedded(files: NonNullable<typeof page.files>): Promise<Texts> {
  return Promise.all(files.map(async ({ path }) => [nameOf(path), await Bun.file(path).text()] as const));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function fileOf(name: string, content: string): DashboardFile {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  const hash = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  return { content, type, etag: `"${hash.slice(0, 32)}"` };
}
