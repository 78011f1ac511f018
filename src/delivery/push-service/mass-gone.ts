// Which responses "gone" (404, 410) of one push service are believed. Believing a wrong one removes
// a healthy subscription; believing none keeps sending to dead ones. Pure: callers give the time.
//
// - The mass-gone guard holds when most responses say "gone": then the service, or a captive proxy
//   or wrong DNS entry before it, is in trouble, not the subscriptions. So does a long row of them
//   without any 2xx: a captive proxy may begin in the middle of a broadcast. The processes of a
//   group send through the same network, so they count the row together, by gossip.
// - A subscription that no push was ever accepted for loses nothing. While the push service takes
//   other pushes, such a "gone" is believed at once and not counted: made-up subscriptions must not
//   make the guard hold, nor profit from it.
// - While the guard holds, pushes that were answered "gone" wait. One probe at a time is sent, at
//   growing intervals, to find out whether the push service still says so.
import { addBounded, makeRoom } from "#basics/bounded.ts"
import type { Push } from "../attempt.ts"

/** So many "gone" responses in a row, without a 2xx between them, are not believed any more. */
const inRowMax = 50
/** A 2xx this recent shows that the push service itself responds, and no proxy before it. */
const acceptedMillisMax = 60_000
/** The first probe after a minute, then at twice the interval each time. */
const probeMillisMin = 60_000
const probeMillisMax = 15 * 60_000
/** A push whose "gone" was not believed waits for a quarter of its age, within these. */
const goneMillisMin = 60_000
const goneMillisMax = 15 * 60_000
/**
 * Subscriptions said to be gone before any push to them was accepted; the oldest are dropped beyond
 * this.
 */
const neverReachedMax = 1_000
/**
 * "Gone" responses until the counts are urgent: the most that each worker removes before it is
 * told.
 */
const urgentGonesMax = 10

const sliceMillis = 30_000
/** Ten slices, five minutes. Older events say nothing about now. */
const slices = 10
/** Fewer events prove no majority. */
const eventsMin = 50
/** A majority ends with fewer; not with none, or a quiet hour would end it. */
const eventsToEndMin = 10
const shareMax = 0.5

/** Responses that one worker counted, and those of them that say "gone". */
interface Counted {
  readonly answers: number
  readonly gone: number
}

/** A part of the row: what one process counted since it published the last part. */
export interface Row {
  /** "Gone" responses since the last 2xx. */
  readonly gone: number
  /** A 2xx came before them. */
  readonly isNew: boolean
}
const noRow: Row = { gone: 0, isNew: false }
/** Rows of other processes: the oldest are dropped beyond this, as those of ended ones. */
const rowsMax = 1_000

export type GuardChange = "holds" | "trusts" | undefined

export type GonePush = Pick<Push, "subscription" | "generation" | "broadcast">

/** How long a push waits whose "gone" was not believed, by the age of its broadcast. */
export const goneMillis = (age: number): number =>
  Math.min(Math.max(goneMillisMin, age / 4), goneMillisMax)

const nameOf = ({ generation, subscription }: GonePush) => `${subscription} ${generation}`

export class MassGone {
  readonly #knownFrom: () => number
  readonly #mostGone = new Majority()
  #unpublished = { answers: 0, gone: 0 }
  readonly #isInGroup: () => boolean
  #inRow = 0
  /** The rows of other processes of the group, by worker, since the last 2xx of this one. */
  readonly #rowsOfOthers = new Map<string, number>()
  #inRowOfOthers = 0
  #unpublishedRow = noRow
  #acceptedAt = Number.NEGATIVE_INFINITY
  /** The two newest broadcasts of which a push was accepted. */
  #newest = 0
  #second = 0
  readonly #neverReached = new Set<string>()
  #probeMillis = probeMillisMin
  #probeAt = 0
  /** The last probe, and when it might be sent, with the interval before it. */
  #probe: { readonly name: string; readonly at: number; readonly millis: number } | undefined

