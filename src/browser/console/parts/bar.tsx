// How far a broadcast is: a bar by outcome, whose sentence stands beside it.
import { type Outcomes, outcomes } from "../api/shapes.ts"

interface BarProps {
  readonly counts: Outcomes
  /** All pushes, those that wait among them. */
  readonly total: number
  readonly isTall?: boolean
}

export const Bar = ({ counts, isTall, total }: BarProps) => (
  <div class={isTall ? "bar tall" : "bar"} aria-hidden="true">
    {outcomes.map((outcome) =>
      counts[outcome] > 0 ? (
        <i
          key={outcome}
          class={outcome}
          style={{ width: `${(counts[outcome] / Math.max(total, 1)) * 100}%` }}
        />
      ) : null
    )}
  </div>
)
