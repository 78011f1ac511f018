// Contract 5.5: the API description as OpenAPI and as a page. described.ts checks every response of
// all cases by the description.
import { createHash } from "node:crypto"
import { expect } from "vitest"
import { documentedErrors } from "../../support/documents.ts"
import type { Api } from "../api.ts"
import { refusedEndpoint, withAllowedEndpoint } from "../examples.ts"
import type { Login } from "../logins/login.ts"
import { type Case, define } from "../table.ts"

// biome-ignore lint/suspicious/noExplicitAny: the document has any shape
type Loose = any

const documentOf = async (api: Api): Promise<Loose> =>
  (await api.send({ method: "GET", path: "/__api__" })).json

/** Id, method, path with the examples of its parameters, and body of every operation. */
const operationsOf = (
  document: Loose
): ReadonlyArray<readonly [id: string, method: string, path: string, body: unknown]> =>
  Object.entries<Loose>(document.paths).flatMap(([template, { parameters = [], ...methods }]) => {
    const path = parameters.reduce(
      (text: string, { name, schema }: Loose) => text.replace(`{${name}}`, schema.examples[0]),
      template
    )
    return Object.entries<Loose>(methods).map(
      ([method, { operationId, requestBody }]) =>
        [
          operationId,
          method.toUpperCase(),
          path,
          requestBody?.content["application/json"].example
        ] as const
    )
  })

/** The credentials that a command of the page has, as HTML, with a blank behind them. */
const shownCredentials = ({ challenge, isInAuthorization, policy }: Login): string => {
  if (policy === "basicauth") return "-u user:password "
  if (!isInAuthorization) return ""
  return `-H &quot;Authorization: ${challenge.split(" ")[0]} $TOKEN&quot; `
}

const parametersOf = (operation: Loose): ReadonlyArray<string> =>
  operation.parameters.map(({ name }: Loose) => name)

interface ErrorSchema {
  readonly properties?: { readonly error_code?: { readonly enum: ReadonlyArray<string> } }
}

