// Shell patterns. `?` is special for hosts and origins alone: the id of a channel may contain it.

/** Whether a text matches a pattern, in which `*` stands for any text. Takes linear time. */
export const matchesWildcard = (pattern: string, text: string): boolean => {
  const [first = "", ...rest] = pattern.split("*")
  const last = rest.pop()
  if (last === undefined) return pattern === text
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}

/**
 * Whether a host or an origin matches a pattern, in which `*` stands for any text and `?` for any
 * one character. Takes at most as many steps as the product of both lengths.
 */
export const matchesGlob = (pattern: string, text: string): boolean => {
  let [at, place] = [0, 0]
  /** Behind the last `*` that was met, and where the text that it stands for ends. */
  let [behindStar, tried] = [0, 0]
  while (at < text.length) {
    const next = pattern[place]
    if (next === "*") {
      place += 1
      ;[behindStar, tried] = [place, at]
    } else if (next === "?" || next === text[at]) {
      place += 1
      at += 1
    } else if (behindStar > 0) {
      tried += 1
      ;[place, at] = [behindStar, tried]
    } else return false
  }
  while (pattern[place] === "*") place += 1
  return place === pattern.length
}
