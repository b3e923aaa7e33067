// The built-in model `demo/demo`: deterministic and offline. It lets a fresh installation
// show all features of the server (streaming, tools, confirmations, reasoning) without an
// API key. demo-plan.ts decides the answer; this file streams it.

import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import { planDemoAnswer } from './demo-plan.ts'
import type { Model, ModelPart } from './model.ts'
import { sleep } from '../kit/sleep.ts'

export { demoPhrases } from './demo-words.ts'

export type DemoModelOptions = {
  clock: Clock
  ids: Ids
  /** The delay between two chunks; 0 streams without delay. The default is about as fast as people read. */
  paceMs?: number
}

const defaultPaceMs = 15

export function createDemoModel(options: DemoModelOptions): Model {
  const paceMs = options.paceMs ?? defaultPaceMs
  return {
    async *stream(request, signal) {
      const plan = planDemoAnswer(request)
      const said: ModelPart[] = [
        ...chunksOf(plan.reasoning).map((text): ModelPart => ({ type: 'reasoning', text })),
        ...(request.answer === undefined ? chunksOf(plan.text) : piecesOf(plan.text)).map((text): ModelPart => ({
          type: 'text',
          text,
        })),
      ]
      const limit = request.maxTokens ?? said.length
      for (const part of said.slice(0, limit)) {
        if (paceMs > 0) await sleep(options.clock, paceMs, signal)
        signal.throwIfAborted()
        yield [part]
      }
      signal.throwIfAborted()
      const usage = {
        inputTokens: estimateTokens(JSON.stringify([request.messages, request.tools])),
        outputTokens: Math.min(said.length, limit) + estimateTokens(JSON.stringify(plan.calls)),
      }
      if (said.length > limit) {
        yield [{ type: 'finish', reason: 'length', usage }]
        return
      }
      const calls = plan.calls.map((call): ModelPart => ({
        type: 'tool-call',
        callId: `call_${options.ids()}`,
        name: call.name,
        input: call.input,
        rawInput: JSON.stringify(call.input),
      }))
      yield [...calls, { type: 'finish', reason: calls.length > 0 ? 'tool-calls' : 'stop', usage }]
    },
  }
}

/** Splits a text into words, each with the space before it, and pairs of Chinese characters. Joined, they give the text. */
export function chunksOf(text: string): string[] {
  return (
    text.match(
      /[\u3000-\u9fff\uf900-\ufaff\uff00-\uffef]{1,2}|\s*[^\s\u3000-\u9fff\uf900-\ufaff\uff00-\uffef]{1,24}|\s+/gu,
    ) ?? []
  )
}

/** JSON is not read while it is streamed, so it goes out in larger pieces. */
const jsonPieceChars = 80

function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length;) {
    // A surrogate pair stays together.
    const half = /[\uD800-\uDBFF]/.test(text[at + jsonPieceChars - 1] ?? '') ? 1 : 0
    pieces.push(text.slice(at, at + jsonPieceChars + half))
    at += jsonPieceChars + half
  }
  return pieces
}

/** A rule of thumb: four characters per token. */
function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4)
}
