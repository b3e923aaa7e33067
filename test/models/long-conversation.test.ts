// A conversation of 200 turns, far longer than the memory of its agent, for each strategy: what the
// model was given at each turn, how much of it the provider had cached, and that nothing was lost
// silently. The transcripts beside this file are compared line by line; UPDATE_TRANSCRIPTS=1 writes them anew.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { type AgentFolder, agentFolder } from '../support/agent-folder.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { openStream } from '../support/sse.ts'
import {
  askingStrict,
  type Block,
  startStrictProvider,
  type StrictProvider,
  type StrictRequest,
} from '../support/strict-provider.ts'
import { callServer, endOf, type Json, someone } from '../support/test-server.ts'

const turns = 200
const memory = 6000
const summaryText = 'They talked about many things, in order.'

const filler = (count: number) => 'and so on '.repeat(count)
/** Turns of many sizes; each fiftieth takes most of the memory alone. */
const questionOf = (turn: number) => `Question ${turn}? ${filler(turn % 50 === 0 ? 1500 : 20 + ((turn * 37) % 90))}`
const answersOf = (turn: number): Block[][] => [
  ...(turn % 10 === 0 ? [[{ call: 'search_notes', input: { query: `turn ${turn}` } }]] : []),
  [{ text: [`Answer ${turn}. ${filler(10 + ((turn * 53) % 60))}`] }],
]

const contextEvents = new Set(['context.cut', 'context.summarised'])

type Turn = {
  turn: number
  /** The turns whose question is in the prompt, in order. */
  given: number[]
  hasSummary: boolean
  /** The share of the prompt that was read from the cache of the provider. */
  cached: number
  tokens: number
  events: Json[]
}

const textsOf = (request: StrictRequest) =>
  (request.body['messages'] as { content: string | Json[] }[]).flatMap(({ content }) =>
    typeof content === 'string' ? [content] : content.map(({ text }) => String(text ?? '')),
  )
const isSummaryRequest = (request: StrictRequest) =>
  JSON.stringify(request.body['system']).includes('You write the memory')
const numbersIn = (texts: readonly string[], pattern: RegExp) =>
  texts.flatMap((text) => [...text.matchAll(pattern)].map(([, number]) => Number(number)))

describe('a conversation of 200 turns', () => {
  let provider: StrictProvider
  let polylog: Polylog
  let agents: AgentFolder

  before(async () => {
    provider = await startStrictProvider('anthropic')
    agents = agentFolder()
    for (const strategy of ['sliding_window', 'summary']) {
      agents.agent(
        strategy,
        {
          memory: { strategy, maxTokens: memory },
          tools: { mode: 'allowlist', allowedTools: ['search_notes'] },
          validation: undefined,
        },
        // Longer than the shortest prefix that the provider caches.
        { 'system.mustache': `Be kind, ${filler(500)}` },
      )
    }
    polylog = await startPolylog({ ...askingStrict('anthropic', provider), POLYLOG_AGENTS_DIR: agents.path })
  })
  after(async () => {
    await polylog?.dispose()
    await provider?.stop()
    agents?.dispose()
  })

  async function talk(strategy: string): Promise<{ told: Turn[]; requests: StrictRequest[]; messages: Json[] }> {
    await provider.reset()
    await provider.always('You write the memory', [{ text: [summaryText] }])
    const user = someone()
    const runs: string[] = []
    for (let turn = 1; turn <= turns; turn += 1) {
      await provider.script(...answersOf(turn))
      const body = { userId: user, conversationId: user, agentId: strategy, input: questionOf(turn) }
      const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, { method: 'POST', body })
      await stream.ended()
      const end = endOf(stream.frames)
      assert.equal(end.status, 'succeeded')
      runs.push(String(end.runId))
    }
    const requests = await provider.requests()
    const told: Turn[] = []
    for (const request of requests) {
      assert.equal(request.refused, null)
      if (isSummaryRequest(request)) continue
      const given = numbersIn(textsOf(request), /^Question (\d+)\?/gm)
      const turn = given.at(-1) ?? 0
      // The first request of a turn counts; later ones have the results of a tool in addition.
      if (told.at(-1)?.turn === turn) continue
      const timeline = await callServer(polylog.baseUrl, 'GET', `/v1/agent/runs/${runs[turn - 1]}/timeline`, { user })
      told.push({
        turn,
        given,
        hasSummary: textsOf(request).some((text) => text.includes(summaryText)),
        ...usageOf(request),
        events: (timeline.body.events as Json[]).filter(({ event }) => contextEvents.has(String(event))),
      })
    }
    assert.equal(told.length, turns)
    const messages: Json[] = []
    for (let before = ''; ;) {
      const page = await callServer(polylog.baseUrl, 'GET', `/v1/conversations/${user}/messages?limit=100${before}`, {
        user,
      })
      const rows = page.body as unknown as Json[]
      messages.unshift(...rows)
      if (rows.length < 100) break
      before = `&before=${String(rows[0]?.['id'])}`
    }
    return { told, requests, messages }
  }

  for (const strategy of ['sliding_window', 'summary']) {
    it(`is given to the model as the transcript says: ${strategy}`, async () => {
      const { told, requests, messages } = await talk(strategy)

      const file = new URL(`./long-conversation-${strategy}.txt`, import.meta.url)
      const transcript = transcriptOf(told)
      if (process.env['UPDATE_TRANSCRIPTS'] === '1') writeFileSync(file, transcript)
      assert.equal(transcript, readFileSync(file, 'utf8'))

      assertNothingLost(told, requests, messages)
      for (const { tokens, turn } of told) assert.ok(tokens < memory + 2500, `turn ${turn} has ${tokens} tokens`)
      const quiet = told.filter(({ events, turn }) => events.length === 0 && turn > 10)
      const warm = quiet.filter(({ cached }) => cached > 0.5)
      assert.ok(warm.length > 0.9 * quiet.length, `${warm.length} of ${quiet.length}`)
    })
  }
})

