// Languages of readers (BCP 47), and which variant of a broadcast is for which (RFC 4647). Pure.

/** RFC 5646 section 4.4.1: room for every tag in use. */
const localeBytesMax = 35

/**
 * Whether a text is a language tag such as `de` or `pt-BR`, as Intl takes it: tags of RFC 5646 that
 * are no Unicode locale identifiers, such as `zh-yue` and `i-klingon`, are refused.
 */
export const isLocale = (text: string): boolean => {
  if (text.length > localeBytesMax) return false
  try {
    return Intl.getCanonicalLocales(text).length === 1
  } catch {
    return false
  }
}

/**
 * Lookup of RFC 4647 section 3.4: tries the tag, then the tag without its last part, and so on.
 * `find` is given tags in lower case. Undefined: no tag is found.
 */
export const lookup = <A>(locale: string, find: (tag: string) => A | undefined): A | undefined => {
  const parts = locale.toLowerCase().split("-")
  while (parts.length > 0) {
    const found = find(parts.join("-"))
    if (found !== undefined) return found
    parts.pop()
    // A single letter begins what was cut off.
    if (parts.at(-1)?.length === 1) parts.pop()
  }
  return undefined
}
