// Accept and Content-Type.

import type { ErrorDetail } from "./errors.ts"
import type { ApiRequest } from "./request.ts"

const json = "application/json"

const mediaType = (header: string): string => (header.split(";")[0] ?? "").trim().toLowerCase()

/** `*` for every range that covers JSON, with its weight. */
const rangeOf = (
  text: string
): { readonly specificity: number; readonly quality: number } | undefined => {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const specificity = ["*/*", "application/*", json].indexOf(type)
  if (specificity === -1) return undefined
  const q = parameters.find((parameter) => parameter.startsWith("q="))
  return { specificity, quality: q === undefined ? 1 : Number(q.slice(2)) }
}

/** What cannot be parsed is taken as no wish at all; an empty header wishes for nothing. */
export const acceptsJson = (accept: string | undefined): boolean => {
  if (accept === undefined) return true
  if (accept.trim() === "") return false
  const parts = accept.split(",").map((part) => part.trim())
  if (parts.some((part) => !/^[^\s/;]+\/[^\s/;]+\s*(;.*)?$/.test(part))) return true
  const ranges = parts.map(rangeOf).filter((range) => range !== undefined)
  const best = ranges.sort((a, b) => b.specificity - a.specificity)[0]
  return best !== undefined && !(best.quality === 0)
}

/** Media type of the body; "" when none is given. */
const typeOf = ({ headers }: ApiRequest): string => mediaType(headers["content-type"] ?? "")

/** Missing or JSON, whatever its parameters and its case. */
export const isJson = (request: ApiRequest): boolean => ["", json].includes(typeOf(request))

/** Says that it is JSON, with a body or without. */
export const declaresJson = (request: ApiRequest): boolean => typeOf(request) === json

export const notAcceptable: ErrorDetail = {
  location: "header",
  name: "Accept",
  description: `Accept must allow ${json}`
}
export const unsupported: ErrorDetail = {
  location: "header",
  name: "Content-Type",
  description: `Content-Type must be ${json}`
}

/** Whether a browser asks for a page rather than for data. */
export const prefersHtml = (accept: string | undefined): boolean =>
  accept?.includes("text/html") === true && !accept.toLowerCase().includes(json)
