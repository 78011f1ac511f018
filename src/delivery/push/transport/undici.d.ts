// Types for the parts of undici that a worker needs. Importing them by path saves 9 MiB: undici's
// own index loads fetch, caches, mocks and WebSockets, too.
declare module "undici/lib/dispatcher/client.js" {
  export { Client as default } from "undici"
}
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici"
}
declare module "undici/lib/core/connect.js" {
  export { buildConnector as default } from "undici"
}
