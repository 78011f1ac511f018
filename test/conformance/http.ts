// A bare HTTP client: fetch would tidy up paths, refuse methods and headers, and hide redirects.
import { Agent, type IncomingHttpHeaders, request } from "node:http"

export interface Sent {
  readonly method: string
  /** Path and query exactly as they go over the wire. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: cases look into answers of any shape
  readonly json: any
}

const agent = new Agent({ keepAlive: true })

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const exchange = (
  origin: string,
  { body, headers = {}, method, target }: Sent
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin)
    const unsized = body === undefined || headers["transfer-encoding"] !== undefined
    const length = unsized ? {} : { "content-length": String(Buffer.byteLength(body)) }
    const outgoing = request(
      {
        agent,
        hostname,
        port,
        method,
        path: target,
        headers: { ...length, ...headers },
        timeout: 20_000
      },
      (incoming) => {
        const chunks: Array<Buffer> = []
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
        incoming.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8")
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text,
            json: jsonOf(text)
          })
        })
        incoming.on("error", reject)
      }
    )
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${method} ${target}: no answer`)))
    outgoing.on("error", reject)
    outgoing.end(body)
  })
