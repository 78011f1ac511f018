// Reasons for which a push service refuses a request, in the order of real ones: VAPID,
// subscription, size, headers.
import type { IncomingMessage } from "node:http"
import { checkVapid, senderKeyOf } from "#cli/listen/push-receiver.ts"
import type { UserAgent } from "./user-agent.ts"

/** The most that a push service must take (RFC 8030 section 7.2). */
const bodyBytesMax = 4096

export interface Refusal {
  readonly status: number
  readonly reason: string
  /** True when the sender did something wrong; false when only the subscription is gone. */
  readonly fault: boolean
}

const fault = (status: number, reason: string): Refusal => ({ status, reason, fault: true })

const headersFault = ({ headers }: IncomingMessage, body: Buffer): string | undefined => {
  const { ttl, topic, urgency = "normal" } = headers
  // Node joins a repeated header with ", ", so that a second value fails these patterns too.
  if (!/^\d+$/.test(String(ttl))) return "TTL must be a non-negative integer (RFC 8030 section 5.2)"
  if (topic !== undefined && !/^[A-Za-z0-9_-]{1,32}$/.test(String(topic)))
    return "Topic is 1 to 32 base64url characters (section 5.4)"
  if (!/^(very-low|low|normal|high)$/.test(String(urgency)))
    return "Urgency is very-low, low, normal or high (section 5.3)"
  if (body.length > 0 && headers["content-encoding"] !== "aes128gcm")
    return "Content-Encoding must be aes128gcm (RFC 8291 section 4)"
  return undefined
}

const bodyFault = (body: Buffer, applicationServerKey: string): string | undefined => {
  if (body.length === 0) return undefined
  try {
    if (senderKeyOf(body) === applicationServerKey)
      return "the VAPID key must not encrypt (RFC 8292 section 3.2)"
  } catch (error) {
    return String(error)
  }
  return undefined
}

/** Why this request is refused, or undefined. */
export const refusalOf = async (
  agent: UserAgent,
  request: IncomingMessage,
  body: Buffer,
  audience: string
): Promise<Refusal | undefined> => {
  const { applicationServerKey } = agent
  const vapid = await checkVapid(request.headers.authorization, {
    audience,
    nowMillis: Date.now(),
    applicationServerKey
  })
  if (!vapid.ok) return fault(vapid.status, vapid.reason)
  if (agent.unsubscribed) return { status: 410, reason: "unsubscribed", fault: false }
  if (body.length > bodyBytesMax) return fault(413, `the body is over ${bodyBytesMax} bytes`)
  const wrong = headersFault(request, body) ?? bodyFault(body, vapid.applicationServerKey)
  return wrong === undefined ? undefined : fault(400, wrong)
}

/**
 * The body; empty for a sink. Bytes over the limit are read and dropped, so that the connection can
 * be used again.
 * Rejects when the request ends in the middle. An HTTP/2 request whose session was destroyed
 * (GOAWAY) can end like a whole one, without an error or `aborted` (Node.js 24.21). So its bytes
 * are compared with `Content-Length`.
 */
export const readBody = (request: IncomingMessage, keep: boolean): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Array<Buffer> = []
    const announced = keep ? Number(request.headers["content-length"] ?? 0) : 0
    let bytes = 0
    const take = (chunk: Buffer) => {
      if (bytes <= bodyBytesMax) chunks.push(chunk)
      bytes += chunk.length
    }
    const cutOff = () => reject(new Error("the request ended before its body was whole"))
    request
      .once("error", reject)
      .once("end", () => (bytes < announced ? cutOff() : resolve(Buffer.concat(chunks))))
      .once("close", cutOff)
    if (keep) request.on("data", take)
    else request.resume()
  })
