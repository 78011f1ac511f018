// The frame of every screen: a heading that gets the focus, and the place where nothing is.
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { address } from "../state/route.ts"
import { t } from "../words/language.ts"
import { ButtonLink } from "./button.tsx"
import { Bell } from "./icons.tsx"

interface HeadingProps {
  readonly title: string
  /** Of the window; else the title. */
  readonly windowTitle?: string
  readonly children?: ComponentChildren
}

/** Gets the focus when its screen opens, so that a screen reader says where one is. */
export const Heading = ({ children, title, windowTitle = title }: HeadingProps) => {
  const element = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    document.title = `${windowTitle} · Bellcast`
  }, [windowTitle])
  useLayoutEffect(() => {
    // The header stays as it is, with the link that was pressed: that is no place on this screen.
    if (document.activeElement?.closest("#main, dialog[open]") == null) element.current?.focus()
  }, [])
  return (
    <div class="heading">
      <h1 ref={element} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </div>
  )
}

interface EmptyProps {
  readonly title?: string
  readonly children: ComponentChildren
  readonly action?: ComponentChildren
}

export const Empty = ({ action, children, title }: EmptyProps) => (
  <div class="empty">
    <Bell />
    {title && <h2>{title}</h2>}
    <p>{children}</p>
    {action}
  </div>
)

export const NotFound = () => (
  <>
    <Heading title={t("notFoundTitle")} />
    <Empty action={<ButtonLink to={address("sent")}>{t("toNotifications")}</ButtonLink>}>
      {t("notFoundText")}
    </Empty>
  </>
)
