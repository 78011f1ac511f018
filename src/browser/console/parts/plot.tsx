// A plot over time, as SVG: its colours are those of the sheet, also as these change. A sentence
// says it, and a table has its numbers.
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { minute, number, second, t } from "../words/language.ts"

export interface Series {
  readonly label: string
  /** The class of an outcome, whose colour it has. */
  readonly kind: string
  readonly values: ReadonlyArray<number>
}

export interface PlotProps {
  readonly title: string
  /** The plot in words, for whoever does not see it. */
  readonly sentence: string
  /** Ms since the epoch. */
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<Series>
  /** Areas on top of each other; else lines. */
  readonly isStacked?: boolean
  /** A bar for each point of time. */
  readonly hasBars?: boolean
  /** Of bars: how long each is. */
  readonly apartMillis?: number
  /** Times within a minute differ. */
  readonly hasSeconds?: boolean
}

/** In px. The edges have the numbers of the axes. */
const height = 180
const edge = { left: 48, right: 8, top: 8, bottom: 28 }
const base = height - edge.bottom
const barMax = 40

/** Pushes are whole. */
const wholeSteps = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((zeros) =>
  [1, 2, 5].map((step) => step * 10 ** zeros)
)
const timeSteps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 10_800, 21_600, 86_400
]

/** A direction of a plot: where a value is, and the values that are written there. */
interface Scale {
  readonly place: (value: number) => number
  readonly ticks: ReadonlyArray<number>
}

/** Multiples of a step. */
const multiples = (first: number, last: number, step: number): ReadonlyArray<number> => {
  const begin = Math.ceil(first / step)
  const count = Math.max(0, Math.floor(last / step) - begin + 1)
  return Array.from({ length: count }, (_, index) => (begin + index) * step)
}

const counts = (most: number): Scale => {
  const top = Math.max(most * 1.1, 1)
  const step = wholeSteps.find((each) => top / each <= 4) ?? top
  return {
    place: (value) => base - (value / top) * (base - edge.top),
    ticks: multiples(0, top, step)
  }
}

/** Few bars stay narrow: there is room for ten. */
const moments = (
  { apartMillis = 60_000, hasBars, hasSeconds, times }: PlotProps,
  width: number
) => {
  const [first = 0, last = first] = [times[0], times.at(-1)]
  const [from, to] = hasBars
    ? [first - apartMillis / 2, Math.max(last, first + 9 * apartMillis) + apartMillis / 2]
    : [first, Math.max(last, first + 1)]
  const room = width - edge.left - edge.right
  const least = ((to - from) / Math.max(room, 1)) * (hasSeconds ? 110 : 70)
  const step = (timeSteps.find((each) => each * 1_000 >= least) ?? timeSteps.at(-1)!) * 1_000
  // Whole hours of the reader, whose zone may be half an hour beside others.
  const ahead = new Date(first).getTimezoneOffset() * 60_000
  const place = (at: number) => edge.left + ((at - from) / (to - from)) * room
  const ticks = multiples(first - ahead, last - ahead, step).map((tick) => tick + ahead)
  // The last label would end outside.
  const shown = ticks.filter((tick) => place(tick) < width - 36)
  return { place, ticks: shown, barWidth: Math.min(0.8 * (place(apartMillis) - place(0)), barMax) }
}

/** Each on top of the next one, the highest first: it is drawn first, below the others. */
const stacked = (series: ReadonlyArray<Series>): ReadonlyArray<Series> => {
  const sums = (series[0]?.values ?? []).map(() => 0)
  const above = series.map((each) => ({
    ...each,
    values: each.values.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + value
      return sums[index]
    })
  }))
  return above.reverse()
}

const Shapes = (props: PlotProps & { readonly width: number }) => {
  const { hasBars, hasSeconds, isStacked, series, times, width } = props
  const shown = isStacked ? stacked(series) : series
  const up = counts(Math.max(0, ...shown.flatMap(({ values }) => values)))
  const along = moments(props, width)
  const line = (values: ReadonlyArray<number>) =>
    times.map((at, index) => `${along.place(at)},${up.place(values[index] ?? 0)}`).join("L")
  const ends = [times.at(-1), times[0]].map((at = 0) => `${along.place(at)},${base}`).join("L")
  return (
    <>
      {up.ticks.map((tick) => (
        <g key={tick} transform={`translate(0 ${up.place(tick)})`}>
          <path d={`M${edge.left} 0H${width - edge.right}`} />
          <text x={edge.left - 8} dy="0.35em" text-anchor="end">
            {number(tick)}
          </text>
        </g>
      ))}
      {along.ticks.map((tick) => (
        <g key={tick} transform={`translate(${along.place(tick)} 0)`}>
          <path d={`M0 ${edge.top}V${base + 4}`} />
          <text y={height - 8} text-anchor="middle">
            {hasSeconds ? second(tick) : minute(tick)}
          </text>
        </g>
      ))}
      {shown.map(({ kind, values }) =>
        hasBars ? (
          times.map((at, index) => (
            <rect
              key={`${kind} ${at}`}
              class={kind}
              x={along.place(at) - along.barWidth / 2}
              y={up.place(values[index] ?? 0)}
              width={along.barWidth}
              height={base - up.place(values[index] ?? 0)}
            />
          ))
        ) : (
          <path
            key={kind}
            class={isStacked ? kind : `${kind} thin`}
            d={`M${line(values)}${isStacked ? `L${ends}Z` : ""}`}
          />
        )
      )}
    </>
  )
}

export const Plot = (props: PlotProps) => {
  const place = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const measure = () => setWidth(place.current?.clientWidth ?? 0)
    const sizes = new ResizeObserver(measure)
    sizes.observe(place.current!)
    measure()
    return () => sizes.disconnect()
  }, [])
  return (
    <figure class="plot">
      <figcaption>
        <h2>{props.title}</h2>
        {props.series.length > 1 && (
          <ul class="legend" aria-hidden="true">
            {props.series.map(({ kind, label }) => (
              <li key={kind} class={`dot ${kind}`}>
                {label}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      <div ref={place} class="canvas" role="img" aria-label={props.sentence}>
        <svg width={width} height={height} aria-hidden="true">
          {width > 0 && <Shapes {...props} width={width} />}
        </svg>
      </div>
      <Numbers {...props} />
    </figure>
  )
}

/** The newest first: whoever looks for the last one need not scroll. */
const Numbers = ({ hasSeconds, series, times, title }: PlotProps) => (
  <details>
    <summary>{t("asTable")}</summary>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: only so can the keyboard scroll it */}
    <section class="scroll" tabIndex={0} aria-label={title}>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">{t("timeLabel")}</th>
            {series.map(({ kind, label }) => (
              <th key={kind} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times
            .map((at, index) => (
              <tr key={at}>
                <th scope="row">{hasSeconds ? second(at) : minute(at)}</th>
                {series.map(({ kind, values }) => (
                  <td key={kind}>{number(values[index] ?? 0)}</td>
                ))}
              </tr>
            ))
            .reverse()}
        </tbody>
      </table>
    </section>
  </details>
)
