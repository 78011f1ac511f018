// Stand-ins: users whom `bellcast import` makes for subscriptions whose real users it does not
// know, one for each. When a real user stores such a subscription, the registrations of the
// stand-in go along: nobody else could ever end them. Pure.

/** The policy in the ids of stand-ins. No policy may have this name, so no login is a stand-in. */
export const importPolicy = "import"

/** The id of the stand-in of a subscription. */
export const standInOf = (subscription: string): string => `${importPolicy}:${subscription}`

export const isStandIn = (user: string): boolean => user.startsWith(`${importPolicy}:`)
