// The API description as an HTML page: without scripts and external resources, for light and dark
// mode, for desktop and phone.
import { html, pageHead } from "../html.ts"
import { style } from "./page-style.ts"

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

/** The argument of curl with the caller's credentials, by the first scheme of the description. */
const credentialsOf = (schemes: Readonly<Record<string, { readonly scheme: string }>>): string => {
  const [scheme] = Object.values(schemes).map((each) => each.scheme)
  // A proxy in front adds the credentials.
  if (scheme === undefined || scheme === "" || scheme === "proxy") return ""
  if (scheme === "basic") return "-u user:password"
  return `-H "Authorization: ${scheme[0]?.toUpperCase()}${scheme.slice(1)} $TOKEN"`
}

/**
 * The curl command of an operation. No example contains a single quote. A batch has credentials for
 * its entries.
 */
const curl = (
  rootUrl: string,
  credentials: string,
  { method, operation, parameters, path }: Entry
): string => {
  const filled = parameters.reduce(
    (text, { name, schema }) => text.replace(`{${name}}`, schema.examples?.[0] ?? name),
    path
  )
  const example = operation.requestBody?.content["application/json"].example
  return [
    "curl",
    ...(credentials === "" || (operation.security === undefined && example === undefined)
      ? []
      : [credentials]),
    ...(method === "get" || (method === "post" && example !== undefined)
      ? []
      : [`-X ${method.toUpperCase()}`]),
    ...(example === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(example)}'`]),
    `${rootUrl}${filled}`
  ].join(" ")
}

const bodySchema = ({ requestBody }: Operation): string => {
  if (requestBody === undefined) return ""
  const text = html(JSON.stringify(requestBody.content["application/json"].schema, null, 2))
  return `<details><summary>Body (JSON Schema)</summary><pre>${text}</pre></details>`
}

const section = (
  rootUrl: string,
  credentials: string,
  entry: Entry,
  responses: ReadonlyArray<readonly [string, ResponseDescription]>
): string => {
  const { method, operation, parameters, path } = entry
  const id = html(operation.operationId)
  const name = `<b>${html(method.toUpperCase())}</b> ${html(path)}`
  const isPublic = operation.security === undefined
  const note = isPublic ? "" : " <i>needs authentication</i>"
  return [
    `<h2 id="${id}"><a href="#${id}">${name}</a></h2>\n`,
    `<p>${html(operation.summary)}${note}</p>\n`,
    `<pre>${html(curl(rootUrl, credentials, entry))}</pre>\n`,
    table("parameters", parameters.map(parameterRow)),
    bodySchema(operation),
    table("answers", responses.map(responseRow))
  ].join("")
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

const link = ({ method, operation, path }: Entry): string => {
  const name = `<code><b>${html(method.toUpperCase())}</b> ${html(path)}</code>`
  return `<a href="#${html(operation.operationId)}">${name}<i>${html(operation.summary)}</i></a>`
}

/** The HTML page of an OpenAPI description. */
export const apiPage = (document: Json): string => {
  const info = document["info"] as { title: string; version: string; description: string }
  const rootUrl = (document["servers"] as ReadonlyArray<{ url: string }>)[0]!.url
  const entries = entriesOf(document)
  const responsesOf = ({ operation }: Entry) => Object.entries(operation.responses)
  // Responses of every operation stand once, above all operations.
  const isCommon = ([status, { description }]: readonly [string, ResponseDescription]) =>
    entries.every(({ operation }) => operation.responses[status]?.description === description)
  const { description, title, version } = info
  const { securitySchemes } = document["components"] as {
    securitySchemes: Readonly<Record<string, { readonly scheme: string }>>
  }
  const credentials = credentialsOf(securitySchemes)
  const sections = entries.map((entry) =>
    section(
      rootUrl,
      credentials,
      entry,
      responsesOf(entry).filter((each) => !isCommon(each))
    )
  )
  return [
    pageHead(`${title} API`, style),
    `<main><h1>${html(title)} ${html(version)}</h1>`,
    `<p>${html(description)} This page for programs, as OpenAPI 3.1:</p>\n`,
    `<pre>curl ${html(rootUrl)}/__api__</pre><nav>${entries.map(link).join("")}</nav>\n`,
    "<p>Every request can also be answered with</p>",
    table("answers", responsesOf(entries[0]!).filter(isCommon).map(responseRow)),
    `\n${sections.join("\n")}</main></html>`
  ].join("")
}
