// The API description as an HTML page: without scripts and external resources, for light and dark
// mode, for desktop and phone.
import { hash } from "node:crypto"

type Json = Readonly<Record<string, unknown>>

interface Parameter {
  readonly in: string
  readonly name: string
  readonly description?: string
  readonly schema: { readonly description?: string; readonly examples?: ReadonlyArray<string> }
}

interface ResponseDescription {
  readonly description: string
  readonly headers?: Json
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly security?: unknown
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: {
    readonly content: {
      readonly "application/json": { readonly schema: unknown; readonly example: unknown }
    }
  }
  readonly responses: Readonly<Record<string, ResponseDescription>>
}

interface Entry {
  readonly path: string
  readonly method: string
  readonly operation: Operation
  readonly parameters: ReadonlyArray<Parameter>
}

const style = `:root{color-scheme:light dark;--line:light-dark(#ddd,#3a3d42);--box:light-dark(#f5f5f5,#22252a);--key:light-dark(#05b,#7bf);--dim:light-dark(#666,#a0a4aa)}
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;background:light-dark(#fff,#17191c);color:light-dark(#222,#ddd);overflow-wrap:break-word}
h2{font:600 1.05rem ui-monospace,monospace;margin:3rem 0 .3rem;overflow-wrap:anywhere;scroll-margin-top:1rem}h2 a{color:inherit;text-decoration:none}
a,b{color:var(--key)}p{margin:.5rem 0}i{color:var(--dim);font-style:normal;font-size:.85rem}
nav a{display:block;padding:.2rem 0;text-decoration:none}nav code{margin-right:.6rem}nav a:hover,h2 a:hover{text-decoration:underline}
table{border-collapse:collapse;width:100%;margin:.8rem 0}td{vertical-align:top;padding:.3rem 1rem .3rem 0;border-top:1px solid var(--line)}td:first-child{width:4rem}.parameters td:first-child{width:12rem}
code,pre{font:.85rem/1.5 ui-monospace,monospace}pre{background:var(--box);padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere}summary{cursor:pointer}
@media(max-width:40rem){nav i,.parameters td{display:block}.parameters td+td{border:0;padding-top:0}.parameters td:first-child{width:auto;padding-bottom:0}}`

/** Content-Security-Policy of the page: allows only its own style sheet. */
export const pagePolicy = `default-src 'none'; style-src 'sha256-${hash("sha256", style, "base64")}'; frame-ancestors 'none'; base-uri 'none'`

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;"
}
const html = (value: unknown): string => String(value).replace(/[&<>"]/g, (char) => escapes[char]!)

/** A table of two columns. Both cells are HTML. */
const table = (name: string, rows: ReadonlyArray<readonly [string, string]>): string =>
  rows.length === 0
    ? ""
    : `<table class="${name}">${rows.map(([a, b]) => `<tr><td>${a}<td>${b}`).join("")}</table>`

const parameterRow = ({ description, in: place, name, schema }: Parameter) =>
  [
    `<code>${html(name)}</code> <i>${html(place)}</i>`,
    html(description ?? schema.description ?? "")
  ] as const

const responseRow = ([status, { description, headers = {} }]: readonly [
  string,
  ResponseDescription
]) => {
  const names = Object.keys(headers).map(html).join(", ")
  return [
    `<code>${html(status)}</code>`,
    `${html(description)}${names === "" ? "" : ` <i>with ${names}</i>`}`
  ] as const
}

/**
 * The curl command of an operation. No example contains a single quote. A batch has credentials for
 * its entries.
 */
const curl = (rootUrl: string, { method, operation, parameters, path }: Entry): string => {
  const filled = parameters.reduce(
    (text, { name, schema }) => text.replace(`{${name}}`, schema.examples?.[0] ?? name),
    path
  )
  const example = operation.requestBody?.content["application/json"].example
  return [
    "curl",
    ...(operation.security === undefined && example === undefined ? [] : ["-u user:password"]),
    ...(method === "get" || (method === "post" && example !== undefined)
      ? []
      : [`-X ${method.toUpperCase()}`]),
    ...(example === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(example)}'`]),
    `${rootUrl}${filled}`
  ].join(" ")
}

const section = (
  rootUrl: string,
  entry: Entry,
  responses: ReadonlyArray<readonly [string, ResponseDescription]>
): string => {
  const { method, operation, parameters, path } = entry
  const id = html(operation.operationId)
  const body = operation.requestBody?.content["application/json"].schema
  return `<h2 id="${id}"><a href="#${id}"><b>${html(method.toUpperCase())}</b> ${html(path)}</a></h2>
<p>${html(operation.summary)}${operation.security === undefined ? "" : " <i>needs authentication</i>"}</p>
<pre>${html(curl(rootUrl, entry))}</pre>
${table("parameters", parameters.map(parameterRow))}${
  body === undefined
    ? ""
    : `<details><summary>Body (JSON Schema)</summary><pre>${html(JSON.stringify(body, null, 2))}</pre></details>`
}${table("answers", responses.map(responseRow))}`
}

const entriesOf = (document: Json): ReadonlyArray<Entry> =>
  Object.entries(document["paths"] as Record<string, Readonly<Record<string, unknown>>>).flatMap(
    ([path, { parameters = [], ...methods }]) =>
      Object.entries(methods).map(([method, each]) => {
        const operation = each as Operation
        return {
          path,
          method,
          operation,
          parameters: [...(parameters as ReadonlyArray<Parameter>), ...(operation.parameters ?? [])]
        }
      })
  )

export const apiPage = (document: Json): string => {
  const info = document["info"] as { title: string; version: string; description: string }
  const rootUrl = (document["servers"] as ReadonlyArray<{ url: string }>)[0]!.url
  const entries = entriesOf(document)
  const responsesOf = ({ operation }: Entry) => Object.entries(operation.responses)
  // Responses of every operation stand once, above all operations.
  const isCommon = ([status, { description }]: readonly [string, ResponseDescription]) =>
    entries.every(({ operation }) => operation.responses[status]?.description === description)
  const links = entries.map(({ method, operation, path }) => {
    const name = `<code><b>${html(method.toUpperCase())}</b> ${html(path)}</code>`
    return `<a href="#${html(operation.operationId)}">${name}<i>${html(operation.summary)}</i></a>`
  })
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${html(info.title)} API</title>
<style>${style}</style><h1>${html(info.title)} ${html(info.version)}</h1><p>${html(info.description)} This page for programs, as OpenAPI 3.1:</p>
<pre>curl ${html(rootUrl)}/__api__</pre><nav>${links.join("")}</nav>
<p>Every request can also be answered with</p>${table("answers", responsesOf(entries[0]!).filter(isCommon).map(responseRow))}
${entries
  .map((entry) =>
    section(
      rootUrl,
      entry,
      responsesOf(entry).filter((each) => !isCommon(each))
    )
  )
  .join("\n")}</html>`
}
