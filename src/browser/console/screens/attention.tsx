// Failed broadcasts, above all lists until they are dismissed.
import { useState } from "preact/hooks"
import { session } from "../api/session.ts"
import type { Broadcast } from "../api/shapes.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Cross, Warning } from "../parts/icons.tsx"
import { address } from "../state/route.ts"
import { t } from "../words/language.ts"
import { titleOf } from "./rows.tsx"

/** From this share of failed pushes on, somebody should look. */
const failedShare = 0.2

/** Why somebody should look at it; undefined: there is no need. */
export const whyLook = (broadcast: Broadcast): string | undefined => {
  const { accepted, because, changed_by, dead, expired, rejected, state } = broadcast
  if (state === "rejected") return t("lookRejected", { reason: rejected ?? "" })
  if (state === "paused" && changed_by === "pause_when")
    return t("lookPaused", { failed: because?.failed ?? 0, attempted: because?.attempted ?? 0 })
  if (state !== "finished") return undefined
  if (changed_by === "expiry") return t("lookExpired", { count: expired })
  const failed = dead + expired
  return failed > 0 && failed / accepted >= failedShare
    ? t("lookFailed", { count: failed, accepted })
    : undefined
}

const dismissedMax = 200
const placeOf = () => `bellcast-console-dismissed:${session().user}`

const readDismissed = (): ReadonlyArray<string> => {
  try {
    return JSON.parse(localStorage.getItem(placeOf()) ?? "[]") as ReadonlyArray<string>
  } catch {
    return []
  }
}

/** One that pauses by itself a second time is another failure. */
const keyOf = ({ id, last_modified, state }: Broadcast): string =>
  state === "paused" ? `${id} ${last_modified}` : id

export const Attention = ({ broadcasts }: { readonly broadcasts: ReadonlyArray<Broadcast> }) => {
  const [dismissed, show] = useState(readDismissed)
  const dismiss = (broadcast: Broadcast) => {
    const all = [keyOf(broadcast), ...readDismissed()].slice(0, dismissedMax)
    localStorage.setItem(placeOf(), JSON.stringify(all))
    show(all)
  }
  const rows = broadcasts.flatMap((broadcast) => {
    const why = dismissed.includes(keyOf(broadcast)) ? undefined : whyLook(broadcast)
    return why === undefined ? [] : [{ broadcast, why }]
  })
  if (rows.length === 0) return null
  return (
    <section class="attention" aria-labelledby="attention">
      <h2 id="attention">
        <Warning /> {t("attention")}
      </h2>
      <ul>
        {rows.map(({ broadcast, why }) => (
          <li key={broadcast.id}>
            <p>
              <b>{titleOf(broadcast)}</b> {why}
            </p>
            <div class="buttons">
              <ButtonLink
                to={address("broadcast", broadcast.id)}
                name={t("viewNamed", { title: titleOf(broadcast) })}
              >
                {t("view")}
              </ButtonLink>
              <Button
                kind="quiet"
                icon={Cross}
                name={t("dismissNamed", { title: titleOf(broadcast) })}
                onPress={() => dismiss(broadcast)}
              >
                {t("dismiss")}
              </Button>
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}
