// The lists of notifications: a tab for each state that an editor asks about.
import { useEffect, useRef, useState } from "preact/hooks"
import { beginOf, listPath, type Page, readPages } from "../api/broadcasts.ts"
import { etagOf } from "../api/client.ts"
import { deleteDraft } from "../api/drafts.ts"
import type { Broadcast, Draft } from "../api/shapes.ts"
import { Button, ButtonLink } from "../parts/button.tsx"
import { Dialog } from "../parts/dialog.tsx"
import { Empty, Heading } from "../parts/frame.tsx"
import { Bin, Plus } from "../parts/icons.tsx"
import { Awaited, Ghosts, type Loaded, useLoad } from "../parts/load.tsx"
import { report } from "../parts/report.ts"
import { address } from "../state/route.ts"
import { t } from "../words/language.ts"
import { Attention } from "./attention.tsx"
import { BroadcastRow, DraftRow, draftTitle } from "./rows.tsx"
import { ScheduledActions } from "./scheduled.tsx"
import { StopButton } from "./stop.tsx"

export const tabs = ["drafts", "scheduled", "sending", "sent", "stopped", "tests"] as const
export type Tab = (typeof tabs)[number]
export const isTab = (name: string): name is Tab => tabs.some((tab) => tab === name)

type ListTab = Exclude<Tab, "drafts">

const pathsOf: Readonly<Record<ListTab, ReadonlyArray<string>>> = {
  scheduled: [listPath({ state: "scheduled" }, 50)],
  sending: [listPath({ state: "running" }), listPath({ state: "paused" })],
  sent: [listPath({ state: "finished" })],
  stopped: [listPath({ state: "cancelled" }), listPath({ state: "rejected" })],
  tests: [listPath({ test: true })]
}

/** How often a list is read while it is looked at. */
const everyMillis: Readonly<Record<Tab, number>> = {
  drafts: 30_000,
  scheduled: 15_000,
  sending: 3_000,
  sent: 10_000,
  stopped: 15_000,
  tests: 10_000
}

const inOrder = (tab: ListTab, rows: ReadonlyArray<Broadcast>): ReadonlyArray<Broadcast> => {
  const wanted = rows.filter(({ test }) => (tab === "tests") === (test === true))
  const sign = tab === "scheduled" ? 1 : -1
  return wanted.toSorted((a, b) => sign * (beginOf(a) - beginOf(b)))
}

/** The newest of each state in which something may have failed. */
const watchedPaths = [
  listPath({ state: "running" }),
  listPath({ state: "paused" }),
  listPath({ state: "rejected" }, 10),
  listPath({ state: "finished" })
]

export const Notifications = ({ tab }: { readonly tab: Tab }) => {
  const watched = useLoad((signal) => readPages<Broadcast>(watchedPaths, signal), [], 15_000)
  const rows = watched.data?.rows ?? []
  const links = useRef<HTMLElement>(null)
  // On a phone the last tabs are out of sight.
  useEffect(() => {
    const here = links.current?.querySelector(`[href="${address(tab)}"]`)
    here?.scrollIntoView({ inline: "center", block: "nearest" })
  }, [tab])
  const sending = rows.filter(({ state }) => state === "running" || state === "paused").length
  return (
    <>
      <Heading title={t("notifications")} windowTitle={t(`tab-${tab}`)} />
      <Attention broadcasts={rows} />
      <nav ref={links} class="tabs" aria-label={t("notifications")}>
        {tabs.map((each) => (
          <a key={each} href={address(each)} aria-current={each === tab ? "page" : undefined}>
            {t(`tab-${each}`)}
            {each === "sending" && sending > 0 && <span class="count">{sending}</span>}
          </a>
        ))}
      </nav>
      {tab === "drafts" ? <Drafts /> : <Broadcasts key={tab} tab={tab} />}
    </>
  )
}

interface ListProps<T> {
  readonly tab: Tab
  readonly loaded: Loaded<Page<T>>
  readonly inOrder: (rows: ReadonlyArray<T>) => ReadonlyArray<T>
  readonly row: (item: T) => preact.ComponentChildren
}

