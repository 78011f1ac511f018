// A press that leads to a sentence, beside its button: at once that it works on it, with the
// seconds where it takes long, then what came of it.
import { useState } from "preact/hooks"
import { errors } from "../../../client/words.ts"
import type { PushErrorCode } from "../../../types/client.d.ts"
import { Problem } from "../../api/client.ts"
import { t } from "../../words/language.ts"
import { said } from "../../words/problems.ts"
import type { Say } from "./pushes.ts"
import { tt } from "./texts.ts"

export type Task = (say: Say) => Promise<string | undefined>

const failure = (cause: unknown): string => {
  if (cause instanceof Problem) {
    const { todo, wrong } = said(cause)
    return tt("tryFailed", { why: `${wrong} ${todo}` })
  }
  const { code, message } = cause as { readonly code?: PushErrorCode; readonly message: string }
  return tt("tryFailed", { why: (code && errors[code]) ?? message })
}

export interface Running {
  readonly text: string
  readonly isBusy: boolean
  readonly run: (task: Task) => Promise<void>
}

export const useTask = (): Running => {
  const [text, setText] = useState("")
  const [isBusy, setBusy] = useState(false)
  const run = async (task: Task) => {
    if (isBusy) return
    setBusy(true)
    setText(t("oneMoment"))
    const began = Date.now()
    let hasSaid = false
    const timer = setInterval(() => {
      const seconds = Math.round((Date.now() - began) / 1_000)
      if (!hasSaid) setText(tt("tryStillWaiting", { seconds }))
    }, 2_000)
    try {
      const say: Say = (now) => {
        hasSaid = true
        setText(now)
      }
      setText((await task(say)) ?? "")
    } catch (cause) {
      setText(failure(cause))
    } finally {
      clearInterval(timer)
      setBusy(false)
    }
  }
  return { text, isBusy, run }
}
