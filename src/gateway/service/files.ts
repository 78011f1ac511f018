// GET of the scripts that sites load. Pages of every origin may load them, whatever
// origins may call the API: they are the same for everybody.
import { scripts } from "#browser/serving/files.ts"
import { type Endpoint, endpoint } from "../operation.ts"
import { fileGet } from "./file-get.ts"

/**
 * The policy that a browser puts on the worker itself when this file is its script: it calls the
 * API and shows images of notifications. Another script that imports it brings its own policy.
 */
const workerPolicy = [
  "default-src 'none'",
  "connect-src 'self' https:",
  "img-src 'self' https: data:",
  "frame-ancestors 'none'",
  "base-uri 'none'"
].join("; ")

const about = {
  "client.js": {
    summary: "The module that subscribes a browser, for the pages of a site",
    headers: {}
  },
  "worker.js": {
    summary: "The service worker that shows pushes, or a part of the site's own",
    headers: { "Content-Security-Policy": workerPolicy }
  },
  "words.js": {
    summary: "Sentences about what client.js says, for the pages of a site",
    headers: {}
  }
}

const everywhere = {
  "Access-Control-Allow-Origin": "*",
  "Cross-Origin-Resource-Policy": "cross-origin"
}

export const fileEndpoints: ReadonlyArray<Endpoint<never>> = scripts.map((name) =>
  endpoint(name.replace(".", "-"), `/${name}`, {
    GET: fileGet({
      name,
      mediaType: "text/javascript",
      summary: about[name].summary,
      headers: { ...everywhere, ...about[name].headers }
    })
  })
)
