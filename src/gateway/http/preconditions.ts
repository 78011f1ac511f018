// Conditional requests (RFC 9110 section 13): If-Match, If-None-Match, ETag and Last-Modified. The
// API ignores If-Modified-Since and If-Unmodified-Since.

import type { ApiRequest } from "./request.ts"
import { type ApiResponse, type ErrorDetail, errorIn, Refused, refuse } from "./response.ts"
import { noStore } from "./response-headers.ts"

/** Entity tags as they were sent, weak ones included; `*`: any state. */
type Tags = "*" | ReadonlyArray<string>

export interface Preconditions {
  readonly ifMatch: Tags | undefined
  readonly ifNoneMatch: Tags | undefined
}

// Three patterns that each begin where the last one ended. One for a whole element would take
// quadratic time: two of its parts match blanks.
const blanks = /[ \t,]*/y
const entityTag = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/y
const separator = /[ \t]*(?:,[ \t,]*|$)/y

/**
 * The tags of a list (RFC 9110 sections 5.6.1 and 8.8.3), whose elements may be empty; undefined
 * when it has no tag, or is no list.
 */
const tagsOf = (header: string): Tags | undefined => {
  if (header === "*") return "*"
  const tags: Array<string> = []
  let at = 0
  const next = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(header)?.[0]
    at += found?.length ?? 0
    return found
  }
  next(blanks)
  while (at < header.length) {
    const tag = next(entityTag)
    if (tag === undefined || next(separator) === undefined) return undefined
    tags.push(tag)
  }
  return tags.length === 0 ? undefined : tags
}

export const readPreconditions = (
  { headers }: ApiRequest,
  errors: Array<ErrorDetail>
): Preconditions => {
  const read = (name: "If-Match" | "If-None-Match"): Tags | undefined => {
    const header = headers[name.toLowerCase()]?.trim()
    if (header === undefined) return undefined
    const tags = tagsOf(header)
    if (tags === undefined)
      errors.push(errorIn("header", name, `${name} must be * or entity tags between double quotes`))
    return tags
  }
  return { ifMatch: read("If-Match"), ifNoneMatch: read("If-None-Match") }
}

const weak = "W/"
/** Whether a tag is among these, as a weak one or not. */
const hasWeakly = (tags: Tags, tag: string): boolean =>
  tags === "*" || tags.some((each) => each === tag || each === weak + tag)

/** Whether the header If-None-Match has a tag; one that cannot be read has none. */
export const isTagIn = (ifNoneMatch: string | undefined, tag: string): boolean =>
  hasWeakly(tagsOf(ifNoneMatch?.trim() ?? "") ?? [], tag)

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

const weakMessage =
  "A tag that begins with W/ never matches in If-Match (RFC 9110 section 13.1.1), and a proxy " +
  "that compresses makes every ETag such a one: send the ETag without W/."

const modified = ({ existing, timestamp }: Target, message?: string): Refused =>
  refuse("modified-meanwhile", {
    headers: stamp(timestamp),
    ...(message === undefined ? {} : { message }),
    ...(existing === undefined ? {} : { details: { existing } })
  })

/**
 * The 412 or, where the client reads and has the current state, the 304; undefined when the request
 * may go on.
 */
export const unmet = (
  { ifMatch, ifNoneMatch }: Preconditions,
  target: Target,
  purpose: "read" | "write"
): Refused | undefined => {
  const headers = stamp(target.timestamp)
  const tag = headers.ETag
  if (ifMatch !== undefined && !(target.exists && (ifMatch === "*" || ifMatch.includes(tag))))
    return modified(target, ifMatch.includes(weak + tag) ? weakMessage : undefined)
  if (ifNoneMatch === undefined || !target.exists || !hasWeakly(ifNoneMatch, tag)) return undefined
  if (purpose === "write") return modified(target)
  const response: ApiResponse = { status: 304, headers: { ...headers, ...noStore } }
  return new Refused({ response })
}
