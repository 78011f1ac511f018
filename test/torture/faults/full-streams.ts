// A stream or bucket without room: its limit is set to what it holds, and raised again later. The
// service refuses what makes it grow, and must go on by itself when there is room.
import type { RigClient } from "../nats/client.ts"
import { patiently } from "../nats/patiently.ts"
import type { Fault } from "./fault.ts"

const streams = [
  "BELLCAST_LOG",
  "BELLCAST_WORK",
  "KV_bellcast_subscriptions",
  "KV_bellcast_registrations",
  "KV_bellcast_channels",
  "KV_bellcast_broadcasts"
] as const

/** Room that is left, so that it is filled by the load and not by the fault. */
const roomBytes = 20_000

/** Sets the limit of a stream, also when it has no leader for a while. */
export const limit = ({ jsm }: RigClient, stream: string, bytes: number) =>
  patiently(() => jsm.streams.update(stream, { max_bytes: bytes }))

export const fullStreamFaults = (client: () => RigClient): ReadonlyArray<Fault> => [
  {
    name: "stream full",
    nodes: [1, 3],
    short: true,
    plan: (random, _, secondsMax) => {
      const stream = random.pick(streams)
      const seconds = Math.min(secondsMax, random.between(6, 14))
      return {
        text: `${stream} full for ${seconds} s`,
        seconds,
        // A server that is away cannot be told, and a start sets the limit of its settings again.
        holds: ["nats", stream],
        begin: async ({ say }) => {
          await patiently(() => client().jsm.streams.info(stream))
          const { config, state } = await client().jsm.streams.info(stream)
          await limit(client(), stream, state.bytes + roomBytes)
          say(`${stream} may hold ${state.bytes + roomBytes} bytes`)
          return {
            mayRepeat: [],
            end: async () => void (await limit(client(), stream, config.max_bytes).catch(() => {}))
          }
        }
      }
    }
  }
]
