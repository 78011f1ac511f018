// Media types: which ones Accept allows, and which one Content-Type declares. Pure.

import type { ApiRequest } from "./request.ts"
import { errorIn } from "./response.ts"

const json = "application/json"
const form = "application/x-www-form-urlencoded"

const mediaType = (header: string): string => (header.split(";")[0] ?? "").trim().toLowerCase()

/** The specificity and weight of a media range that covers JSON; undefined for other ranges. */
const rangeOf = (
  text: string
): { readonly specificity: number; readonly quality: number } | undefined => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const specificity = ["*/*", "application/*", json].indexOf(type)
  if (specificity === -1) return undefined
  const q = parameters.find((parameter) => parameter.startsWith("q="))
  return { specificity, quality: q === undefined ? 1 : Number(q.slice(2)) }
}

/** Whether Accept allows JSON. A malformed header allows it, an empty header does not. */
export const acceptsJson = (accept: string | undefined): boolean => {
  if (accept === undefined) return true
  if (accept.trim() === "") return false
  const parts = accept.split(",").map((part) => part.trim())
  if (parts.some((part) => !/^[^\s/;]+\/[^\s/;]+\s*(;.*)?$/.test(part))) return true
  const ranges = parts.map(rangeOf).filter((range) => range !== undefined)
  const best = ranges.sort((a, b) => b.specificity - a.specificity)[0]
  return best !== undefined && !(best.quality === 0)
}

/** The media type of the body; "" without Content-Type. */
const typeOf = ({ headers }: ApiRequest): string => mediaType(headers["content-type"] ?? "")

/** Whether Content-Type is missing or JSON. Ignores its parameters and case. */
export const isJson = (request: ApiRequest): boolean => ["", json].includes(typeOf(request))

/** Whether the body is an HTML form. */
export const isForm = (request: ApiRequest): boolean => typeOf(request) === form

/** Whether Content-Type is JSON, with or without a body. */
export const declaresJson = (request: ApiRequest): boolean => typeOf(request) === json

export const notAcceptable = errorIn("header", "Accept", `Accept must allow ${json}`)
const contentType = (description: string) => errorIn("header", "Content-Type", description)
export const unsupported = contentType(`Content-Type must be ${json}`)
export const unsupportedForm = contentType(`Content-Type must be ${form} or ${json}`)

/** Whether Accept-Encoding names gzip with a weight above 0. */
export const acceptsGzip = (header: string | undefined): boolean =>
  (header ?? "").split(",").some((part) => {
    const [coding, weight = "q=1"] = part.split(";").map((text) => text.trim().toLowerCase())
    return coding === "gzip" && Number(weight.slice(2)) > 0
  })

/** Whether Accept names JSON and no HTML page, as that of a program. */
export const prefersJson = (accept: string | undefined): boolean =>
  accept?.toLowerCase().includes(json) === true && !accept.includes("text/html")

/** Whether Accept prefers an HTML page to JSON. */
export const prefersHtml = (accept: string | undefined): boolean =>
  accept?.includes("text/html") === true && !accept.toLowerCase().includes(json)