/** The first page is read again by itself; what "Show more" brought stays as it was. */
const List = <T extends { readonly id: string }>(props: ListProps<T>) => {
  const { inOrder, loaded, row, tab } = props
  const [more, setMore] = useState<Page<T>>()
  const readMore = async (next: ReadonlyArray<string>) => {
    const page = await readPages<T>(next, AbortSignal.timeout(20_000))
    setMore((former) => ({ rows: [...(former?.rows ?? []), ...page.rows], next: page.next }))
  }
  return (
    <Awaited of={loaded} waiting={<Ghosts />}>
      {(first) => {
        const ids = new Set(first.rows.map(({ id }) => id))
        const others = more?.rows.filter(({ id }) => !ids.has(id)) ?? []
        const rows = inOrder([...first.rows, ...others])
        const next = more?.next ?? first.next
        return (
          <>
            {rows.length === 0 && next.length === 0 ? (
              <NothingIn tab={tab} />
            ) : (
              <ul class="rows">{rows.map(row)}</ul>
            )}
            {next.length > 0 && (
              <p class="more">
                <Button onPress={() => readMore(next)}>{t("showMore")}</Button>
              </p>
            )}
          </>
        )
      }}
    </Awaited>
  )
}

const NothingIn = ({ tab }: { readonly tab: Tab }) => (
  <Empty
    title={t(`empty-${tab}`)}
    action={
      <ButtonLink kind="prominent" icon={Plus} to={address("draft", "new")}>
        {t("newNotification")}
      </ButtonLink>
    }
  >
    {t(`empty-${tab}-text`)}
  </Empty>
)

const Broadcasts = ({ tab }: { readonly tab: ListTab }) => {
  const loaded = useLoad(
    (signal) => readPages<Broadcast>(pathsOf[tab], signal),
    [tab],
    everyMillis[tab]
  )
  return (
    <List
      tab={tab}
      loaded={loaded}
      inOrder={(rows) => inOrder(tab, rows)}
      row={(broadcast) => (
        <BroadcastRow
          key={broadcast.id}
          broadcast={broadcast}
          hasState={tab !== "scheduled" && tab !== "sent"}
          actions={
            broadcast.to &&
            (tab === "scheduled" ? (
              <ScheduledActions broadcast={broadcast} onChange={loaded.reload} isQuiet />
            ) : (
              <StopButton
                broadcast={broadcast}
                onStop={loaded.reload}
                onProblem={(cause) => {
                  report(cause)
                  void loaded.reload()
                }}
                isQuiet
              />
            ))
          }
        />
      )}
    />
  )
}

const Drafts = () => {
  const loaded = useLoad(
    (signal) => readPages<Draft>(["drafts?_limit=50"], signal),
    [],
    everyMillis.drafts
  )
  const [asked, ask] = useState<Draft>()
  return (
    <>
      <List
        tab="drafts"
        loaded={loaded}
        inOrder={(rows) => rows}
        row={(draft) => (
          <DraftRow
            key={draft.id}
            draft={draft}
            actions={
              <Button
                kind="quiet danger"
                icon={Bin}
                name={t("deleteNamed", { title: draftTitle(draft) })}
                onPress={() => ask(draft)}
              >
                {t("delete")}
              </Button>
            }
          />
        )}
      />
      {asked && <DeleteDialog draft={asked} onClose={() => ask(undefined)} onEnd={loaded.reload} />}
    </>
  )
}

interface DeleteProps {
  readonly draft: Draft
  readonly onClose: () => void
  /** It was deleted, or is not as the list has it. */
  readonly onEnd: () => void
}

const DeleteDialog = ({ draft, onClose, onEnd }: DeleteProps) => (
  <Dialog title={t("deleteTitle", { title: draftTitle(draft) })} onClose={onClose}>
    <p>{t("deleteText")}</p>
    <div class="buttons">
      <Button onPress={onClose}>{t("keep")}</Button>
      <Button
        kind="danger"
        onProblem={(cause) => {
          onClose()
          report(cause)
          onEnd()
        }}
        onPress={async () => {
          await deleteDraft(draft.id, etagOf(draft))
          onClose()
          onEnd()
        }}
      >
        {t("delete")}
      </Button>
    </div>
  </Dialog>
)