export const description: ReadonlyArray<Case> = [
  define({
    name: "describes the parameters that mean something, and the statuses of every path",
    request: { method: "GET", path: "/__api__", as: null },
    expected: { status: 200 },
    also: ({ json: { info, paths } }) => {
      const list = paths["/subscriptions"]
      expect(parametersOf(list.get)).toEqual(expect.arrayContaining(["_fields", "_to"]))
      expect(parametersOf(list.delete)).not.toContain("_fields")
      for (const path of ["/vapid-public-key", "/client.js"])
        expect(parametersOf(paths[path].get)).toEqual(["If-None-Match"])
      expect(info.description).toMatch(/405 with Allow.*307 with Location/)
    }
  }),
  define({
    name: "describes itself to programs",
    request: { method: "GET", path: "/__api__", as: null },
    expected: ({ root }) => ({ status: 200, body: { openapi: "3.1.0", servers: [{ url: root }] } }),
    also: ({ json }) => {
      expect(Object.keys(json.paths).sort()).toEqual(
        [
          "/",
          "/__api__",
          "/__heartbeat__",
          "/__lbheartbeat__",
          "/__metrics__",
          "/__version__",
          "/batch",
          "/broadcasts",
          "/broadcasts/{broadcast}",
          "/broadcasts/{broadcast}/events",
          "/channels/{channel}/broadcasts/{broadcast}/events",
          "/broadcasts/{broadcast}/pushes",
          "/broadcasts/{broadcast}/redrive",
          "/broadcasts/{broadcast}/timeline",
          "/dead",
          "/drafts",
          "/drafts/{draft}",
          "/drafts/{draft}/publish",
          "/client.js",
          "/worker.js",
          "/words.js",
          "/channels",
          "/channels/{channel}",
          "/channels/{channel}/broadcasts",
          "/channels/{channel}/broadcasts/{broadcast}",
          "/channels/{channel}/members",
          "/channels/{channel}/members/{user}",
          "/channels/{channel}/registration",
          "/contribute.json",
          "/openid/{policy}/login",
          "/openid/{policy}/token",
          "/portier/login",
          "/portier/verify",
          "/registrations",
          "/subscriptions",
          "/subscriptions/replace",
          "/subscriptions/{id}",
          "/subscriptions/{id}/test",
          "/users/{user}",
          "/users/{user}/subscriptions/{id}/restore",
          "/users/{user}/subscriptions",
          "/vapid-public-key"
        ].sort()
      )
      const codes = Object.values<ErrorSchema>(json.components.schemas).flatMap(
        ({ properties }) => properties?.error_code?.enum ?? []
      )
      // 405 is the response to methods that the description does not list.
      expect(codes.toSorted()).toEqual(
        documentedErrors("test/conformance/README.md")
          .map((each) => each.split(" ")[2])
          .filter((code) => code !== "method-not-allowed")
          .toSorted()
      )
    }
  }),
  define({
    name: "describes itself to people, on a page without scripts",
    given: documentOf,
    request: {
      method: "GET",
      path: "/__api__",
      as: null,
      headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" }
    },
    expected: {
      status: 200,
      headers: { "Content-Type": "text/html; charset=UTF-8", Vary: /Accept/ }
    },
    also: ({ headers, text }, { root, target }, described) => {
      const credentials = shownCredentials(target.login)
      expect(text).toMatch(/^<!doctype html>/)
      for (const [id] of operationsOf(described)) expect(text).toContain(`<a href="#${id}">`)
      expect(text).toContain(
        `<pre>curl ${credentials}-X PUT ${root}/channels/news/registration</pre>`
      )
      expect(text).toContain(`curl ${root}/vapid-public-key</pre>`)
      expect(text).toContain(
        `<pre>curl ${credentials}-H 'Content-Type: application/json' -d '{&quot;defaults&quot;`
      )
      expect(text).toContain(`-d '{&quot;data&quot;:{&quot;web_push&quot;:8030,`)
      expect(text).not.toMatch(/<script|undefined|\[object/)
      // The policy must allow the style sheet of the page.
      const [, style = ""] = /<style>(.*?)<\/style>/s.exec(text) ?? []
      expect(headers["content-security-policy"]).toContain(
        `'sha256-${createHash("sha256").update(style).digest("base64")}'`
      )
    }
  }),
  define({
    name: "describes itself as JSON to who accepts both",
    request: {
      method: "GET",
      path: "/__api__",
      as: null,
      headers: { accept: "text/html, application/json" }
    },
    expected: { status: 200, body: { openapi: "3.1.0" } }
  }),
  define({
    name: "refuses the endpoint in the examples of its description",
    given: documentOf,
    request: { method: "GET" },
    expected: { status: 200 },
    also: async (_, api, described) => {
      const examples = operationsOf(described).filter(([, , , body]) =>
        JSON.stringify(body ?? null).includes(refusedEndpoint)
      )
      expect(examples.map(([id]) => id).sort()).toEqual([
        "post-subscription-list",
        "post-subscription-replace",
        "put-subscription"
      ])
      for (const [id, method, path, body] of examples) {
        const { json, status } = await api.send({ method, path, body })
        expect(status, id).toBe(400)
        expect(json.message).toMatch(/^data\.endpoint in body: .*\.example/)
      }
      expect(JSON.stringify(described)).not.toMatch(/https:\/\/[^"]*(mozilla|google|apple|windows)/)
    }
  }),
  define({
    name: "takes the examples of its description, with an endpoint that a browser may have",
    given: async (api) => withAllowedEndpoint(await documentOf(api), api.target),
    request: { method: "GET" },
    expected: { status: 200 },
    also: async (_, api, described) => {
      // The policy portier is off, and no example knows a secret, a broadcast or a draft.
      const left = /^(patch|put-draft|post-(draft-publish|portier|redrive|subscription-replace))/
      const withBody = operationsOf(described).filter(
        ([id, , , body]) => body !== undefined && !left.test(id)
      )
      expect(withBody.map(([id]) => id).sort()).toEqual([
        "post-batch",
        "post-broadcasts",
        "post-channel",
        "post-subscription-list",
        "post-test",
        "put-subscription"
      ])
      for (const [id, method, path, body] of withBody) {
        const response = await api.send({
          method,
          path,
          body,
          ...(["post-broadcasts", "post-channel"].includes(id) ? { as: api.target.publisher } : {})
        })
        expect(response.status, `${id}: ${response.text}`).toBeLessThan(300)
        for (const { status } of response.json.responses ?? [])
          expect(status, response.text).toBe(202)
      }
      // The page must not contact other hosts.
      expect((await api.send({ method: "DELETE", path: "/subscriptions" })).json.data).toHaveLength(
        1
      )
    }
  }),
  define({
    name: "shows its counts as text for Prometheus",
    request: { method: "GET", path: "/__metrics__", as: null },
    expected: {
      status: 200,
      headers: { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" }
    }
  })
]
