// What a server says of itself: every answer to an operation that its description has must be one that the description tells.
import { expect } from "vitest"
import type { Request } from "./api.ts"
import { type Answer, exchange } from "./http.ts"

type Responses = Readonly<Record<string, { readonly description: string }>>
type Paths = Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>

const known = new Map<string, Promise<Paths>>()

/** Undefined paths where there is no description: of another version, or of a service that has ended. */
const pathsOf = (origin: string): Promise<Paths> => {
  const asked = known.get(origin) ?? exchange(origin, { method: "GET", target: "/v1/__api__" }).then(({ json }) => json?.paths ?? {})
  known.set(origin, asked)
  return asked
}

const fits = (template: string, path: string): boolean => {
  const [parts, segments] = [template.split("/"), path.split("/")]
  return parts.length === segments.length && parts.every((part, i) => (part.startsWith("{") ? segments[i] !== "" : part === segments[i]))
}

/** Methods that are switched off answer 405; what the description tells of every operation at once is in its words. */
export const checkDescribed = async (origin: string, { status, json }: Answer, { method, path, target }: Request): Promise<void> => {
  const below = target === undefined ? (path ?? "/") : target.startsWith("/v1/") ? target.slice("/v1".length) : undefined
  if (below === undefined || status === 405) return
  const [, item] = Object.entries(await pathsOf(origin)).find(([template]) => fits(template, below.split("?")[0]!)) ?? []
  const operation = item?.[(method === "HEAD" ? "GET" : method).toLowerCase()]
  if (operation === undefined) return
  const told = operation.responses[status]
  expect(told, `${method} ${below}: ${status} is not described`).toBeDefined()
  if (status >= 400 && json?.errno !== undefined) expect(told!.description).toContain(`errno ${json.errno} `)
}
