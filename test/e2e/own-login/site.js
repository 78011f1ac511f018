// A site for tests, as its owner has it before Bellcast: Express with a login, a logout and a page.
// /v1/ is passed on as a proxy does it. Blocks of the document are files in its working directory.
import { readFileSync } from "node:fs"
import { request as forward } from "node:http"
import { resolve } from "node:path"
import express from "express"

const { POLICY, PORT, PUSH_PORT } = process.env
const page = readFileSync("page.html", "utf8")
const button = (action, text) =>
  `<form id="${text}" method="post" action="${action}"><button>${text}</button></form>`

const app = express()

/** `Cookie` of requests below /v1/: here they pass, to show what browsers send. */
const cookies = []
app.get("/cookies", (_, response) => response.json(cookies))

app.use("/v1", (request, response) => {
  const { headers, method, originalUrl: path } = request
  if (headers.cookie) cookies.push(`${method} ${path}: ${headers.cookie}`)
  const proxied = { ...headers, "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http" }
  const sent = forward({ port: PUSH_PORT, method, path, headers: proxied }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers)
    answer.pipe(response)
  })
  request.pipe(sent.on("error", () => response.sendStatus(502)))
})

app.use((request, response, next) => {
  const [, id] = /user=(\d+)/.exec(request.headers.cookie ?? "") ?? []
  if (id) request.user = { id: Number(id) }
  if (POLICY) response.set("Content-Security-Policy", POLICY)
  next()
})
app.post("/login/:id", ({ params }, response) => response.cookie("user", params.id).redirect("/"))
app.post("/logout", (_, response) => response.clearCookie("user").redirect("/"))
app.get("/", ({ query, user }, response) => {
  const logins = [42, 43].map((id) => button(`/login/${id}`, `login${id}`))
  const forms = user ? button("/logout", "logout") : logins.join("")
  const html = `<!doctype html><html lang="en"><title>Site</title><link rel="icon" href="data:,">
    <script src="/violations.js"></script>${page.replace("42", user?.id ?? "")}${forms}</html>`
  if (!("nonce" in query)) return response.send(html)
  const policy = POLICY.replace("script-src 'self'", "script-src 'nonce-n' 'strict-dynamic'")
  response.set("Content-Security-Policy", policy)
  response.send(html.replaceAll("<script", '<script nonce="n"'))
})
app.use(express.static("public"))

globalThis.app = app
await import(resolve("push-token.mjs"))

// Next.js calls a route handler likewise, and sends what it returns.
const { GET } = await import(resolve("app/push-token/route.js"))
app.get("/next/push-token", async ({ headers: { cookie = "" } }, response) => {
  const answer = await GET(new Request("http://localhost/push-token", { headers: { cookie } }))
  response
    .status(answer.status)
    .set(Object.fromEntries(answer.headers))
    .send(await answer.text())
})

app.listen(PORT, "127.0.0.1", () => console.log("ready"))
