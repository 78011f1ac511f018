// Edit: a scheduled notification is changed in place, in all that the service changes of one: what
// it says, when it starts, how fast it is sent. The rest is changed as a draft.
import { useEffect, useState } from "preact/hooks"
import { readBroadcast } from "../api/broadcasts.ts"
import type { Problem } from "../api/client.ts"
import { isHidden } from "../api/drafts.ts"
import type { DraftData, WholeBroadcast } from "../api/shapes.ts"
import { changesOf, isSame } from "../draft/changes.ts"
import { contentOf, localesOf, others } from "../draft/content.ts"
import { editedOf, isChanged, save, type Typed, typedOn } from "../draft/edited.ts"
import { timeFault } from "../draft/moment.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Heading, NotFound } from "../parts/frame.tsx"
import { Awaited, Ghosts, isMissing, useLoad } from "../parts/load.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { address, go } from "../state/route.ts"
import { t, time } from "../words/language.ts"
import { audience } from "../words/people.ts"
import { Changes, Foot, isSaid, showWrong, useKeys } from "./compose.tsx"
import { hiddenText } from "./duplicate.tsx"
import { Message } from "./message.tsx"
import { Preview } from "./preview.tsx"
import { titleOf } from "./rows.tsx"
import { Unschedule } from "./scheduled.tsx"
import { Test } from "./test.tsx"
import { At, Speed } from "./when.tsx"

export const Edit = ({ id }: { readonly id: string }) => {
  const loaded = useLoad((signal) => readBroadcast(id, signal), [id])
  if (isMissing(loaded)) return <NotFound />
  return (
    <Awaited
      of={loaded}
      waiting={
        <>
          <Heading title={t("edit")} />
          <Ghosts rows={5} />
        </>
      }
    >
      {(whole) =>
        whole.state === "scheduled" ? (
          <Form whole={whole} onChange={loaded.reload} />
        ) : (
          <>
            <Heading title={t("edit")} />
            <Box kind="warning">{t("editLate")}</Box>
            <ButtonLink to={address("broadcast", id)}>{t("view")}</ButtonLink>
          </>
        )
      }
    </Awaited>
  )
}

/** A page that is closed now loses what was typed: nothing is stored before it is complete. */
const useWarning = (isChanged: boolean) => {
  useEffect(() => {
    if (!isChanged) return undefined
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener("beforeunload", warn)
    return () => removeEventListener("beforeunload", warn)
  }, [isChanged])
}

/** What is typed on a form of the broadcast, and that of somebody else that takes its place. */
const useTyped = (whole: WholeBroadcast) => {
  const [state, set] = useState<{
    readonly typed: Typed
    /** The form that a change names. */
    readonly over: WholeBroadcast
    /** Waits for an answer. */
    readonly theirs?: WholeBroadcast
  }>(() => ({ typed: typedOn(whole), over: whole }))
  const show = (over: WholeBroadcast) =>
    set(({ typed }) => {
      if (isSame(editedOf(over), typed.before)) return { typed, over }
      return isChanged(typed) ? { typed, over, theirs: over } : { typed: typedOn(over), over }
    })
  useEffect(() => show(whole), [whole])
  return {
    ...state,
    hasChanged: isChanged(state.typed),
    show,
    change: (change: (data: DraftData) => DraftData) =>
      set(({ typed, ...now }) => ({ ...now, typed: { ...typed, data: change(typed.data) } })),
    take: (over: WholeBroadcast, data: DraftData) =>
      set({ typed: { before: editedOf(over), data }, over })
  }
}

interface FormProps {
  readonly whole: WholeBroadcast
  readonly onChange: () => void
}

const Form = ({ onChange, whole }: FormProps) => {
  const { id } = whole
  const { change, hasChanged, over, show, take, theirs, typed } = useTyped(whole)
  const [chosen, choose] = useState(others)
  const [isChecked, check] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  const isText = !isHidden(whole)
  const { before, data } = typed
  const locale = localesOf(data).includes(chosen) ? chosen : others
  const content = contentOf(data, locale)
  useWarning(hasChanged)
  const store = async (form: WholeBroadcast) => {
    check(true)
    setProblem(undefined)
    const isFit = isText ? isSaid(data) : timeFault(data.at ?? "", Date.now()) === undefined
    if (!isFit) return showWrong(data, choose)
    try {
      const found = await save(form, data)
      if (found === undefined) go("broadcast", id)
      else show(found)
    } catch (cause) {
      setProblem(problemOf(cause))
    }
  }
  const saveOrAsk = () => (theirs ? undefined : store(over))
  useKeys({ store: saveOrAsk, review: saveOrAsk })
  const part = { data, isChecked, change, isPublished: true }
  return (
    <div class="compose">
      <Heading title={t("editTitle", { title: titleOf(whole) })} />
      {problem && <ProblemBox problem={problem} onRetry={saveOrAsk} />}
      {theirs && (
        <Theirs
          form={theirs}
          mine={data}
          onTake={() => take(theirs, editedOf(theirs))}
          onReplace={() => {
            take(theirs, data)
            return store(theirs)
          }}
        />
      )}
      <div class="columns">
        <div class="parts">
          {isText ? (
            <Message {...part} locale={locale} onLocale={choose} />
          ) : (
            <Box>{hiddenText(whole)}</Box>
          )}
          <section class="panel form" aria-labelledby="when">
            <h2 id="when">{t("when")}</h2>
            <At at={data.at ?? ""} isChecked set={(at) => change((now) => ({ ...now, at }))} />
            <Speed
              rate={data.rate}
              isKept={before.rate !== undefined}
              set={(rate) => change(({ rate: _, ...now }) => (rate ? { ...now, rate } : now))}
            />
          </section>
          <section class="panel form" aria-labelledby="audience">
            <h2 id="audience">{t("audience")}</h2>
            <p>{audience(whole.to)}</p>
            <p class="soft">{t("editMore")}</p>
            <p>
              <Unschedule broadcast={whole} onChange={onChange} />
            </p>
          </section>
        </div>
        {isText && (
          <aside class="beside" aria-label={t("previewAndTest")}>
            <Preview content={content} />
            <Test content={content} />
          </aside>
        )}
      </div>
      <Foot stored={t(theirs ? "editTheirsFoot" : hasChanged ? "editChanged" : "editSame")}>
        <div class="buttons">
          <ButtonLink kind="quiet" to={address("broadcast", id)}>
            {t("cancel")}
          </ButtonLink>
          <Button
            kind="prominent"
            onPress={saveOrAsk}
            off={theirs ? t("editTheirsFoot") : undefined}
          >
            {t("editDo")}
          </Button>
        </div>
      </Foot>
    </div>
  )
}

interface TheirsProps {
  readonly form: WholeBroadcast
  readonly mine: DraftData
  readonly onTake: () => void
  readonly onReplace: () => unknown
}

/** Somebody else saved another form: neither is lost before one is chosen. */
const Theirs = ({ form, mine, onReplace, onTake }: TheirsProps) => (
  <Box kind="warning">
    <p>
      <b>{t("editTheirs", { time: time(form.last_modified) })}</b> {t("theirsTodo")}
    </p>
    <Changes
      changes={changesOf(mine, editedOf(form))}
      before={t("theirsMine")}
      after={t("theirsTheirs")}
    />
    <div class="buttons">
      <Button onPress={onTake}>{t("theirsTake")}</Button>
      <Button onPress={onReplace}>{t("theirsReplace")}</Button>
    </div>
  </Box>
)
