// A later version of the service, made up for `node --import`: each of these messages has a number
// 2, with a member that number 1 lacks. The sources are edited as they are loaded, as a version
// that adds a number changes them: the lines of the table, and the writers.
import { registerHooks } from "node:module"
import * as Schema from "effect/Schema"
import { former, type Line } from "#domain/messages/line.ts"

/** One of each stage: gateway, projection, fanout, fanout and delivery, delivery, tally. */
export const secondOf = [
  ...["registration.put", "command.rejected", "plan", "shard", "outcome", "broadcast.finished"]
]

const made = { made: Schema.Literal(2) }

/** The line of a message with a number 2. */
export const withSecond = (line: Line): Line => {
  const { fields } = line.schema as unknown as Schema.Struct<Schema.Struct.Fields>
  const second = Schema.Struct({ ...fields, ...made }) as unknown as Line["schema"]
  const up = (body: object) => ({ ...body, made: 2 })
  const down = ({ made: _, ...body }: { readonly made?: unknown }) => body
  return { ...line, schema: second, number: 2, former: [former(line.schema, second, up, down)] }
}

/** The body as the writers of the later version make it. */
export const bodyOf = (type: string, body: object): object =>
  secondOf.includes(type) ? { ...body, made: 2 } : body

const here = JSON.stringify(import.meta.url)

const edits: Readonly<Record<string, (source: string) => string>> = {
  "/src/domain/messages/table.ts": (source) =>
    secondOf.reduce(
      (text, name) =>
        edited(text, new RegExp(`^(  "?${name}"?: )(line\\(.*\\))`, "m"), "$1two($2)"),
      `import { withSecond as two } from ${here}\n${source}`
    ),
  "/src/nats/stream/append.ts": (source) =>
    edited(
      `import { bodyOf } from ${here}\n${source}`,
      /encodeMessage\(message\.type, message\.body,/,
      "encodeMessage(message.type, bodyOf(message.type, message.body) as never,"
    )
}

const edited = (source: string, from: RegExp, to: string): string => {
  if (!from.test(source)) throw new Error(`the sources have no ${from} any more`)
  return source.replace(from, to)
}

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    const edit = Object.entries(edits).find(([file]) => url.endsWith(file))?.[1]
    return edit === undefined ? loaded : { ...loaded, source: edit(String(loaded.source)) }
  }
})
