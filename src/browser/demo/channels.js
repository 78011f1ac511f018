// The channels of the user: join, leave, publish.
import { at, button, fill, make, run } from "./elements.js"
import { ask, follow, pushOf } from "./site.js"

/** Shows the user's channels. */
export const showChannels = async (push) => {
  const names = await push.channels()
  const rows = names.map((name) =>
    make(
      "li",
      { className: "row" },
      make("span", {}, name),
      button("Leave", `Leave ${name}`, at("published"), async () => {
        await push.leave(name)
        await showChannels(push)
        return `You left ${name}.`
      })
    )
  )
  fill(at("channels"), rows, "None yet.")
}

const onSubmit = (form, task) =>
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    const fields = Object.fromEntries(new FormData(form))
    await run(at("published"), (say) => task(fields, say))
  })

export const startChannels = (push) => {
  onSubmit(at("join"), async ({ channel }) => {
    await push.join(channel)
    await showChannels(push)
    return `You joined ${channel}.`
  })
  onSubmit(at("publish"), async ({ body, channel, title }, say) => {
    const path = `channels/${encodeURIComponent(channel)}`
    const { url } = await ask("POST", path, pushOf(title, body))
    return follow(url, say)
  })
}
