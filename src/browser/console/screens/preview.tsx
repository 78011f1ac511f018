// A notification as systems show it, about: colours and corners are theirs, not ours.
import { useEffect, useState } from "preact/hooks"
import type { Content } from "../api/shapes.ts"
import { pictureFault, writtenOf } from "../draft/content.ts"
import { type LeftOut, type Platform, platforms, type Shown, shownOn } from "../draft/platforms.ts"
import { Segments } from "../parts/choice.tsx"
import { Bell } from "../parts/icons.tsx"
import { Store, useStore } from "../state/store.ts"
import { list, t } from "../words/language.ts"

type Ground = "light" | "dark"

/** Chosen once for all previews of this tab. */
const chosen = new Store<{ readonly platform: Platform; readonly ground: Ground }>({
  platform: "windows",
  ground: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
})

interface PictureProps {
  readonly src: string
  readonly kind: "image" | "icon"
}

/** While one types its address, a picture is not fetched. */
const settledMillis = 600

/** The host of a picture learns nothing of this page. */
const Picture = ({ kind, src }: PictureProps) => {
  const [state, show] = useState<"typed" | "there" | "broken">("typed")
  useEffect(() => {
    show("typed")
    if (pictureFault(src)) {
      show("broken")
      return undefined
    }
    const timer = setTimeout(() => show("there"), settledMillis)
    return () => clearTimeout(timer)
  }, [src])
  if (state === "there")
    return (
      <img
        class={`toast-${kind}`}
        src={src}
        alt=""
        referrerpolicy="no-referrer"
        onError={() => show("broken")}
      />
    )
  if (kind === "icon") return <AppIcon />
  return <p class="toast-broken">{state === "broken" && t("previewBroken")}</p>
}

/** The picture of the site or its app. */
const AppIcon = () => (
  <span class="toast-app">
    <Bell />
  </span>
)

const siteOf = (navigate: string | undefined): string =>
  URL.parse(navigate ?? "")?.host || t("previewSite")

interface ToastProps {
  readonly platform: Platform
  readonly shown: Shown
  readonly site: string
  readonly lang: string | undefined
}

const browserOf: Readonly<Record<Platform, string>> = {
  windows: "Microsoft Edge",
  macos: "Safari",
  android: "Chrome",
  iphone: "",
  firefox: "Firefox"
}

const Toast = ({ lang, platform, shown, site }: ToastProps) => {
  const { body, buttons, icon, image, title } = shown
  const source = [browserOf[platform], site].filter((each) => each !== "").join(" · ")
  return (
    <div class={`toast ${platform}`} lang={lang}>
      <p class="toast-source">
        <span>{platform === "iphone" || platform === "macos" ? site : source}</span>
        <span>{t("previewNow")}</span>
      </p>
      <div class="toast-body">
        {icon ? <Picture kind="icon" src={icon} /> : <AppIcon />}
        <div>
          <p class={title === "" ? "toast-title toast-none" : "toast-title"}>
            {title || t("previewNoTitle")}
          </p>
          {body !== "" && <p class="toast-text">{body}</p>}
        </div>
      </div>
      {image && <Picture kind="image" src={image} />}
      {buttons.length > 0 && (
        <p class="toast-buttons">
          {buttons.map(({ title: text }, index) => (
            <span key={index} class="toast-button">
              {text || t("buttonTitle")}
            </span>
          ))}
        </p>
      )}
    </div>
  )
}

const leftOutText = (leftOut: ReadonlyArray<LeftOut>): string =>
  leftOut.length === 0
    ? t("previewAll")
    : t("previewLeftOut", { what: list(leftOut.map((each) => t(`leftOut-${each}`))) })

export const Preview = ({ content }: { readonly content: Content | undefined }) => {
  const { ground, platform } = useStore(chosen)
  const written = writtenOf(content)
  const shown = shownOn(platform, written)
  return (
    <figure class="preview" aria-label={t("preview")}>
      <div class="preview-choices">
        <Segments
          label={t("previewPlatform")}
          value={platform}
          options={platforms.map((each) => ({ value: each, text: t(`platform-${each}`) }))}
          onChoose={(next) => chosen.set({ ...chosen.value, platform: next as Platform })}
        />
        <Segments
          label={t("previewGround")}
          value={ground}
          options={[
            { value: "light", text: t("previewLight") },
            { value: "dark", text: t("previewDark") }
          ]}
          onChoose={(next) => chosen.set({ ...chosen.value, ground: next as Ground })}
        />
      </div>
      <div class={`preview-ground ${ground}`}>
        <Toast
          platform={platform}
          shown={shown}
          site={siteOf(written.navigate)}
          lang={written["lang"] as string | undefined}
        />
      </div>
      <figcaption>
        <p aria-live="polite">{shown.title !== "" && leftOutText(shown.leftOut)}</p>
        <p class="soft">{t(`about-${platform}`)}</p>
      </figcaption>
    </figure>
  )
}
