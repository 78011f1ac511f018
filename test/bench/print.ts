// Prints lines of text, and computes medians, for all benches.

export const say = (line: string) => process.stdout.write(`${line}\n`)

/** The middle value; of an even number of values the higher one of the two in the middle. */
export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
