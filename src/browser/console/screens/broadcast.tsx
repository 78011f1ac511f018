// One broadcast: while it runs, large buttons, a sentence and live plots; then its report.
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { beginOf, changeBroadcast, readBroadcast } from "../api/broadcasts.ts"
import { Problem } from "../api/client.ts"
import { draftOf, isHidden, newDraftId, storeDraft } from "../api/drafts.ts"
import { follow } from "../api/events.ts"
import { type Sample, Samples } from "../api/live.ts"
import { outcomes, type WholeBroadcast } from "../api/shapes.ts"
import { writtenOf } from "../draft/content.ts"
import { keptTyped } from "../draft/edited.ts"
import { Bar } from "../parts/bar.tsx"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Heading, NotFound } from "../parts/frame.tsx"
import { Back, Pause, Pen, Play } from "../parts/icons.tsx"
import { Awaited, Ghosts, isMissing, useLoad, useNow } from "../parts/load.tsx"
import { Plot } from "../parts/plot.tsx"
import { Box, ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { address, go } from "../state/route.ts"
import { number, percent, t, time } from "../words/language.ts"
import { audience, person } from "../words/people.ts"
import { isNearlyDone, outcomeWord, says } from "../words/states.ts"
import { Duplicate, hiddenText, lacksText } from "./duplicate.tsx"
import { Report } from "./report.tsx"
import { Picture, titleOf } from "./rows.tsx"
import { ScheduledActions } from "./scheduled.tsx"
import { StopButton } from "./stop.tsx"

/** Reads the broadcast and follows it; samples it each second for the live plots. */
const useBroadcast = (id: string) => {
  const loaded = useLoad((signal) => readBroadcast(id, signal), [id])
  const { data, replace } = loaded
  const [broken, setBroken] = useState<Problem>()
  const samples = useRef(new Samples())
  const [live, setLive] = useState<ReadonlyArray<Sample>>([])
  const latest = useRef(data)
  latest.current = data
  const isThere = data !== undefined
  const isFinished = data?.finished === true
  useEffect(() => {
    if (!isThere || isFinished) return
    const abort = new AbortController()
    const onState = (state: WholeBroadcast) => replace({ ...contentOf(latest.current), ...state })
    void follow(id, { onState, onProblem: setBroken }, abort.signal)
    return () => abort.abort()
  }, [id, isThere, isFinished, replace])
  useEffect(() => {
    if (!isThere || isFinished) return
    const sample = () => {
      if (latest.current?.state !== "scheduled") samples.current.add(latest.current!)
      setLive(samples.current.all)
    }
    sample()
    const timer = setInterval(sample, 1_000)
    return () => {
      clearInterval(timer)
      sample()
    }
  }, [isThere, isFinished])
  return { loaded, live, broken: isFinished ? undefined : broken }
}

/** Events have the state alone: what the broadcast says stays as it was read. */
const contentOf = (read: WholeBroadcast | undefined): Partial<WholeBroadcast> => {
  if (read === undefined) return {}
  const { body, data, data_by_locale, except_users, image, name, test, title, topic, users } = read
  const all = { body, data, data_by_locale, except_users, image, name, test, title, topic, users }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

const tabOf = ({ state, test }: WholeBroadcast): string => {
  if (test) return "tests"
  if (state === "scheduled") return "scheduled"
  if (state === "running" || state === "paused") return "sending"
  return state === "finished" ? "sent" : "stopped"
}

export const BroadcastScreen = ({ id }: { readonly id: string }) => {
  const { broken, live, loaded } = useBroadcast(id)
  if (isMissing(loaded)) return <NotFound />
  return (
    <Awaited of={loaded} waiting={<Waiting />}>
      {(broadcast) => (
        <>
          <Heading title={broadcast.name ?? titleOf(broadcast)}>
            <span class={`badge ${broadcast.state}`} role="status">
              {t(`state-${broadcast.state}`)}
            </span>
          </Heading>
          <Controls broadcast={broadcast} onChange={loaded.replace} onReload={loaded.reload} />
          {broken && (
            <ProblemBox
              problem={
                broken.code === "offline" ? new Problem("stream-broken", broken.status) : broken
              }
            />
          )}
          <EditKept broadcast={broadcast} />
          <Sentence broadcast={broadcast} />
          {live.length > 1 && <Live samples={live} />}
          <Said broadcast={broadcast} />
          {broadcast.accepted > 0 && <Report broadcast={broadcast} />}
          <p>
            <a class="back" href={address(tabOf(broadcast))}>
              <Back /> {t(`backTo-${tabOf(broadcast)}` as "backTo-sent")}
            </a>
          </p>
        </>
      )}
    </Awaited>
  )
}

const Waiting = () => (
  <>
    <Heading title={t("oneMoment")} />
    <Ghosts rows={3} />
  </>
)

/** The way back to the text that was typed in Edit, also where it is too late to save it there. */
const EditKept = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const [isKept] = useState(() => keptTyped(broadcast.id) !== undefined)
  if (!isKept || isHidden(broadcast)) return null
  return (
    <Box
      kind="warning"
      actions={
        <ButtonLink to={address("broadcast", broadcast.id, "edit")}>{t("editKeptOpen")}</ButtonLink>
      }
    >
      {t("editKept")}
    </Box>
  )
}

interface ControlsProps {
  readonly broadcast: WholeBroadcast
  readonly onChange: (broadcast: WholeBroadcast) => void
  readonly onReload: () => Promise<void>
}

/** The first things in the order of Tab: a typo costs readers by the second. */
const Controls = ({ broadcast, onChange, onReload }: ControlsProps) => {
  const [problem, setProblem] = useState<Problem>()
  const { id, state, to } = broadcast
  const change = useCallback(
    async (wanted: "paused" | "running") => {
      setProblem(undefined)
      onChange(await changeBroadcast(id, { state: wanted }))
    },
    [id, onChange]
  )
  const onProblem = (cause: unknown) => {
    setProblem(problemOf(cause))
    void onReload()
  }
  if (to === undefined) return <Box>{t("onlyLookText")}</Box>
  const isRunning = state === "running"
  const isNearly = isNearlyDone(broadcast)
  return (
    <div class="controls">
      <StopButton broadcast={broadcast} onStop={onChange} onProblem={onProblem} />
      {isRunning && !isNearly && (
        <Button isLarge icon={Pause} onProblem={onProblem} onPress={() => change("paused")}>
          {t("pause")}
        </Button>
      )}
      {state === "paused" && (
        <Button isLarge icon={Play} onProblem={onProblem} onPress={() => change("running")}>
          {t("goOn")}
        </Button>
      )}
      {state === "scheduled" && <ScheduledActions broadcast={broadcast} onChange={onReload} />}
      {(isNearly || (!isRunning && state !== "paused")) && <Again broadcast={broadcast} />}
      {problem && <ProblemBox problem={problem} onDismiss={() => setProblem(undefined)} />}
    </div>
  )
}

/** The same content and audience once more, as a draft that replaces the first one. */
const correct = async (broadcast: WholeBroadcast): Promise<void> => {
  const draft = newDraftId()
  await storeDraft(draft, draftOf(broadcast))
  go("draft", draft)
}

const Again = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const { data, delivered, state } = broadcast
  if (isHidden(broadcast)) return <p class="soft">{hiddenText(broadcast)}</p>
  const hasTag = data?.notification?.tag !== undefined
  const isStopped = state === "cancelled"
  return (
    <>
      {isStopped && (
        <Button kind="prominent" isLarge icon={Pen} onPress={() => correct(broadcast)}>
          {t("correctAndSend")}
        </Button>
      )}
      {state !== "scheduled" && <Duplicate broadcast={broadcast} title={titleOf(broadcast)} />}
      {isStopped && (
        <p class="soft">
          {hasTag || delivered === 0
            ? t("correctReplaces", { count: delivered })
            : t("correctBeside", { count: delivered })}{" "}
          {lacksText(broadcast)}
        </p>
      )}
    </>
  )
}

