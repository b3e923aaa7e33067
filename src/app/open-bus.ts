// Opens the bus between the servers that share a database, as the settings select it. The code of the
// others is not loaded.

import type { BusLog, BusMeter, ClusterBus } from '../bus/cluster-bus.ts'
import type { Clock } from '../kit/clock.ts'
import type { Config } from './config.ts'

export type OpenBusDependencies = {
  /** The id of this node. */
  node: string
  clock: Clock
  log: BusLog
  meter: BusMeter
}

/** Undefined if this server is alone. */
export async function openBus(
  { bus, databaseUrl }: Pick<Config, 'bus' | 'databaseUrl'>,
  dependencies: OpenBusDependencies,
): Promise<ClusterBus | undefined> {
  if (bus === null || databaseUrl === null) return undefined
  if (bus === 'postgres') {
    const { openPostgresBus } = await import('../bus/postgres-bus.ts')
    return await openPostgresBus({ url: databaseUrl, ...dependencies })
  }
  const { openNatsBus } = await import('../bus/nats-bus.ts')
  return await openNatsBus({ url: bus.natsUrl, ...dependencies })
}
