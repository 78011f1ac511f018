// The tables of src/cli/README.md about what fills the disk.
import { readFileSync } from "node:fs"

const text = readFileSync(new URL("../../src/cli/README.md", import.meta.url), "utf8")

/** The rows of the table whose first column has this head, each as its cells. */
const rowsOf = (head: string): ReadonlyArray<ReadonlyArray<string>> => {
  const [, rows = ""] = new RegExp(`^\\| ${head} \\|.*\\n\\| ---.*\\n((?:\\|.*\\n)+)`, "m").exec(
    text
  )!
  return rows
    .trimEnd()
    .split("\n")
    .map((row) =>
      row
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim())
    )
}

/** The first number of a cell, such as that of "1,460 bytes"; NaN if there is none. */
const numberIn = (cell = ""): number =>
  Number(/\d[\d,]*/.exec(cell)?.[0].replaceAll(",", "") ?? Number.NaN)

export interface Sizes {
  readonly usual: number
  readonly largest: number
}

/** Measured bytes by what is stored, in LOG and in a bucket. */
export const entryBytes = Object.fromEntries(
  rowsOf("Of each").map(([what = "", usual, largest, , bucketUsual, bucketLargest]) => [
    /^\w+/.exec(what)![0].toLowerCase(),
    {
      log: { usual: numberIn(usual), largest: numberIn(largest) },
      bucket: { usual: numberIn(bucketUsual), largest: numberIn(bucketLargest) }
    }
  ])
) as Record<string, { readonly log: Sizes; readonly bucket: Sizes }>

/** By stream or bucket: size in MiB, and days until a hostile address or account fills it. */
export const fillDays = rowsOf("Stream or bucket").map(
  ([name = "", size = "", , ofAddress = "", , ofAccount = ""]) => ({
    name: name.replaceAll("`", ""),
    mebibytes: numberIn(size) * (size.endsWith("GiB") ? 1024 : 1),
    ofAddress,
    ofAccount
  })
)

/** How long a LOG of 4 GiB lasts for one publisher at the limit. */
export const publisherDays = rowsOf("Use").find(([use = ""]) =>
  use.startsWith("One publisher at")
)![3]
