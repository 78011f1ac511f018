// A question or a form above the screen: the browser's own dialog, which keeps the focus inside.
import type { ComponentChildren } from "preact"
import { useId, useLayoutEffect, useRef } from "preact/hooks"

interface DialogProps {
  readonly title: string
  /** Escape, or a press beside it. Without it the dialog must be answered. */
  readonly onClose?: () => void
  readonly children: ComponentChildren
}

export const Dialog = ({ children, onClose, title }: DialogProps) => {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current!
    dialog.showModal()
    // The question may open over a field: the next space that is typed must press no button.
    if (onClose === undefined) heading.current!.focus()
    // Closed before it is removed: the browser then gives the focus back to where it was.
    return () => dialog.close()
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose?.()
      }}
      onMouseDown={(event) => event.target === element.current && isBeside(event) && onClose?.()}
    >
      <h2 id={id} ref={heading} tabIndex={-1}>
        {title}
      </h2>
      {children}
    </dialog>
  )
}

/** The ground around a dialog belongs to its element. */
const isBeside = ({ clientX, clientY, currentTarget }: MouseEvent): boolean => {
  const { bottom, left, right, top } = (currentTarget as Element).getBoundingClientRect()
  return clientX < left || clientX > right || clientY < top || clientY > bottom
}
