// Requests to the gateways as a client makes them: a deadline, basic credentials, JSON.
import { password } from "../fleet/users.ts"

export interface Response {
  /** 0: no response within the deadline, or the connection failed. */
  readonly status: number
  readonly location: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any shape
  readonly body: any
}

export const timeoutMillis = 8_000

export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export interface Request {
  /** `NATS`: a request to the API on NATS, whose operation is the path. */
  readonly method: string
  readonly path: string
  /** The name of a user; undefined: none. On NATS the source is the caller. */
  readonly user?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const basicOf = (user: string) => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`

/** Never rejects. */
export const request = async (base: string, asked: Request): Promise<Response> => {
  const { body, headers, method, path, user } = asked
  try {
    const response = await fetch(`${base}${path}`, {
      method,
      signal: AbortSignal.timeout(timeoutMillis),
      headers: {
        ...(user === undefined ? {} : { authorization: basicOf(user) }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    const location = response.headers.get("location") ?? undefined
    return { status: response.status, location, body: parse(text) }
  } catch {
    return { status: 0, location: undefined, body: undefined }
  }
}

/** Statuses that say "not now": the same request may be repeated. */
export const isPassing = (status: number): boolean => [0, 409, 429, 503, 507].includes(status)
