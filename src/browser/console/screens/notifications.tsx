// The lists of notifications: a tab for each state that an editor asks about.
import { useEffect, useRef, useState } from "preact/hooks"
import { beginOf, listPath, type Page, readPages } from "../api/broadcasts.ts"
import { etagOf } from "../api/client.ts"
import { deleteDraft } from "../api/drafts.ts"
import type { Broadcast, Draft, State } from "../api/shapes.ts"
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

/** The life of a broadcast is 28 days at most: of none that began earlier anything changes. */
const livingDays = 29
/** A failure that is older needs no look any more. */
const failedMillis = 7 * 86_400_000
/** Rows on a page of the service at most. */
const pageRows = 50

/** Broadcasts in these states that are no tests, as many as one reading finds. */
const useWatched = (states: ReadonlyArray<State>, everyMillis: number) => {
  const read = (signal: AbortSignal) => {
    const paths = states.map((state) => listPath({ state, days: livingDays }, pageRows))
    return readPages<Broadcast>(paths, signal, Number.POSITIVE_INFINITY)
  }
  const { rows = [], next = [] } = useLoad(read, [], everyMillis).data ?? {}
  return { rows: rows.filter(({ test }) => test !== true), hasMore: next.length > 0 }
}

export const Notifications = ({ tab }: { readonly tab: Tab }) => {
  const sending = useWatched(["running", "paused"], 15_000)
  const ended = useWatched(["rejected", "finished"], 30_000)
  const watched = [
    ...sending.rows,
    ...ended.rows.filter(({ last_modified }) => last_modified > Date.now() - failedMillis)
  ]
  const links = useRef<HTMLElement>(null)
  // On a phone the last tabs are out of sight.
  useEffect(() => {
    const here = links.current?.querySelector(`[href="${address(tab)}"]`)
    here?.scrollIntoView({ inline: "center", block: "nearest" })
  }, [tab])
  const count = sending.rows.length
  return (
    <>
      <Heading title={t("notifications")} windowTitle={t(`tab-${tab}`)} />
      <Attention broadcasts={watched} />
      <nav ref={links} class="tabs" aria-label={t("notifications")}>
        {tabs.map((each) => (
          <a key={each} href={address(each)} aria-current={each === tab ? "page" : undefined}>
            {t(`tab-${each}`)}
            {each === "sending" && count > 0 && (
              <span class="count">
                {count}
                {sending.hasMore && "+"}
              </span>
            )}
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
  /** The draft was deleted, or is not as the list has it. */
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
