// Keeps a draft: what was typed here, and what the service has stored. Stores what was typed at
// most every 10 s, over the form that it was typed on and no other: another person's change is
// shown, and replaced by an answer only. A copy of what is not stored stays in this tab, so neither
// a login that ends nor a reload loses it. A list of users is stored once its field is left: the
// service would make a code of half a mail address, which is nobody's.
import { Problem } from "../api/client.ts"
import { newDraftId, newTag, readDraft, type StoredDraft, storeDraft } from "../api/drafts.ts"
import { session, sessions } from "../api/session.ts"
import type { Draft, DraftData } from "../api/shapes.ts"
import { problemOf } from "../parts/report.ts"
import { Store } from "../state/store.ts"
import { type TypedLists, type UserList, withTypedLists } from "./audience.ts"
import { dataOf, isSame } from "./changes.ts"
import { writtenOf } from "./content.ts"

const storedEveryMillis = 10_000
/** Typing pauses: what was typed is stored soon where nothing was stored for long. */
const soonMillis = 2_000

/**
 * Whether the same request may succeed later: no answer, a login that ended, a conflict, too many
 * requests, or a failure of the service. Other refusals last until the draft changes.
 */
const isPassing = ({ status }: Problem): boolean =>
  [0, 401, 409, 429].includes(status) || status >= 500

export interface Kept {
  readonly phase: "loading" | "ready" | "missing"
  readonly data: DraftData
  /** The typed form differs from the stored one. */
  readonly isChanged: boolean
  /** Lists of users whose field was not left yet, or that have faults. */
  readonly typed: TypedLists
  readonly isStoring: boolean
  readonly stored: StoredDraft | undefined
  /** When the service stored or showed the draft last, by the clock of this machine. */
  readonly storedAt: number | undefined
  /** Another person's form, which waits for an answer. `gone`: the draft was sent or deleted. */
  readonly theirs: StoredDraft | "gone" | undefined
  /** Another person's change was taken over, as nothing was typed here meanwhile. */
  readonly taken: Draft | undefined
  readonly problem: Problem | undefined
}

const begin: Kept = {
  phase: "loading",
  data: {},
  isChanged: false,
  typed: {},
  isStoring: false,
  stored: undefined,
  storedAt: undefined,
  theirs: undefined,
  taken: undefined,
  problem: undefined
}

/** Whether there is anything that the service does not have. */
export const isUnsaved = ({ isChanged, typed }: Kept): boolean =>
  isChanged || Object.keys(typed).length > 0

/** A new draft is empty but for its story, so that a correction of it can replace it. */
const emptyDraft = (): DraftData => ({
  data: { web_push: 8030, notification: { tag: newTag() } as never }
})

interface Backup {
  readonly data: DraftData
  readonly etag: string | undefined
  readonly typed: TypedLists
}

const begunPlace = (user: string): string => `bellcast-console-new-draft ${user}`

const backupPlace = (user: string, id: string): string => `bellcast-console-unsaved ${user} ${id}`

const backupAt = (place: string): Backup | undefined => {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "") as Backup
  } catch {
    return undefined
  }
}

export interface Unsaved {
  readonly id: string
  readonly title: string
  /** Named no more before the draft is opened and left again. */
  readonly isDismissed: boolean
}

/** Drafts that are not open, and of which this tab has what the service lacks. */
export const unsaved = new Store<ReadonlyArray<Unsaved>>([])

let openId: string | undefined

export const findUnsaved = (): void => {
  const { user } = sessions.value.session ?? {}
  const begin = user === undefined ? undefined : backupPlace(user, "")
  const found = Object.keys(sessionStorage).flatMap((place) => {
    if (begin === undefined || !place.startsWith(begin)) return []
    const id = place.slice(begin.length)
    const { title = "" } = writtenOf(backupAt(place)?.data.data)
    // One with a blank is another person's, whose id begins with ours.
    if (id === openId || id.includes(" ")) return []
    const isDismissed = unsaved.value.some((each) => each.id === id && each.isDismissed)
    return [{ id, title, isDismissed }]
  })
  unsaved.set(found)
}

export const dismissUnsaved = (id: string): void =>
  unsaved.set(unsaved.value.map((each) => (each.id === id ? { ...each, isDismissed: true } : each)))

/** Keepers whose screen is left: they try to store what the service lacks until it has it. */
const left = new Map<string, DraftKeeper>()

export const keeperOf = (id: string): DraftKeeper =>
  left.get(backupPlace(session().user, id)) ?? new DraftKeeper(id)

/** Marks an id as that of a draft that this tab begins: the service does not know it yet. */
export const beginDraft = (): string => {
  const id = newDraftId()
  sessionStorage.setItem(begunPlace(session().user), id)
  return id
}