  /**
   * `knownFrom` returns the sequence in LOG from which on this process knows of every broadcast
   * that the push service took a push of. Infinity: it knows nothing yet. `isInGroup`: whether
   * other processes of its group send now, too.
   */
  constructor(knownFrom: () => number, isInGroup = () => false) {
    this.#knownFrom = knownFrom
    this.#isInGroup = isInGroup
  }

  /** While true, "gone" is believed of no subscription that may have been reached before. */
  get holding(): boolean {
    return this.#mostGone.holds || this.#isLongRow
  }

  /** The newest broadcast of which a push was accepted; 0: none. */
  get newest(): number {
    return this.#newest
  }

  /** Whether other workers need the counts at once. */
  get isUrgent(): boolean {
    return (
      this.#unpublished.gone >= urgentGonesMax ||
      (this.#isInGroup() && this.#unpublishedRow.gone >= urgentGonesMax)
    )
  }

  /** Returns what was counted here since the last call. */
  takeCounts(): Counted {
    const taken = this.#unpublished
    this.#unpublished = { answers: 0, gone: 0 }
    return taken
  }

  /** Returns what was counted here of the row since the last call; undefined: nothing. */
  takeRow(): Row | undefined {
    const taken = this.#unpublishedRow
    this.#unpublishedRow = noRow
    return taken.gone > 0 || taken.isNew ? taken : undefined
  }

  /** Notes a 2xx. `saidGone`: an earlier response to this push was "gone", so that was wrong. */
  accepted(push: GonePush, saidGone: boolean, now: number): GuardChange {
    const before = this.holding
    this.#inRow = 0
    this.#endRowsOfOthers()
    this.#unpublishedRow = { gone: 0, isNew: true }
    this.#acceptedAt = now
    this.#reached(push.broadcast)
    if (this.#neverReached.size > 0) this.#neverReached.delete(nameOf(push))
    if (saidGone) {
      this.#probeMillis = probeMillisMin
      this.#probeAt = now
    }
    this.#count(0, now)
    return this.#changeSince(before)
  }

  /** Notes any other response but "gone". */
  other(now: number): GuardChange {
    const before = this.holding
    this.#count(0, now)
    return this.#changeSince(before)
  }

  /** Notes a "gone". `isOfPushService`: 404 or 410, not our conclusion from another response. */
  gone(
    push: GonePush,
    isOfPushService: boolean,
    now: number
  ): { readonly believed: boolean; readonly change: GuardChange } {
    const isOfNew = isOfPushService && this.#isNew(push)
    const before = this.holding
    this.#inRow += 1
    const { gone, isNew } = this.#unpublishedRow
    this.#unpublishedRow = { gone: gone + 1, isNew }
    const believed = isOfNew && this.#takesOthers(now)
    if (!believed) this.#count(1, now)
    const change = this.#changeSince(before)
    if (believed || !this.holding) return { believed: true, change }
    if (isOfNew) addBounded(this.#neverReached, nameOf(push), neverReachedMax)
    return { believed: false, change }
  }

  /** Whether a push that was answered "gone" may be sent again now. */
  mayProbe(push: GonePush, now: number): boolean {
    if (!this.holding || (this.#isNew(push) && this.#takesOthers(now))) return true
    return now >= this.#probeAt
  }

  /** Notes that such a push is sent. */
  probes(push: GonePush, now: number): void {
    if (!this.holding) return
    this.#probe = { name: nameOf(push), at: this.#probeAt, millis: this.#probeMillis }
    this.#probeAt = now + this.#probeMillis
    this.#probeMillis = Math.min(2 * this.#probeMillis, probeMillisMax)
  }

  /** Notes that a push was not sent after all: if it was the last probe, another may be. */
  withdrawn(push: GonePush): void {
    if (this.#probe?.name !== nameOf(push)) return
    this.#probeAt = this.#probe.at
    this.#probeMillis = this.#probe.millis
    this.#probe = undefined
  }

  /**
   * Merges another worker's counts, and the newest broadcast of which a push was accepted there.
   */
  merge(counted: Counted, holds: boolean, broadcast: number, now: number): GuardChange {
    this.#reached(broadcast)
    const before = this.holding
    this.#mostGone.add(counted.answers, counted.gone, now)
    if (holds) this.#mostGone.believe()
    return this.#changeSince(before)
  }

  /**
   * Merges a part of the row of another process of the group. A 2xx there that no "gone" followed
   * ends the rows of the others. Any other 2xx may have come before those rows.
   */
  mergeRow(worker: string, { gone, isNew }: Row): GuardChange {
    const before = this.holding
    if (isNew && gone === 0) this.#endRowsOfOthers()
    else {
      const former = isNew ? 0 : (this.#rowsOfOthers.get(worker) ?? 0)
      makeRoom(this.#rowsOfOthers, rowsMax)
      this.#rowsOfOthers.set(worker, former + gone)
      this.#inRowOfOthers = [...this.#rowsOfOthers.values()].reduce((sum, each) => sum + each, 0)
    }
    return this.#changeSince(before)
  }

  #endRowsOfOthers(): void {
    if (this.#inRowOfOthers > 0) this.#rowsOfOthers.clear()
    this.#inRowOfOthers = 0
  }

  get #isLongRow(): boolean {
    // Processes that ended count no more: alone, this one holds no earlier than without others.
    const ofOthers = this.#isInGroup() ? this.#inRowOfOthers : 0
    return this.#inRow + ofOthers >= inRowMax
  }

  #count(gone: 0 | 1, now: number): void {
    this.#unpublished.answers += 1
    this.#unpublished.gone += gone
    this.#mostGone.add(1, gone, now)
  }

  #changeSince(before: boolean): GuardChange {
    if (before === this.holding) return undefined
    this.#probeMillis = probeMillisMin
    this.#probeAt = 0
    this.#probe = undefined
    return before ? "trusts" : "holds"
  }

  /** Whether no push to this subscription was ever accepted, as far as this process knows. */
  #isNew(push: GonePush): boolean {
    if (this.#neverReached.has(nameOf(push))) return true
    const other = this.#newest === push.broadcast ? this.#second : this.#newest
    return push.generation > this.#knownFrom() && push.generation > other
  }

  #takesOthers(now: number): boolean {
    return now - this.#acceptedAt < acceptedMillisMax && !this.#isLongRow
  }

  #reached(broadcast: number): void {
    if (broadcast > this.#newest) {
      this.#second = this.#newest
      this.#newest = broadcast
    } else if (broadcast < this.#newest) this.#second = Math.max(this.#second, broadcast)
  }
}

/**
 * Whether most of the latest events are of one kind: responses that say "gone", or pushes that end
 * with a strike.
 */
export class Majority {
  readonly #all = new Array<number>(slices).fill(0)
  readonly #ofKind = new Array<number>(slices).fill(0)
  #slice = 0
  #allSum = 0
  #ofKindSum = 0
  #holds = false

  /** Whether most of the events are of the kind. */
  get holds(): boolean {
    return this.#holds
  }

  /** Adds events at `now`: `ofKind` of `all`. */
  add(all: number, ofKind: number, now: number): void {
    this.#advance(now)
    this.#all[this.#slice % slices]! += all
    this.#allSum += all
    this.#ofKind[this.#slice % slices]! += ofKind
    this.#ofKindSum += ofKind
    const needed = this.#holds ? eventsToEndMin : eventsMin
    if (this.#allSum >= needed) this.#holds = this.#ofKindSum > this.#allSum * shareMax
  }

  /**
   * Takes over the majority that another process found. Does nothing if this process has counted
   * enough events to end a majority.
   */
  believe(): void {
    if (this.#allSum < eventsToEndMin) this.#holds = true
  }

  #advance(now: number): void {
    const current = Math.floor(now / sliceMillis)
    const first = Math.max(this.#slice + 1, current - slices + 1)
    for (let next = first; next <= current; next++) {
      this.#allSum -= this.#all[next % slices]!
      this.#ofKindSum -= this.#ofKind[next % slices]!
      this.#all[next % slices] = 0
      this.#ofKind[next % slices] = 0
    }
    this.#slice = current
  }
}
