// Random kills of one server under a mixed load over all families. The server is killed after random
// numbers of frames. When the killing is over, every run is checked: one end, a journal without a
// hole, every client's bytes equal to the replay, every unsafe call made at most once.

import { randomFrom } from '../support/random.ts'
import { KilledServer } from './killed-server.ts'
import { type LoadOptions, type LoadResult, MixedLoad } from './mixed-load.ts'
import { startOutsideWorld } from './outside-world.ts'

export type TortureOptions = LoadOptions & {
  seed: number
  /** Deaths of the server. New runs are started until the last one. */
  deaths: number
  /** A death comes after at most so many frames. */
  framesMax: number
  report?: (line: string) => void
}

export type TortureResult = LoadResult & { frames: number; kills: number; drains: number }

export async function torture(options: TortureOptions): Promise<TortureResult> {
  const world = await startOutsideWorld()
  const server = await KilledServer.start(world.settings)
  try {
    const load = new MixedLoad(server, world, randomFrom(options.seed), options)
    await load.during(async (random) => {
      for (let death = 1; death <= options.deaths; death += 1) {
        await server.dieOnce(random, options.framesMax)
        if (death % 25 === 0) options.report?.(`${death} deaths, ${load.finished.length} runs finished`)
      }
    })
    const { progress, kills, drains } = server
    return { ...(await load.check()), frames: progress.total, kills, drains }
  } finally {
    await server.dispose()
    await world.dispose()
  }
}
