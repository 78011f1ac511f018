// Review: the stored draft as it will be sent, the button that sends it, and ten seconds in which
// it can be taken back.
import { useEffect, useRef, useState } from "preact/hooks"
import { changeBroadcast } from "../api/broadcasts.ts"
import { type Problem, request } from "../api/client.ts"
import {
  deleteDraft,
  isMadeUp,
  newDraftId,
  readDraft,
  type StoredDraft,
  storeDraft
} from "../api/drafts.ts"
import type { Draft, Published, Reach } from "../api/shapes.ts"
import { type Change, changesOf, dataOf } from "../draft/changes.ts"
import {
  androidFirefoxBytesMax,
  bytesOf,
  contentOf,
  localesOf,
  others,
  writtenOf
} from "../draft/content.ts"
import { type Counted, counted } from "../draft/reach.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Segments } from "../parts/choice.tsx"
import { Heading, NotFound } from "../parts/frame.tsx"
import { Back } from "../parts/icons.tsx"
import { Awaited, Ghosts, isMissing, useLoad, useNow } from "../parts/load.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { address, go } from "../state/route.ts"
import { duration, list, number, percent, second, t, tIf, time } from "../words/language.ts"
import { draftAudience, person } from "../words/people.ts"
import { wrongMembers } from "../words/problems.ts"
import { ReachText } from "./audience.tsx"
import { Changes } from "./compose.tsx"
import { localeName } from "./message.tsx"
import { Preview } from "./preview.tsx"
import { Test } from "./test.tsx"
import { TimeText } from "./when.tsx"

/** In which a broadcast that was sent by mistake can be taken back. */
const takeBackSeconds = 10

const publish = <T,>(id: string, etag: string, body: object | undefined) =>
  request<T>(`drafts/${encodeURIComponent(id)}/publish`, {
    method: "POST",
    headers: { "If-Match": etag },
    ...(body === undefined ? {} : { body })
  })

interface Reviewed extends StoredDraft {
  readonly counted: Counted | undefined
  /** Why the service would not take it as it is. */
  readonly refusal: Problem | undefined
}

type DryRun = { readonly data: Reach; readonly warnings: ReadonlyArray<string> }

/** The stored draft, and what the service says of publishing that form of it. */
const readReviewed = async (id: string, signal: AbortSignal): Promise<Reviewed> => {
  const stored = await readDraft(id, signal)
  try {
    const { body } = await publish<DryRun>(id, stored.etag, { dry_run: true })
    return { ...stored, counted: counted(body), refusal: undefined }
  } catch (cause) {
    const problem = problemOf(cause)
    if (![400, 403, 413, 429].includes(problem.status)) throw problem
    return { ...stored, counted: undefined, refusal: problem }
  }
}

const lifeText = (ttl: number): string => tIf(`ttl-${ttl}`) ?? duration(ttl * 1_000)

/** A story that somebody named: others were made up for a new draft. */
const storyOf = ({ data }: Draft): string | undefined => {
  const { tag } = writtenOf(data)
  return tag === undefined || isMadeUp(tag) ? undefined : tag
}

const Facts = ({ draft }: { readonly draft: Draft }) => {
  const { at, pause_when, rate, ttl = 86_400, urgency = "normal" } = draft
  const facts: ReadonlyArray<readonly [string, string | undefined]> = [
    [t("audience"), draftAudience(draft.to)],
    [t("rate"), rate === undefined ? undefined : t("ratePushes", { rate: number(rate) })],
    [t("pauseFact"), pause_when && t("pauseAt", { share: percent(pause_when.failed_share) })],
    [t("ttl"), lifeText(ttl)],
    [t("urgency"), urgency === "normal" ? undefined : t(`urgency-${urgency}`)],
    [t("tag"), storyOf(draft)],
    [t("nameForDesk"), draft.name]
  ]
  return (
    <dl class="review-facts">
      <div>
        <dt>{t("when")}</dt>
        <dd>{at === undefined ? t("whenNow") : <TimeText at={Date.parse(at)} />}</dd>
      </div>
      {facts.map(([name, value]) =>
        value ? (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ) : null
      )}
    </dl>
  )
}

/** "Buttons:" of `data.notification.actions.1.title`; nothing of a name that is not known. */
const partOf = (name: string) => {
  const [part] = name.split(".").flatMap((each) => tIf(`part-${each}`) ?? [])
  return part && <b>{part}:</b>
}

