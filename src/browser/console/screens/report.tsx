// The outcome of a broadcast: in three numbers, over time, and why, by push service and language.
import { useRef, useState } from "preact/hooks"
import { readTimeline } from "../api/broadcasts.ts"
import { readCsv, save } from "../api/csv.ts"
import { type Outcome, type Outcomes, outcomes, type WholeBroadcast } from "../api/shapes.ts"
import { Bar } from "../parts/bar.tsx"
import { Button } from "../parts/button.tsx"
import { Down } from "../parts/icons.tsx"
import { Awaited, Ghosts, useLoad } from "../parts/load.tsx"
import { Plot } from "../parts/plot.tsx"
import { Box } from "../parts/problem.tsx"
import { duration, languageName, number, percent, t, time } from "../words/language.ts"
import { outcomeWord, pushService, reason } from "../words/states.ts"

export const Report = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => (
  <section class="report" aria-labelledby="report">
    <div class="heading">
      <h2 id="report">{t("report")}</h2>
      <Download broadcast={broadcast} />
    </div>
    <Headline broadcast={broadcast} />
    <OverTime broadcast={broadcast} />
    <div class="tables">
      <Reasons broadcast={broadcast} />
      <Groups
        title={t("byPushService")}
        first={t("pushService")}
        groups={broadcast.push_services ?? {}}
        nameOf={pushService}
      />
      <Groups
        title={t("byLanguage")}
        first={t("languageLabel")}
        groups={broadcast.locales ?? {}}
        nameOf={(tag) => (tag === "data" ? t("everybodyElse") : languageName(tag))}
      />
    </div>
  </section>
)

interface FigureProps {
  readonly kind: Outcome | "unreachable" | "waiting"
  readonly value: number
  readonly label: string
  readonly note: string
}

const Figure = ({ kind, label, note, value }: FigureProps) => (
  <li class={`figure ${kind === "unreachable" ? "gone" : kind}`}>
    <b>{number(value)}</b>
    <span>{label}</span>
    <small>{note}</small>
  </li>
)

/** From the first minute to the last one. */
const spanOf = ({ first_delivered_at: first, last_delivered_at: last }: WholeBroadcast): string => {
  if (first === undefined || last === undefined) return t("noneDelivered")
  return t("span", { first: time(first), time: duration(last - first) })
}

const Headline = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const { accepted, cancelled, dead, delivered, expired, gone, retrying, waiting } = broadcast
  const unreachable = dead + expired + gone
  const share = (count: number) => percent(count / Math.max(accepted, 1))
  return (
    <>
      <ul class="headline">
        <Figure
          kind="delivered"
          value={delivered}
          label={t("outcome-delivered")}
          note={t("shareOf", { share: share(delivered), count: accepted })}
        />
        <Figure
          kind="unreachable"
          value={unreachable}
          label={t("unreachable")}
          note={t("shareOf", { share: share(unreachable), count: accepted })}
        />
        {cancelled > 0 && (
          <Figure
            kind="cancelled"
            value={cancelled}
            label={t("outcome-cancelled")}
            note={t("neverGet")}
          />
        )}
        {retrying + waiting > 0 && (
          <Figure
            kind="retrying"
            value={retrying + waiting}
            label={t("stillOpen")}
            note={t("stillOpenNote")}
          />
        )}
      </ul>
      <p class="soft">
        {spanOf(broadcast)} {t("acceptedNote")}
      </p>
    </>
  )
}

const shownOutcomes = ["delivered", "gone", "expired", "dead", "cancelled"] as const

