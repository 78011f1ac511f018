// Changes of the states of broadcasts, as their publisher asks for them.
import { assert } from "vitest"
import { call } from "./client.ts"

export const broadcastPath = (id: string) => `/broadcasts/${id}`

export const patchState = (url: string, id: string, state: string, user = "publisher") =>
  call(url, "PATCH", broadcastPath(id), user, { data: { state } })

/** Returns the broadcast, as it is shown after the change. */
export const changeState = async (url: string, id: string, state: string) => {
  const { body, status } = await patchState(url, id, state)
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.data.state, state)
  return body.data
}

/** Settings.unrecordedPushesMax: the most that one crash may send twice. */
export const permits = 64
export const fewPermits = { BELLCAST_UNRECORDED_PUSHES_MAX: String(permits) }
