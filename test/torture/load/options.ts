// The payloads of broadcasts, and how they are to be sent.
import type { Terms } from "../model/model.ts"
import type { Random } from "../random.ts"

const aheadMillisMax = 20_000

/** Most are so low that a broadcast to many takes more than 10 s. */
export const rateOf = (random: Random): number =>
  random.chance(0.6) ? random.between(25, 80) : random.between(80, 1_000)

export interface Payload {
  readonly marker: string
  readonly text: string
  readonly edition: Terms["edition"]
  /** Push services fail once for this share of the browsers. */
  readonly failingShare: number
}

export const payloadOfBroadcast = (
  random: Random,
  marker: string,
  edition: number,
  failingShare = 0
): Payload => ({
  marker,
  text: "x".repeat(random.between(0, 1_500)),
  edition,
  failingShare
})

/** Members of a body. */
export interface Options {
  readonly at?: string
  readonly rate?: number
  readonly pause_when?: { readonly failed_share: number }
}

export const drawOptions = (random: Random, mayPause: boolean): Options => {
  const at = new Date(Date.now() + random.between(1_000, aheadMillisMax)).toISOString()
  return {
    ...(random.chance(0.2) ? { at } : {}),
    ...(random.chance(0.2) ? { rate: rateOf(random) } : {}),
    ...(mayPause && random.chance(0.3)
      ? { pause_when: { failed_share: random.between(2, 30) / 100 } }
      : {})
  }
}

/** The same for a NATS client. */
export const headersOf = ({ at, pause_when, rate }: Options): Record<string, string> => ({
  ...(at === undefined ? {} : { "Bellcast-Start-At": at }),
  ...(rate === undefined ? {} : { "Bellcast-Rate": String(rate) }),
  ...(pause_when === undefined
    ? {}
    : { "Bellcast-Pause-When": `failed_share=${pause_when.failed_share}` })
})
