// The pushes of a broadcast as one file of CSV, put together of the pages that the service gives.
import { request } from "./client.ts"

/** 500 rows each: 200,000 rows, some 20 MB in the memory of the page. */
const pagesMax = 400

export interface Csv {
  readonly text: string
  /** There are more rows than the page can hold. */
  readonly isCut: boolean
}

const withoutHeader = (text: string): string => text.slice(text.indexOf("\n") + 1)

/** `say` gets the number of rows so far. */
export const readCsv = async (
  id: string,
  say: (rows: number) => void,
  signal: AbortSignal
): Promise<Csv> => {
  const parts: Array<string> = []
  let rows = 0
  let next: string | undefined = `broadcasts/${encodeURIComponent(id)}/pushes?_limit=500`
  for (let page = 0; next !== undefined && page < pagesMax; page += 1) {
    const answer: { body: string; next: string | undefined } = await request<string>(next, {
      signal,
      headers: { Accept: "text/csv" }
    })
    parts.push(page === 0 ? answer.body : withoutHeader(answer.body))
    rows += answer.body.split("\n").length - 2
    say(rows)
    next = answer.next
  }
  return { text: parts.join(""), isCut: next !== undefined }
}

/** The browser stores it where it stores files. */
export const save = (name: string, text: string): void => {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }))
  const link = document.createElement("a")
  link.href = url
  link.download = name
  link.click()
  // Not at once: some browsers read it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
