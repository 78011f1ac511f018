// To whom a draft goes: channels by name, users and exceptions, and how many readers these are now.
import { useEffect, useState } from "preact/hooks"
import { request } from "../api/client.ts"
import { session } from "../api/session.ts"
import type { Channel, Reach, To } from "../api/shapes.ts"
import {
  channelsMax,
  isChannelName,
  linesOf,
  namesIn,
  type TypedLists,
  type UserList,
  usersMax,
  withAudience
} from "../draft/audience.ts"
import type { Counting } from "../draft/reach.ts"
import { Button } from "../parts/button.tsx"
import { Field } from "../parts/field.tsx"
import { Cross, Plus } from "../parts/icons.tsx"
import { useLoad } from "../parts/load.tsx"
import { ProblemBox } from "../parts/problem.tsx"
import { list, number, second, t } from "../words/language.ts"
import type { PartProps } from "./message.tsx"

const suggestedMax = 8

/** A text that has not changed for some time: typing asks the service nothing. */
const useSettled = (text: string, millis: number): string => {
  const [settled, settle] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => settle(text), millis)
    return () => clearTimeout(timer)
  }, [text, millis])
  return settled
}

/** Undefined: the caller may not send to it, or cannot see it. */
const readChannel = async (name: string, signal: AbortSignal): Promise<Channel | undefined> => {
  const path = `channels/${encodeURIComponent(name)}`
  const answer = await request<{ readonly data: Channel }>(path, { signal }).catch((problem) => {
    if (problem.status === 403) return undefined
    throw problem
  })
  return answer?.body.data
}

interface ChipProps {
  readonly name: string
  readonly onRemove: () => void
}

const Chip = ({ name, onRemove }: ChipProps) => {
  const channel = useLoad(async (signal) => ({ found: await readChannel(name, signal) }), [name])
  const { found } = channel.data ?? {}
  const isRefused = channel.data !== undefined && found === undefined
  const isUnknown = isRefused || found?.registrations === 0
  return (
    <li class={isUnknown ? "chip wrong" : "chip"}>
      <b>{name}</b>
      <span>
        {isRefused && t("channelRefused")}
        {found?.registrations === 0 && t("channelUnknown")}
        {found && found.registrations > 0 && t("readers", { count: found.registrations })}
        {channel.problem && t("channelNotCounted")}
      </span>
      <Button kind="quiet" icon={Cross} name={t("channelRemove", { name })} onPress={onRemove}>
        <span class="unseen">{t("remove")}</span>
      </Button>
    </li>
  )
}

interface ChannelsProps {
  readonly names: ReadonlyArray<string>
  readonly onChange: (names: ReadonlyArray<string>) => void
  readonly wrong: string | undefined
}

const Channels = ({ names, onChange, wrong }: ChannelsProps) => {
  const [typed, type] = useState("")
  const prefix = useSettled(typed.trim(), 250)
  const found = useLoad(
    async (signal) => {
      const query = new URLSearchParams({ prefix, _limit: String(suggestedMax) })
      const { body } = await request<{ readonly data: ReadonlyArray<Channel> }>(
        `channels?${query}`,
        { signal }
      )
      return body.data
    },
    [prefix]
  )
  const add = (name: string) => {
    if (!isChannelName(name) || names.length >= channelsMax) return
    type("")
    if (!names.includes(name)) onChange([...names, name])
  }
  const suggested = (found.data ?? []).filter(({ id }) => !names.includes(id))
  const isExact = (found.data ?? []).some(({ id }) => id === typed.trim())
  return (
    <div class="channels">
      {names.length > 0 && (
        <ul class="chips" aria-label={t("channelsChosen")}>
          {names.map((name) => (
            <Chip
              key={name}
              name={name}
              onRemove={() => onChange(names.filter((each) => each !== name))}
            />
          ))}
        </ul>
      )}
      <form
        class="add-channel"
        onSubmit={(event) => {
          event.preventDefault()
          add(typed.trim())
        }}
      >
        <Field
          label={t("channels")}
          name="channel"
          type="search"
          autocomplete="off"
          value={typed}
          onInput={type}
          placeholder={t("channelsPlaceholder")}
          wrong={names.length >= channelsMax ? t("channelsMost", { most: channelsMax }) : wrong}
        />
        <Button isSubmit icon={Plus}>
          {t("add")}
        </Button>
      </form>
      <ul class="suggested" aria-label={t("channelsSuggested")}>
        {suggested.map(({ id, registrations }) => (
          <li key={id}>
            <Button kind="quiet" onPress={() => add(id)} name={t("channelAdd", { name: id })}>
              {id} <span class="soft">{t("readers", { count: registrations })}</span>
            </Button>
          </li>
        ))}
      </ul>
      {typed.trim() !== "" && found.data && !isExact && suggested.length === 0 && (
        <p class="soft">{t("channelsNone", { prefix: typed.trim() })}</p>
      )}
      {found.problem && <p class="soft">{t("channelsUnlisted")}</p>}
    </div>
  )
}

