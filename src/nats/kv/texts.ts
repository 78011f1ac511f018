// Makes the JSON of many values without keeping other fibers waiting.
import { Effect } from "effect"
import type { CachedEntries } from "./cached-entries.ts"

/** After this time of making JSON, other fibers run. */
const turnMillis = 10

/** The JSON of the values of these keys; undefined: the key is removed. */
export const textsOf = Effect.fnUntraced(function* <V>(
  entries: CachedEntries<V>,
  keys: ReadonlyArray<string>
) {
  const texts: Array<readonly [string, string | undefined]> = []
  let began = performance.now()
  for (const key of keys) {
    texts.push([key, JSON.stringify(entries.loaded(key).value)])
    if (performance.now() - began < turnMillis) continue
    yield* Effect.sleep(0)
    began = performance.now()
  }
  return texts
})
