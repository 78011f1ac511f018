// GET /__version__: what is deployed, from a file that the deployment writes. Without the file:
// 404.
import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import { isObject } from "#basics/json.ts"
import { refuse } from "../http/errors.ts"
import { ok } from "../http/request.ts"
import type { Operation } from "../operation.ts"
import { GatewaySettings } from "../settings.ts"

const besideTheCode = new URL("../../../version.json", import.meta.url)

/** The file's content by path, read once: the file belongs to the code that runs. */
const known = new Map<string, unknown>()

const versionAt = (path: string): unknown => {
  if (known.has(path)) return known.get(path)
  for (const place of [path, besideTheCode]) {
    try {
      const json = JSON.parse(readFileSync(place, "utf8")) as unknown
      if (!isObject(json)) continue
      known.set(path, json)
      return json
    } catch {
      // Missing or invalid JSON: try the next path.
    }
  }
  known.set(path, undefined)
  return undefined
}

export const versionGet: Operation<void> = {
  access: "anyone",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* () {
    const { versionJsonPath } = yield* GatewaySettings
    const version = versionAt(versionJsonPath)
    if (version === undefined) return yield* refuse("unknownUrl")
    return ok(version)
  }),
  doc: {
    summary: "What is deployed",
    responses: { 200: Schema.Record(Schema.String, Schema.Unknown) },
    errors: [404]
  }
}
