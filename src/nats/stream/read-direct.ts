// Direct reads: a stream's leader or a replica responds with its messages (ADR-31). Reads the
// responses itself: nats.js 3.4 takes the first line of the headers, which a publisher of a stored
// message may choose, for the server's.
import type { Msg } from "@nats-io/transport-node"
import { headerBytesOf, headerIn, type ReadHeaders, readHeaders } from "../connection/headers.ts"
import type { Requests } from "../connection/request.ts"

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
    at: millisOf(headerIn(added, "Nats-Time-Stamp") ?? ""),
    pending: numberIn("Nats-Num-Pending"),
    data: msg.data,
    headers: () => readHeaders(Buffer.concat([bytes.subarray(0, place), end]))
  }
}

/**
 * Milliseconds of a time as the server writes it, cut as those that a consumer gives: it has the
 * nanoseconds as a number, which is exact to 256.
 */
const millisOf = (time: string): number => {
  const [seconds = "", fraction = ""] = time.replace("Z", "").split(".")
  const nanos = Date.parse(`${seconds}Z`) * 1e6 + Number(fraction.padEnd(9, "0"))
  return Math.floor(nanos / 1e6)
}

const timeoutMillis = 5_000

/** What a batch consists of; fields of `STREAM.DIRECT.GET`. */
type BatchQuery = { readonly batch: number } & (
  | { readonly seq: number; readonly next_by_subj?: string; readonly max_bytes?: number }
  | { readonly multi_last: ReadonlyArray<string> }
  | { readonly start_time: string }
)