export class DraftKeeper extends Store<Kept> {
  readonly id: string
  /** The person who types here. Nothing of it is stored in the name of anybody else. */
  readonly #user = session().user
  #timer: ReturnType<typeof setTimeout> | undefined
  #running: Promise<void> | undefined
  /** Of the version that an earlier load of this page typed on. */
  #backupEtag: string | undefined
  /** Before it, nothing is stored but by a key, a button, or as the screen is left. */
  #nextAt = 0
  #endWait: (() => void) | undefined
  #isLeft = false

  constructor(id: string) {
    super(begin)
    this.id = id
  }

  #show(members: Partial<Kept>): void {
    this.set({ ...this.value, ...members })
  }

  get #backupPlace(): string {
    return backupPlace(this.#user, this.id)
  }

  /** Reads the draft, and what an earlier load of this page could not store. */
  async load(): Promise<void> {
    this.#show({ phase: "loading", problem: undefined })
    const backup = backupAt(this.#backupPlace)
    this.#backupEtag = backup?.etag
    // The service does not know it yet: nothing of it was ever stored.
    if (sessionStorage.getItem(begunPlace(this.#user)) === this.id) return this.#begin(backup)
    try {
      const found = await readDraft(this.id)
      this.#take(found)
      if (backup !== undefined) this.#restore(backup, found)
    } catch (cause) {
      const problem = problemOf(cause)
      if (problem.status !== 404) this.#show({ problem })
      else if (backup === undefined) this.#show({ phase: "missing" })
      else this.#begin(backup, backup.etag === undefined ? undefined : "gone")
    }
  }

  #begin(backup: Backup | undefined, theirs?: "gone"): void {
    const { data = emptyDraft(), typed = {} } = backup ?? {}
    this.#show({ phase: "ready", data, typed, theirs, isChanged: backup !== undefined })
    this.#schedule()
  }

  #restore({ data, etag = "", typed = {} }: Backup, found: StoredDraft): void {
    const isChanged = !isSame(data, dataOf(found.draft))
    const theirs = isChanged && etag !== found.etag ? found : undefined
    // The copy keeps the version that it was typed on, or a second reload would not ask.
    this.#show({ data, typed, isChanged, theirs, ...(theirs && { stored: { ...found, etag } }) })
    this.#backUp()
    this.#schedule()
  }

  #take(stored: StoredDraft): void {
    this.#show({
      phase: "ready",
      data: dataOf(stored.draft),
      stored,
      storedAt: Date.now(),
      isChanged: false,
      theirs: undefined,
      problem: undefined
    })
  }

  change(change: (data: DraftData) => DraftData): void {
    const data = change(this.value.data)
    const { stored } = this.value
    const isChanged = stored === undefined || !isSame(data, dataOf(stored.draft))
    this.#show({ data, isChanged, taken: undefined })
    this.#backUp()
    this.#schedule()
  }

  /** Keeps what somebody types in a list of users, which is not in the draft yet. */
  type(list: UserList, text: string): void {
    this.#show({ typed: { ...this.value.typed, [list]: text } })
    this.#backUp()
  }

  /** Takes the lists of users into the draft, as their fields are left. */
  settle(): void {
    if (Object.keys(this.value.typed).length === 0) return
    const { data, typed } = withTypedLists(this.value.data, this.value.typed)
    this.#show({ typed })
    this.change(() => data)
  }

  #backUp(): void {
    const { data, stored, typed } = this.value
    // Without the version of a draft that is gone, the next load would take the copy for a new one.
    const backup: Backup = { data, etag: stored?.etag ?? this.#backupEtag, typed }
    if (isUnsaved(this.value)) sessionStorage.setItem(this.#backupPlace, JSON.stringify(backup))
    else sessionStorage.removeItem(this.#backupPlace)
  }

  /** Whether the person who types here is logged in. */
  get #isIn(): boolean {
    const { hasEnded, session: found } = sessions.value
    return found?.user === this.#user && hasEnded !== true
  }

  /** Stores what was typed once its person is logged in. */
  #awaitLogin(): void {
    this.#endWait ??= sessions.listen(() => {
      if (!this.#isIn) return
      this.#endWait?.()
      this.#endWait = undefined
      void this.store()
    })
  }

  #schedule(): void {
    const { isChanged, theirs } = this.value
    if (this.#timer !== undefined || !isChanged || theirs !== undefined) return
    const wait = Math.max(soonMillis, this.#nextAt - Date.now())
    this.#timer = setTimeout(() => void this.store(), wait)
  }

  /** Stores what was typed, at once. Resolves when it is stored, or cannot be now. */
  async store(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // Input while a request was under way needs another one.
    while (this.#running !== undefined) await this.#running
    const { isChanged, phase, theirs } = this.value
    if (!isChanged || phase !== "ready" || theirs !== undefined) return
    // The service counts each request of a login that ended as wrong credentials of the address.
    if (!this.#isIn) return this.#awaitLogin()
    this.#running = this.#put().finally(() => {
      this.#running = undefined
      const { problem } = this.value
      if (problem !== undefined && !isPassing(problem)) return
      // Input during the request set a timer, which knows nothing of the wait in the response.
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.#schedule()
    })
    await this.#running
  }

  async #put(): Promise<void> {
    const { data, stored } = this.value
    this.#nextAt = Date.now() + storedEveryMillis
    this.#show({ isStoring: true })
    try {
      this.#stored(data, await storeDraft(this.id, data, stored?.etag))
    } catch (cause) {
      const problem = problemOf(cause)
      // Status 404: the draft is another person's and names readers now, so it is hidden from us.
      if (problem.code === "modified-meanwhile" || problem.status === 404) await this.#compare(data)
      else this.#fail(problem)
    }
  }

  #fail(problem: Problem): void {
    this.#nextAt = Math.max(this.#nextAt, Date.now() + (problem.retryAfterMillis ?? 0))
    this.#show({ problem, isStoring: false })
  }

  /** The service may write ids of users in another way: what it stored counts. */
  #stored(sent: DraftData, stored: StoredDraft): void {
    const { data } = this.value
    const isChanged = !isSame(data, sent)
    if (sessionStorage.getItem(begunPlace(this.#user)) === this.id)
      sessionStorage.removeItem(begunPlace(this.#user))
    this.#show({
      stored,
      storedAt: Date.now(),
      isChanged,
      isStoring: false,
      problem: undefined,
      ...(isChanged ? {} : { data: dataOf(stored.draft) })
    })
    this.#backUp()
    if (this.#isLeft) this.#showLeft()
  }

  /** Another form is stored: that of somebody else, or ours, whose response was lost. */
  async #compare(sent: DraftData): Promise<void> {
    try {
      const found = await readDraft(this.id)
      if (isSame(dataOf(found.draft), sent)) this.#stored(sent, found)
      else this.#show({ theirs: found, isStoring: false, problem: undefined })
    } catch (cause) {
      const problem = problemOf(cause)
      if (problem.status !== 404) this.#fail(problem)
      else this.#show({ theirs: "gone", isStoring: false, problem: undefined })
    }
  }

  /** Looks whether somebody else changed the draft. */
  async look(): Promise<void> {
    const { isStoring, phase, stored, theirs } = this.value
    if (phase !== "ready" || stored === undefined || isStoring || theirs !== undefined) return
    if (!this.#isIn) return
    const found = await readDraft(this.id).catch((problem: Problem) =>
      problem.status === 404 ? ("gone" as const) : undefined
    )
    const now = this.value
    if (found === undefined || now.isStoring) return
    if (found !== "gone" && found.etag === now.stored?.etag) return
    if (found === "gone" || isUnsaved(now)) return this.#show({ theirs: found })
    this.#take(found)
    this.#show({ taken: found.draft })
  }

  /** The answer to the question whose form counts. */
  async answer(whose: "mine" | "theirs"): Promise<void> {
    const { data, theirs } = this.value
    if (theirs === undefined || theirs === "gone") return
    this.#take(theirs)
    if (whose === "mine") this.#show({ data, isChanged: true })
    else this.#show({ typed: {} })
    this.#backUp()
    await this.store()
  }

  /** Drops what is here of a draft that is gone. Returns the id of a new draft that has it. */
  moveOn(isKept: boolean): string | undefined {
    const { data, typed } = this.value
    this.#show({ isChanged: false, typed: {} })
    this.#backUp()
    if (!isKept) return undefined
    const id = beginDraft()
    const backup: Backup = { data, etag: undefined, typed }
    sessionStorage.setItem(backupPlace(this.#user, id), JSON.stringify(backup))
    return id
  }

  dismissTaken(): void {
    this.#show({ taken: undefined })
  }

  /** The screen is opened, perhaps again while what was typed there before is not stored. */
  open(): void {
    this.#isLeft = false
    openId = this.id
    left.delete(this.#backupPlace)
    unsaved.set(unsaved.value.filter(({ id }) => id !== this.id))
    void (this.value.phase === "ready" ? this.store() : this.load())
  }

  /** The screen is left: what was typed is stored, now or later. */
  leave(): void {
    this.#isLeft = true
    openId = undefined
    left.set(this.#backupPlace, this)
    this.settle()
    void this.store().then(() => this.#isLeft && this.#showLeft())
  }

  #showLeft(): void {
    if (!isUnsaved(this.value)) left.delete(this.#backupPlace)
    findUnsaved()
  }
}

/** A problem that says that there is no such draft, for screens that show one. */
export const missingProblem = (): Problem => new Problem("unknown-object", 404)
