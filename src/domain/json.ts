// JSON texts from outside. What is nested without end would overflow the stack of everybody who
// walks it later: stages, filters, clients. Pure.

export const depthMax = 100

const quote = 0x22
const backslash = 0x5c
const opening = new Set([0x5b, 0x7b])
const closing = new Set([0x5d, 0x7d])

/** Whether a text holds so few brackets, in strings or not, that it cannot nest that deep. */
const isShallow = (text: string): boolean => {
  let count = 0
  for (const bracket of "{[") {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1))
      if (++count > depthMax) return false
  }
  return true
}

/** Whether objects and lists are nested more than so deep; strings may hold any brackets. */
const isTooDeep = (text: string): boolean => {
  if (isShallow(text)) return false
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === backslash) i++
      else if (code === quote) inString = false
    } else if (code === quote) inString = true
    else if (opening.has(code)) {
      if (++depth > depthMax) return true
    } else if (closing.has(code)) depth--
  }
  return false
}

/** What a text stands for, or why it stands for nothing. */
export const parseJson = (text: string): { readonly json: unknown } | "malformed" | "deep" => {
  if (isTooDeep(text)) return "deep"
  try {
    return { json: JSON.parse(text) as unknown }
  } catch {
    return "malformed"
  }
}

/**
 * JSON.stringify leaves everything beyond ASCII, and DEL, as it is. Ids are defined over the
 * escaped form, and headers carry no other.
 */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
  )
