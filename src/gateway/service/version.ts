// GET /__version__: what is deployed, from a file that the deployment writes. Without the file:
// 404.
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "#basics/json.ts"
import { refuse } from "../http/errors.ts"
import { ok } from "../http/request.ts"
import { operation } from "../operation.ts"

/** In the working directory, then beside the code. */
const places = ["version.json", new URL("../../../version.json", import.meta.url)]

const readVersion = (): JsonObject | undefined => {
  for (const place of places) {
    try {
      const json = JSON.parse(readFileSync(place, "utf8")) as unknown
      if (isObject(json)) return json
    } catch {
      // Missing or invalid JSON: try the next place.
    }
  }
  return undefined
}

/** Read once, at the first request: the file belongs to the code that runs. */
let known: { readonly version: JsonObject | undefined } | undefined

export const versionGet = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* () {
    known ??= { version: readVersion() }
    const { version } = known
    if (version === undefined) return yield* refuse("unknown-url")
    return ok(version)
  }),
  doc: {
    summary: "What is deployed",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) },
    errors: [404]
  }
})
