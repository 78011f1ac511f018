// Whether this process is shutting down. Pushes under way are finished then, and the rest is left
// to other processes.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export class Draining extends Context.Service<
  Draining,
  { readonly isDraining: () => boolean; readonly begin: Effect.Effect<void> }
>()("bellcast/delivery/Draining") {
  static readonly layer = Layer.sync(Draining, () => {
    let isBegun = false
    return {
      isDraining: () => isBegun,
      begin: Effect.sync(() => {
        isBegun = true
      })
    }
  })
}
