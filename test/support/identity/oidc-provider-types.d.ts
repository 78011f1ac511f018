// The part of oidc-provider that the tests use: the package has no types.
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http"

  export type Configuration = Readonly<Record<string, unknown>>

  interface Grant {
    readonly addOIDCScope: (scope: string) => void
    readonly addResourceScope: (resource: string, scope: string) => void
    readonly save: () => Promise<string>
  }

  export default class Provider {
    constructor(issuer: string, configuration: Configuration)
    readonly Grant: new (of: {
      readonly clientId: string
      readonly accountId: string
    }) => Grant
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: unknown
    ): Promise<void>
  }
}