function usageOf({ usage }: StrictRequest): { cached: number; tokens: number } {
  const read = Number(usage?.['cache_read_input_tokens'])
  const tokens = read + Number(usage?.['cache_creation_input_tokens']) + Number(usage?.['input_tokens'])
  return { cached: read / tokens, tokens }
}

/** Each earlier turn is in the prompt, or was named by a cut, or was in the request for a summary that the prompt has. */
function assertNothingLost(told: readonly Turn[], requests: readonly StrictRequest[], messages: readonly Json[]): void {
  const turnOf = new Map<string, number>()
  let latest = 0
  for (const { id, content, role } of messages) {
    const [number] = role === 'user' ? numbersIn([String(content)], /^Question (\d+)\?/g) : []
    latest = number ?? latest
    turnOf.set(String(id), latest)
  }
  const summarised = new Set(
    requests.filter(isSummaryRequest).flatMap((request) => numbersIn(textsOf(request), /User: Question (\d+)\?/g)),
  )
  const gone = new Set<number>()
  for (const { turn, given, events, hasSummary } of told) {
    for (const { event, payload } of events) {
      const from = turnOf.get(String(payload.fromMessageId)) ?? 0
      const through = turnOf.get(String(payload.throughMessageId)) ?? 0
      assert.ok(from > 0 && through >= from, `turn ${turn}: ${event}`)
      for (let number = from; number <= through; number += 1) {
        gone.add(number)
        if (event === 'context.summarised') assert.ok(summarised.has(number), `turn ${number} is not in the summary`)
      }
      if (event === 'context.summarised') assert.ok(hasSummary)
    }
    for (let number = 1; number <= turn; number += 1)
      assert.notEqual(gone.has(number), given.includes(number), `turn ${number} at turn ${turn}`)
  }
}

/** Turns without an event are one line. */
function transcriptOf(told: readonly Turn[]): string {
  const lines: string[] = []
  let quiet: Turn[] = []
  const flush = () => {
    const [first] = quiet
    const last = quiet.at(-1)
    if (first === undefined || last === undefined) return
    const shares = quiet.map(({ cached }) => cached)
    const name = first === last ? `turn ${first.turn}` : `turns ${first.turn} to ${last.turn}`
    const share = [Math.min(...shares), Math.max(...shares)].map(percent)
    lines.push(`${name}: the prompt grows; cached ${share[0] === share[1] ? share[0] : share.join(' to ')}`)
    quiet = []
  }
  for (const turn of told) {
    if (turn.events.length === 0) {
      quiet.push(turn)
      continue
    }
    flush()
    for (const { event, payload } of turn.events)
      lines.push(`turn ${turn.turn}: ${event} of ${payload.messages} messages, about ${payload.tokens} tokens`)
    const start = turn.hasSummary ? 'the summary and turns' : 'turns'
    lines.push(`    given ${start} ${turn.given[0]} to ${turn.turn}; cached ${percent(turn.cached)}`)
  }
  flush()
  return `${lines.join('\n')}\n`
}

/** In steps of 5, so that a word more in the instructions changes nothing. */
const percent = (share: number) => `${Math.round(share * 20) * 5} %`
