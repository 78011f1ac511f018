// Edit: a scheduled notification is changed in place, in all that the service changes of one: what
// it says, when it starts, how fast it is sent. The rest is changed as a draft.
import { useEffect, useLayoutEffect, useState } from "preact/hooks"
import { readBroadcast } from "../api/broadcasts.ts"
import type { Problem } from "../api/client.ts"
import { draftOf, isHidden, newDraftId, storeDraft } from "../api/drafts.ts"
import { isLeavingForLogin } from "../api/session.ts"
import type { DraftData, WholeBroadcast } from "../api/shapes.ts"
import { changesOf, isSame } from "../draft/changes.ts"
import { contentOf, localesOf, others } from "../draft/content.ts"
import {
  editedOf,
  forgetTyped,
  isChanged,
  keepTyped,
  keptTyped,
  save,
  type TypedEdit,
  typedOn,
  withTypedEdit
} from "../draft/edited.ts"
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
          <Late whole={whole} />
        )
      }
    </Awaited>
  )
}

/** The broadcast has begun: the text that was typed before can become a draft. */
const Late = ({ whole }: { readonly whole: WholeBroadcast }) => {
  const { id } = whole
  const typed = isHidden(whole) ? undefined : keptTyped(id)
  const toDraft = async (typed: TypedEdit) => {
    const draft = newDraftId()
    await storeDraft(draft, withTypedEdit(draftOf(whole), typed))
    forgetTyped(id)
    go("draft", draft)
  }
  return (
    <>
      <Heading title={t("edit")} />
      <Box kind="warning">{t("editLate")}</Box>
      <div class="buttons">
        {typed && (
          <Button kind="prominent" onPress={() => toDraft(typed)}>
            {t("editLateDraft")}
          </Button>
        )}
        <ButtonLink to={address("broadcast", id)}>{t("view")}</ButtonLink>
      </div>
    </>
  )
}

/** A window that is closed now loses what was typed. */
const useWarning = (isChanged: boolean) => {
  useEffect(() => {
    if (!isChanged) return undefined
    const warn = (event: BeforeUnloadEvent) => {
      if (!isLeavingForLogin()) event.preventDefault()
    }
    addEventListener("beforeunload", warn)
    return () => removeEventListener("beforeunload", warn)
  }, [isChanged])
}

/** The text that is typed on a form of the broadcast, and a later form of another editor. */
const useTyped = (whole: WholeBroadcast) => {
  const { id } = whole
  const [state, set] = useState<{
    readonly typed: TypedEdit
    /** The form that a change names. */
    readonly over: WholeBroadcast
    /** Waits for an answer. */
    readonly theirs?: WholeBroadcast
  }>(() => ({ typed: keptTyped(id) ?? typedOn(whole), over: whole }))
  const show = (over: WholeBroadcast) =>
    set(({ typed }) => {
      const { before, data } = typedOn(over)
      if (isSame(before, typed.before)) return { typed, over }
      // Nothing was typed on the former one, or the same is saved by now.
      const isNone = !isChanged(typed) || !isChanged({ before, data: typed.data })
      return isNone ? { typed: { before, data }, over } : { typed, over, theirs: over }
    })
  useLayoutEffect(() => show(whole), [whole])
  useLayoutEffect(() => keepTyped(id, state.typed), [id, state.typed])
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

/** The screen that follows Edit. */
const leave = (id: string) => {
  forgetTyped(id)
  go("broadcast", id)
}

interface SavingProps extends FormProps {
  readonly data: DraftData
  /** Shows another language. */
  readonly choose: (locale: string) => void
  /** Shows a form that somebody else saved. */
  readonly show: (theirs: WholeBroadcast) => void
}

/** Saves what was typed, once it says all that it must. */
const useSaving = ({ choose, data, onChange, show, whole }: SavingProps) => {
  const [isChecked, check] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  const store = async (form: WholeBroadcast) => {
    check(true)
    setProblem(undefined)
    const isFit = isHidden(whole)
      ? timeFault(data.at ?? "", Date.now()) === undefined
      : isSaid(data)
    if (!isFit) return showWrong(data, choose)
    try {
      const theirs = await save(form, data)
      if (theirs === undefined) leave(whole.id)
      else show(theirs)
    } catch (cause) {
      const found = problemOf(cause)
      if (found.code === "impossible-state") onChange()
      else setProblem(found)
    }
  }
  return { isChecked, problem, store }
}

const Form = ({ onChange, whole }: FormProps) => {
  const { id } = whole
  const { change, hasChanged, over, show, take, theirs, typed } = useTyped(whole)
  const [chosen, choose] = useState(others)
  const isText = !isHidden(whole)
  const { before, data } = typed
  const locale = localesOf(data).includes(chosen) ? chosen : others
  const content = contentOf(data, locale)
  useWarning(hasChanged)
  const { isChecked, problem, store } = useSaving({ choose, data, onChange, show, whole })
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
          <Rest whole={whole} onChange={onChange} />
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
          <Button kind="quiet" onPress={() => leave(id)}>
            {t("cancel")}
          </Button>
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

/** The parts that stay as they are. */
const Rest = ({ onChange, whole }: FormProps) => (
  <section class="panel form" aria-labelledby="audience">
    <h2 id="audience">{t("audience")}</h2>
    <p>{audience(whole.to)}</p>
    <p class="soft">{t("editMore")}</p>
    <p>
      <Unschedule broadcast={whole} onChange={onChange} />
    </p>
  </section>
)

interface TheirsProps {
  readonly form: WholeBroadcast
  readonly mine: DraftData
  readonly onTake: () => void
  readonly onReplace: () => unknown
}

/** Another editor saved another form: neither is lost before one is chosen. */
const Theirs = ({ form, mine, onReplace, onTake }: TheirsProps) => (
  <Box kind="warning">
    <p>
      <b>{t("editTheirs", { time: time(form.last_modified) })}</b> {t("theirsTodo")}
    </p>
    <Changes
      // A speed cannot be taken away again.
      changes={changesOf({ ...(form.rate && { rate: form.rate }), ...mine }, editedOf(form))}
      before={t("theirsMine")}
      after={t("theirsTheirs")}
    />
    <div class="buttons">
      <Button onPress={onTake}>{t("theirsTake")}</Button>
      <Button onPress={onReplace}>{t("theirsReplace")}</Button>
    </div>
  </Box>
)
