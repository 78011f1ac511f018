// Channel ids: any text of 1 to 255 bytes without a slash.
import * as Effect from "effect/Effect"
import { channelBytesMax } from "#streams/tokens.ts"
import { errorIn, refuseInvalid } from "../http/errors.ts"
import type { Refused } from "../http/request.ts"

export const isChannelId = (id: string): boolean =>
  id !== "" && Buffer.byteLength(id) <= channelBytesMax

/** The description of an error in the id of a channel. */
export const invalidChannel = `Invalid channel id: at most ${channelBytesMax} bytes`

export const channelIdOf = (
  params: Readonly<Record<string, string>>
): Effect.Effect<string, Refused> => {
  const id = params["channel"] ?? ""
  if (isChannelId(id)) return Effect.succeed(id)
  return refuseInvalid([errorIn("path", null, invalidChannel)])
}
