// Gives the provider state of a step back to the provider that sent it. A state of another
// provider or another model family is left out, because only its own provider can verify it.

import type { JsonValue, ProviderState } from '../journal/event.ts'
import type { RunState, StepState } from '../journal/run-state.ts'
import type { RunStore } from '../stores/run-store.ts'

/** The ids of blobs with provider states begin with this. */
export const providerStateBlob = 'provider_'

/** `provider/model` → the fields of a provider state. */
export function providerOf(resolvedModel: string): Pick<ProviderState, 'name' | 'model'> {
  const slash = resolvedModel.indexOf('/')
  return { name: resolvedModel.slice(0, slash), model: resolvedModel.slice(slash + 1) }
}

export class ProviderStates {
  private readonly store: Pick<RunStore, 'readBlob'>
  private blobs: Map<string, JsonValue> | undefined

  constructor(store: Pick<RunStore, 'readBlob'>) {
    this.store = store
  }

  /** Reads the large states of a run, each of them once. */
  async load(state: RunState): Promise<void> {
    for (const { provider } of state.steps) {
      const ref = provider?.stateRef
      if (ref === undefined || this.blobs?.has(ref) === true) continue
      const blob = await this.store.readBlob(ref)
      if (blob !== undefined) (this.blobs ??= new Map()).set(ref, JSON.parse(blob.body) as JsonValue)
    }
  }

  /** `resolvedModel` is the `provider/model` that is about to be asked. Call `load` first. */
  of({ provider }: Pick<StepState, 'provider'>, resolvedModel: string): JsonValue | undefined {
    if (provider === undefined) return undefined
    const { name, model } = providerOf(resolvedModel)
    if (provider.name !== name || modelFamily(provider.model) !== modelFamily(model)) return undefined
    return provider.stateRef === undefined ? provider.state : this.blobs?.get(provider.stateRef)
  }
}

/** Dated and moving names of one model, such as `claude-sonnet-4-5-20250929` and `claude-sonnet-4-5`, are one family. */
export function modelFamily(model: string): string {
  return model.replace(/(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest))+$/, '')
}
