// What the tests of the model clients share: the three clients of the OpenAI wire
// against one provider, ids that count, and reading a stream to its end.

import { createOpenAI } from '@ai-sdk/openai'
import { AppError } from '../../src/errors/app-error.ts'
import { systemClock } from '../../src/kit/clock.ts'
import type { Ids } from '../../src/kit/ids.ts'
import { createAiSdkModel } from '../../src/models/ai-sdk-model.ts'
import type { Model, ModelPart, ModelRequest } from '../../src/models/model.ts'
import { createModels } from '../../src/models/providers.ts'

export const secretKey = 'sk-secret-0123456789abcdef'

export function countingIds(): Ids {
  let count = 0
  return () => `id${++count}`
}

export const hello: ModelRequest = { model: 'fake', messages: [{ role: 'user', content: 'Hello' }], tools: [] }

export function leanModel(baseUrl: string, ids: Ids = countingIds()): Model {
  return createModels({ openaiApiKey: secretKey, openaiBaseUrl: baseUrl, ids, clock: systemClock }).open('openai/fake')
}

export function aiSdkCompatibleModel(baseUrl: string): Model {
  return createModels({
    openaiApiKey: secretKey,
    openaiBaseUrl: baseUrl,
    openaiClient: 'ai-sdk',
    ids: countingIds(),
    clock: systemClock,
  }).open('openai/fake')
}

/** The adapter that is used for OpenAI's own address. */
export function aiSdkOpenAiModel(baseUrl: string): Model {
  const openai = createOpenAI({ apiKey: secretKey, baseURL: baseUrl })
  return createAiSdkModel({
    identity: { provider: 'openai', keyVariable: 'OPENAI_API_KEY', secrets: [secretKey] },
    load: async (model) => openai.chat(model),
    ids: countingIds(),
    clock: systemClock,
  })
}

export type Outcome = { parts: ModelPart[]; error?: unknown }

export async function readAll(
  model: Model,
  request: ModelRequest = hello,
  signal: AbortSignal = new AbortController().signal,
): Promise<Outcome> {
  const parts: ModelPart[] = []
  try {
    for await (const some of model.stream(request, signal)) parts.push(...some)
  } catch (error) {
    return { parts, error }
  }
  return { parts }
}

export function codeOf(outcome: Outcome): string | undefined {
  if (outcome.error === undefined) return undefined
  return outcome.error instanceof AppError ? outcome.error.code : `not an AppError: ${String(outcome.error)}`
}

export function textOf(parts: readonly ModelPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
