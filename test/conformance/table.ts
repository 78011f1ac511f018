// The form of a case, and how it is checked: a request, what came before it, and all that the answer must be.
import { expect, it } from "vitest"
import { Api, type Request, type Target } from "./api.ts"
import { checkDescribed } from "./described.ts"
import type { Answer } from "./http.ts"

export interface Expected {
  readonly status: number
  /** Of the error body, whose code and shape are then checked too. */
  readonly errno?: number
  readonly message?: string | RegExp
  /** Location and name of each fault, in order: `body:data.endpoint`, `path:null`. */
  readonly faults?: ReadonlyArray<string>
  /** null: the header must be missing. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>
  /** The body holds at least this. */
  readonly body?: unknown
  /** The body is this. */
  readonly exactly?: unknown
}

export interface Case<G = unknown> {
  readonly name: string
  readonly given?: (api: Api) => Promise<G>
  readonly request: Request | ((api: Api, given: G) => Request)
  readonly expected: Expected | ((api: Api, given: G) => Expected)
  /** What else must be true then. */
  readonly also?: (answer: Answer, api: Api, given: G) => void | Promise<void>
}

/** A gateway with settings of its own, named without their common prefix, and what is true of it. */
export type Gateway = readonly [
  name: string,
  settings: Readonly<Record<string, string>>,
  cases: ReadonlyArray<Case>
]

export const define = <G>(each: Case<G>): Case => each as unknown as Case

const errorKeys = ["code", "errno", "error", "message", "info", "details"]

const checkError = (answer: Answer, { errno, faults, message }: Expected) => {
  expect(answer.json, answer.text).toBeTypeOf("object")
  expect(answer.json.code).toBe(answer.status)
  if (errno !== undefined) expect(answer.json.errno).toBe(errno)
  expect(answer.json.error).toBeTypeOf("string")
  expect(errorKeys).toEqual(expect.arrayContaining(Object.keys(answer.json)))
  if (typeof message === "string") expect(answer.json.message).toBe(message)
  else if (message !== undefined) expect(answer.json.message).toMatch(message)
  if (faults === undefined) return
  const details = answer.json.details as ReadonlyArray<{
    location: string
    name: string | null
    description: string
  }>
  expect(details.map(({ location, name }) => `${location}:${name}`)).toEqual(faults)
  for (const { description } of details) expect(description).toBeTypeOf("string")
}

const checkHeaders = (answer: Answer, headers: NonNullable<Expected["headers"]>) => {
  for (const [name, wanted] of Object.entries(headers)) {
    const found = answer.headers[name.toLowerCase()]
    if (wanted === null) expect(found, name).toBeUndefined()
    else if (typeof wanted === "string") expect(found, name).toBe(wanted)
    else expect(String(found), name).toMatch(wanted)
  }
}

/** True of every answer there is. */
const checkAlways = (answer: Answer, { method }: Request) => {
  expect(answer.headers["x-content-type-options"]).toBe("nosniff")
  expect(answer.headers["content-security-policy"]).toMatch(/default-src 'none'/)
  const bodiless = method === "HEAD" || answer.status === 304
  if (bodiless) expect(answer.text).toBe("")
  if (answer.status === 304) expect(answer.headers["content-type"]).toBeUndefined()
  else if (!bodiless && answer.text !== "")
    expect(answer.headers["content-type"]).toMatch(
      /^(application\/json|text\/html|text\/plain; version=0\.0\.4); charset=utf-8$/i
    )
  const tryLater = answer.status >= 500 || answer.status === 409 || answer.status === 429
  if (tryLater) expect(answer.headers["retry-after"]).toMatch(/^\d+$/)
  else expect(answer.headers["retry-after"]).toBeUndefined()
}

export const check = (answer: Answer, request: Request, expected: Expected): void => {
  expect(answer.status, answer.text).toBe(expected.status)
  checkAlways(answer, request)
  if (expected.status >= 400 && request.method !== "HEAD" && expected.exactly === undefined)
    checkError(answer, expected)
  if (expected.headers !== undefined) checkHeaders(answer, expected.headers)
  if (expected.body !== undefined) expect(answer.json).toMatchObject(expected.body as object)
  if (expected.exactly !== undefined) expect(answer.json).toEqual(expected.exactly)
}

export const run = (cases: ReadonlyArray<Case>, target: () => Target): void => {
  for (const { also, expected, given, name, request } of cases) {
    it(name, { timeout: 90_000 }, async () => {
      const api = new Api(target())
      const context = await given?.(api)
      const sent = typeof request === "function" ? request(api, context) : request
      const answer = await api.send(sent)
      check(answer, sent, typeof expected === "function" ? expected(api, context) : expected)
      await checkDescribed(api.target.origin, answer, sent)
      await also?.(answer, api, context)
    })
  }
}
