// What hostile push services send instead of a response: a beginning, and then the same again
// without end, as fast as the client reads or at intervals.

export interface PushKind {
  readonly http2: boolean
  /** Sent as soon as a request has arrived. `stream`: of the request; 0 over HTTP/1.1. */
  readonly begin: (stream: number) => Buffer
  /** Sent again and again after that. Absent: nothing more. */
  readonly again?: (stream: number) => Buffer
  /** Milliseconds between two; absent: as fast as they are read. */
  readonly every?: number
  /** Closes the connection after the beginning. */
  readonly closes?: true
}

const floodBytes = 65_536
const none = Buffer.alloc(0)

const repeated = (part: Buffer): Buffer =>
  Buffer.concat(Array.from({ length: Math.ceil(floodBytes / part.length) }, () => part))

/** A frame of RFC 9113 section 4.1. */
export const frame = (type: number, flags: number, stream: number, payload = none): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const endStream = 1
const endHeaders = 4
const [dataFrame, headersFrame, , resetFrame, settingsFrame] = [0, 1, 2, 3, 4]
const [pingFrame, goawayFrame, windowFrame, continuationFrame, unknownFrame] = [6, 7, 8, 9, 0xfa]

/** HPACK: a literal without indexing, with the name of entry 8 (`:status`). */
const statusBlock = (status: number) =>
  Buffer.concat([Buffer.of(0x08, 3), Buffer.from(String(status))])
const literal = (name: string, value: string) =>
  Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length)]).toString(
    "latin1"
  ) + value

export const http2Response = (stream: number, status: number, flags = endStream | endHeaders) =>
  frame(headersFrame, flags, stream, statusBlock(status))
const opened = (stream: number) => http2Response(stream, 503, endHeaders)
const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const flood1 = (begin: string, again: string): PushKind => {
  const part = repeated(Buffer.from(again, "latin1"))
  return { http2: false, begin: () => Buffer.from(begin), again: () => part }
}
const flood2 = (
  begin: PushKind["begin"],
  again: (stream: number) => Buffer,
  every?: number
): PushKind => ({
  http2: true,
  begin,
  again: every === undefined ? (stream) => repeated(again(stream)) : again,
  ...(every === undefined ? {} : { every })
})

const chunked = "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"
const once1 = (text: string): PushKind => ({ http2: false, begin: () => Buffer.from(text) })
const retryAfter = "Retry-After: 99999999999999999999\r\n"
const gzip = "Content-Encoding: gzip\r\n"
/** The first bytes of 10 MiB of zeros, deflated: a hundredfold of them when inflated. */
const bomb = `\x1f\x8b\x08\0\0\0\0\0\0\x03\xec\xc1\x01\x01${"\0".repeat(1_000)}`

export const pushKinds: Readonly<Record<string, PushKind>> = {
  // For comparison.
  "201": once1("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"),
  "103 again and again": flood1("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
  "chunk extensions": flood1(`${chunked}1`, ";a=b"),
  "chunks of one byte": flood1(chunked, "1\r\nx\r\n"),
  "a header without end": flood1("HTTP/1.1 503 Busy\r\nX: ", "x"),
  "trailers without end": flood1(`${chunked}0\r\n`, "x: y\r\n"),
  "a body after 201": flood1("HTTP/1.1 201 Created\r\nContent-Length: 9000000000\r\n\r\n", "x"),
  "a gzip bomb": flood1(`HTTP/1.1 503 Busy\r\n${gzip}Content-Length: 9000000000\r\n\r\n`, bomb),
  "a byte at a time": {
    ...flood1(`HTTP/1.1 503 Busy\r\nX: `, "x"),
    again: () => Buffer.from("x"),
    every: 20
  },
  "closed after 201": {
    ...once1("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"),
    closes: true
  },
  "a huge Retry-After": once1(`HTTP/1.1 429 Later\r\n${retryAfter}Content-Length: 0\r\n\r\n`),
  "no response": once1(""),
  "103 over HTTP/2": flood2(
    () => none,
    (stream) => http2Response(stream, 103, endHeaders)
  ),
  GOAWAY: flood2(opened, () =>
    frame(goawayFrame, 0, 0, Buffer.concat([uint32(2 ** 31 - 1), uint32(0)]))
  ),
  PING: flood2(opened, () => frame(pingFrame, 0, 0, Buffer.alloc(8))),
  SETTINGS: flood2(opened, () => frame(settingsFrame, 0, 0)),
  "SETTINGS of a limit": flood2(opened, () =>
    frame(settingsFrame, 0, 0, Buffer.concat([Buffer.of(0, 3), uint32(100)]))
  ),
  WINDOW_UPDATE: flood2(opened, (stream) => frame(windowFrame, 0, stream, uint32(1))),
  "empty DATA": flood2(opened, (stream) => frame(dataFrame, 0, stream)),
  "DATA of one byte": flood2(opened, (stream) => frame(dataFrame, 0, stream, Buffer.of(120))),
  "DATA after 201": flood2(
    (stream) => http2Response(stream, 201, endHeaders),
    (stream) => frame(dataFrame, 0, stream)
  ),
  CONTINUATION: flood2(
    (stream) => frame(headersFrame, 0, stream, statusBlock(503)),
    (stream) => frame(continuationFrame, 0, stream, Buffer.from(literal("x", "y"), "latin1"))
  ),
  "frames of no known type": flood2(opened, () => frame(unknownFrame, 0, 0)),
  RST_STREAM: {
    http2: true,
    begin: (stream) => frame(resetFrame, 0, stream, uint32(7))
  }
}
