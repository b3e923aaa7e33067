// A second node on the store of a run rig, with its own engine and services.

import { asUser } from '../../src/kit/caller.ts'
import { ConfirmationService } from '../../src/runs/confirmation-service.ts'
import type { RunDependencies } from '../../src/runs/run-dependencies.ts'
import { RunService } from '../../src/runs/run-service.ts'
import { Scheduler } from '../../src/runs/scheduler.ts'
import { type Answer, enginesOf, type Rig } from './run-rig.ts'

export type SecondNode = {
  scheduler: Scheduler
  service: RunService
  confirm(owner: string, id: string): Promise<unknown>
}

export type SecondNodeOptions = {
  answer: Answer
  node?: string
  /** What differs from the first node: its way to the store, its bus between nodes, its limits. */
  changes?: Partial<RunDependencies>
}

export function secondNodeOn(rig: Rig, { answer, node = 'node-2', changes = {} }: SecondNodeOptions): SecondNode {
  const engines = enginesOf({ kind: 'step', name: 'scripted', step: answer })
  const dependencies: RunDependencies = { ...rig.dependencies, engines, ...changes }
  const scheduler = new Scheduler(dependencies, node)
  const confirmations = new ConfirmationService(dependencies, scheduler)
  return {
    scheduler,
    service: new RunService(dependencies, scheduler),
    confirm: (owner, id) => confirmations.confirm(asUser(owner), id, undefined),
  }
}

/** A store of which some methods hang on command: calls wait until `resume`, as on a database that does not answer. */
export function hanging() {
  const methods = new Set<string>()
  const waiting: (() => void)[] = []
  const calls: string[] = []
  return {
    methods,
    /** The calls that had to wait. */
    calls,
    resume() {
      methods.clear()
      for (const go of waiting.splice(0)) go()
    },
    wrapStore: <T extends object>(store: T): T =>
      new Proxy(store, {
        get(target, name: string) {
          const method = (target as Record<string, (...args: unknown[]) => Promise<unknown>>)[name]
          if (typeof method !== 'function') return method
          return async (...args: unknown[]) => {
            if (methods.has(name)) {
              calls.push(name)
              await new Promise<void>((resolve) => waiting.push(resolve))
            }
            return await method.apply(target, args)
          }
        },
      }),
  }
}
