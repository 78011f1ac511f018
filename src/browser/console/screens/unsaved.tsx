// Drafts that were left before they were stored: above every screen, with a way back.
import { useEffect, useLayoutEffect } from "preact/hooks"
import { isLeavingForLogin } from "../api/session.ts"
import { dismissUnsaved, findUnsaved, unsaved } from "../draft/keeper.ts"
import { ButtonLink } from "../parts/button.tsx"
import { Box } from "../parts/problem.tsx"
import { address } from "../state/route.ts"
import { useStore } from "../state/store.ts"
import { t } from "../words/language.ts"

export const UnsavedDrafts = () => {
  const drafts = useStore(unsaved)
  const isAny = drafts.length > 0
  // Before the page is painted: the list may still be that of the former person.
  useLayoutEffect(findUnsaved, [])
  useEffect(() => {
    // Also of those whose box was dismissed: a window that is closed loses them.
    if (!isAny) return undefined
    const warn = (event: BeforeUnloadEvent) => {
      if (!isLeavingForLogin()) event.preventDefault()
    }
    addEventListener("beforeunload", warn)
    return () => removeEventListener("beforeunload", warn)
  }, [isAny])
  return (
    <>
      {drafts.map(
        ({ id, isDismissed, title }) =>
          !isDismissed && (
            <Box
              key={id}
              kind="warning"
              onDismiss={() => dismissUnsaved(id)}
              actions={<ButtonLink to={address("draft", id)}>{t("unsavedOpen")}</ButtonLink>}
            >
              <b>{t("unsaved", { title: title || t("untitled") })}</b> {t("unsavedTodo")}
            </Box>
          )
      )}
    </>
  )
}
