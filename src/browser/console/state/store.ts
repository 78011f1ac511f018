// A value that parts of the page show, and that changes behind them: the session, the language.
import { useLayoutEffect, useState } from "preact/hooks"

export class Store<T> {
  #value: T
  readonly #listeners = new Set<() => void>()

  constructor(value: T) {
    this.#value = value
  }

  get value(): T {
    return this.#value
  }

  set(value: T): void {
    this.#value = value
    for (const listener of this.#listeners) listener()
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** The value now; the component is rendered again when it changes. */
export const useStore = <T>(store: Store<T>): T => {
  const [value, show] = useState(() => store.value)
  // A passive effect runs after the page is painted: the next person could read the former value.
  useLayoutEffect(() => {
    // A change between the first rendering and this effect.
    show(() => store.value)
    return store.listen(() => show(() => store.value))
  }, [store])
  return value
}