/** The messages of a batch, from any replica. */
const readBatch = (
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
const readLast = (
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

/**
 * Messages, and bytes of them, that are requested at once. Few large requests: for each the server
 * counts what follows, and looks at every subject that the filter matches, for no filter, too,
 * where messages were deleted; 15 ms for 100,000 subjects, 0.3 ms for all of a stream without
 * deleted messages (nats-server 2.15).
 */
export const batchMax = 4_000
export const batchBytesMax = 2 * 1024 ** 2

/** Subjects of one request: the server refuses more. */
const subjectsMax = 1_024

/** The last message on each of some subjects that have any. */
export const readLastOf = async (
  requests: Requests,
  stream: string,
  subjects: ReadonlyArray<string>
): Promise<ReadonlyArray<DirectMessage>> => {
  const found: Array<DirectMessage> = []
  for (let i = 0; i < subjects.length; i += subjectsMax) {
    const query = { multi_last: subjects.slice(i, i + subjectsMax), batch: subjectsMax }
    found.push(...(await readBatch(requests, stream, query)))
  }
  return found
}

/** NATS counts the nanoseconds since 1970 in 64 bits, which end in the year 2262. */
const millisMax = 9e12

/** Sequence of the first message since a time; undefined: there is none. */
export const firstSince = async (
  requests: Requests,
  stream: string,
  millis: number
): Promise<number | undefined> => {
  const time = Math.min(Math.max(millis, 0), millisMax)
  const query = { start_time: new Date(time).toISOString(), batch: 1 }
  return (await readBatch(requests, stream, query))[0]?.seq
}

/**
 * The messages after a sequence that a filter matches, in order, up to the present end of the
 * stream. Needs no consumer, for people who may not create one: whoever creates a consumer chooses
 * the subject to which it delivers. Any replica responds, so the last messages may be missing for a
 * moment.
 */
export const readDirect = async function* (
  requests: Requests,
  stream: string,
  filter: string,
  after = 0
): AsyncGenerator<ReadonlyArray<DirectMessage>, void> {
  let seq = after + 1
  while (true) {
    const query = { seq, next_by_subj: filter, batch: batchMax, max_bytes: batchBytesMax }
    const batch = await readBatch(requests, stream, query)
    if (batch.length === 0) return
    yield batch
    seq = batch.at(-1)!.seq + 1
  }
}

/** The first messages from a sequence on that a filter matches, in order. */
export const readFrom = (
  requests: Requests,
  stream: string,
  filter: string,
  { bytesMax, from, limit }: From
): Promise<ReadonlyArray<DirectMessage>> => {
  const max = bytesMax === undefined ? {} : { max_bytes: bytesMax }
  return readBatch(requests, stream, { seq: from, next_by_subj: filter, batch: limit, ...max })
}

/** Bytes of a batch: a bucket's entry has 1 MiB at most, and most have 100 bytes. */
const anyBytesMax = 1024 ** 2

/** The first messages from a sequence on, whatever their subjects, in order. */
export const readAny = (
  requests: Requests,
  stream: string,
  { from, limit }: From
): Promise<ReadonlyArray<DirectMessage>> =>
  readBatch(requests, stream, { seq: from, batch: limit, max_bytes: anyBytesMax })

/** Number of messages from a sequence on that a filter matches. */
export const countDirect = async (
  requests: Requests,
  stream: string,
  filter: string,
  seq: number
): Promise<number> => {
  const [first] = await readBatch(requests, stream, { seq, next_by_subj: filter, batch: 1 })
  return first === undefined ? 0 : first.pending + 1
}

/**
 * Bounds on what is read forwards. `from` is a sequence. `bytesMax`: after so many bytes there are
 * fewer messages than `limit`, though more follow.
 */
export interface From {
  readonly from: number
  readonly limit: number
  readonly bytesMax?: number
}

/** Bounds on what is read backwards. `before` is a sequence. */
export interface Newest {
  readonly before: number
  readonly limit: number
}

/** Read at most so many times what is wanted: to count once more costs as much as 50 messages. */
const excessMax = 1.5

/**
 * Finds where to begin so that a filter matches `limit` messages before `to`, and at most half as
 * many more. The first sequence, if there are fewer. Guesses as if the messages were spread evenly,
 * and halves in turn with it where they are not.
 */
const beginOf = async (
  count: (seq: number) => Promise<number>,
  { later, limit, to }: { readonly later: number; readonly limit: number; readonly to: number }
) => {
  const wanted = Math.ceil((limit * (1 + excessMax)) / 2)
  let enough = { seq: 1, matches: (await count(1)) - later }
  let tooFew = { seq: to, matches: 0 }
  for (let i = 0; enough.matches > excessMax * limit && tooFew.seq - enough.seq > 1; i++) {
    const span = tooFew.seq - enough.seq
    const surplus = (enough.matches - wanted) / (enough.matches - tooFew.matches)
    const share = i % 3 === 2 ? 0.5 : Math.max(surplus, 0)
    const seq = enough.seq + Math.min(Math.max(Math.floor(span * share), 1), span - 1)
    const probe = { seq, matches: (await count(seq)) - later }
    if (probe.matches >= limit) enough = probe
    else tooFew = probe
  }
  return enough.seq
}

/** The messages of a filter from a sequence on and before another, a batch at a time. */
const readBetween = async (
  read: (seq: number) => Promise<ReadonlyArray<DirectMessage>>,
  from: number,
  to: number
) => {
  const found: Array<DirectMessage> = []
  // The server ends a batch early by its bytes, and a replica that is behind counts too few.
  for (let seq = from; seq < to; ) {
    const batch = await read(seq)
    found.push(...batch.filter((msg) => msg.seq < to))
    const last = batch.at(-1)
    if (last === undefined || last.pending === 0) break
    seq = last.seq + 1
  }
  return found
}

/**
 * The last messages before a sequence that a filter matches, the newest first, at most `limit`. The
 * server says of each message how many follow it: that finds the place without an index, with four
 * requests of 1 ms each where messages are spread evenly, and ten where not (nats-server 2.15).
 */
export const readNewest = async (
  requests: Requests,
  stream: string,
  filter: string,
  { before, limit }: Newest
): Promise<ReadonlyArray<DirectMessage>> => {
  const last = await readLast(requests, stream, filter)
  const end = (last?.seq ?? 0) + 1
  const to = Math.min(before, end)
  const count = (seq: number) => countDirect(requests, stream, filter, seq)
  const later = to === end ? 0 : await count(to)
  // Messages that come meanwhile are counted, too, so that the first place may be too late.
  for (let wanted = limit; ; wanted *= 2) {
    const seq = await beginOf(count, { later, limit: wanted, to })
    const batch = Math.ceil(excessMax * wanted)
    const read = (seq: number) => readBatch(requests, stream, { seq, next_by_subj: filter, batch })
    const found = await readBetween(read, seq, to)
    if (found.length >= limit || seq === 1) return found.slice(-limit).reverse()
  }
}
