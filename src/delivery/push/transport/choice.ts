// Which HTTP/2 session takes the next push, and whether to open another one. Pure. Pushes are
// spread over sessions, so that one that stalls delays few, and stay below the stream limit of the
// peer: FCM takes 100 streams and ends a connection with more of them, Apple's limit changes.

/** Streams on one session: below FCM's limit of 100. */
export const streamsPerSession = 32
/**
 * Sessions to one push service. A peer that takes one stream a session gets so many pushes at once.
 */
export const sessionsMax = 16

export interface Load {
  readonly underWay: number
  /** Streams that the peer takes at once; undefined until its SETTINGS arrive. */
  readonly streamsMax: number | undefined
  /** False: it takes no more pushes. */
  readonly isOpen: boolean
}

export interface Choice {
  /** Index of the session for the next push. Absent: the push waits. */
  readonly use?: number
  /** Whether one more session is worth opening. */
  readonly opens: boolean
}

/** One stream before the SETTINGS of the peer arrive: more could be too many. */
const hasRoom = ({ isOpen, streamsMax = 1, underWay }: Load) => isOpen && underWay < streamsMax

/** Streams per session, by the limits known so far. At least 1: a limit of 0 is temporary. */
const perSession = (loads: ReadonlyArray<Load>) =>
  Math.max(
    1,
    Math.min(
      streamsPerSession,
      ...loads.flatMap(({ isOpen, streamsMax }) =>
        isOpen ? [streamsMax ?? streamsPerSession] : []
      )
    )
  )

/**
 * Takes the least used session. `opening`: sessions that are being opened. `waiting`: pushes
 * without a session. `max`: open sessions allowed; as many again may be ending.
 */
export const choose = (
  loads: ReadonlyArray<Load>,
  opening: number,
  waiting: number,
  max: number
): Choice => {
  let use: number | undefined
  let open = opening
  let pushes = waiting
  for (const [i, load] of loads.entries()) {
    pushes += load.underWay
    if (load.isOpen) open += 1
    if (hasRoom(load) && (use === undefined || load.underWay < loads[use]!.underWay)) use = i
  }
  const wanted = Math.min(Math.ceil(pushes / perSession(loads)), max)
  const opens = open < wanted && loads.length + opening < 2 * max
  return { ...(use === undefined ? {} : { use }), opens }
}

/** Pushes that all sessions together carry at most, once all are open. */
export const roomOf = (loads: ReadonlyArray<Load>): number => sessionsMax * perSession(loads)