const Sentence = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const now = useNow()
  const { accepted, state, waiting } = broadcast
  return (
    <section class="panel now" aria-label={t("now")}>
      <p class="sentence" role={state === "scheduled" ? undefined : "status"}>
        {says(broadcast, now)}
      </p>
      {accepted > 0 && (
        <>
          <Bar counts={broadcast} total={accepted} isTall />
          <ul class="legend">
            {outcomes.map(
              (outcome) =>
                broadcast[outcome] > 0 && (
                  <li key={outcome} class={`dot ${outcome}`}>
                    {outcomeWord(outcome)} <b>{number(broadcast[outcome])}</b>
                  </li>
                )
            )}
            {waiting > 0 && (
              <li class="dot waiting">
                {outcomeWord("waiting")} <b>{number(waiting)}</b>
              </li>
            )}
          </ul>
        </>
      )}
    </section>
  )
}

const Live = ({ samples }: { readonly samples: ReadonlyArray<Sample> }) => {
  const times = samples.map(({ at }) => at)
  const last = samples.at(-1)!
  const most = Math.max(...samples.map(({ rate }) => rate))
  const all = last.delivered + last.retrying + last.failed + last.cancelled
  return (
    <section class="plots" aria-label={t("live")}>
      <Plot
        title={t("pushesASecond")}
        sentence={t("rateSentence", { now: last.rate, most })}
        times={times}
        hasSeconds
        series={[
          {
            label: t("pushesASecond"),
            kind: "delivered",
            values: samples.map(({ rate }) => rate)
          }
        ]}
      />
      <Plot
        title={t("whatBecame")}
        sentence={t("becameSentence", {
          delivered: last.delivered,
          all,
          share: percent(all === 0 ? 1 : last.delivered / all)
        })}
        times={times}
        hasSeconds
        isStacked
        series={[
          {
            label: outcomeWord("delivered"),
            kind: "delivered",
            values: samples.map(({ delivered }) => delivered)
          },
          {
            label: outcomeWord("retrying"),
            kind: "retrying",
            values: samples.map(({ retrying }) => retrying)
          },
          { label: t("notReached"), kind: "dead", values: samples.map(({ failed }) => failed) },
          ...(last.cancelled > 0
            ? [
                {
                  label: outcomeWord("cancelled"),
                  kind: "cancelled",
                  values: samples.map(({ cancelled }) => cancelled)
                }
              ]
            : [])
        ]}
      />
    </section>
  )
}

/** A broadcast in words: its text, to whom, by whom, when. */
const Said = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const { body, id, image, name, publisher, rate, redrives, to } = broadcast
  const audienceText = audience(to)
  const link = writtenOf(broadcast.data).navigate
  const facts: ReadonlyArray<readonly [string, string | undefined]> = [
    [t("deskName"), name],
    [t("toWhomLabel"), audienceText],
    [t("byWhomLabel"), person(publisher)],
    [t("whenLabel"), time(beginOf(broadcast))],
    [t("linkLabel"), link],
    [t("speedLabel"), rate === undefined ? undefined : t("speed", { rate })],
    [t("redrivesLabel"), redrives],
    [t("numberLabel"), id]
  ]
  return (
    <section class="panel said-whole">
      <Picture image={image} title={titleOf(broadcast)} />
      <div>
        <h2>{t("whatWasSaid")}</h2>
        <p>
          <b>{titleOf(broadcast)}</b>
        </p>
        {body && <p>{body}</p>}
        <dl>
          {facts.map(
            ([label, value]) =>
              value && (
                <div key={label}>
                  <dt>{label}</dt>
                  <dd>{value}</dd>
                </div>
              )
          )}
        </dl>
      </div>
    </section>
  )
}