const Refusal = ({ problem }: { readonly problem: Problem }) => {
  const members = wrongMembers(problem)
  if (problem.status !== 400 || members.length === 0) return <ProblemBox problem={problem} />
  return (
    <Box kind="error">
      <p>
        <b>{t("reviewRefused")}</b>
      </p>
      <ul class="bullets">
        {members.map(({ description, name }) => (
          <li key={`${name} ${description}`}>
            {partOf(name)} {description}
          </li>
        ))}
      </ul>
    </Box>
  )
}

/** The service's warnings in the language of the page; one that the page does not know as it is. */
const warningsOf = ({ counted: found, draft }: Reviewed): ReadonlyArray<string> => {
  const unjoined = found?.reach.unjoined_channels ?? []
  const isLarge = localesOf(draft).some(
    (each) => bytesOf(contentOf(draft, each)) > androidFirefoxBytesMax
  )
  const rest = (found?.warnings ?? []).filter(
    (warning) =>
      !unjoined.some((name) => warning.endsWith(` ${name}`)) &&
      !(isLarge && /Android/.test(warning))
  )
  return [
    ...(unjoined.length > 0 ? [t("warnUnjoined", { names: list(unjoined) })] : []),
    ...(isLarge ? [t("bytesMuch", { most: number(androidFirefoxBytesMax) })] : []),
    ...rest
  ]
}

const sendText = (draft: Draft, reach: Reach): string => {
  const readers = { count: reach.people }
  if (draft.at === undefined) return t(reach.estimated ? "sendAbout" : "sendNow", readers)
  return t("sendAt", { ...readers, time: time(Date.parse(draft.at)) })
}

interface SentProps {
  readonly broadcast: string
  readonly draft: Draft
  readonly sentAt: number
}

/**
 * Takes a broadcast back: the content becomes a draft again first, so that the text is never
 * nowhere. Returns its id; undefined: the broadcast had begun, and is stopped.
 */
const takeBack = async ({ broadcast, draft }: SentProps): Promise<string | undefined> => {
  const id = newDraftId()
  const { etag } = await storeDraft(id, dataOf(draft))
  const withoutDraft = () => deleteDraft(id, etag).catch(() => {})
  try {
    const { started_at } = await changeBroadcast(broadcast, { state: "cancelled" })
    if (started_at === undefined) return id
    await withoutDraft()
    return undefined
  } catch (cause) {
    await withoutDraft()
    throw cause
  }
}

const titleOf = (draft: Draft): string => {
  const [locale = others] = localesOf(draft).filter((each) => contentOf(draft, each))
  return writtenOf(contentOf(draft, locale)).title ?? ""
}

/** Counts down to the start. The service counts, too: a tab that is closed sends all the same. */
const Leaving = (props: SentProps) => {
  const { broadcast, draft, sentAt } = props
  const now = useNow(200)
  const left = Math.ceil((sentAt + takeBackSeconds * 1_000 - now) / 1_000)
  const [isBusy, showBusy] = useState(false)
  const isOver = left <= 0
  useEffect(() => {
    if (isOver && !isBusy) go("broadcast", broadcast)
  }, [isOver, isBusy, broadcast])
  const back = async () => {
    showBusy(true)
    try {
      const id = await takeBack(props)
      if (id === undefined) go("broadcast", broadcast)
      else go("draft", id)
    } catch (cause) {
      showBusy(false)
      throw cause
    }
  }
  return (
    <section class="leaving">
      <Heading title={t("leavingTitle")} />
      <p class="leaving-count" role="timer" aria-live="off">
        {number(Math.max(0, left))}
      </p>
      <p class="leaving-what">{titleOf(draft)}</p>
      <p>{t("leavingText")}</p>
      <p class="soft">{t("leavingClosed")}</p>
      <div class="buttons">
        <Button kind="danger" isLarge onPress={back} isBusy={isBusy}>
          {t("takeBack")}
        </Button>
        <ButtonLink kind="quiet" to={address("broadcast", broadcast)}>
          {t("leavingWatch")}
        </ButtonLink>
      </div>
    </section>
  )
}

interface SendProps {
  readonly id: string
  readonly reviewed: Reviewed
  readonly onSent: (sent: SentProps) => void
  readonly onChanged: () => Promise<void>
}

