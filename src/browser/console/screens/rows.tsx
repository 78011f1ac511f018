// The rows of the lists of notifications.
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { beginOf } from "../api/broadcasts.ts"
import type { Broadcast, Draft } from "../api/shapes.ts"
import { writtenOf } from "../draft/content.ts"
import { Bar } from "../parts/bar.tsx"
import { useNow } from "../parts/load.tsx"
import { address } from "../state/route.ts"
import { duration, percent, t, time } from "../words/language.ts"
import { audience, draftAudience, person } from "../words/people.ts"
import { Duplicate } from "./duplicate.tsx"

export const titleOf = ({ name, title }: Pick<Broadcast, "name" | "title">): string =>
  title || name || t("untitled")

interface PictureProps {
  readonly image: string | undefined
  readonly title: string
}

/** The image, or the first letter of the title where there is none or it does not load. */
export const Picture = ({ image, title }: PictureProps) => {
  const [failed, fail] = useState<string>()
  const isShown = image !== undefined && image !== failed && /^https?:/.test(image)
  return (
    <span class="picture" aria-hidden="true">
      {isShown ? (
        <img
          src={image}
          alt=""
          loading="lazy"
          referrerpolicy="no-referrer"
          onError={() => fail(image)}
        />
      ) : (
        [...title][0]
      )}
    </span>
  )
}

interface RowProps {
  readonly to: string
  readonly title: string
  readonly body: string | undefined
  readonly image: string | undefined
  readonly badges?: ComponentChildren
  readonly facts: ReadonlyArray<ComponentChildren>
  readonly progress?: ComponentChildren
  readonly actions: ComponentChildren
}

const Row = (props: RowProps) => {
  const { actions, badges, body, facts, image, progress, title, to } = props
  return (
    <li class="row">
      <Picture image={image} title={title} />
      <div class="said">
        <h2>
          <a href={to}>{title}</a> {badges}
        </h2>
        {body && <p class="text">{body}</p>}
        <p class="soft of-row">
          {facts.map((fact, index) => (
            <span key={index}>{fact}</span>
          ))}
        </p>
      </div>
      <div class="progress">{progress}</div>
      <div class="buttons">{actions}</div>
    </li>
  )
}

export const Progress = ({ broadcast }: { readonly broadcast: Broadcast }) => {
  const { accepted, delivered, done_share, finished, retrying, state, waiting } = broadcast
  if (accepted === 0) {
    const ended = state === "cancelled" ? "calledOff" : "nobodyReached"
    return <small>{t(finished ? ended : "sayPlanning")}</small>
  }
  const isNearly = !finished && waiting === 0 && retrying > 0
  const share = percent(done_share ?? (accepted - retrying) / accepted)
  return (
    <>
      <Bar counts={broadcast} total={accepted} />
      <small>
        {isNearly
          ? t("nearlyDone", { share, count: retrying })
          : t("acceptedOf", { delivered, accepted })}
      </small>
    </>
  )
}

/** Counts down by itself. */
export const Countdown = ({ at }: { readonly at: number }) => {
  const now = useNow()
  return <b>{at > now ? t("inTime", { time: duration(at - now) }) : t("startsNow")}</b>
}

interface BroadcastRowProps {
  readonly broadcast: Broadcast
  /** The tab says the state of its rows already, but where it has several. */
  readonly hasState?: boolean
  readonly actions?: ComponentChildren
}

export const BroadcastRow = ({ actions, broadcast, hasState }: BroadcastRowProps) => {
  const { body, id, image, publisher, state, test, to } = broadcast
  const title = titleOf(broadcast)
  const begin = beginOf(broadcast)
  const isScheduled = state === "scheduled"
  const audienceText = audience(to)
  return (
    <Row
      to={address("broadcast", id)}
      title={title}
      body={body}
      image={image}
      badges={
        <>
          {hasState && <span class={`badge ${state}`}>{t(`state-${state}`)}</span>}
          {test && <span class="badge">{t("test")}</span>}
        </>
      }
      facts={[
        audienceText ? t("toWhom", { audience: audienceText }) : t("onlyLook"),
        t("byWhom", { person: person(publisher) }),
        <time key="time" dateTime={new Date(begin).toISOString()}>
          {isScheduled ? t("startsAt", { time: time(begin) }) : time(begin)}
        </time>
      ]}
      progress={isScheduled ? <Countdown at={begin} /> : <Progress broadcast={broadcast} />}
      actions={
        <>
          {actions}
          {to && <Duplicate broadcast={broadcast} title={title} isQuiet />}
        </>
      }
    />
  )
}

/** A draft as a browser would show it: of its first language, where it has no other content. */
const shownOf = ({ data, data_by_locale }: Draft) =>
  writtenOf(data ?? Object.values(data_by_locale ?? {})[0])

export const draftTitle = (draft: Draft): string =>
  shownOf(draft).title || draft.name || t("untitled")

interface DraftRowProps {
  readonly draft: Draft
  readonly actions: ComponentChildren
}

export const DraftRow = ({ actions, draft }: DraftRowProps) => {
  const { author, changed_by = author, id, last_modified, to } = draft
  const shown = shownOf(draft)
  return (
    <Row
      to={address("draft", id)}
      title={draftTitle(draft)}
      body={shown.body}
      image={shown.image}
      facts={[
        t("toWhom", { audience: draftAudience(to) }),
        t("changedBy", { person: person(changed_by), time: time(last_modified) })
      ]}
      actions={actions}
    />
  )
}
