// Errors in boxes that stay until they are solved or dismissed.
import type { ComponentChildren } from "preact"
import type { Problem } from "../api/client.ts"
import { useStore } from "../state/store.ts"
import { t } from "../words/language.ts"
import { said } from "../words/problems.ts"
import { Button } from "./button.tsx"
import { Cross } from "./icons.tsx"
import { reported } from "./report.ts"

interface BoxProps {
  readonly kind?: "note" | "warning" | "error" | "good"
  readonly children: ComponentChildren
  readonly actions?: ComponentChildren
  readonly onDismiss?: () => void
}

/** Screen readers say a warning and an error at once, the others in their turn. */
export const Box = ({ actions, children, kind = "note", onDismiss }: BoxProps) => (
  <div class={`box ${kind}`} role={kind === "error" || kind === "warning" ? "alert" : "status"}>
    <div>{children}</div>
    {(actions || onDismiss) && (
      <div class="buttons">
        {actions}
        {onDismiss && (
          <Button kind="quiet" icon={Cross} onPress={onDismiss}>
            {t("dismiss")}
          </Button>
        )}
      </div>
    )}
  </div>
)

interface ProblemBoxProps {
  readonly problem: Problem
  readonly onRetry?: (() => unknown) | undefined
  readonly onDismiss?: () => void
}

export const ProblemBox = ({ onDismiss, onRetry, problem }: ProblemBoxProps) => {
  const { todo, wrong } = said(problem)
  return (
    <Box
      kind="error"
      {...(onDismiss && { onDismiss })}
      actions={onRetry && <Button onPress={onRetry}>{t("tryAgain")}</Button>}
    >
      <b>{wrong}</b> {todo}
    </Box>
  )
}

export const Reported = () => {
  const problems = useStore(reported)
  return (
    <>
      {problems.map((problem) => (
        <ProblemBox
          key={`${problem.code} ${problem.message}`}
          problem={problem}
          onDismiss={() => reported.set(reported.value.filter((each) => each !== problem))}
        />
      ))}
    </>
  )
}