interface ListingProps {
  readonly typed: TypedLists
  readonly type: (list: UserList, text: string) => void
  readonly settle: () => void
}

interface UsersProps extends ListingProps {
  readonly label: string
  readonly hint: string
  readonly name: UserList
  readonly ids: ReadonlyArray<string> | undefined
}

/** Shows what the service stored, such as codes for mail addresses, once one leaves the field. */
const Users = ({ hint, ids, label, name, settle, type, typed }: UsersProps) => {
  const [held, hold] = useState<string>()
  const text = held ?? typed[name] ?? linesOf(ids)
  const { ids: named, wrong } = namesIn(text)
  const faults = wrong.map(({ line }) => t("usersWrongLine", { line: String(line) }))
  return (
    <div
      onFocusIn={() => hold(text)}
      onFocusOut={({ target }) => {
        // A person who looks something up in another window comes back to the same line.
        if (document.activeElement === target) return
        hold(undefined)
        settle()
      }}
    >
      <Field
        label={label}
        name={name}
        isLong
        value={text}
        hint={`${hint} ${t("usersSaved")}`}
        onInput={(next) => {
          hold(next)
          type(name, next)
        }}
        wrong={
          named.length > usersMax
            ? t("usersMost", { most: usersMax })
            : wrong.length > 0
              ? t("usersWrong", { lines: list(faults.slice(0, 3)) })
              : undefined
        }
      />
    </div>
  )
}

const readersText = ({ browsers, estimated, people }: Reach): string =>
  t(estimated ? "reachAbout" : "reach", { people, browsers })

/** "286 readers on 305 browsers", as of a time. */
export const ReachText = ({ counting }: { readonly counting: Counting }) => {
  const { counted, isCounting } = counting
  if (counted === undefined)
    return <p class="reach soft">{isCounting ? t("counting") : t("reachNobody")}</p>
  const { reach } = counted
  return (
    <div class="reach" aria-busy={isCounting}>
      <p class={reach.browsers === 0 ? "reach-none" : "reach-number"}>{readersText(reach)}</p>
      {reach.without_subscription !== undefined && reach.without_subscription > 0 && (
        <p>{t("reachWithout", { count: reach.without_subscription })}</p>
      )}
      <p class="soft">
        {t("reachAt", { time: second(counted.at) })} {t("reachDecided")}
      </p>
    </div>
  )
}

interface AudienceProps extends PartProps, ListingProps {
  readonly counting: Counting & { readonly again: () => void }
}

export const Audience = (props: AudienceProps) => {
  const { change, counting, data, isChecked, settle, type, typed } = props
  const listing = { settle, type, typed }
  const mayName = session().mayNameUsers
  const { channels = [], except_users, users } = data.to ?? {}
  const set = (to: Partial<To>) => change((now) => withAudience(now, to))
  const namesUsers = (users ?? []).length + (except_users ?? []).length
  const namesBack = [...(users ?? []), ...(except_users ?? [])].some((id) => /^pseudonym:/.test(id))
  // A list that is emptied must not close over the next one.
  const [isOpen] = useState(namesUsers > 0 || Object.keys(typed).length > 0)
  const isNobody = channels.length + (users ?? []).length === 0
  return (
    <section class="panel form" aria-labelledby="audience">
      <h2 id="audience">{t("audience")}</h2>
      <Channels
        names={channels}
        onChange={(next) => set({ channels: next })}
        wrong={isChecked && isNobody ? t("audienceMissing") : undefined}
      />
      {(mayName || namesUsers > 0) && (
        <details class="fold" open={isOpen}>
          <summary>
            {t("users")} {namesUsers > 0 && <span class="count">{number(namesUsers)}</span>}
          </summary>
          <div class="form">
            {!mayName && <p class="wrong">{t("usersRefused")}</p>}
            <Users
              label={t("usersNamed")}
              hint={namesBack ? t("usersBack") : t("usersHint")}
              name="users"
              ids={users}
              {...listing}
            />
            <Users
              label={t("usersExcept")}
              hint={t("usersExceptHint")}
              name="except_users"
              ids={except_users}
              {...listing}
            />
          </div>
        </details>
      )}
      {counting.problem ? (
        <ProblemBox problem={counting.problem} onRetry={counting.again} />
      ) : (
        <ReachText counting={counting} />
      )}
    </section>
  )
}
