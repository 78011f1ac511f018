// The events underneath: requests and their answers, states of the client, pushes, outcomes. The
// list outlives a reload. Long texts in it are cut, as they are keys, tokens and endpoints.
import { Store } from "../../state/store.ts"

export type Kind = "request" | "client" | "push" | "outcome"

export interface Row {
  readonly key: number
  readonly at: number
  readonly kind: Kind
  readonly text: string
  readonly status?: string
  readonly details?: string
}

const place = "bellcast-try-underneath"
const rowsMax = 100
/** All rows must fit into the storage of a session, which is 5 MB in some browsers. */
const detailsMax = 8_000

const stored = (): ReadonlyArray<Row> => {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "[]") as ReadonlyArray<Row>
  } catch {
    return []
  }
}

/** The newest first. */
export const rows = new Store<ReadonlyArray<Row>>(stored())
let count = Math.max(0, ...rows.value.map(({ key }) => key))

const show = (all: ReadonlyArray<Row>): void => {
  rows.set(all)
  sessionStorage.setItem(place, JSON.stringify(all))
}

type More = Pick<Row, "status" | "details"> | Record<string, never>

/** Adds a row at the top. Returns its key, for `change`. */
export const add = (kind: Kind, text: string, more: More = {}): number => {
  count += 1
  show([{ key: count, at: Date.now(), kind, text, ...more }, ...rows.value].slice(0, rowsMax))
  return count
}

export const change = (key: number, members: Partial<Row>): void =>
  show(rows.value.map((row) => (row.key === key ? { ...row, ...members } : row)))

export const clear = (): void => show([])

/** Keys and secrets have 22 characters or more, and no blanks. */
const cut = (text: string): string => {
  if (text.length < 22 || /\s/.test(text) || text.startsWith(`${location.origin}/`)) return text
  return `${URL.canParse(text) ? `${new URL(text).origin}/` : text.slice(0, 8)}…`
}

const readable = (text: string): string => {
  try {
    const cutIn = (_: string, value: unknown) => (typeof value === "string" ? cut(value) : value)
    return JSON.stringify(JSON.parse(text, cutIn), null, 2).slice(0, detailsMax)
  } catch {
    return text.slice(0, detailsMax)
  }
}

const pathOf = (input: RequestInfo | URL): string => {
  const { pathname, search } = new URL(input instanceof Request ? input.url : input, location.href)
  return (pathname + search).replace(/[0-9a-f]{64}/g, (id) => `${id.slice(0, 8)}…`)
}

const listed = async (
  fetchReally: typeof fetch,
  input: RequestInfo | URL,
  init: RequestInit = {}
): Promise<Response> => {
  const { body, method = "GET" } = init
  const key = add("request", `${method} ${pathOf(input)}`, { status: "…" })
  try {
    const response = await fetchReally(input, init)
    const status = String(response.status)
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      change(key, { status })
      return response
    }
    const answer = await response.clone().text()
    const sent = typeof body === "string" ? `Sent\n${readable(body)}\n\n` : ""
    change(key, { status, details: `${sent}Answered\n${readable(answer)}` })
    return response
  } catch (error) {
    change(key, { status: "no answer" })
    throw error
  }
}

interface Report {
  readonly kind: Kind
  readonly text: string
  readonly details?: string
}

/** Lists requests of this page, and what its worker reports, until the function that it returns. */
export const watch = (): (() => void) => {
  const fetchReally = window.fetch
  window.fetch = (input, init) => listed(fetchReally, input, init)
  const worker = new BroadcastChannel("bellcast-try")
  worker.onmessage = ({ data: { details, kind, text } }: MessageEvent<Report>) => {
    add(kind, text, details === undefined ? {} : { details: readable(details) })
  }
  return () => {
    window.fetch = fetchReally
    worker.close()
  }
}
