// Names of channels: any text of 1 to 255 bytes without a slash, taken literally.
import { Effect } from "effect"
import type { Refused } from "./ask.ts"
import { refuseFaults } from "./faults.ts"

const channelIdBytesMax = 255

export const isChannelId = (id: string): boolean => id !== "" && Buffer.byteLength(id) <= channelIdBytesMax

export const channelIdOf = (params: Readonly<Record<string, string>>): Effect.Effect<string, Refused> => {
  const id = params["channel"] ?? ""
  if (isChannelId(id)) return Effect.succeed(id)
  return refuseFaults([{ location: "path", name: null, description: `Invalid channel id: at most ${channelIdBytesMax} bytes` }])
}
