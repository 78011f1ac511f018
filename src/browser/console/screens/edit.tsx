// Edit: a scheduled notification is changed in place, in all that the service changes of one: what
// it says, when it starts, how fast it is sent. The rest is changed as a draft.
import { useEffect, useState } from "preact/hooks"
import { changeBroadcast, readBroadcast } from "../api/broadcasts.ts"
import type { Problem } from "../api/client.ts"
import { isHidden } from "../api/drafts.ts"
import type { DraftData, WholeBroadcast } from "../api/shapes.ts"
import { isSame } from "../draft/changes.ts"
import { contentOf, localesOf, others } from "../draft/content.ts"
import { timeFault } from "../draft/moment.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Heading, NotFound } from "../parts/frame.tsx"
import { Awaited, Ghosts, isMissing, useLoad } from "../parts/load.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { address, go } from "../state/route.ts"
import { t } from "../words/language.ts"
import { audience } from "../words/people.ts"
import { Foot, isSaid, showWrong, useKeys } from "./compose.tsx"
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

type Edited = Pick<DraftData, "data" | "data_by_locale" | "at" | "rate">

const editedOf = ({ at, data, data_by_locale, rate }: WholeBroadcast): Edited => ({
  ...(data && { data }),
  ...(data_by_locale && { data_by_locale }),
  ...(at && { at }),
  ...(rate && { rate })
})

/** The members that differ. What it says is replaced as a whole. */
const changesOf = (before: Edited, { at, data, data_by_locale, rate }: Edited) => ({
  ...((!isSame(before.data, data) || !isSame(before.data_by_locale, data_by_locale)) && {
    ...(data && { data }),
    ...(data_by_locale && { data_by_locale })
  }),
  ...(at !== undefined && before.at !== at && { at }),
  ...(rate !== undefined && before.rate !== rate && { rate })
})

/** A page that is closed now loses what was typed: nothing is stored before it is complete. */
const useWarning = (isChanged: boolean) => {
  useEffect(() => {
    if (!isChanged) return undefined
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener("beforeunload", warn)
    return () => removeEventListener("beforeunload", warn)
  }, [isChanged])
}

interface FormProps {
  readonly whole: WholeBroadcast
  readonly onChange: () => void
}

const Form = ({ onChange, whole }: FormProps) => {
  const { id } = whole
  const [before] = useState(() => editedOf(whole))
  const [data, setData] = useState<DraftData>(before)
  const [chosen, choose] = useState(others)
  const [isChecked, check] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  const isText = !isHidden(whole)
  const changes = changesOf(before, data)
  const isChanged = Object.keys(changes).length > 0
  const locale = localesOf(data).includes(chosen) ? chosen : others
  const content = contentOf(data, locale)
  useWarning(isChanged)
  const store = async () => {
    check(true)
    setProblem(undefined)
    const isFit = isText ? isSaid(data) : timeFault(data.at ?? "", Date.now()) === undefined
    if (!isFit) return showWrong(data, choose)
    try {
      if (isChanged) await changeBroadcast(id, changes)
      go("broadcast", id)
    } catch (cause) {
      setProblem(problemOf(cause))
    }
  }
  useKeys({ store, review: store })
  const part = { data, isChecked, change: setData, isPublished: true }
  return (
    <div class="compose">
      <Heading title={t("editTitle", { title: titleOf(whole) })} />
      {problem && <ProblemBox problem={problem} onRetry={store} />}
      <div class="columns">
        <div class="parts">
          {isText ? (
            <Message {...part} locale={locale} onLocale={choose} />
          ) : (
            <Box>{hiddenText(whole)}</Box>
          )}
          <section class="panel form" aria-labelledby="when">
            <h2 id="when">{t("when")}</h2>
            <At at={data.at ?? ""} isChecked set={(at) => setData((now) => ({ ...now, at }))} />
            <Speed
              rate={data.rate}
              isKept={before.rate !== undefined}
              set={(rate) => setData(({ rate: _, ...now }) => (rate ? { ...now, rate } : now))}
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
      <Foot stored={t(isChanged ? "editChanged" : "editSame")}>
        <div class="buttons">
          <ButtonLink kind="quiet" to={address("broadcast", id)}>
            {t("cancel")}
          </ButtonLink>
          <Button kind="prominent" onPress={store}>
            {t("editDo")}
          </Button>
        </div>
      </Foot>
    </div>
  )
}
