// Stop, which asks nothing: a typo costs readers by the second, and what was stopped can be
// corrected and sent.
import { changeBroadcast } from "../api/broadcasts.ts"
import type { Broadcast, WholeBroadcast } from "../api/shapes.ts"
import { Button } from "../parts/button.tsx"
import { Stop } from "../parts/icons.tsx"
import { t } from "../words/language.ts"
import { isNearlyDone } from "../words/states.ts"
import { titleOf } from "./rows.tsx"

interface StopProps {
  readonly broadcast: Broadcast
  readonly onStop: (stopped: WholeBroadcast) => void
  readonly onProblem: (cause: unknown) => void
  /** In a row of a list, whose buttons are quiet. */
  readonly isQuiet?: boolean
}

/** Nothing where there is nothing to stop. */
export const StopButton = ({ broadcast, isQuiet, onProblem, onStop }: StopProps) => {
  const { id, state } = broadcast
  if (state !== "running" && state !== "paused") return null
  const label = t(isNearlyDone(broadcast) ? "stopTrying" : "stop")
  return (
    <Button
      kind={isQuiet ? "quiet danger" : "danger"}
      isLarge={!isQuiet}
      icon={Stop}
      {...(isQuiet && { name: t("stopNamed", { label, title: titleOf(broadcast) }) })}
      onProblem={onProblem}
      onPress={async () => onStop(await changeBroadcast(id, { state: "cancelled" }))}
    >
      {label}
    </Button>
  )
}
