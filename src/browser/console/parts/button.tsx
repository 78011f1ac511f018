// Buttons, and links that look like them.
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { t } from "../words/language.ts"
import { report } from "./report.ts"

export type ButtonKind = "prominent" | "plain" | "quiet" | "danger"

const classOf = (kinds: ReadonlyArray<string | undefined>): string =>
  ["button", ...kinds].filter((each) => each !== undefined && each !== "plain").join(" ")

interface ButtonProps {
  readonly kind?: ButtonKind | "quiet danger"
  readonly isLarge?: boolean
  readonly id?: string
  /** While it runs, the button turns its ring and takes no press. */
  readonly onPress?: () => unknown
  /** Gets what `onPress` throws; else it stands above the screen until it is dismissed. */
  readonly onProblem?: (cause: unknown) => void
  /** Why it cannot be pressed now; shown as its title, so say it beside the button, too. */
  readonly off?: string | undefined
  /** For screen readers, where the label alone does not say what it is about: it contains that. */
  readonly name?: string
  readonly isSubmit?: boolean
  /** Something else runs that this button began, such as a form. */
  readonly isBusy?: boolean
  readonly icon?: () => ComponentChildren
  readonly children: ComponentChildren
}

export const Button = (props: ButtonProps) => {
  const { children, icon: Icon, id, isLarge, isSubmit, kind = "plain", name, off } = props
  const [isRunning, show] = useState(false)
  const isBusy = isRunning || props.isBusy === true
  const press = async () => {
    if (isBusy || off !== undefined || props.onPress === undefined) return
    show(true)
    try {
      await props.onPress()
    } catch (cause) {
      const onProblem = props.onProblem ?? report
      onProblem(cause)
    } finally {
      show(false)
    }
  }
  return (
    <button
      type={isSubmit ? "submit" : "button"}
      class={classOf([kind, isLarge ? "large" : undefined])}
      id={id}
      title={off}
      aria-label={name}
      aria-disabled={off !== undefined}
      aria-busy={isBusy}
      onClick={(event) => {
        // A submit button that is off or busy must not submit.
        if (isSubmit && (isBusy || off !== undefined)) event.preventDefault()
        if (!isSubmit) void press()
      }}
    >
      {isBusy ? <span class="ring" /> : Icon && <Icon />}
      {children}
      {isBusy && <span class="unseen">{t("oneMoment")}</span>}
    </button>
  )
}

interface LinkProps {
  readonly to: string
  readonly kind?: ButtonKind
  readonly name?: string
  readonly icon?: () => ComponentChildren
  readonly children: ComponentChildren
}

export const ButtonLink = ({ children, icon: Icon, kind = "plain", name, to }: LinkProps) => (
  <a class={classOf([kind])} href={to} aria-label={name}>
    {Icon && <Icon />}
    {children}
  </a>
)
