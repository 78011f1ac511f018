// The API description as an HTML page: what one does first stands first. Without scripts and
// external resources, for light and dark mode, for desktop and phone.
import { html, pageHead, pageStyle } from "../html.ts"
import { groups } from "./groups.ts"

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
  readonly content?: unknown
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: ReadonlyArray<string>
  readonly security: ReadonlyArray<object>
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

type ResponseEntry = readonly [status: string, response: ResponseDescription]

/** A group and its operations, in the order of groups.ts. */
interface Part {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly entries: ReadonlyArray<Entry>
}

/** The style sheet of the page. */
export const style = `${pageStyle}
h1{margin:0 0 .5rem}h2{font-size:1.3rem;margin:3.5rem 0 .3rem;scroll-margin-top:1rem}
h3{font-size:1.05rem;margin:2.2rem 0 .3rem;scroll-margin-top:1rem}
h2 a,h3 a{color:inherit;text-decoration:none}a:hover{text-decoration:underline}
b{color:var(--key)}.post,.put,.patch{color:light-dark(#070,#7d8)}
.delete{color:light-dark(#a20,#f98)}i{color:var(--dim);font-style:normal;font-size:.85rem}
nav{columns:2 22rem;column-gap:2.5rem;margin:2rem 0}
nav section{break-inside:avoid;padding-bottom:1.5rem}ol{padding-left:1.4rem}
nav h2{font-size:1rem;margin:0 0 .3rem;border-bottom:1px solid var(--line)}
ul{padding-left:1.2rem}nav ul{list-style:none;margin:0;padding:0}
nav li a{display:block;padding:.25rem 0;text-decoration:none}nav i{display:block}
table{border-collapse:collapse;width:100%;margin:.3rem 0}td{vertical-align:top;
padding:.3rem 1rem .3rem 0;border-top:1px solid var(--line)}td:first-child{width:4rem}
.parameters td:first-child{width:12rem}
code,pre{font:.85rem/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
pre{background:var(--box);border-radius:.3rem;padding:.6rem .8rem;white-space:pre-wrap;
margin:.5rem 0}details{margin:.2rem 0;scroll-margin-top:1rem}
summary{cursor:pointer;color:var(--dim);font-size:.9rem}
@media(max-width:40rem){.parameters td{display:block}.parameters td+td{border:0;
padding-top:0}.parameters td:first-child{width:auto;padding-bottom:0}}`

