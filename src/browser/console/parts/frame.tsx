// The frame of every screen: a heading that gets the focus, and the place where nothing is.
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { address, type Route, route } from "../state/route.ts"
import { t } from "../words/language.ts"
import { ButtonLink } from "./button.tsx"
import { Bell } from "./icons.tsx"

interface HeadingProps {
  readonly title: string
  /** Of the window; else the title. */
  readonly windowTitle?: string
  readonly children?: ComponentChildren
}

/** The address that had a heading last. */
let headed: Route | undefined

/** Gets the focus when its screen opens, so that a screen reader says where one is. */
export const Heading = ({ children, title, windowTitle = title }: HeadingProps) => {
  const element = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    document.title = `${windowTitle} · Bellcast`
  }, [windowTitle])
  useLayoutEffect(() => {
    const { activeElement } = document
    const isNowhere = activeElement === null || activeElement === document.body
    // The header stays as it is, with the link that was pressed: that is no place on this screen.
    // A heading that replaces the first one comes late: somebody may use the header by then.
    const isOutside =
      route.value !== headed && activeElement?.closest("#main, dialog[open]") == null
    if (isNowhere || isOutside) element.current?.focus()
    headed = route.value
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
