// Compose: message, audience and time of a draft on one page, the preview beside them.
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useState } from "preact/hooks"
import { beforeLogOut, isLeavingForLogin } from "../api/session.ts"
import type { Action, To } from "../api/shapes.ts"
import { hasAudience } from "../draft/audience.ts"
import { type Change, changesOf, dataOf } from "../draft/changes.ts"
import { contentOf, faultsOf, localesOf, others, writtenOf } from "../draft/content.ts"
import {
  beginDraft,
  type DraftKeeper,
  isUnsaved,
  type Kept,
  keeperOf,
  missingProblem
} from "../draft/keeper.ts"
import { timeFault } from "../draft/moment.ts"
import { useReach } from "../draft/reach.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Heading } from "../parts/frame.tsx"
import { Eye } from "../parts/icons.tsx"
import { Ghosts } from "../parts/load.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { address, go, goInstead } from "../state/route.ts"
import { useStore } from "../state/store.ts"
import { list, number, percent, second, t, tIf, time, wholeTime } from "../words/language.ts"
import { draftAudience, person } from "../words/people.ts"
import { Audience } from "./audience.tsx"
import { localeName, Message } from "./message.tsx"
import { Preview } from "./preview.tsx"
import { Test } from "./test.tsx"
import { When } from "./when.tsx"

const lookEveryMillis = 30_000

/** `#/draft/new` gets an address of its own, so that a reload comes back to it. */
export const NewDraft = () => {
  useLayoutEffect(() => goInstead("draft", beginDraft()), [])
  return null
}

/** Stores what was typed where it may be lost, and looks for changes of others. */
const useKeeper = (id: string): DraftKeeper => {
  const [keeper] = useState(() => keeperOf(id))
  useEffect(() => {
    keeper.open()
    const see = () => void (document.hidden ? keeper.store() : keeper.look())
    const warn = (event: BeforeUnloadEvent) => {
      if (!isUnsaved(keeper.value) || isLeavingForLogin()) return
      void keeper.store()
      event.preventDefault()
    }
    const timer = setInterval(() => !document.hidden && void keeper.look(), lookEveryMillis)
    const store = () => {
      keeper.settle()
      return keeper.store()
    }
    beforeLogOut.add(store)
    document.addEventListener("visibilitychange", see)
    addEventListener("beforeunload", warn)
    return () => {
      clearInterval(timer)
      beforeLogOut.delete(store)
      document.removeEventListener("visibilitychange", see)
      removeEventListener("beforeunload", warn)
      keeper.leave()
    }
  }, [keeper])
  return keeper
}

/** Whether it says all that it must, at a time that can be: what is missing is at its fields. */
export const isSaid = (data: Kept["data"]): boolean => {
  const locales = localesOf(data).filter((each) => each !== others || contentOf(data, each))
  return (
    locales.length > 0 &&
    locales.every((each) => faultsOf(contentOf(data, each)).length === 0) &&
    (data.at === undefined || timeFault(data.at, Date.now()) === undefined)
  )
}

const storedText = (kept: Kept): string => {
  const { isStoring, problem, storedAt } = kept
  if (isStoring) return t("draftStoring")
  if (problem) return t("draftNotStored")
  if (storedAt === undefined) return t(isUnsaved(kept) ? "draftTyping" : "draftEmpty")
  return t(isUnsaved(kept) ? "draftChanged" : "draftStored", { time: second(storedAt) })
}

/** "Title (German)": what a change is about. */
const changeName = ({ locale, name }: Change): string => {
  const said = tIf(`part-${name}`) ?? name
  return locale === undefined || locale === others ? said : `${said} (${localeName(locale)})`
}

/** A member of a draft in words; undefined: as it is. */
const valueText: Readonly<Record<string, (value: never) => string | undefined>> = {
  actions: (actions: ReadonlyArray<Action>) => list(actions.map(({ title }) => title)),
  at: (at: string) => (Number.isNaN(Date.parse(at)) ? at : wholeTime(Date.parse(at))),
  pause_when: ({ failed_share }: { readonly failed_share: number }) => percent(failed_share),
  to: (to: To) => draftAudience(to),
  ttl: (ttl: number) => tIf(`ttl-${ttl}`),
  urgency: (urgency: string) => tIf(`urgency-${urgency}`)
}

const Value = ({ name, value }: { readonly name: string; readonly value: unknown }) => {
  if (value === undefined || value === "") return <i>{t("changeNothing")}</i>
  const text = valueText[name]?.(value as never)
  return <>{text ?? (typeof value === "string" ? value : JSON.stringify(value))}</>
}

interface ChangesProps {
  readonly changes: ReadonlyArray<Change>
  readonly before: string
  readonly after: string
}

