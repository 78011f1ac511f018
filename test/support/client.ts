// An HTTP client of the service for tests: basic credentials, JSON, and waiting for a condition.
import type { SubscriptionJson, UserAgent } from "./user-agent.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly body: any
}

/** The Authorization of a user. */
export const basic = (user: string): string =>
  `Basic ${Buffer.from(`${user}:secret`).toString("base64")}`

/** One request as `user`; rejects only when no answer comes within 15 s. */
export const call = async (
  base: string,
  method: string,
  path: string,
  user?: string,
  body?: unknown,
  headers: Record<string, string> = {}
): Promise<Answer> => {
  const response = await fetch(`${base}${path}`, {
    method,
    redirect: "manual",
    signal: AbortSignal.timeout(15_000),
    headers: {
      ...(user === undefined ? {} : { authorization: basic(user) }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text
  }
}

const expectStatus = (answer: Answer, ...statuses: ReadonlyArray<number>): Answer => {
  if (!statuses.includes(answer.status))
    throw new Error(`status ${answer.status}: ${JSON.stringify(answer.body)}`)
  return answer
}

/**
 * Subscribes and registers each browser as a user of its own, `concurrency` at a time. Users are
 * called `name` and a number.
 */
export const join = async (
  bases: ReadonlyArray<string>,
  channel: string,
  subscriptions: ReadonlyArray<SubscriptionJson>,
  concurrency = 24,
  name = "user"
) => {
  let next = 0
  const one = async () => {
    while (next < subscriptions.length) {
      const i = next++
      const [first, second] = [bases[i % bases.length]!, bases[(i + 1) % bases.length]!]
      expectStatus(
        await call(first, "POST", "/subscriptions", `${name}${i}`, { data: subscriptions[i] }),
        201
      )
      expectStatus(
        await call(second, "PUT", `/channels/${channel}/registration`, `${name}${i}`),
        202
      )
    }
  }
  await Promise.all(Array.from({ length: concurrency }, one))
}

/** As `join`, by one gateway. Users are called by the channel and a number. */
export const joinAll = (base: string, channel: string, agents: ReadonlyArray<UserAgent>) => {
  const subscriptions = agents.map(({ subscription }) => subscription)
  return join([base], channel, subscriptions, 24, channel)
}

/** Posts a broadcast and returns its id. */
export const publishAt = async (
  base: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {}
): Promise<string> => {
  const answer = expectStatus(await call(base, "POST", path, "publisher", body, headers), 202)
  return answer.headers.get("location")!.split("/").at(-1)!
}

/** Publishes on a channel and returns the broadcast's id. */
export const publish = (
  base: string,
  channel: string,
  data: unknown,
  headers: Record<string, string> = {}
): Promise<string> => publishAt(base, `/channels/${channel}`, { data }, headers)

/** Tests may run on a busy machine: wait 50 s before a condition counts as missed. */
const patienceMillis = 50_000

/** Milliseconds between two requests: each costs the service and the test 3 ms of CPU time. */
const pauseAfter = (elapsedMillis: number) => Math.min(50 + elapsedMillis / 10, 500)

/**
 * Repeats the request until `accept` is true, every 50 ms at first and every 500 ms from 4.5 s on;
 * rejects after the timeout.
 */
export const until = async <A>(
  ask: () => Promise<A>,
  accept: (answer: A) => boolean,
  timeoutMillis = patienceMillis
): Promise<A> => {
  const begin = performance.now()
  while (true) {
    const answer = await ask()
    if (accept(answer)) return answer
    const elapsedMillis = performance.now() - begin
    if (elapsedMillis > timeoutMillis)
      throw new Error(`not in ${timeoutMillis} ms: ${JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, pauseAfter(elapsedMillis)))
  }
}

/** The counts of a broadcast once every push has its final fate. */
export const finishedAt = async (
  base: string,
  path: string,
  user = "publisher",
  timeoutMillis = patienceMillis
) =>
  (
    await until(
      () => call(base, "GET", path, user),
      ({ body }) => body.data?.finished === true,
      timeoutMillis
    )
  ).body.data

/** The counts of a broadcast on a channel once every push has its final fate. */
export const finished = (
  base: string,
  channel: string,
  broadcast: string,
  timeoutMillis?: number
) => finishedAt(base, `/channels/${channel}/broadcasts/${broadcast}`, "publisher", timeoutMillis)

/** The names of the channels that a user is registered to; none while there is no response. */
export const channelsOf = async (url: string, user: string): Promise<ReadonlyArray<string>> => {
  const { body } = await call(url, "GET", "/registrations", user)
  return (body.data ?? []).map(({ id }: { id: string }) => id)
}

/** The registrations of a channel that a user sees; undefined: the user is not registered. */
export const registrationsSeen = async (url: string, channel: string, user: string) =>
  (await channelsOf(url, user)).includes(channel)
    ? (await call(url, "GET", `/channels/${channel}`, user)).body.data?.registrations
    : undefined
