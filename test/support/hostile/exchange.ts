// One raw request on a connection of its own, and the answer as it came over the wire.
import { type Origin, open, reset } from "./socket.ts"

export interface RawAnswer {
  /** 0: the connection was closed without an answer, or none came in time. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly bytes: number
  readonly millis: number
}

const keptMax = 2 * 1024 ** 2

/** Sends bytes as they are; a `Connection: close` among them ends the answer. */
export const exchangeRaw = async (
  origin: Origin,
  sent: string | Buffer,
  timeoutMillis: number
): Promise<RawAnswer> => {
  const client = await open(origin, keptMax)
  const start = performance.now()
  client.socket.write(sent)
  await client.closed(timeoutMillis)
  const millis = performance.now() - start
  reset(client)
  const text = Buffer.from(client.received(), "latin1").toString("utf8")
  // Skips the interim answer to `Expect: 100-continue`.
  const final = text.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, "")
  const [head = "", ...rest] = final.split("\r\n\r\n")
  const [line = "", ...fields] = head.split("\r\n")
  const headers = fields.map((field) => {
    const colon = field.indexOf(":")
    return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const
  })
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1] ?? 0),
    headers: Object.fromEntries(headers),
    text: rest.join("\r\n\r\n"),
    bytes: client.bytes(),
    millis
  }
}
