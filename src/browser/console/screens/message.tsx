// The message of a draft: what it says, in each language, and what browsers do with it.
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Action, DraftData } from "../api/shapes.ts"
import {
  type AddressFault,
  addressFault,
  androidFirefoxBytesMax,
  buttonsMax,
  bytesOf,
  contentOf,
  emptyAction,
  isForeign,
  localeOf,
  localesOf,
  others,
  payloadBytesMax,
  pictureFault,
  type Written,
  withLocale,
  withoutLocale,
  written,
  writtenOf
} from "../draft/content.ts"
import { Button } from "../parts/button.tsx"
import { Choice, Segments } from "../parts/choice.tsx"
import { Field } from "../parts/field.tsx"
import { Bin, Plus } from "../parts/icons.tsx"
import { Box } from "../parts/problem.tsx"
import { languageName, number, t } from "../words/language.ts"

export interface PartProps {
  readonly data: DraftData
  readonly change: (change: (data: DraftData) => DraftData) => void
  /** Says what is missing, too, not only what is wrong. */
  readonly isChecked: boolean
  /** The notification is scheduled: some of it stays as it was published. */
  readonly isPublished?: boolean
}

interface MessageProps extends PartProps {
  readonly locale: string
  readonly onLocale: (locale: string) => void
}

/** About what is seen where least fits; longer texts are sent, and cut by most systems. */
const titleShown = 40
const bodyShown = 130

/** The languages that most sites need, for the list that the field offers. */
const offered =
  "ar bg cs da de el en es et fi fr he hr hu it ja ko lt lv nb nl pl pt pt-BR ro ru sk sl sv " +
  "tr uk zh"

export const localeName = (locale: string): string =>
  locale === others ? t("localeOthers") : languageName(locale)

interface AddLocaleProps {
  readonly data: DraftData
  readonly onAdd: (locale: string) => void
  readonly onCancel: () => void
}

const AddLocale = ({ data, onAdd, onCancel }: AddLocaleProps) => {
  const [typed, type] = useState("")
  const [wrong, showWrong] = useState<string>()
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), [])
  const add = () => {
    const tag = localeOf(typed)
    if (tag === undefined) return showWrong(t("localeWrong"))
    if (localesOf(data).includes(tag)) return showWrong(t("localeThere"))
    onAdd(tag)
  }
  return (
    <form
      ref={form}
      class="add-locale"
      onSubmit={(event) => {
        event.preventDefault()
        add()
      }}
    >
      <Field
        label={t("localeAdd")}
        value={typed}
        list={offered.split(" ").map((tag) => ({ value: tag, text: languageName(tag) }))}
        onInput={(text) => {
          type(text)
          showWrong(undefined)
        }}
        hint={t("localeHint")}
        wrong={wrong}
      />
      <div class="buttons">
        <Button isSubmit>{t("add")}</Button>
        <Button kind="quiet" onPress={onCancel}>
          {t("cancel")}
        </Button>
      </div>
    </form>
  )
}

const Languages = ({ change, data, locale, onLocale }: MessageProps) => {
  const [isAdding, showAdding] = useState(false)
  const locales = localesOf(data)
  return (
    <>
      <div class="locales">
        {locales.length > 1 && (
          <Segments
            label={t("locales")}
            name="locale"
            value={locale}
            options={locales.map((each) => ({ value: each, text: localeName(each) }))}
            onChoose={onLocale}
          />
        )}
        {!isAdding && (
          <Button kind="quiet" icon={Plus} onPress={() => showAdding(true)}>
            {t("localeAdd")}
          </Button>
        )}
        {locale !== others && (
          <Button
            kind="quiet danger"
            icon={Bin}
            onPress={() => {
              onLocale(others)
              change((now) => withoutLocale(now, locale))
            }}
          >
            {t("localeRemove", { language: localeName(locale) })}
          </Button>
        )}
      </div>
      {isAdding && (
        <AddLocale
          data={data}
          onCancel={() => showAdding(false)}
          onAdd={(tag) => {
            change((now) => withLocale(now, tag))
            onLocale(tag)
            showAdding(false)
          }}
        />
      )}
    </>
  )
}

export const addressText = (why: AddressFault): string => t(`address-${why}`)

