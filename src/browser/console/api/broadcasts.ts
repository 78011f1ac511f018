// Broadcasts as the console reads and changes them.
import { Problem, request } from "./client.ts"
import type { Broadcast, Content, State, Timeline, WholeBroadcast } from "./shapes.ts"

/** Rows of one or several lists, and the addresses of what follows. */
export interface Page<T> {
  readonly rows: ReadonlyArray<T>
  readonly next: ReadonlyArray<string>
}

/** A page of the service may have no rows although others follow: this many are tried at once. */
const emptyPagesMax = 5

/** Reads from these addresses on, each for at least a row if there is one. */
export const readPages = async <T>(
  paths: ReadonlyArray<string>,
  signal: AbortSignal
): Promise<Page<T>> => {
  const lists = await Promise.all(paths.map((path) => readPage<T>(path, signal)))
  return { rows: lists.flatMap(({ rows }) => rows), next: lists.flatMap(({ next }) => next) }
}

const readPage = async <T>(path: string, signal: AbortSignal): Promise<Page<T>> => {
  let from: string | undefined = path
  for (let count = 0; from !== undefined && count < emptyPagesMax; count += 1) {
    const { body, next }: { body: { data: ReadonlyArray<T> }; next: string | undefined } =
      await request<{ readonly data: ReadonlyArray<T> }>(from, { signal })
    if (body.data.length > 0) return { rows: body.data, next: next === undefined ? [] : [next] }
    from = next
  }
  return { rows: [], next: from === undefined ? [] : [from] }
}

export const listPath = (query: { readonly state?: State; readonly test?: true }, limit = 20) =>
  `broadcasts?${new URLSearchParams({
    ...(query.state && { state: query.state }),
    ...(query.test && { test: "true" }),
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