/** The HTML page of an OpenAPI description. */
export const apiPage = (document: Json): string => {
  const info = document["info"] as { title: string; version: string; description: string }
  const rootUrl = (document["servers"] as ReadonlyArray<{ url: string }>)[0]!.url
  const parts = partsOf(document)
  const entries = parts.flatMap((part) => part.entries)
  const responsesOf = ({ operation }: Entry) => Object.entries(operation.responses)
  // Responses of every operation stand once, below all operations.
  const isCommon = ([status, { description }]: ResponseEntry) =>
    entries.every(({ operation }) => operation.responses[status]?.description === description)
  const { description, title, version } = info
  const { schemas, securitySchemes } = document["components"] as {
    readonly schemas: Json
    readonly securitySchemes: Readonly<Record<string, { readonly scheme: string }>>
  }
  const credentials = credentialsOf(securitySchemes)
  const chapter = ({ description, entries, id, name }: Part) => [
    `<h2 id="${id}">${html(name)}</h2><p>${html(description)}</p>\n`,
    ...entries.map((entry) =>
      section(
        rootUrl,
        credentials,
        entry,
        responsesOf(entry).filter((each) => !isCommon(each))
      )
    )
  ]
  return [
    pageHead(`${title} API`, style),
    `<main><h1>${html(title)} ${html(version)}</h1>`,
    `<ol>${parts.slice(0, 4).map(firstStep).join("")}</ol>\n`,
    `<p>For programs, as OpenAPI 3.1: <code>curl ${html(rootUrl)}/__api__</code></p>\n`,
    `<nav>${parts.map(contents).join("\n")}</nav>\n`,
    ...parts.flatMap(chapter),
    "<h2>Every response</h2><p>Every request can also be answered with</p>",
    table("answers", responsesOf(entries[0]!).filter(isCommon).map(responseRow)),
    "<h2>Schemas</h2>",
    ...Object.entries(schemas).map(schemaSection),
    "<h2>The fine print</h2><ul>",
    ...description.split(/(?<=\.) (?=[A-Z])/).map((sentence) => `<li>${html(sentence)}`),
    "</ul></main></html>"
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

const partsOf = (document: Json): ReadonlyArray<Part> => {
  const entries = new Map(entriesOf(document).map((entry) => [entry.operation.operationId, entry]))
  return groups.map(({ description, name, operations }) => ({
    id: name.toLowerCase().replace(/\W+/g, "-"),
    name,
    description,
    entries: operations.flatMap((id) => entries.get(id) ?? [])
  }))
}

/** The first operation that changes something or, where the group only reads, the first. */
const firstStep = ({ entries, name }: Part): string => {
  const entry = entries.find(({ method }) => method !== "get" && method !== "patch") ?? entries[0]!
  return `<li>${html(name)}: <a href="#${html(entry.operation.operationId)}">${nameOf(entry)}</a>`
}

const contents = ({ entries, id, name }: Part): string =>
  [
    `<section><h2><a href="#${id}">${html(name)}</a></h2>`,
    `<ul>${entries.map(link).join("")}</ul></section>`
  ].join("")

const link = (entry: Entry): string => {
  const { operationId, summary } = entry.operation
  return `<li><a href="#${html(operationId)}">${nameOf(entry)}<i>${html(summary)}</i></a>`
}

const nameOf = ({ method, path }: Entry): string =>
  `<code><b class="${method}">${html(method.toUpperCase())}</b> ${html(path)}</code>`

const section = (
  rootUrl: string,
  credentials: string,
  entry: Entry,
  responses: ReadonlyArray<ResponseEntry>
): string => {
  const { operation, parameters } = entry
  const id = html(operation.operationId)
  const note = isPublic(operation) ? "" : " <i>needs authentication</i>"
  return [
    `<h3 id="${id}"><a href="#${id}">${html(operation.summary)}</a></h3>\n`,
    `<p>${nameOf(entry)}${note}</p>\n`,
    `<pre>${html(curl(rootUrl, credentials, entry))}</pre>\n`,
    details("Parameters", table("parameters", parameters.map(parameterRow))),
    details("Body", bodySchema(operation)),
    details("Responses", table("answers", responses.map(responseRow)))
  ].join("")
}

/** Whether everybody may call, known or not. */
const isPublic = ({ security }: Operation): boolean =>
  security.every((scheme) => Object.keys(scheme).length === 0)

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
    ...(credentials === "" || (isPublic(operation) && example === undefined) ? [] : [credentials]),
    ...(method === "get" || (method === "post" && example !== undefined)
      ? []
      : [`-X ${method.toUpperCase()}`]),
    ...(example === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(example)}'`]),
    `${rootUrl}${filled}`
  ].join(" ")
}

/** The argument of curl with the caller's credentials, by the first scheme of the description. */
const credentialsOf = (schemes: Readonly<Record<string, { readonly scheme: string }>>): string => {
  const [scheme] = Object.values(schemes).map((each) => each.scheme)
  // A proxy in front adds the credentials.
  if (scheme === undefined || scheme === "" || scheme === "proxy") return ""
  if (scheme === "basic") return "-u user:password"
  return `-H "Authorization: ${scheme[0]?.toUpperCase()}${scheme.slice(1)} $TOKEN"`
}

const details = (title: string, content: string): string =>
  content === "" ? "" : `<details><summary>${title}</summary>${content}</details>\n`

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

const bodySchema = ({ requestBody }: Operation): string =>
  requestBody === undefined
    ? ""
    : `<pre>${jsonText(requestBody.content["application/json"].schema)}</pre>`

const responseRow = ([status, { content, description, headers = {} }]: ResponseEntry) => {
  const names = Object.keys(headers).map(html).join(", ")
  const schemas = schemasIn(content)
  return [
    `<code>${html(status)}</code>`,
    [
      html(description),
      schemas === "" ? "" : `: ${schemas}`,
      names === "" ? "" : ` <i>with ${names}</i>`
    ].join("")
  ] as const
}

/** Links to the schemas in the content of a response. */
const schemasIn = (content: unknown): string =>
  [...JSON.stringify(content ?? null).matchAll(/"#\/components\/schemas\/(\w+)"/g)]
    .map(([, name]) => schemaLink(name!))
    .join(", ")

const schemaLink = (name: string): string => `<a href="#schema-${name}">${name}</a>`

const schemaSection = ([name, schema]: readonly [string, unknown]): string =>
  [
    `<details id="schema-${name}"><summary>${name}</summary>`,
    `<pre>${jsonText(schema)}</pre></details>`
  ].join("")

/** JSON as text, with links to the schemas that it names. */
const jsonText = (value: unknown): string =>
  html(JSON.stringify(value, null, 2)).replace(
    /&quot;#\/components\/schemas\/(\w+)&quot;/g,
    (_, name: string) => schemaLink(name)
  )