interface ButtonFieldsProps {
  readonly index: number
  readonly action: Action
  readonly link: string
  readonly isChecked: boolean
  readonly onChange: (action: Action) => void
  readonly onRemove: () => void
}

const ButtonFields = (props: ButtonFieldsProps) => {
  const { action, index, isChecked, link, onChange, onRemove } = props
  const own = action.navigate === link ? "" : action.navigate
  const why = own === "" ? undefined : addressFault(own)
  return (
    <fieldset class="button-fields">
      <legend>{t("buttonLegend", { number: index + 1 })}</legend>
      <Field
        label={t("buttonTitle")}
        name={`button-${index}-title`}
        value={action.title}
        onInput={(title) => onChange({ ...action, title })}
        countTo={20}
        wrong={isChecked && action.title.trim() === "" ? t("buttonNoTitle") : undefined}
      />
      <Field
        label={t("buttonLink")}
        name={`button-${index}-link`}
        type="url"
        value={own}
        placeholder={t("buttonSameLink")}
        onInput={(text) => onChange({ ...action, navigate: text.trim() || link })}
        wrong={why && addressText(why)}
      />
      <Button kind="quiet danger" icon={Bin} onPress={onRemove}>
        {t("buttonRemove", { number: index + 1 })}
      </Button>
    </fieldset>
  )
}

const Bytes = ({ bytes }: { readonly bytes: number }) => {
  const kind = bytes > payloadBytesMax ? "over" : bytes > androidFirefoxBytesMax ? "much" : ""
  const values = { bytes: number(bytes), most: number(payloadBytesMax) }
  return (
    <div class={`bytes ${kind}`}>
      <meter
        min={0}
        max={payloadBytesMax}
        high={androidFirefoxBytesMax}
        value={bytes}
        aria-label={t("bytesLabel")}
      />
      <p class="soft">
        {t("bytes", values)} {kind === "over" && <b>{t("bytesOver")}</b>}
        {kind === "much" && <b>{t("bytesMuch", { most: number(androidFirefoxBytesMax) })}</b>}
      </p>
    </div>
  )
}

/** In seconds: how long a browser that is off may come back. Without one it is a day. */
const lives = [3_600, 6 * 3_600, 86_400, 3 * 86_400, 7 * 86_400, 28 * 86_400]
const dayLife = 86_400
const urgencies = ["high", "normal", "low", "very-low"] as const

const Handling = (props: PartProps & { readonly tag: string }) => {
  const { change, isPublished, tag } = props
  const story = (
    <Field
      label={t("tag")}
      name="tag"
      value={tag}
      hint={t("tagHint")}
      onInput={(text) =>
        change((now) =>
          localesOf(now).reduce(
            (all, each) =>
              contentOf(all, each) || each === others
                ? written(all, each, { tag: text.trim() })
                : all,
            now
          )
        )
      }
    />
  )
  if (isPublished) return story
  return (
    <details class="fold">
      <summary>{t("handling")}</summary>
      <div class="form">
        {story}
        <Keeping {...props} />
      </div>
    </details>
  )
}

/** How push services treat it, and its name in lists. */
const Keeping = ({ change, data }: PartProps) => {
  const set = (members: Partial<DraftData>) => change((now) => ({ ...now, ...members }))
  const { name = "", ttl = dayLife, urgency = "normal" } = data
  return (
    <>
      <div class="pair">
        <Choice
          label={t("ttl")}
          name="ttl"
          value={String(ttl)}
          options={lives.map((life) => ({
            value: String(life),
            text: t(`ttl-${life}` as never)
          }))}
          onChoose={(value) => set({ ttl: Number(value) })}
        />
        <Choice
          label={t("urgency")}
          name="urgency"
          value={urgency}
          options={urgencies.map((each) => ({ value: each, text: t(`urgency-${each}`) }))}
          onChoose={(value) => set({ urgency: value as NonNullable<DraftData["urgency"]> })}
          hint={t(`urgencyHint-${urgency}`)}
        />
      </div>
      <Field
        label={t("nameForDesk")}
        name="name"
        value={name}
        hint={t("nameForDeskHint")}
        onInput={(text) =>
          change(({ name: _, ...rest }) => (text === "" ? rest : { ...rest, name: text }))
        }
      />
    </>
  )
}

