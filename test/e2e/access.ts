// Checks of a page that people use in different ways: rules of accessibility (axe-core, which
// saves us to write some ninety of them), and violations of its Content Security Policy.
import { source } from "axe-core"
import type { Page } from "puppeteer-core"

/** Rules that the page breaks, each with the elements. Throws if one of `judged` was not judged. */
export const brokenRules = async (
  page: Page,
  judged: ReadonlyArray<string> = ["color-contrast", "button-name"]
): Promise<ReadonlyArray<string>> => {
  // As an expression of the debugger, which no policy of the page stops.
  await page.evaluate(`${source}; undefined`)
  const found = (await page.evaluate(`axe.run(document, { resultTypes: ["violations", "passes"] })
    .then(({ passes, violations }) => ({
      passed: passes.map(({ id }) => id),
      broken: violations.map(({ id, nodes }) => id + ": " + nodes.map((each) => each.html).join())
    }))`)) as { readonly passed: ReadonlyArray<string>; readonly broken: ReadonlyArray<string> }
  for (const rule of judged)
    if (!found.passed.includes(rule)) throw new Error(`${rule} was not judged`)
  return found.broken
}

/** From the next load of the page on, `violations` has the directives that were violated. */
export const collectViolations = (page: Page) =>
  page.evaluateOnNewDocument(`window.violations = []
    addEventListener("securitypolicyviolation", ({ effectiveDirective }) =>
      violations.push(effectiveDirective))`)

export const violationsOf = async (page: Page) =>
  (await page.evaluate("violations")) as ReadonlyArray<string>
