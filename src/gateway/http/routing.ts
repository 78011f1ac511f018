// Routing: a request target leads to an endpoint, a redirect or a 404. Pure. The types here have
// the part of an endpoint that routing, CORS and CSRF need; operation.ts has the rest.
import { versionPrefix } from "./version.ts"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** The rules of an operation that hold before it runs. */
export interface OperationRules {
  /**
   * `open`: pages of any origin may send this request. For logins that return as a form post or a
   * redirect, and for scripts that other origins load. Unset: pipeline/checks.ts checks requests
   * that change data.
   */
  readonly crossSite?: "open"
  /** Response headers that scripts may read, besides those of every response. */
  readonly exposes?: ReadonlyArray<string>
}

export interface Endpoint<O extends OperationRules = OperationRules> {
  readonly name: string
  /**
   * The path after the version; `:name` stands for one segment, in which only `:user` may have a
   * slash.
   */
  readonly path: string
  /** The methods in the order of the Allow header. */
  readonly allow: ReadonlyArray<string>
  readonly operations: Readonly<Partial<Record<Method, O>>>
  /** Whether no page of another origin may use it, whatever origins may call the API. */
  readonly isForOwnPages?: true
}

/** The operation of a method. HEAD runs the operation of GET. */
export const operationOf = <O extends OperationRules>(
  { operations }: Endpoint<O>,
  method: string
): O | undefined => {
  const name = method === "HEAD" ? "GET" : method
  return Object.hasOwn(operations, name) ? operations[name as Method] : undefined
}

export type Route<E extends Endpoint = Endpoint> =
  | {
      readonly kind: "endpoint"
      readonly endpoint: E
      readonly params: Readonly<Record<string, string>>
      readonly query: string
    }
  /** `to` is an absolute path with the query string. */
  | { readonly kind: "redirect"; readonly why: "version" | "slash"; readonly to: string }
  | { readonly kind: "unknown"; readonly version: boolean }
  | { readonly kind: "undecodable" }

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The bytes of a percent-encoded text. Invalid escapes stay; other characters are raw bytes. */
const percentBytes = (text: string): Uint8Array => {
  const bytes: Array<number> = []
  for (let i = 0; i < text.length; i++) {
    const hex = text[i] === "%" ? text.slice(i + 1, i + 3) : ""
    if (/^[0-9a-f]{2}$/i.test(hex)) {
      bytes.push(Number.parseInt(hex, 16))
      i += 2
    } else bytes.push(text.charCodeAt(i) & 0xff)
  }
  return Uint8Array.from(bytes)
}

/** The decoded text; undefined when its bytes are not UTF-8. */
export const decodePercent = (text: string): string | undefined => {
  if (/^[\w.~-]*$/.test(text)) return text
  try {
    return utf8.decode(percentBytes(text))
  } catch {
    return undefined
  }
}

/**
 * A path without trailing slashes. Not a regular expression, which takes quadratic time: 15,000
 * slashes took 250 ms.
 */
export const withoutSlashes = (path: string): string => {
  let end = path.length
  while (path[end - 1] === "/") end--
  return path.slice(0, end)
}

/** A target with its raw bytes percent-encoded, as a Location requires. */
const ascii = (target: string): string =>
  target.replace(/[^\x21-\x7e]/g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`)

const patterns = new WeakMap<Endpoint, ReadonlyArray<string>>()

/** The segments of an endpoint's path, split once per endpoint. */
const partsOf = (endpoint: Endpoint): ReadonlyArray<string> => {
  let parts = patterns.get(endpoint)
  if (parts === undefined) {
    parts = endpoint.path.split("/").slice(1)
    patterns.set(endpoint, parts)
  }
  return parts
}

/** The named segments of a path that matches; undefined when the path does not match. */
const match = (
  parts: ReadonlyArray<string>,
  segments: ReadonlyArray<string>
): Record<string, string> | undefined => {
  if (parts.length !== segments.length) return undefined
  const params: Record<string, string> = {}
  for (const [i, part] of parts.entries()) {
    const segment = segments[i]!
    if (!part.startsWith(":")) {
      if (part !== segment) return undefined
    } else if (segment === "" || (segment.includes("/") && part !== ":user")) return undefined
    else params[part.slice(1)] = segment
  }
  return params
}

/** The decoded segments of a path; undefined when one is not UTF-8. */
const segmentsOf = (path: string): ReadonlyArray<string> | undefined => {
  const segments: Array<string> = []
  for (const raw of path.split("/").slice(1)) {
    const segment = decodePercent(raw)
    if (segment === undefined) return undefined
    segments.push(segment)
  }
  return segments
}

/** Whether a path without the version may be redirected to the same path with the version. */
const maybeUnversioned = (path: string, segments: ReadonlyArray<string>): boolean =>
  // Compare the whole segment: /v10 is another version, not a path below /v1.
  !/^v\d/.test(segments[0] ?? "") &&
  !segments.some((segment) => /[\r\n]/.test(segment)) &&
  path.startsWith("/")

export const routeOf = <E extends Endpoint>(
  endpoints: ReadonlyArray<E>,
  target: string
): Route<E> => {
  const mark = target.indexOf("?")
  const path = mark === -1 ? target : target.slice(0, mark)
  const query = mark === -1 ? "" : target.slice(mark + 1)
  const search = () => ascii(target.slice(path.length))
  const segments = segmentsOf(path)
  if (segments === undefined) return { kind: "undecodable" }
  if (segments[0] !== versionPrefix) {
    return maybeUnversioned(path, segments)
      ? { kind: "redirect", why: "version", to: `/${versionPrefix}${ascii(path)}${search()}` }
      : { kind: "unknown", version: true }
  }
  const rest = segments.slice(1)
  for (const endpoint of endpoints) {
    const params = match(partsOf(endpoint), rest)
    if (params !== undefined) return { kind: "endpoint", endpoint, params, query }
  }
  if (rest.length === 0)
    return { kind: "redirect", why: "slash", to: `/${versionPrefix}/${search()}` }
  if (path.endsWith("/"))
    return { kind: "redirect", why: "slash", to: `${withoutSlashes(ascii(path))}${search()}` }
  return { kind: "unknown", version: false }
}
