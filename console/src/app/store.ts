// A value that lives outside React, and a hook that follows it. Everything that more than one component needs is one of these.

import { useSyncExternalStore } from 'react'

export type Store<Value> = {
  get(): Value
  set(next: Value | ((value: Value) => Value)): void
  subscribe(listener: () => void): () => void
  /** The value, for a component; it is drawn again when the value changes. */
  use(): Value
}

export function createStore<Value>(first: Value): Store<Value> {
  let value = first
  const listeners = new Set<() => void>()
  const get = () => value
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  return {
    get,
    subscribe,
    set(next) {
      const changed = typeof next === 'function' ? (next as (value: Value) => Value)(value) : next
      if (Object.is(changed, value)) return
      value = changed
      for (const listener of listeners) listener()
    },
    use: () => useSyncExternalStore(subscribe, get),
  }
}
