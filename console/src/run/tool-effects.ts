// What each tool of the server does to the world, by name. Loaded once per session.

import type { ToolEffect } from '@polylog/client'
import { useLoaded } from '../api/use-loaded.ts'

type ToolListing = { name: string; effect: ToolEffect }

const none: Readonly<Record<string, ToolEffect | undefined>> = {}

export function useToolEffects(): Readonly<Record<string, ToolEffect | undefined>> {
  const { data } = useLoaded('tools', async ({ json }, signal) => {
    const tools = await json<ToolListing[]>('/v1/tools', { signal })
    return Object.fromEntries(tools.map(({ name, effect }) => [name, effect]))
  })
  return data ?? none
}
