// The two actions on a scheduled notification: edit it in place, or take it back.
import { useState } from "preact/hooks"
import { changeBroadcast, demandScheduled, readBroadcast } from "../api/broadcasts.ts"
import { etagOf, type Problem } from "../api/client.ts"
import { deleteDraft, draftOf, isHidden, newDraftId, storeDraft } from "../api/drafts.ts"
import type { Broadcast, WholeBroadcast } from "../api/shapes.ts"
import { isSame } from "../draft/changes.ts"
import { editedOf, forgetTyped, keptTyped, withTypedEdit } from "../draft/edited.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Pen, Undo } from "../parts/icons.tsx"
import { Awaited, useLoad } from "../parts/load.tsx"
import { ProblemBox } from "../parts/problem.tsx"
import { problemOf, report } from "../parts/report.ts"
import { address, go } from "../state/route.ts"
import { t } from "../words/language.ts"
import { hiddenText, lacksText } from "./duplicate.tsx"
import { titleOf } from "./rows.tsx"

/**
 * Cancels the broadcast only in the form that was read. If the broadcast has begun since then, a
 * cancellation would stop it half way.
 */
const callOff = async (scheduled: WholeBroadcast): Promise<void> => {
  try {
    await changeBroadcast(scheduled.id, { state: "cancelled" }, etagOf(scheduled))
  } catch (cause) {
    if (problemOf(cause).code === "modified-meanwhile") await demandScheduled(scheduled.id)
    throw cause
  }
}

/**
 * Makes the draft first: at no moment is the text nowhere. Returns the screen that has the typed
 * text: that of the draft, or Edit, where the text was typed on another form of the broadcast.
 */
const unschedule = async (id: string): Promise<ReadonlyArray<string>> => {
  const draft = newDraftId()
  const scheduled = await demandScheduled(id)
  const typed = keptTyped(id)
  const isOnIt = typed !== undefined && isSame(typed.before, editedOf(scheduled))
  const content = draftOf(scheduled)
  const { etag } = await storeDraft(draft, isOnIt ? withTypedEdit(content, typed) : content)
  try {
    await callOff(scheduled)
  } catch (cause) {
    await deleteDraft(draft, etag).catch(() => {})
    throw cause
  }
  if (typed !== undefined && !isOnIt) return ["broadcast", id, "edit"]
  forgetTyped(id)
  return ["draft", draft]
}

interface ScheduledProps {
  readonly broadcast: Broadcast
  /** Something changed: the list is old. */
  readonly onChange: () => void
}

/** `isQuiet`: in a row of a list. */
export const ScheduledActions = (props: ScheduledProps & { readonly isQuiet?: boolean }) => {
  const { broadcast, isQuiet } = props
  return (
    <>
      <ButtonLink
        kind={isQuiet ? "quiet" : "plain"}
        icon={Pen}
        name={t("editNamed", { title: titleOf(broadcast) })}
        to={address("broadcast", broadcast.id, "edit")}
      >
        {t("edit")}
      </ButtonLink>
      <Unschedule {...props} />
    </>
  )
}

export const Unschedule = ({ broadcast, onChange }: ScheduledProps) => {
  const [isAsking, ask] = useState(false)
  return (
    <>
      <Button
        kind="quiet danger"
        icon={Undo}
        name={t("unscheduleNamed", { title: titleOf(broadcast) })}
        onPress={() => ask(true)}
      >
        {t("unschedule")}
      </Button>
      {isAsking && (
        <Question broadcast={broadcast} onChange={onChange} onClose={() => ask(false)} />
      )}
    </>
  )
}

interface QuestionProps extends ScheduledProps {
  readonly onClose: () => void
}

const Question = ({ broadcast, onChange, onClose }: QuestionProps) => {
  const { id } = broadcast
  const whole = useLoad((signal) => readBroadcast(id, signal), [id])
  const [problem, setProblem] = useState<Problem>()
  const toDraft = async () => {
    const screen = await unschedule(id)
    onClose()
    // Edit may be the open screen: no address changes, so it reads the broadcast again.
    if (screen[0] === "broadcast") onChange()
    go(...screen)
  }
  /** Of a letter whose text the caller does not see there is no draft to make. */
  const withoutDraft = async () => {
    await callOff(await demandScheduled(id))
    onClose()
    onChange()
  }
  const onProblem = (cause: unknown) => {
    const found = problemOf(cause)
    if (found.code === "impossible-state") {
      // The dialog goes with the button, which the change removes.
      onClose()
      report(found)
    } else setProblem(found)
    onChange()
  }
  return (
    <Dialog title={t("unscheduleTitle", { title: titleOf(broadcast) })} onClose={onClose}>
      <Awaited of={whole} waiting={<p class="soft">{t("oneMoment")}</p>}>
        {(found) => (
          <>
            <p>
              {t("unscheduleText")} {isHidden(found) ? hiddenText(found) : t("unscheduleDraft")}
            </p>
            {!isHidden(found) && <p>{lacksText(found)}</p>}
            {problem && <ProblemBox problem={problem} />}
            <div class="buttons">
              <Button onPress={onClose}>{t("cancel")}</Button>
              <Button
                kind="prominent"
                onProblem={onProblem}
                onPress={isHidden(found) ? withoutDraft : toDraft}
              >
                {t(isHidden(found) ? "unschedule" : "unscheduleDo")}
              </Button>
            </div>
          </>
        )}
      </Awaited>
    </Dialog>
  )
}
