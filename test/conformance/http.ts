// A plain HTTP client. fetch would normalise paths, reject methods and headers, and follow
// redirects.
import { Agent, type IncomingHttpHeaders, request } from "node:http"
import { gunzipSync } from "node:zlib"

export interface Sent {
  readonly method: string
  /** Path and query exactly as sent. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: cases read responses of any shape
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
): Promise<HttpResponse> =>
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
          const bytes = Buffer.concat(chunks)
          const isGzip = incoming.headers["content-encoding"] === "gzip" && bytes.length > 0
          const text = (isGzip ? gunzipSync(bytes) : bytes).toString("utf8")
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
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${method} ${target}: no response`)))
    outgoing.on("error", reject)
    outgoing.end(body)
  })
