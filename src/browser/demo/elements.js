// Elements of the page, made without HTML texts.
import { errors } from "../words.js"

/** @param {string} id @returns {any} */
export const at = (id) => document.getElementById(id)

/** @param {string} tag @param {object} [members] @param {...(string | Node)} children */
export const make = (tag, members = {}, ...children) => {
  const element = document.createElement(tag)
  Object.assign(element, members)
  element.append(...children)
  return element
}

const failure = ({ code, message }) => `Failed. ${errors[code] ?? message}`

/**
 * Runs a task, and says in an output what came of it. Meanwhile the output says what the task is
 * doing, or a screen reader would not repeat an equal text.
 * @param {any} output
 * @param {(say: (text: string) => void) => Promise<string | undefined | void>} task
 */
export const run = async (output, task) => {
  const say = (text) => {
    output.textContent = text
  }
  say("One moment ...")
  say((await task(say).catch(failure)) ?? "")
}

/** A button that runs its task at each press, one press at a time. */
export const button = (text, name, output, task) => {
  let isBusy = false
  const onclick = async () => {
    if (isBusy) return
    isBusy = true
    await run(output, task)
    isBusy = false
  }
  return make("button", { type: "button", onclick, ariaLabel: name }, text)
}

/**
 * Shows items in a list, or a sentence where there are none. The focus stays at the button of the
 * same name, or goes to the list.
 */
export const fill = (list, items, otherwise) => {
  const focused = list.contains(document.activeElement) && document.activeElement?.ariaLabel
  list.replaceChildren(...(items.length > 0 ? items : [make("li", {}, otherwise)]))
  if (!focused) return
  const again = list.querySelector(`[aria-label="${CSS.escape(focused)}"]`)
  again ? again.focus() : list.focus()
}

export const wait = (millis) => new Promise((resolve) => setTimeout(resolve, millis))
