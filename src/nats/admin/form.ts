// Refuses a start on streams and buckets that another version of Bellcast stored in another form.
import * as Effect from "effect/Effect"
import { bucketStream, projections } from "#streams/buckets.ts"
import { storedForm, streams } from "#streams/index.ts"
import { StartRefused } from "../connection/errors.ts"
import { bucketState, streamState } from "./maintenance.ts"

const formOf = (form: string | undefined) =>
  form === undefined ? "a form without a number" : `form ${form}`

const refuse = (name: string, found: string | undefined, wanted: string, remedy: string) =>
  new StartRefused({
    message: `${name} is stored in ${formOf(found)}; this version reads form ${wanted}. ${remedy}`
  })

const remedyOfStreams =
  "Nothing was changed. Start the version that stored it, or restore a backup that this version " +
  "made, or begin with an empty store: another NATS account, or another BELLCAST_DATA_DIR"

/** Fails with StartRefused if LOG or WORK is stored in another form. */
export const refuseOtherStreams = Effect.gen(function* () {
  for (const stream of [streams.log, streams.work]) {
    const state = yield* streamState(stream)
    if (state !== undefined && state.form !== storedForm.streams)
      return yield* refuse(stream.name, state.form, storedForm.streams, remedyOfStreams)
  }
})

/** Fails with StartRefused if LOG, WORK or a bucket is stored in another form. */
export const refuseOtherForm = Effect.gen(function* () {
  yield* refuseOtherStreams
  for (const bucket of projections) {
    const state = yield* bucketState(bucket)
    if (state === undefined || state.form === storedForm.buckets) continue
    const remedy = "Stop all processes and run `bellcast rebuild`"
    return yield* refuse(bucketStream(bucket), state.form, storedForm.buckets, remedy)
  }
})
