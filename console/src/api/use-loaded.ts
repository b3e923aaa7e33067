// Loads something for a component, and loads it again when its key or the session changes. The old data stays visible
// while the new data is on its way.

import { useCallback, useEffect, useRef, useState } from 'react'
import { PolylogError } from '@polylog/client'
import { type Api, useApi } from './api.ts'

export type Loaded<Data> = {
  data: Data | undefined
  error: PolylogError | undefined
  isLoading: boolean
  reload(): void
  /** Changes the data here, for what is known before the server is asked again. */
  change(next: (data: Data) => Data): void
}

/** `key` names what is loaded; null loads nothing. */
export function useLoaded<Data>(
  key: string | null,
  load: (api: Api, signal: AbortSignal) => Promise<Data>,
): Loaded<Data> {
  const api = useApi()
  const [round, setRound] = useState(0)
  const [state, setState] = useState<{ key: string | null; data?: Data; error?: PolylogError; isLoading: boolean }>({
    key: null,
    isLoading: key !== null,
  })
  const latest = useRef(load)
  latest.current = load

  useEffect(() => {
    if (key === null) return
    const controller = new AbortController()
    setState((old) => (old.key === key ? { ...old, isLoading: true } : { key, isLoading: true }))
    latest.current(api, controller.signal).then(
      (data) => setState({ key, data, isLoading: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return
        setState((old) => ({ ...old, error: problemOf(error), isLoading: false }))
      },
    )
    return () => controller.abort()
  }, [api, key, round])

  const reload = useCallback(() => setRound((number) => number + 1), [])
  const change = useCallback(
    (next: (data: Data) => Data) =>
      setState((old) => (old.data === undefined ? old : { ...old, data: next(old.data) })),
    [],
  )
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: key !== null && (!isCurrent || state.isLoading),
    reload,
    change,
  }
}

/** Whatever was thrown, as an error with a code and a sentence. */
export function problemOf(error: unknown): PolylogError {
  if (error instanceof PolylogError) return error
  return new PolylogError({ code: 'console_error', message: error instanceof Error ? error.message : String(error) })
}
