// Changes of broadcasts and of their states, as their publisher asks for them.
import { assert } from "vitest"
import { type Answer, call, until } from "./client.ts"

export const broadcastPath = (id: string) => `/broadcasts/${id}`

/** A broadcast as its publisher sees it. */
export const shown = async (url: string, id: string) =>
  (await call(url, "GET", broadcastPath(id), "publisher")).body.data

type Shown = Awaited<ReturnType<typeof shown>>

export const untilShown = (url: string, id: string, accept: (broadcast: Shown) => boolean) =>
  until(() => shown(url, id), accept)

export const patchState = (url: string, id: string, state: string, user = "publisher") =>
  call(url, "PATCH", broadcastPath(id), user, { data: { state } })

/** Returns the broadcast, as it is shown after the change. */
export const changeState = async (url: string, id: string, state: string) => {
  const { body, status } = await patchState(url, id, state)
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.data.state, state)
  return body.data
}

/** The two changes of what a broadcast says, which need the right to publish to all it goes to. */
export const changesOfData: ReadonlyArray<object> = [
  { data: { n: 2 } },
  { data_by_locale: { de: {} } }
]

/** 200, or the status and the errno of a change that was refused. */
export const resultOf = ({ body, status }: Answer) => (status === 200 ? 200 : [status, body.errno])

/** The contract, 4.8: so long after a pause or a cancellation no push begins any more. */
export const heldMillis = 1_000

/** Settings.unrecordedPushesMax: the most that one crash may send twice. */
export const permits = 64
export const fewPermits = { BELLCAST_UNRECORDED_PUSHES_MAX: String(permits) }
