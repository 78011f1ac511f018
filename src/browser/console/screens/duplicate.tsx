// A copy of what was published, as a draft. Readers by name are their publisher's: a copy of
// another person lacks them, which is said before it is made.
import { useState } from "preact/hooks"
import { readBroadcast } from "../api/broadcasts.ts"
import { duplicate, isHidden, lacksOf } from "../api/drafts.ts"
import type { Broadcast, WholeBroadcast } from "../api/shapes.ts"
import { Button } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Copy } from "../parts/icons.tsx"
import { Awaited, useLoad } from "../parts/load.tsx"
import { ProblemBox } from "../parts/problem.tsx"
import { problemOf } from "../parts/report.ts"
import { go } from "../state/route.ts"
import { t } from "../words/language.ts"
import { person } from "../words/people.ts"

/** The parts that a draft of it lacks, in words; undefined: none. */
export const lacksText = (broadcast: Broadcast): string | undefined => {
  const count = lacksOf(broadcast)
  return count === 0 ? undefined : t("lacks", { count, person: person(broadcast.publisher) })
}

export const hiddenText = ({ publisher }: Broadcast): string =>
  t("hidden", { person: person(publisher) })

const copy = async (broadcast: WholeBroadcast) => go("draft", await duplicate(broadcast))

interface DuplicateProps {
  readonly broadcast: Broadcast
  readonly title: string
  readonly isQuiet?: boolean
}

export const Duplicate = ({ broadcast, isQuiet, title }: DuplicateProps) => {
  const [isAsking, ask] = useState(false)
  const press = async () => {
    if (lacksOf(broadcast) > 0) ask(true)
    else await copy(await readBroadcast(broadcast.id))
  }
  return (
    <>
      <Button
        kind={isQuiet ? "quiet" : "plain"}
        icon={Copy}
        name={t("duplicateNamed", { title })}
        onPress={press}
      >
        {t("duplicate")}
      </Button>
      {isAsking && <Question broadcast={broadcast} title={title} onClose={() => ask(false)} />}
    </>
  )
}

interface QuestionProps {
  readonly broadcast: Broadcast
  readonly title: string
  readonly onClose: () => void
}

const Question = ({ broadcast, onClose, title }: QuestionProps) => {
  const whole = useLoad((signal) => readBroadcast(broadcast.id, signal), [broadcast.id])
  const [problem, setProblem] = useState<unknown>()
  return (
    <Dialog title={t("duplicateTitle", { title })} onClose={onClose}>
      <Awaited of={whole} waiting={<p class="soft">{t("oneMoment")}</p>}>
        {(found) =>
          isHidden(found) ? (
            <>
              <p>{hiddenText(found)}</p>
              <div class="buttons">
                <Button onPress={onClose}>{t("close")}</Button>
              </div>
            </>
          ) : (
            <>
              <p>{lacksText(found)}</p>
              {problem !== undefined && <ProblemBox problem={problemOf(problem)} />}
              <div class="buttons">
                <Button onPress={onClose}>{t("cancel")}</Button>
                <Button kind="prominent" onProblem={setProblem} onPress={() => copy(found)}>
                  {t("duplicateDo")}
                </Button>
              </div>
            </>
          )
        }
      </Awaited>
    </Dialog>
  )
}
