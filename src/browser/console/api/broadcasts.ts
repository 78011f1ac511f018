// Broadcasts as the console reads and changes them.
import { Problem, request } from "./client.ts"
import type { Broadcast, Content, State, Timeline, WholeBroadcast } from "./shapes.ts"

/** Rows of one or several lists, and the addresses of what follows. */
export interface Page<T> {
  readonly rows: ReadonlyArray<T>
  readonly next: ReadonlyArray<string>
}

/** One reading follows a list for so many pages, and begins no other after this time. */
const pagesMax = 5
const followMillis = 5_000

/**
 * Reads from these addresses on, each for at least so many rows if there are as many. A page of the
 * service may have few, or none, although others follow.
 */
export const readPages = async <T>(
  paths: ReadonlyArray<string>,
  signal: AbortSignal,
  rowsMin = 1
): Promise<Page<T>> => {
  const lists = await Promise.all(paths.map((path) => readList<T>(path, signal, rowsMin)))
  return { rows: lists.flatMap(({ rows }) => rows), next: lists.flatMap(({ next }) => next) }
}

const readList = async <T>(
  path: string,
  signal: AbortSignal,
  rowsMin: number
): Promise<Page<T>> => {
  const end = performance.now() + followMillis
  const rows: Array<T> = []
  let from: string | undefined = path
  for (let count = 0; from !== undefined && count < pagesMax; count += 1) {
    const { body, next }: { body: { data: ReadonlyArray<T> }; next: string | undefined } =
      await request<{ readonly data: ReadonlyArray<T> }>(from, { signal })
    rows.push(...body.data)
    from = next
    if (rows.length >= rowsMin || performance.now() > end) break
  }
  return { rows, next: from === undefined ? [] : [from] }
}

interface Listed {
  readonly state?: State
  readonly test?: true
  /** Only broadcasts that began in so many days. */
  readonly days?: number
}

const dayMillis = 86_400_000

export const listPath = ({ days, state, test }: Listed, limit = 20) =>
  `broadcasts?${new URLSearchParams({
    ...(state && { state }),
    ...(test && { test: "true" }),
    ...(days && { since: new Date(Date.now() - days * dayMillis).toISOString() }),
    _limit: String(limit)
  })}`

/** When it began, or will. */
export const beginOf = ({ accepted_at, at, started_at }: Broadcast): number =>
  started_at ?? (at === undefined ? accepted_at : Date.parse(at))

export const readBroadcast = async (id: string, signal?: AbortSignal): Promise<WholeBroadcast> =>
  (
    await request<{ readonly data: WholeBroadcast }>(`broadcasts/${encodeURIComponent(id)}`, {
      ...(signal && { signal })
    })
  ).body.data

/** Fails once the sending began, or somebody called it off. */
export const demandScheduled = async (id: string): Promise<WholeBroadcast> => {
  const broadcast = await readBroadcast(id)
  const { state } = broadcast
  if (state !== "scheduled") throw new Problem("impossible-state", 409, "", { state })
  return broadcast
}

interface Change {
  readonly state?: "paused" | "running" | "cancelled"
  readonly at?: string
  readonly rate?: number
  /** Replaced together: the one that is not given is gone. */
  readonly data?: Content
  readonly data_by_locale?: Readonly<Record<string, Content>>
}

/** `etag`: of the form that the change is about; without it the last change counts. */
export const changeBroadcast = async (
  id: string,
  data: Change,
  etag?: string
): Promise<WholeBroadcast> =>
  (
    await request<{ readonly data: WholeBroadcast }>(`broadcasts/${encodeURIComponent(id)}`, {
      method: "PATCH",
      body: { data },
      ...(etag !== undefined && { headers: { "If-Match": etag } })
    })
  ).body.data

export const readTimeline = async (id: string, signal: AbortSignal): Promise<Timeline> =>
  (
    await request<{ readonly data: Timeline }>(`broadcasts/${encodeURIComponent(id)}/timeline`, {
      signal
    })
  ).body.data
