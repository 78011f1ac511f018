// Conditional requests: If-Match, If-None-Match, ETag and Last-Modified. The API ignores
// If-Modified-Since and If-Unmodified-Since.
import { type ErrorDetail, errorIn, refuse } from "./errors.ts"
import { type ApiRequest, type ApiResponse, Refused } from "./request.ts"

/** The value of a precondition: a timestamp in milliseconds since the epoch, or `*`. */
type Tag = number | "*"

export interface Preconditions {
  readonly ifMatch: Tag | undefined
  readonly ifNoneMatch: Tag | undefined
}

const tagOf = (header: string): Tag | undefined => {
  if (header === "*") return "*"
  const digits = /^"(\d{1,19})"$/.exec(header)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

export const readPreconditions = (
  { headers }: ApiRequest,
  errors: Array<ErrorDetail>
): Preconditions => {
  const read = (name: "If-Match" | "If-None-Match"): Tag | undefined => {
    const header = headers[name.toLowerCase()]?.trim()
    if (header === undefined) return undefined
    const tag = tagOf(header)
    if (tag === undefined) {
      errors.push(errorIn("header", name, `${name} must be * or a timestamp between double quotes`))
    }
    return tag
  }
  return { ifMatch: read("If-Match"), ifNoneMatch: read("If-None-Match") }
}

/** Whether If-None-Match has a tag, also as a weak one (RFC 9110 section 13.1.2). */
export const isTagIn = (ifNoneMatch: string | undefined, tag: string): boolean =>
  (ifNoneMatch ?? "")
    .split(",")
    .some((each) => ["*", tag].includes(each.trim().replace(/^W\//, "")))

/** ETag and Last-Modified of a timestamp in milliseconds since the epoch. */
export const stamp = (
  timestamp: number
): { readonly ETag: string; readonly "Last-Modified": string } => ({
  ETag: `"${timestamp}"`,
  "Last-Modified": new Date(timestamp).toUTCString()
})

/** The current state of the resource that a request names. */
export interface Target {
  readonly timestamp: number
  /** Always true for a list. */
  readonly exists: boolean
  /** The object that a 412 shows to the client. */
  readonly existing?: unknown
}

const modified = ({ existing, timestamp }: Target): Refused =>
  refuse("modified-meanwhile", {
    headers: stamp(timestamp),
    ...(existing === undefined ? {} : { details: { existing } })
  })

/** The 304 for GET and HEAD when the client has the current state; undefined otherwise. */
export const notModified = (
  { ifNoneMatch }: Preconditions,
  { timestamp }: Target
): Refused | undefined => {
  if (ifNoneMatch !== timestamp) return undefined
  const response: ApiResponse = { status: 304, headers: stamp(timestamp) }
  return new Refused({ response })
}

/** The 412, or undefined when the request may go on. Ignores a timestamp in If-None-Match. */
export const violated = (
  { ifMatch, ifNoneMatch }: Preconditions,
  target: Target
): Refused | undefined => {
  if (ifNoneMatch === "*" && target.exists) return modified(target)
  if (ifMatch === undefined) return undefined
  if (!target.exists) return modified(target)
  return ifMatch === "*" || ifMatch === target.timestamp ? undefined : modified(target)
}