const OverTime = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const { finished, id } = broadcast
  const loaded = useLoad(
    (signal) => readTimeline(id, signal),
    [id, finished],
    finished ? undefined : 30_000
  )
  return (
    <Awaited of={loaded} waiting={<Ghosts rows={2} />}>
      {({ minutes, points }) => {
        if (points.length === 0) return null
        const totals = points.map((point) =>
          shownOutcomes.reduce((sum, outcome) => sum + point[outcome], 0)
        )
        const best = totals.indexOf(Math.max(...totals))
        return (
          <section class="panel">
            <Plot
              title={t("overTime", { minutes })}
              sentence={t("overTimeSentence", {
                count: totals[best] ?? 0,
                time: time(points[best]!.at),
                points: points.length
              })}
              times={points.map(({ at }) => at)}
              isStacked
              hasBars
              apartMillis={minutes * 60_000}
              series={shownOutcomes
                .filter((outcome) => points.some((point) => point[outcome] > 0))
                .map((outcome) => ({
                  label: outcomeWord(outcome),
                  kind: outcome,
                  values: points.map((point) => point[outcome])
                }))}
            />
          </section>
        )
      }}
    </Awaited>
  )
}

/** With the count of each; those that are tried again stand apart from those that have an end. */
const reasonsOf = ({ reasons = {}, retries = [] }: WholeBroadcast) => {
  const { accepted: _, ...left } = reasons as Record<string, number>
  const open = retries.map((each): [string, number] => {
    left[each.reason] = (left[each.reason] ?? 0) - each.pushes
    const why = reason(each.reason)
    return [t("reasonUntil", { why, until: time(each.until) }), each.pushes]
  })
  const ended = Object.entries(left).map(([word, count]): [string, number] => [reason(word), count])
  return [...open, ...ended].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)
}

const Reasons = ({ broadcast }: { readonly broadcast: WholeBroadcast }) => {
  const rows = reasonsOf(broadcast)
  if (rows.length === 0) return null
  return (
    <section class="panel">
      <h2>{t("whyNot")}</h2>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">{t("reasonLabel")}</th>
            <th scope="col">{t("pushes")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([word, count]) => (
            <tr key={word}>
              <th scope="row">{word}</th>
              <td>{number(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface GroupsProps {
  readonly title: string
  readonly first: string
  readonly groups: Readonly<Record<string, Outcomes>>
  readonly nameOf: (name: string) => string
}

const sumOf = (counts: Outcomes): number =>
  outcomes.reduce((sum, outcome) => sum + counts[outcome], 0)

const Groups = ({ first, groups, nameOf, title }: GroupsProps) => {
  const rows = Object.entries(groups).sort(([, a], [, b]) => sumOf(b) - sumOf(a))
  if (rows.length === 0) return null
  return (
    <section class="panel">
      <h2>{title}</h2>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">{first}</th>
            <th scope="col">{t("share")}</th>
            <th scope="col">{t("outcome-delivered")}</th>
            <th scope="col">{t("pushes")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, counts]) => (
            <tr key={name}>
              <th scope="row">{nameOf(name)}</th>
              <td class="in-cell">
                <Bar counts={counts} total={sumOf(counts)} />
              </td>
              <td>{number(counts.delivered)}</td>
              <td>{number(sumOf(counts))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

const Download = ({ broadcast: { id } }: { readonly broadcast: WholeBroadcast }) => {
  const [rows, say] = useState<number>()
  const [isCut, setCut] = useState(false)
  const abort = useRef(new AbortController())
  const download = async () => {
    abort.current = new AbortController()
    try {
      const csv = await readCsv(id, say, abort.current.signal)
      save(`bellcast-${id}.csv`, csv.text)
      setCut(csv.isCut)
    } finally {
      say(undefined)
    }
  }
  return (
    <div class="buttons">
      {rows !== undefined && (
        <>
          <small role="status">{t("csvRows", { count: rows })}</small>
          <Button kind="quiet" onPress={() => abort.current.abort()}>
            {t("cancel")}
          </Button>
        </>
      )}
      <Button icon={Down} onPress={download}>
        {t("csv")}
      </Button>
      {isCut && (
        <Box kind="warning" onDismiss={() => setCut(false)}>
          {t("csvCut")}
        </Box>
      )}
    </div>
  )
}
