// Direct reads: a stream's leader or a replica responds with its messages (ADR-31). Reads the
// responses itself: nats.js 3.4 takes the first line of the headers, which a publisher of a stored
// message may choose, for the server's.
import type { Msg } from "@nats-io/transport-node"
import { headerBytesOf, headerIn, type ReadHeaders, readHeaders } from "./headers.ts"
import type { Requests } from "./request.ts"

/** A message of a stream. */
export interface DirectMessage {
  readonly subject: string
  readonly seq: number
  /** When the server stored it, milliseconds since the epoch. */
  readonly at: number
  /** Messages of a batch that follow this one. */
  readonly pending: number
  readonly data: Uint8Array
  /** As they were stored. */
  readonly headers: () => ReadHeaders
}

/** A response without a message. */
export interface DirectStatus {
  readonly code: number
  readonly description: string
  readonly header: (name: string) => string | undefined
}

/** Codes of a status: the end of a batch; nothing matches; more than the server sends at once. */
export const endOfBatch = 204
export const notFound = 404
export const tooLarge = 413

const firstLine = Buffer.from("NATS/1.0\r\n")
/** The server adds its headers, beginning with this one, after those that a message has. */
const firstAdded = Buffer.from("Nats-Stream: ")
/** The server takes these two bytes from a block to which it adds headers. */
const end = Buffer.from("\r\n")

/** Reads a response to a direct read. Never throws. */
export const directOf = (msg: Msg): DirectMessage | DirectStatus => {
  const { buffer, byteOffset, byteLength } = headerBytesOf(msg) ?? new Uint8Array()
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const place = bytes.lastIndexOf(firstAdded)
  if (place === -1) {
    const { code = 0, description = "" } = msg.headers ?? {}
    const headers = readHeaders(bytes)
    return { code, description, header: (name) => headerIn(headers, name) }
  }
  const added = readHeaders(Buffer.concat([firstLine, bytes.subarray(place)]))
  const numberIn = (name: string) => Number(headerIn(added, name) ?? 0)
  return {
    subject: headerIn(added, "Nats-Subject") ?? "",
    seq: numberIn("Nats-Sequence"),
    at: Date.parse(headerIn(added, "Nats-Time-Stamp") ?? ""),
    pending: numberIn("Nats-Num-Pending"),
    data: msg.data,
    headers: () => readHeaders(Buffer.concat([bytes.subarray(0, place), end]))
  }
}

const timeoutMillis = 5_000

/** What a batch consists of; fields of `STREAM.DIRECT.GET`. */
export type BatchQuery = { readonly batch: number } & (
  | { readonly seq: number; readonly next_by_subj: string }
  | { readonly multi_last: ReadonlyArray<string> }
  | { readonly start_time: string }
)

/** The messages of a batch, from any replica. */
export const readBatch = (
  { api, requestMany }: Requests,
  stream: string,
  query: BatchQuery
): Promise<ReadonlyArray<DirectMessage>> =>
  new Promise((resolve, reject) => {
    const found: Array<DirectMessage> = []
    const receive = (msg: Msg): boolean => {
      const response = directOf(msg)
      if ("seq" in response) {
        found.push(response)
        return false
      }
      const { code, description } = response
      if (code === endOfBatch || code === notFound) resolve(found)
      else reject(new Error(`a direct read was answered ${code} ${description}`))
      return true
    }
    const subject = `${api}.DIRECT.GET.${stream}`
    requestMany({ subject, payload: JSON.stringify(query), timeoutMillis }, receive, reject)
  })

/** The last message that a filter matches, from any replica; undefined: there is none. */
export const readLast = (
  { api, requestMany }: Requests,
  stream: string,
  filter: string
): Promise<DirectMessage | undefined> =>
  new Promise((resolve, reject) => {
    const receive = (msg: Msg): boolean => {
      const response = directOf(msg)
      if ("seq" in response) resolve(response)
      else if (response.code === notFound) resolve(undefined)
      else reject(new Error(`a direct read was answered ${response.code} ${response.description}`))
      return true
    }
    const subject = `${api}.DIRECT.GET.${stream}.${filter}`
    requestMany({ subject, payload: "", timeoutMillis }, receive, reject)
  })
