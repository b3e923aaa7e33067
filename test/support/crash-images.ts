// The database as a kill would leave them after each commit of a run. A test continues
// from every image, so that it covers every moment at which a server can die.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Store } from '../../src/stores/store.ts'
import { countingIds, openRig, type Rig, type RigOptions } from './run-rig.ts'
import { crashImage } from './test-database.ts'

export type CrashImages = {
  /** The options of the rig whose commits are recorded. */
  readonly options: Required<Pick<RigOptions, 'file' | 'wrapStore'>>
  /** The path of each image, in the order of the commits. */
  readonly paths: readonly string[]
  /** Opens an image as the next process would, without starting its scheduler. Closed when the test ends. */
  reopen(path: string, options: RigOptions & Required<Pick<RigOptions, 'clock'>>): Promise<Rig>
}

/** `commits`: the methods of the store after which an image is taken. No other commit may be under way then. */
export function crashImages(
  context: TestContext,
  commits: readonly (keyof Store)[] = ['accept', 'append'],
): CrashImages {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-images-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'first.db')
  const paths: string[] = []
  const record = async () => {
    const path = join(folder, `image-${paths.length}.db`)
    paths.push(path)
    await crashImage(file, path)
  }
  const wrapStore = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const method = Reflect.get(target, name) as (...given: unknown[]) => Promise<unknown>
        if (!commits.includes(name as keyof Store)) return method.bind(target)
        return async (...given: unknown[]) => {
          const result = await method.apply(target, given)
          await record()
          return result
        }
      },
    })
  return {
    options: { file, wrapStore },
    paths,
    async reopen(path, options) {
      const ids = countingIds(`image-${paths.indexOf(path)}`)
      const rig = await openRig({ node: 'node-2', ids, ...options, file: path })
      context.after(() => rig.close())
      return rig
    },
  }
}
