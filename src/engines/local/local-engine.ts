// The engine that asks a model directly. It knows nothing of tools or journals:
// one step is one request, retried only while nothing has been said.

import type { Clock } from '../../kit/clock.ts'
import type { Models, ModelRequest } from '../../models/model.ts'
import { defaultRetry, withRetries } from '../../models/retry.ts'
import type { Engine } from '../engine.ts'

export type LocalEngineOptions = {
  models: Models
  clock: Clock
  /** 0 ≤ random() < 1, for the jitter of retries. */
  random: () => number
  retries?: number
  retryBudgetMs?: number
}

export function createLocalEngine(options: LocalEngineOptions): Engine {
  const retry = {
    clock: options.clock,
    random: options.random,
    retries: options.retries ?? defaultRetry.retries,
    budgetMs: options.retryBudgetMs ?? defaultRetry.budgetMs,
  }
  return {
    name: 'local',
    step({ spec, messages, tools }, signal) {
      const model = options.models.open(spec.model)
      const request: ModelRequest = {
        model: spec.model.slice(spec.model.indexOf('/') + 1),
        messages,
        tools,
        ...(spec.temperature === undefined ? {} : { temperature: spec.temperature }),
        ...(spec.maxTokens === undefined ? {} : { maxTokens: spec.maxTokens }),
      }
      return withRetries(() => model.stream(request, signal), signal, retry)
    },
  }
}
