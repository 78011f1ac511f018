// The form of a case, and how it is checked: preparations, a request, and the expected response.
import { expect, it } from "vitest"
import { documentedErrors } from "../support/documents.ts"
import { Api, type Request, type Target } from "./api.ts"
import { checkDescribed } from "./described.ts"
import type { HttpResponse } from "./http.ts"
import { basicauth } from "./logins/basicauth.ts"
import type { Login } from "./logins/login.ts"

export interface Expected {
  readonly status: number
  /** The errno of the error body. Checks code and shape of the body, too. */
  readonly errno?: number
  /** The code of the error, where several share status and errno. */
  readonly error?: string
  readonly message?: string | RegExp
  /** Location and name of each detail, in order: `body:data.endpoint`, `path:null`. */
  readonly details?: ReadonlyArray<string>
  /** null: the header must be missing. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>
  /** Members that the body must have. */
  readonly body?: unknown
  /** The whole body. */
  readonly exactly?: unknown
}

export interface Case<G = unknown> {
  readonly name: string
  /** The logins with which the case can hold. Unset: all. */
  readonly only?: (login: Login) => boolean
  readonly given?: (api: Api) => Promise<G>
  readonly request: Request | ((api: Api, given: G) => Request)
  readonly expected: Expected | ((api: Api, given: G) => Expected)
  /** Further checks after the response. */
  readonly also?: (response: HttpResponse, api: Api, given: G) => void | Promise<void>
}

/** A gateway with its own settings, named without the prefix BELLCAST_, and the cases for it. */
export type Gateway = readonly [
  name: string,
  settings: Readonly<Record<string, string>>,
  cases: ReadonlyArray<Case>
]

export const define = <G>(each: Case<G>): Case => each as unknown as Case

const errorKeys = ["code", "errno", "error_code", "error", "message", "info", "details"]
/** Status, errno and code of every error of the contract. */
const contractErrors = documentedErrors("test/conformance/README.md")

const checkError = (response: HttpResponse, expectedError: Expected) => {
  const { details: expected, errno, error, message } = expectedError
  expect(response.json, response.text).toBeTypeOf("object")
  expect(response.json.code).toBe(response.status)
  if (errno !== undefined) expect(response.json.errno).toBe(errno)
  const { code, error_code } = response.json
  expect(contractErrors).toContain(`${code} ${response.json.errno} ${error_code}`)
  if (error !== undefined) expect(error_code).toBe(error)
  expect(response.json.error).toBeTypeOf("string")
  expect(errorKeys).toEqual(expect.arrayContaining(Object.keys(response.json)))
  if (typeof message === "string") expect(response.json.message).toBe(message)
  else if (message !== undefined) expect(response.json.message).toMatch(message)
  if (expected === undefined) return
  const details = response.json.details as ReadonlyArray<{
    location: string
    name: string | null
    description: string
  }>
  expect(details.map(({ location, name }) => `${location}:${name}`)).toEqual(expected)
  for (const { description } of details) expect(description).toBeTypeOf("string")
}

const checkHeaders = (response: HttpResponse, headers: NonNullable<Expected["headers"]>) => {
  for (const [name, wanted] of Object.entries(headers)) {
    const found = response.headers[name.toLowerCase()]
    if (wanted === null) expect(found, name).toBeUndefined()
    else if (typeof wanted === "string") expect(found, name).toBe(wanted)
    else expect(String(found), name).toMatch(wanted)
  }
}

const mediaTypes = [
  "application/json",
  "text/html",
  "text/javascript",
  "text/event-stream",
  "text/csv; header=present",
  "text/plain; version=0.0.4"
].map((type) => `${type}; charset=utf-8`)

/** Headers that RFC 9110 demands of statuses. */
const demandedHeaders: Readonly<Record<number, string>> = {
  302: "location",
  304: "cache-control",
  307: "location",
  401: "www-authenticate",
  405: "allow"
}

/** Checks what every response must have. */
const checkAlways = (response: HttpResponse, { method }: Request) => {
  expect(response.headers["x-content-type-options"]).toBe("nosniff")
  expect(response.headers["content-security-policy"]).toMatch(/default-src 'none'/)
  expect(response.headers["date"]).toMatch(/ GMT$/)
  const demanded = demandedHeaders[response.status]
  if (demanded !== undefined) expect(response.headers[demanded], demanded).toBeTypeOf("string")
  const bodiless = method === "HEAD" || response.status === 304
  if (bodiless) expect(response.text).toBe("")
  if (response.status === 304) expect(response.headers["content-type"]).toBeUndefined()
  else if (!bodiless && response.text !== "")
    expect(mediaTypes).toContain(response.headers["content-type"]?.toLowerCase())
  const { json, status } = response
  const tryLater =
    status >= 500 || (status === 409 && json?.error_code === "too-many-writes") || status === 429
  if (tryLater) expect(response.headers["retry-after"]).toMatch(/^\d+$/)
  else expect(response.headers["retry-after"]).toBeUndefined()
  if (status >= 400) expect(response.headers["cache-control"]).toBe("no-cache, no-store")
}

export const check = (response: HttpResponse, request: Request, expected: Expected): void => {
  expect(response.status, response.text).toBe(expected.status)
  checkAlways(response, request)
  if (expected.status >= 400 && request.method !== "HEAD" && expected.exactly === undefined)
    checkError(response, expected)
  if (expected.headers !== undefined) checkHeaders(response, expected.headers)
  if (expected.body !== undefined) expect(response.json).toMatchObject(expected.body as object)
  if (expected.exactly !== undefined) expect(response.json).toEqual(expected.exactly)
}

/** Defines the tests of cases, one after another. `login`: that of the target. */
export const run = (
  cases: ReadonlyArray<Case>,
  target: () => Target,
  login: Login = basicauth
): void => {
  const possible = cases.filter(({ only }) => only?.(login) ?? true)
  for (const { also, expected, given, name, request } of possible) {
    it(name, { concurrent: false, timeout: 90_000 }, async () => {
      const api = new Api(target())
      const context = await given?.(api)
      const sent = typeof request === "function" ? request(api, context) : request
      const response = await api.send(sent)
      check(response, sent, typeof expected === "function" ? expected(api, context) : expected)
      await checkDescribed(api.target.origin, response, sent)
      await also?.(response, api, context)
    })
  }
}
