// Reads a file line by line.

/** Characters of a line. A subscription has at most 4 KiB, and 200 names of channels 50 KiB. */
const lineMax = 65_536

export interface Line {
  /** From 1 on. */
  readonly number: number
  /** Undefined: the line is too long. */
  readonly text: string | undefined
}

/** The lines of a text that comes in parts. Keeps no more of a line than it may have. */
export async function* linesOf(input: AsyncIterable<string>): AsyncGenerator<Line, void> {
  let number = 0
  let rest = ""
  let isLong = false
  const lineOf = (part: string): Line => {
    const text = isLong || part.length > lineMax ? undefined : part
    isLong = false
    number += 1
    return { number, text: number === 1 ? text?.replace(/^\uFEFF/, "") : text }
  }
  for await (const chunk of input) {
    const parts = (rest + chunk).split("\n")
    rest = parts.pop()!
    for (const part of parts) yield lineOf(part)
    if (rest.length <= lineMax) continue
    isLong = true
    rest = ""
  }
  if (rest !== "" || isLong) yield lineOf(rest)
}
