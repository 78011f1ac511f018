// The API description as a page for people: no scripts, nothing loaded from elsewhere.
import { createHash } from "node:crypto"

type Json = Readonly<Record<string, unknown>>

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{font:600 1.05rem ui-monospace,monospace;margin:2.2rem 0 .3rem}h2 b{color:#06c}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-top:1px solid #ddd}
code,pre{font:.85rem ui-monospace,monospace}pre{background:#f5f5f5;padding:.6rem;overflow:auto}`

/** Only this style sheet may be used. */
export const pagePolicy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; frame-ancestors 'none'; base-uri 'none'`

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }
const html = (value: unknown): string => String(value).replace(/[&<>"]/g, (char) => escapes[char]!)

const table = (rows: ReadonlyArray<readonly [string, string]>): string =>
  rows.length === 0 ? "" : `<table>${rows.map(([a, b]) => `<tr><td><code>${html(a)}</code><td>${html(b)}`).join("")}</table>`

const body = (operation: Json): string => {
  const content = (operation["requestBody"] as { content: { "application/json": { schema: unknown } } } | undefined)?.content
  return content === undefined
    ? ""
    : `<details><summary>Body (JSON Schema)</summary><pre>${html(JSON.stringify(content["application/json"].schema, null, 2))}</pre></details>`
}

const section = (path: string, method: string, operation: Json): string => {
  const parameters = (operation["parameters"] ?? []) as ReadonlyArray<{ name: string; description: string }>
  const responses = Object.entries(operation["responses"] as Record<string, { description: string }>)
  return `<h2 id="${html(operation["operationId"])}"><b>${html(method.toUpperCase())}</b> ${html(path)}</h2><p>${html(operation["summary"])}${
    operation["security"] === undefined ? "" : " (needs authentication)"
  }</p>${table(parameters.map(({ description, name }) => [name, description]))}${body(operation)}${table(
    responses.map(([status, { description }]) => [status, description])
  )}`
}

export const apiPage = (document: Json): string => {
  const info = document["info"] as { title: string; version: string; description: string }
  const paths = Object.entries(document["paths"] as Record<string, Json>)
  const sections = paths.flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== "parameters")
      .map(([method, operation]) => section(path, method, operation as Json))
  )
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${html(info.title)}</title><style>${style}</style><h1>${html(info.title)} ${html(
    info.version
  )}</h1><p>${html(info.description)} Programs get this description as OpenAPI 3.1 here.</p>${sections.join("")}</html>`
}
