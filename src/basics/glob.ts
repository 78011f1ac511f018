// Shell patterns.

/** A shell pattern as a regular expression. Only `*` and `?` are special. */
export const globOf = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .replace(/[.+^${}()|[\]\\]/g, "\\$&")
      .replaceAll("*", ".*")
      .replaceAll("?", ".")}$`
  )
