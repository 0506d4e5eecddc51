/** The type of a Python file that is imported as text: TypeScript does not read the attribute of the import. */
declare module "*.py" {
  const text: string;
  export = text;
}
