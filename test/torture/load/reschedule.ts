// Changes of broadcasts that have not started: their start, rate and payload, in any combination.
import { operator, publisher } from "../fleet/users.ts"
import { type Broadcast, namesUsers } from "../model/model.ts"
import type { Random } from "../random.ts"
import { byRequest, repeat } from "./attempts.ts"
import type { Gateways } from "./gateways.ts"
import { payloadOfBroadcast, rateOf } from "./options.ts"
import type { Stop } from "./states.ts"

const postponedMillis = 5_000
/** A publisher whose right does not suffice. */
const forbidden = 403

export const makeReschedule = (gateways: Gateways, random: Random): Stop => {
  const draw = ({ marker }: Broadcast) => {
    const [isAt, isRate, isData] = random.pick([
      [true, false, false],
      [false, true, false],
      [false, false, true],
      [false, true, true],
      [true, true, true]
    ] as const)
    const rate = isRate ? rateOf(random) : undefined
    const data = isData ? payloadOfBroadcast(random, marker, 1) : undefined
    return { isAt, rate, data }
  }

  /** Operators may change all of a broadcast but its payload. */
  const tryAsOperator = async (path: string) => {
    const body = { data: { rate: 1, data: {} } }
    await gateways.once({ method: "PATCH", path, user: operator, body }, [forbidden])
  }

  return async (broadcast) => {
    const path = `/broadcasts/${broadcast.id}`
    if (random.chance(0.2)) await tryAsOperator(path)
    // No publisher over HTTP has the right to name users, or that of a guest.
    if (namesUsers(broadcast) || broadcast.right !== undefined) return
    const { data, isAt, rate } = draw(broadcast)
    const requestOf = () => {
      const at = isAt ? new Date(Date.now() + postponedMillis).toISOString() : undefined
      return { method: "PATCH", path, user: publisher, body: { data: { at, rate, data } } }
    }
    const before = broadcast.terms
    const after = before.map((terms) => ({
      rate: rate ?? terms.rate,
      edition: data?.edition ?? terms.edition
    }))
    // Pushes may be sent before the response arrives.
    broadcast.terms = [...before, ...after]
    const became = await repeat(byRequest(gateways, requestOf))
    if (became === "made") broadcast.terms = after
    if (became === "unmade") broadcast.terms = before
  }
}
