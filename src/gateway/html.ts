// The common part of all HTML pages: they have no scripts and load nothing, follow light and dark
// mode, and fit a phone.
import { hash } from "node:crypto"

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;"
}

/** A value as text in HTML, also within double quotes. */
export const html = (value: unknown): string =>
  String(value).replace(/[&<>"]/g, (char) => escapes[char]!)

/** The style sheet of every page, which stands in the page itself. */
export const pageStyle = `:root{color-scheme:light dark;--line:light-dark(#ddd,#3a3d42);
--box:light-dark(#f5f5f5,#22252a);--key:light-dark(#05b,#7bf);
--dim:light-dark(#666,#a0a4aa)}
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;
background:light-dark(#fff,#17191c);color:light-dark(#222,#ddd);
overflow-wrap:break-word}
a{color:var(--key)}p{margin:.5rem 0}`

/**
 * The Content-Security-Policy of a page with this style sheet. `targets`: where its forms may lead,
 * redirects included, which Chromium checks, too.
 */
export const pagePolicy = (
  style: string,
  targets: ReadonlyArray<string> = ["'none'"]
): Readonly<Record<string, string>> => ({
  "Content-Security-Policy": [
    "default-src 'none'",
    `style-src 'sha256-${hash("sha256", style, "base64")}'`,
    `form-action ${targets.join(" ")}`,
    "frame-ancestors 'none'",
    "base-uri 'none'"
  ].join("; ")
})

/** The beginning of a page in English. */
export const pageHead = (title: string, style: string): string =>
  [
    '<!doctype html><html lang="en"><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width">',
    `<title>${html(title)}</title>\n<style>${style}</style>\n`
  ].join("")

export const pageType = { "Content-Type": "text/html; charset=UTF-8" } as const
