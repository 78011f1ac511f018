// Reads and makes the headers of messages. Anybody who may publish chooses the bytes of headers:
// nats-server 2.15 stores a lone CR or LF, a blank or a byte above 127 in a name, and a block
// without an end. nats.js 3.4 throws when it reads these, in callbacks where nobody catches, and
// compares each name with all others: 32,000 names, in 190 KB, took 29 s. So nats.js reads headers
// by the reader below, too, which never throws and takes time in proportion to the bytes.
import { type MsgHdrs, MsgHdrsImpl, headers as natsHeaders } from "@nats-io/transport-node"

/** The value of each header. */
export type Headers = ReadonlyMap<string, string>

/** The values of each header, in order; "malformed": the bytes are no headers. */
export type ReadHeaders = ReadonlyMap<string, ReadonlyArray<string>> | "malformed"

export const noHeaders: ReadHeaders = new Map()

const version = "NATS/1.0"
const lineEnd = "\r\n"
/** The bytes that end a block, after the end of the last line. */
const endBytes = lineEnd.length

interface Block {
  /** The rest of the first line: the server names a status there. */
  readonly status: string
  readonly headers: ReadHeaders
}

const malformed: Block = { status: "", headers: "malformed" }

/** Printable ASCII but the colon, as RFC 5322 section 2.2 has it. */
const isName = (name: string): boolean => {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code < 33 || code > 126) return false
  }
  return name !== ""
}

const isValue = (value: string): boolean => !value.includes("\r") && !value.includes("\n")

const isBlank = (code: number): boolean => code === 32 || code === 9

/** Without blanks and tabs at both ends. `trim` would take more, also of a subject. */
const trimmed = (text: string): string => {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (start < end && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

const blockOf = (text: string): Block => {
  const first = text.indexOf(lineEnd)
  if (first === -1 || !text.startsWith(version)) return malformed
  const status = text.slice(version.length, first)
  if ((status !== "" && !status.startsWith(" ")) || !isValue(status)) return malformed
  const headers = new Map<string, Array<string>>()
  for (let start = first + lineEnd.length; start < text.length; ) {
    const end = text.indexOf(lineEnd, start)
    const line = text.slice(start, end)
    const colon = line.indexOf(":")
    const [name, value] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1)]
    if (end === -1 || !isName(name) || !isValue(value)) return malformed
    const values = headers.get(name)
    if (values === undefined) headers.set(name, [trimmed(value)])
    else values.push(trimmed(value))
    start = end + lineEnd.length
  }
  return { status: trimmed(status), headers }
}

/** A text of UTF-8; what is none becomes U+FFFD. */
export const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()

/**
 * A block of headers without its end. nats-server replaces the last two bytes of a stored block,
 * whatever they are, when it adds headers for a direct read, and a block that has no others.
 */
const cut = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, bytes.length - endBytes)

const blockIn = (bytes: Uint8Array): Block =>
  bytes.length <= endBytes ? { status: "", headers: noHeaders } : blockOf(textOf(cut(bytes)))

/** The headers of a stored message. */
export const readHeaders = (bytes: Uint8Array): ReadHeaders => blockIn(bytes).headers

/** The headers of a message as nats.js has them, with the bytes that they were read from. */
class ReceivedHeaders extends MsgHdrsImpl {
  readonly bytes: Uint8Array
  readonly read: ReadHeaders

  constructor(bytes: Uint8Array) {
    super()
    const { headers, status } = blockIn(bytes)
    this.bytes = bytes
    this.read = headers
    if (headers === "malformed") return
    this.headers = headers as Map<string, Array<string>>
    const [code = "", ...description] = status.split(" ")
    this._code = Number.parseInt(code, 10) || 0
    this._description = description.join(" ").trim()
  }
}

/** nats.js has no option and no hook for this. Each message calls it when its headers are read. */
MsgHdrsImpl.decode = (bytes) => new ReceivedHeaders(bytes)

interface Received {
  readonly headers?: MsgHdrs | undefined
}

/** The headers of a message that was received. */
export const headersOf = ({ headers }: Received): ReadHeaders =>
  headers === undefined ? noHeaders : (headers as ReceivedHeaders).read

/** The first value of a header; undefined: there is none, or it is empty. */
export const headerIn = (headers: ReadHeaders, name: string): string | undefined =>
  headers === "malformed" ? undefined : headers.get(name)?.[0] || undefined

/** The bytes of the headers of a message that was received. */
export const headerBytesOf = ({ headers }: Received): Uint8Array | undefined =>
  (headers as ReceivedHeaders | undefined)?.bytes

/**
 * The headers of a message to send. `set` and `append` of nats.js list all names and compare each:
 * with the decoding, headers took 2.5 % of the CPU of a small broadcast and a tenth of the memory
 * that it allocates. Throws where a value has a line break: what follows it would be another
 * header.
 */
export const natsHeadersOf = (headers: Headers): MsgHdrs => {
  const made = natsHeaders() as MsgHdrsImpl
  for (const [name, value] of headers) {
    if (!isValue(value)) throw new Error(`the header ${name} has a line break`)
    made.headers.set(name, [value])
  }
  return made
}
