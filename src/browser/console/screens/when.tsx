// When a draft is sent: now or at a time, how fast, and whether it pauses by itself.
import { useState } from "preact/hooks"
import type { DraftData } from "../api/shapes.ts"
import { localOf, momentOf, rfc3339, timeFault, timeOf } from "../draft/moment.ts"
import { Check, Choice, Segments } from "../parts/choice.tsx"
import { Field } from "../parts/field.tsx"
import { useNow } from "../parts/load.tsx"
import { duration, number, percent, t, wholeTime, zone } from "../words/language.ts"
import type { PartProps } from "./message.tsx"

const hourMillis = 3_600_000
const failedShare = 0.2
const rates = [10, 50, 100, 500, 1_000, 5_000]

/** The zone of the reader, with its offset from UTC at a time: "Europe/Berlin, GMT+1". */
export const zoneAt = (at: number): string => {
  const [{ value = "" } = {}] = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" })
    .formatToParts(at)
    .filter(({ type }) => type === "timeZoneName")
  return `${zone()}, ${value}`
}

/** "Thursday, 24 December 2026 at 18:00:00 GMT+1, in 17 h 12 min". */
export const TimeText = ({ at }: { readonly at: number }) => {
  const now = useNow()
  const wait = at > now ? t("inTime", { time: duration(at - now) }) : t("timeOver")
  return (
    <>
      <b>{wholeTime(at)}</b>, {wait}
    </>
  )
}

/** Text of the field, which is not written into it again while somebody types there. */
interface TypedTime {
  readonly text: string
  /** The time that was read from it. Where the draft has another one, the text is out of date. */
  readonly at: string
}

export const At = ({
  at,
  isChecked,
  set
}: Pick<PartProps, "isChecked"> & {
  readonly at: string
  readonly set: (at: string) => void
}) => {
  const now = useNow(10_000)
  const [typed, type] = useState<TypedTime>()
  const time = timeOf(at)
  const local = time === undefined ? "" : localOf(time, zone())
  const moment = momentOf(local, zone())
  const again = moment?.again
  const fault = at === "" && !isChecked ? undefined : timeFault(at, now)
  return (
    <div class="at" onFocusOut={() => time !== undefined && type(undefined)}>
      <Field
        label={t("time")}
        name="at"
        type="datetime-local"
        value={typed?.at === at ? typed.text : local}
        onInput={(text) => {
          const found = momentOf(text, zone())
          const next = found === undefined ? "" : rfc3339(found.at, zone())
          type({ text, at: next })
          set(next)
        }}
        hint={t("timeZone", { zone: zoneAt(time ?? now) })}
        wrong={fault && t(`time-${fault}`)}
      />
      {time !== undefined && (
        <p>
          <TimeText at={time} />
        </p>
      )}
      {again !== undefined && moment !== undefined && (
        <Segments
          label={t("timeTwice")}
          isLabelShown
          value={String(time)}
          options={[moment.at, again].map((each) => ({
            value: String(each),
            text: t("timeWithZone", { time: zoneAt(each).split(", ")[1]! })
          }))}
          onChoose={(value) => set(rfc3339(Number(value), zone()))}
        />
      )}
    </div>
  )
}

/** The next full hour that is at least half an hour away. */
const suggestedTime = (): string => {
  const at = Math.ceil((Date.now() + hourMillis / 2) / hourMillis) * hourMillis
  return rfc3339(at, zone())
}

const speedHint = (browsers: number | undefined, rate: number | undefined): string | undefined =>
  browsers === undefined || rate === undefined
    ? undefined
    : t("rateTakes", { browsers, time: duration((browsers / rate) * 1_000) })

interface SpeedProps {
  readonly rate: number | undefined
  readonly set: (rate: number | undefined) => void
  readonly hint?: string | undefined
  /** The service can change a rate then, not remove it. */
  readonly isKept?: boolean
}

export const Speed = ({ hint, isKept, rate, set }: SpeedProps) => (
  <Choice
    label={t("rate")}
    name="rate"
    value={rate === undefined ? "" : String(rate)}
    options={[
      ...(isKept ? [] : [{ value: "", text: t("rateFree") }]),
      ...rates.map((each) => ({
        value: String(each),
        text: t("ratePushes", { rate: number(each) })
      }))
    ]}
    onChoose={(value) => set(value === "" ? undefined : Number(value))}
    hint={hint}
  />
)

interface WhenProps extends PartProps {
  readonly browsers: number | undefined
}

export const When = ({ browsers, change, data, isChecked }: WhenProps) => {
  const set = (name: "at" | "rate" | "pause_when", value: DraftData[typeof name] | undefined) =>
    change(({ [name]: _, ...rest }) => (value === undefined ? rest : { ...rest, [name]: value }))
  const { at, pause_when, rate } = data
  const share = pause_when?.failed_share ?? failedShare
  return (
    <section class="panel form" aria-labelledby="when">
      <h2 id="when">{t("when")}</h2>
      <Segments
        label={t("when")}
        name="when"
        value={at === undefined ? "now" : "at"}
        options={[
          { value: "now", text: t("whenNow") },
          { value: "at", text: t("whenAt") }
        ]}
        onChoose={(value) => set("at", value === "at" ? suggestedTime() : undefined)}
      />
      {at === undefined ? (
        <p class="soft">{t("whenNowHint")}</p>
      ) : (
        <At at={at} isChecked={isChecked} set={(next) => set("at", next)} />
      )}
      <Speed rate={rate} set={(next) => set("rate", next)} hint={speedHint(browsers, rate)} />
      <Check
        isOn={pause_when !== undefined}
        onChange={(isOn) => set("pause_when", isOn ? { failed_share: failedShare } : undefined)}
        hint={t("pauseHint")}
      >
        {t("pauseWhen", { share: percent(share) })}
      </Check>
    </section>
  )
}
