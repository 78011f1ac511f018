// The share of failed pushes that pauses a broadcast: what publishers write, and how it is stored.
// Pure.
import * as Schema from "effect/Schema"

export const PauseWhen = Schema.Struct({
  failed_share: Schema.Finite.pipe(
    Schema.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(1))
  )
})
export type PauseWhen = typeof PauseWhen.Type

/** Header of such a broadcast: `pause_when` in the body of a request. */
export const pauseWhenHeader = "Bellcast-Pause-When"

export const pauseWhenText = ({ failed_share }: PauseWhen): string => `failed_share=${failed_share}`

const isPauseWhen = Schema.is(PauseWhen)

/** Undefined: the text is no value of the header. */
export const pauseWhenOf = (text: string): PauseWhen | undefined => {
  const pauseWhen = { failed_share: Number(/^failed_share=([\d.e-]{1,24})$/.exec(text)?.[1]) }
  return isPauseWhen(pauseWhen) ? pauseWhen : undefined
}

export const pauseWhenError = `${pauseWhenHeader} must be failed_share= and a share, above 0 to 1`
