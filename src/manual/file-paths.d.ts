/** The types of the files of the manual: an import with the attribute `type: "file"` is the path of the file. */
declare module "*.md" {
  const path: string;
  export = path;
}
declare module "*.png" {
  const path: string;
  export = path;
}
declare module "*.svg" {
  const path: string;
  export = path;
}
declare module "*.sh" {
  const path: string;
  export = path;
}
declare module "*.mjs" {
  const path: string;
  export = path;
}
declare module "*.go" {
  const path: string;
  export = path;
}
declare module "*.rs" {
  const path: string;
  export = path;
}
