// Rows as CSV (RFC 4180).

/** A line for each row, the first with the names. Missing cells are empty. */
export const csvOf = (
  names: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string | number | undefined>>
): string => [names, ...rows].map((row) => `${row.map(cellOf).join(",")}\r\n`).join("")

const cellOf = (cell: string | number | undefined): string => {
  const text = String(cell ?? "")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