/** The differences between two forms of a draft, in a table of before and after. */
export const Changes = ({ after, before, changes }: ChangesProps) => (
  <div class="scroll">
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">{t("changePart")}</th>
          <th scope="col">{before}</th>
          <th scope="col">{after}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map((each) => (
          <tr key={`${each.locale} ${each.name}`}>
            <th scope="row">{changeName(each)}</th>
            <td>
              <Value name={each.name} value={each.before} />
            </td>
            <td>
              <Value name={each.name} value={each.after} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** Another person stored another form: neither is lost before one is chosen. */
const Theirs = ({ keeper, kept }: { readonly keeper: DraftKeeper; readonly kept: Kept }) => {
  const { data, taken, theirs } = kept
  if (taken)
    return (
      <Box kind="note" onDismiss={() => keeper.dismissTaken()}>
        {t("theirsTaken", {
          name: person(taken.changed_by ?? taken.author),
          time: time(taken.last_modified)
        })}
      </Box>
    )
  if (!theirs) return null
  if (theirs === "gone") return <Gone keeper={keeper} />
  const { draft } = theirs
  const who = { name: person(draft.changed_by ?? draft.author), time: time(draft.last_modified) }
  return (
    <Box kind="warning">
      <p>
        <b>{t("theirs", who)}</b> {t("theirsTodo")}
      </p>
      <Changes
        changes={changesOf(data, dataOf(draft))}
        before={t("theirsMine")}
        after={t("theirsTheirs")}
      />
      <div class="buttons">
        <Button onPress={() => keeper.answer("theirs")}>{t("theirsTake")}</Button>
        <Button onPress={() => keeper.answer("mine")}>{t("theirsReplace")}</Button>
      </div>
    </Box>
  )
}

/** The draft was sent or deleted: what is here is the only copy. */
const Gone = ({ keeper }: { readonly keeper: DraftKeeper }) => {
  const drop = () => {
    keeper.moveOn(false)
    go("drafts")
  }
  const actions = (
    <>
      <Button onPress={() => go("draft", keeper.moveOn(true)!)}>{t("goneKeep")}</Button>
      <Button kind="quiet danger" onPress={drop}>
        {t("goneDrop")}
      </Button>
    </>
  )
  return (
    <Box kind="warning" actions={actions}>
      <b>{t("gone")}</b> {t("goneTodo")}
    </Box>
  )
}

const Missing = () => (
  <>
    <Heading title={t("draftMissing")} />
    <ProblemBox problem={missingProblem()} />
    <ButtonLink to={address("draft", "new")}>{t("newNotification")}</ButtonLink>
  </>
)

interface FootProps {
  readonly stored: string
  readonly isWrong?: boolean
  readonly people?: string | undefined
  readonly children: ComponentChildren
}

/** Stays at the lower edge of the window: whether it is stored, who gets it, and the next step. */
export const Foot = ({ children, isWrong, people, stored }: FootProps) => (
  <div class="foot">
    <p>
      <span class={isWrong ? "wrong" : "soft"} role="status">
        {stored}
      </span>
      <span class="soft foot-people">{people}</span>
    </p>
    {children}
  </div>
)

export const Compose = ({ id }: { readonly id: string }) => {
  const keeper = useKeeper(id)
  const kept = useStore(keeper)
  const [chosen, choose] = useState(others)
  const [isChecked, check] = useState(false)
  const { data, phase, problem } = kept
  const counting = useReach(data.to)
  const locale = localesOf(data).includes(chosen) ? chosen : others
  const review = async () => {
    check(true)
    keeper.settle()
    await keeper.store()
    const now = keeper.value
    const isListed = Object.keys(now.typed).length === 0
    if (!isSaid(now.data) || !hasAudience(now.data) || !isListed) return showWrong(now.data, choose)
    if (!now.isChanged && !now.theirs) go("draft", id, "review")
  }
  useKeys({ store: () => keeper.store(), review })
  if (phase === "missing") return <Missing />
  if (phase === "loading")
    return (
      <>
        <Heading title={t("compose")} />
        {problem ? (
          <ProblemBox problem={problem} onRetry={() => keeper.load()} />
        ) : (
          <Ghosts rows={5} />
        )}
      </>
    )
  const part = {
    data,
    isChecked,
    change: keeper.change.bind(keeper)
  }
  const { reach } = counting.counted ?? {}
  const content = contentOf(data, locale)
  const { title = "" } = writtenOf(data.data)
  return (
    <div class="compose">
      <Heading title={t("compose")} windowTitle={title || t("compose")} />
      <Theirs keeper={keeper} kept={kept} />
      {problem && <ProblemBox problem={problem} onRetry={() => keeper.store()} />}
      <div class="columns">
        <div class="parts">
          <Message {...part} locale={locale} onLocale={choose} />
          <Audience
            {...part}
            counting={counting}
            typed={kept.typed}
            type={keeper.type.bind(keeper)}
            settle={keeper.settle.bind(keeper)}
          />
          <When {...part} browsers={reach?.browsers} />
        </div>
        <aside class="beside" aria-label={t("previewAndTest")}>
          <Preview content={content} />
          <Test content={content} />
        </aside>
      </div>
      <Foot
        stored={storedText(kept)}
        isWrong={problem !== undefined}
        people={reach && t("footReaders", { people: number(reach.people), count: reach.people })}
      >
        <Button kind="prominent" icon={Eye} onPress={review}>
          {t("toReview")}
        </Button>
      </Foot>
    </div>
  )
}

/** Shows the language with the first fault, and gives the first wrong field the focus. */
export const showWrong = (data: Kept["data"], choose: (locale: string) => void) => {
  const locale = localesOf(data).find(
    (each) => contentOf(data, each) && faultsOf(contentOf(data, each)).length > 0
  )
  if (locale !== undefined) choose(locale)
  // After the fields were rendered with their faults.
  setTimeout(() => {
    const field = document.querySelector<HTMLElement>(".parts [aria-invalid=true]")
    field?.closest("details")?.setAttribute("open", "")
    field?.focus()
    // Else the bar at the lower edge may cover the field, and what is wrong with it.
    field?.scrollIntoView({ block: "center" })
  })
}

interface Keys {
  readonly store: () => unknown
  readonly review: () => unknown
}

/** Ctrl+S stores, Ctrl+Enter goes to Review; with Cmd on Apple's keyboards. */
export const useKeys = ({ review, store }: Keys) => {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      if (event.key !== "s" && event.key !== "Enter") return
      event.preventDefault()
      void (event.key === "s" ? store() : review())
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  })
}
