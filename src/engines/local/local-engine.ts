// The engine that calls a model directly. It executes no tools and writes no journal: one
// step is one request to the model, retried only until the first part has arrived.

import type { Clock } from '../../kit/clock.ts'
import { defined } from '../../kit/defined.ts'
import type { Models, ModelRequest } from '../../models/model.ts'
import { defaultRetry, withRetries } from '../../models/retry.ts'
import type { StepEngine } from '../engine.ts'

export type LocalEngineOptions = {
  models: Models
  clock: Clock
  /** 0 ≤ random() < 1, for the jitter of retries. */
  random: () => number
  retries?: number
  retryBudgetMs?: number
  /** Called before each retry, with `provider/model`. */
  onRetry?: (model: string) => void
}

export function createLocalEngine(options: LocalEngineOptions): StepEngine {
  const retry = {
    clock: options.clock,
    random: options.random,
    retries: options.retries ?? defaultRetry.retries,
    budgetMs: options.retryBudgetMs ?? defaultRetry.budgetMs,
  }
  return {
    kind: 'step',
    name: 'local',
    prepare(spec) {
      try {
        options.models.open(spec.model).prepare?.()
      } catch {
        // The step meets the same problem and reports it.
      }
    },
    step(step, signal) {
      const { spec, messages, tools, answer, toolChoice, traceparent } = step
      const model = options.models.open(spec.model)
      const request: ModelRequest = {
        model: spec.model.slice(spec.model.indexOf('/') + 1),
        messages,
        tools,
        ...defined({
          temperature: spec.temperature,
          maxTokens: spec.maxTokens,
          sampling: spec.sampling,
          toolChoice,
          providerOptions: spec.providerOptions,
          providerTools: spec.providerTools,
          answer,
          traceparent,
        }),
      }
      const start = (retries: number) => {
        if (retries > 0) options.onRetry?.(spec.model)
        return model.stream(request, signal)
      }
      return withRetries(start, signal, retry)
    },
  }
}