interface TextsProps {
  readonly shown: Written
  readonly write: (members: Written) => void
  readonly isChecked: boolean
}

const Texts = ({ isChecked, lang, shown, write }: TextsProps & { readonly lang: string }) => {
  const { body = "", title = "" } = shown
  const inLanguage = lang === others ? {} : { lang }
  return (
    <>
      <Field
        label={t("title")}
        name="title"
        value={title}
        countTo={titleShown}
        {...inLanguage}
        onInput={(text) => write({ title: text })}
        wrong={isChecked && title.trim() === "" ? t("titleMissing") : undefined}
      />
      <Field
        label={t("text")}
        name="body"
        isLong
        value={body}
        countTo={bodyShown}
        {...inLanguage}
        onInput={(text) => write({ body: text })}
      />
    </>
  )
}

interface AddressesProps extends TextsProps {
  /** Names of fields that had the focus: while one types an address, it is not wrong yet. */
  readonly left: ReadonlySet<string>
}

const Addresses = ({ isChecked, left, shown, write }: AddressesProps) => {
  const { icon = "", image = "", navigate = "" } = shown
  const wrongIn = (name: string, why: AddressFault | undefined) =>
    why && (isChecked || (left.has(name) && why !== "missing")) ? addressText(why) : undefined
  const linkWhy = addressFault(navigate)
  return (
    <>
      <div>
        <Field
          label={t("link")}
          name="navigate"
          type="url"
          value={navigate}
          placeholder="https://"
          onInput={(text) => write({ navigate: text.trim() })}
          hint={linkWhy && t("linkHint")}
          wrong={wrongIn("navigate", linkWhy)}
        />
        {!linkWhy && (
          <p class="below">
            <a href={navigate} target="_blank" rel="noopener noreferrer">
              {t("linkTry")}
            </a>
          </p>
        )}
      </div>
      <div class="pair">
        <Field
          label={t("image")}
          name="image"
          type="url"
          value={image}
          placeholder="https://"
          onInput={(text) => write({ image: text.trim() })}
          hint={t("imageHint")}
          wrong={wrongIn("image", pictureFault(image))}
        />
        <Field
          label={t("icon")}
          name="icon"
          type="url"
          value={icon}
          placeholder="https://"
          onInput={(text) => write({ icon: text.trim() })}
          hint={t("iconHint")}
          wrong={wrongIn("icon", pictureFault(icon))}
        />
      </div>
    </>
  )
}

const Buttons = ({ isChecked, shown, write }: TextsProps) => {
  const { actions = [], navigate = "" } = shown
  const set = (next: ReadonlyArray<Action>) => write({ actions: next })
  return (
    <>
      {actions.map((action, index) => (
        <ButtonFields
          key={action.action}
          index={index}
          action={action}
          link={navigate}
          isChecked={isChecked}
          onChange={(next) => set(actions.map((each, i) => (i === index ? next : each)))}
          onRemove={() => set(actions.filter((_, i) => i !== index))}
        />
      ))}
      {actions.length < buttonsMax && (
        <p>
          <Button
            kind="quiet"
            icon={Plus}
            onPress={() => set([...actions, emptyAction(actions, navigate)])}
          >
            {t("buttonAdd")}
          </Button>
        </p>
      )}
    </>
  )
}

export const Message = (props: MessageProps) => {
  const { change, data, isChecked, locale } = props
  const content = contentOf(data, locale)
  const shown = writtenOf(content)
  const [left, showLeft] = useState<ReadonlySet<string>>(new Set())
  const write = (members: Written) => change((now) => written(now, locale, members))
  const fields = { isChecked, shown, write }
  return (
    <section
      class="panel form"
      aria-labelledby="message"
      onFocusOut={({ target }) => {
        const { name = "" } = target as HTMLInputElement
        if (name !== "" && !left.has(name)) showLeft(new Set([...left, name]))
      }}
    >
      <h2 id="message">{t("message")}</h2>
      {isForeign(content) && <Box kind="warning">{t("foreign")}</Box>}
      <Languages {...props} />
      <Texts {...fields} lang={locale} />
      <Addresses {...fields} left={left} />
      <Buttons {...fields} />
      <Handling {...props} tag={shown.tag ?? ""} />
      <Bytes bytes={bytesOf(content)} />
    </section>
  )
}
