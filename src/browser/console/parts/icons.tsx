// Pictures of the console. They say nothing that does not stand beside them as text.
import type { ComponentChildren } from "preact"

const icon = (children: ComponentChildren) => () => (
  <svg
    viewBox="0 0 24 24"
    width="1.25em"
    height="1.25em"
    fill="none"
    stroke="currentColor"
    stroke-width="1.8"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    {children}
  </svg>
)

export const Bell = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false" fill="currentColor">
    <path
      d="M16 2.5a2 2 0 0 1 2 2v1.2c4.1.9 7 4.5 7 9.1v5.4l2.6 3.6a1 1 0 0 1-.8 1.6
      H5.2a1 1 0 0 1-.8-1.6L7 20.2v-5.4c0-4.6 2.9-8.2 7-9.1V4.5a2 2 0 0 1 2-2z
      M12.3 27h7.4a3.7 3.7 0 0 1-7.4 0z"
    />
  </svg>
)

export const Plus = icon(<path d="M12 5v14M5 12h14" />)
export const Stop = icon(<rect x="6" y="6" width="12" height="12" rx="1.5" fill="currentColor" />)
export const Pause = icon(<path d="M9 6v12M15 6v12" stroke-width="3" />)
export const Play = icon(<path d="M8 5.5v13l10.5-6.5z" fill="currentColor" />)
export const Copy = icon(
  <>
    <rect x="9" y="9" width="11" height="11" rx="2" />
    <path d="M15 5.5A1.5 1.5 0 0 0 13.5 4H6a2 2 0 0 0-2 2v7.500A1.5 1.5 0 0 0 5.5 15" />
  </>
)
export const Clock = icon(
  <>
    <circle cx="12" cy="12" r="8.5" />
    <path d="M12 7.500V12l3 2" />
  </>
)
export const Pen = icon(<path d="M4 20l1-4L16.5 4.500a2 2 0 0 1 3 3L8 19z" />)
export const Bin = icon(
  <path d="M5 7h14M10 7V4.500h4V7M7 7l1 13h8l1-13M10.5 11v5.500M13.5 11v5.5" />
)
export const Down = icon(<path d="M12 4v11M7 11l5 5 5-5M5 20h14" />)
export const Back = icon(<path d="M14.5 5.500L8 12l6.5 6.5" />)
export const Undo = icon(<path d="M9 5L4.500 9.500 9 14M5 9.500h9a5.250 5.250 0 0 1 0 10.500h-3" />)
export const Eye = icon(
  <>
    <path d="M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z" />
    <circle cx="12" cy="12" r="2.8" />
  </>
)
export const Warning = icon(
  <>
    <path d="M12 3.500L2.5 20h19z" />
    <path d="M12 10v4.500M12 17.200v.100" />
  </>
)
export const Cross = icon(<path d="M6 6l12 12M18 6L6 18" />)
