// Requests to the API of the service that this page comes from, with the login of the session.

/** The address of the API: the page lies in its folder `console/`. */
export const root = new URL("..", new URL(location.pathname, location.origin)).href

/** An answer that is no success, or none at all. */
export class Problem extends Error {
  override readonly name = "Problem"
  /** 0: no answer came. */
  readonly status: number
  /** The `error_code` of the service; `offline`, `timeout` or `unreadable`: there was no answer. */
  readonly code: string
  readonly details: unknown
  readonly retryAfterMillis: number | undefined

  constructor(
    code: string,
    status = 0,
    message = "",
    details: unknown = undefined,
    retryAfterMillis: number | undefined = undefined
  ) {
    super(message || code)
    this.code = code
    this.status = status
    this.details = details
    this.retryAfterMillis = retryAfterMillis
  }
}

export interface Wanted {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  readonly body?: unknown
  /** Such as If-Match. */
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Instead of the login of the session; null: none. */
  readonly authorization?: string | null
}

export interface Answer<T> {
  readonly status: number
  readonly body: T
  readonly etag: string | undefined
  /** The address of the next page of a list. */
  readonly next: string | undefined
  /** The address of what was made. */
  readonly location: string | undefined
}

/** The ETag of a draft or broadcast in a response, as of a list: its timestamp. */
export const etagOf = ({ last_modified }: { readonly last_modified: number }): string =>
  `"${last_modified}"`

/** Longer than the service takes for anything (10 s), so its own answer comes first. */
const answerTimeoutMillis = 20_000

/** Pages that came by http have no randomUUID. */
export const randomId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")

interface Login {
  authorization: string | undefined
  /** The id of the user whose page this is. The service does nothing for anybody else. */
  user: string | undefined
  /** The service does not know the login any more. */
  ended: () => void
  /** The requests of this page are another person's now. */
  isAnother: () => void
}

/** Set by the session. */
export const login: Login = {
  authorization: undefined,
  user: undefined,
  ended: () => {},
  isAnother: () => {}
}

/** One request. Throws a Problem; an AbortError where `signal` ends it. */
export const request = async <T>(path: string, wanted: Wanted = {}): Promise<Answer<T>> => {
  const response = await send(path, wanted, AbortSignal.timeout(answerTimeoutMillis))
  const text = await response.text().catch((cause: unknown) => {
    throw problemOf(cause, wanted.signal)
  })
  return {
    status: response.status,
    body: parsed(text, response) as T,
    etag: response.headers.get("etag") ?? undefined,
    next: response.headers.get("next-page") ?? undefined,
    location: response.headers.get("location") ?? undefined
  }
}

/** A response whose body is read by the caller, such as a stream. Throws as `request`. */
export const send = async (
  path: string,
  { authorization, body, headers, method = "GET", signal }: Wanted,
  timeout?: AbortSignal
): Promise<Response> => {
  const isOfSession = authorization === undefined
  const by = isOfSession ? login.authorization : authorization
  const signals = [signal, timeout].filter((each) => each !== undefined)
  const response = await fetch(addressOf(path), {
    method,
    signal: AbortSignal.any(signals),
    // A proxy before the service may know the user by a cookie.
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
    headers: {
      ...(by ? { Authorization: by } : {}),
      ...(isOfSession && login.user ? { "If-User": encodeURIComponent(login.user) } : {}),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  }).catch((cause: unknown) => {
    throw problemOf(cause, signal)
  })
  if (response.ok) return response
  const problem = await refusalOf(response)
  if (problem.code === "unauthenticated" && isOfSession) login.ended()
  if (problem.code === "another-user" && isOfSession) login.isAnother()
  throw problem
}

/** The login goes to this service only, wherever the address of a next page leads. */
const addressOf = (path: string): string => {
  const address = new URL(path, root)
  // Behind a proxy the service may name another scheme or host of its own.
  if (address.origin !== location.origin)
    return `${location.origin}${address.pathname}${address.search}`
  return address.href
}

const problemOf = (cause: unknown, signal: AbortSignal | undefined): unknown => {
  if (signal?.aborted) return cause
  const { name = "" } = Object(cause) as { readonly name?: string }
  return new Problem(name === "TimeoutError" ? "timeout" : "offline")
}

const refusalOf = async (response: Response): Promise<Problem> => {
  const body = (await response.json().catch(() => ({}))) as {
    readonly error_code?: string
    readonly message?: string
    readonly details?: unknown
  }
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN)
  return new Problem(
    // A proxy before the service refuses whom it does not know without a code of ours.
    body.error_code ?? (response.status === 401 ? "unauthenticated" : "unreadable"),
    response.status,
    body.message,
    body.details,
    Number.isFinite(seconds) ? seconds * 1_000 : undefined
  )
}

const parsed = (text: string, { headers, status }: Response): unknown => {
  if (text === "" || !(headers.get("content-type") ?? "").includes("json")) return text
  try {
    return JSON.parse(text)
  } catch {
    throw new Problem("unreadable", status)
  }
}
