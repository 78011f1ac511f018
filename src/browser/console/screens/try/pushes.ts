// Pushes of the user who tries Bellcast: to a browser, to a channel, and what becomes of them.
import { request } from "../../api/client.ts"
import { follow } from "../../api/events.ts"
import { outcomes, type WholeBroadcast } from "../../api/shapes.ts"
import { reason } from "../../words/states.ts"
import { tt, ttIf } from "./texts.ts"
import { add, change } from "./underneath.ts"

export type Say = (text: string) => void

/** A click on it leads back to this page. */
const pushOf = (title: string, body: string) => ({
  data: {
    web_push: 8030,
    notification: { title, body, navigate: `${location.origin}${location.pathname}#/try` }
  }
})

const countsOf = (broadcast: WholeBroadcast): string => {
  const counts = [...outcomes, "waiting" as const].flatMap((outcome) =>
    broadcast[outcome] > 0 ? [`${broadcast[outcome]} ${tt(`try-${outcome}`)}`] : []
  )
  return tt("tryCounts", { id: broadcast.id, counts: counts.join(", ") || tt("tryNobody") })
}

/** A push to a browser that is off for good may be tried again for hours. */
const followMillis = 60_000

/** Follows a broadcast for a minute, and says its counts as they change. Returns the last ones. */
const tell = async (id: string, say: Say): Promise<string> => {
  let said = tt("tryWaiting")
  const row = add("outcome", said)
  const show = (broadcast: WholeBroadcast) => {
    if (broadcast.people === undefined && !broadcast.finished) return
    said = countsOf(broadcast)
    const details = `${JSON.stringify(broadcast, null, 2)}\n\nmake audit BROADCAST=${id}`
    change(row, { text: said, details })
    say(said)
  }
  const watcher = { onState: show, onProblem: () => {} }
  await follow(id, watcher, AbortSignal.timeout(followMillis))
  return said
}

export const publish = async (channel: string, title: string, body: string, say: Say) => {
  const path = `channels/${encodeURIComponent(channel)}`
  const answer = await request<{ readonly id: string; readonly warnings: ReadonlyArray<string> }>(
    path,
    { method: "POST", body: pushOf(title, body) }
  )
  const { id, warnings } = answer.body
  for (const warning of warnings) say(warning)
  return tell(id, say)
}

export interface Tested {
  readonly outcome?: string
  readonly said: string
}

interface Result {
  readonly outcome: string
  readonly reason: string
  readonly status?: number
}

/** Sends one push to a browser of the user. Says so far what is known of it. */
export const test = async (subscription: string, say: Say): Promise<Tested> => {
  const { body, location: made = "" } = await request<{ readonly data?: Result }>(
    `subscriptions/${subscription}/test`,
    { method: "POST", body: pushOf(tt("tryHello"), tt("tryHelloText")) }
  )
  const id = made.slice(made.lastIndexOf("/") + 1)
  if (body.data === undefined) return { said: await tell(id, say) }
  const { outcome, status } = body.data
  const why =
    status === undefined ? reason(body.data.reason) : tt("tryAnswered", { status: String(status) })
  const said = tt("tryPush", { outcome: ttIf(`try-${outcome}`) ?? outcome, why })
  add("outcome", said)
  if (outcome !== "retrying") return { outcome, said }
  say(`${said} ${tt("tryLater")}`)
  return { outcome, said: `${said} ${await tell(id, (text) => say(`${said} ${text}`))}` }
}

/** Waits until the service has removed a subscription, 5 s at most. */
export const isRemoved = async (id: string): Promise<boolean> => {
  for (const end = Date.now() + 5_000; Date.now() < end; ) {
    const isThere = await request(`subscriptions/${id}`).then(
      () => true,
      ({ status }: { readonly status?: number }) => status !== 404
    )
    if (!isThere) return true
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return false
}
