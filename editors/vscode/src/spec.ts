// Which files are operator specs. Knows nothing of VS Code.

/** The text that is searched for keys: a spec has them at its top, after its comments. */
const HEAD = 64 * 1024;

/** The keys that a spec has besides `edition`. */
const LISTS = /^(ops|functions|declarations|include)[ \t]*:/m;

/** Whether a YAML file is a spec: by its usual name, or by the keys at its top. */
export function isSpec(path: string, text: string): boolean {
  const parts = path.split(/[\\/]/);
  const name = parts.at(-1) ?? "";
  if (name === "ops.yaml" || (parts.at(-2) === "ops" && name.endsWith(".yaml"))) {
    return true;
  }
  const head = text.slice(0, HEAD);
  return /^edition[ \t]*:/m.test(head) && LISTS.test(head);
}