const Send = ({ id, onChanged, onSent, reviewed }: SendProps) => {
  const { draft, etag } = reviewed
  const [problem, show] = useState<Problem>()
  // Sent again after a lost response, it is the same broadcast, which began with the first try.
  const triedAt = useRef<number>(undefined)
  const { reach } = reviewed.counted ?? {}
  const send = async () => {
    show(undefined)
    triedAt.current ??= Date.now()
    const isLater = draft.at !== undefined
    try {
      const options = isLater ? undefined : { delay_seconds: takeBackSeconds }
      const { body } = await publish<Published>(id, etag, options)
      if (isLater) go("broadcast", body.id)
      else onSent({ broadcast: body.id, draft, sentAt: triedAt.current })
    } catch (cause) {
      const found = problemOf(cause)
      // Without an answer it may have been sent all the same.
      if (found.status > 0) triedAt.current = undefined
      if (found.code === "modified-meanwhile") await onChanged()
      else show(found)
    }
  }
  return (
    <div class="send">
      {problem && <ProblemBox problem={problem} onRetry={send} />}
      <Button
        kind="prominent"
        isLarge
        onPress={send}
        off={reach === undefined ? t("sendOff") : undefined}
      >
        {reach === undefined ? t("send") : sendText(draft, reach)}
      </Button>
      <p class="soft">
        {reach === undefined
          ? t("sendOff")
          : draft.at === undefined
            ? t("sendHint", { seconds: takeBackSeconds })
            : t("sendAtHint")}
      </p>
    </div>
  )
}

interface SheetProps extends SendProps {
  readonly changes: ReadonlyArray<Change>
}

const Sheet = (props: SheetProps) => {
  const { changes, id, reviewed } = props
  const { draft, refusal } = reviewed
  const locales = localesOf(draft).filter((each) => contentOf(draft, each))
  const [locale, choose] = useState(locales[0] ?? others)
  return (
    <div class="columns">
      <div class="parts">
        {changes.length > 0 && (
          <Box kind="warning">
            <p>
              <b>
                {t("reviewChanged", {
                  name: person(draft.changed_by ?? draft.author),
                  time: time(draft.last_modified)
                })}
              </b>{" "}
              {t("reviewChangedTodo")}
            </p>
            <Changes changes={changes} before={t("changeBefore")} after={t("changeNow")} />
          </Box>
        )}
        {refusal && <Refusal problem={refusal} />}
        {warningsOf(reviewed).map((warning) => (
          <Box key={warning} kind="warning">
            {warning}
          </Box>
        ))}
        <section class="panel form" aria-labelledby="facts">
          <h2 id="facts">{t("reviewFacts")}</h2>
          {reviewed.counted && (
            <ReachText
              counting={{ counted: reviewed.counted, problem: undefined, isCounting: false }}
            />
          )}
          <Facts draft={draft} />
          <p>
            <ButtonLink icon={Back} to={address("draft", id)}>
              {t("reviewEdit")}
            </ButtonLink>
          </p>
        </section>
      </div>
      <aside class="beside" aria-label={t("previewAndTest")}>
        {locales.length > 1 && (
          <Segments
            label={t("locales")}
            value={locale}
            options={locales.map((each) => ({ value: each, text: localeName(each) }))}
            onChoose={choose}
          />
        )}
        <Preview content={contentOf(draft, locale)} />
        <Test content={contentOf(draft, locale)} />
      </aside>
      <Send {...props} />
    </div>
  )
}

export const Review = ({ id }: { readonly id: string }) => {
  const reviewed = useLoad((signal) => readReviewed(id, signal), [id])
  const [seen, see] = useState<Draft>()
  const [sent, showSent] = useState<SentProps>()
  const { data } = reviewed
  // The first form that was shown here: what differs from it was not reviewed.
  useEffect(() => {
    if (data) see((first) => first ?? data.draft)
  }, [data])
  if (sent) return <Leaving {...sent} />
  if (isMissing(reviewed)) return <NotFound />
  const changes = seen && data ? changesOf(dataOf(seen), dataOf(data.draft)) : []
  return (
    <>
      <Heading title={t("review")}>
        {data && (
          <p class="soft">{t("reviewStored", { time: second(data.draft.last_modified) })}</p>
        )}
      </Heading>
      <Awaited of={reviewed} waiting={<Ghosts rows={5} />}>
        {(found) => (
          <Sheet
            id={id}
            reviewed={found}
            changes={changes}
            onSent={showSent}
            onChanged={reviewed.reload}
          />
        )}
      </Awaited>
    </>
  )
}
