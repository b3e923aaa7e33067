// Resuming after any frame: for every run that the real server made, and for every frame at which
// a client may have stopped, the rest has the same bytes as in the uninterrupted stream. Clients
// that leave and come back while the run is under way collect that same stream.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { type Action, type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { openStream, type SseStream } from '../support/sse.ts'

let provider: FakeProvider
let server: Polylog

before(async () => {
  provider = await startFakeProvider()
  server = await startPolylog({
    OPENAI_API_KEY: 'fake-key',
    OPENAI_BASE_URL: provider.baseUrl,
    POLYLOG_MODEL: 'openai/fake',
    POLYLOG_PROVIDER_RETRIES: '0',
    // Often enough that pings fall into the streams: they belong to a connection and are left out of the comparison.
    POLYLOG_PING_MS: '15',
  })
})
after(async () => {
  await server?.dispose()
  await provider?.stop()
})

type Scenario = {
  name: string
  answers: Action[][]
  decide?: 'confirm' | 'reject'
  cancelAt?: string
  /** Frames that prove the scenario was what its name says. */
  shows: RegExp
}

const time = (id: string) => ({ id, name: 'current_time', arguments: '{}' })
const note = { id: 'note', name: 'remember_note', arguments: '{"text":"buy milk"}' }

const scenarios: Scenario[] = [
  {
    name: 'plain',
    answers: [[{ text: ['Grüße, ', '世界 ', '🙂\n\n', 'id: 7\ndata: "x"'] }, { finish: 'stop' }]],
    shows: /世界/,
  },
  {
    name: 'reasoning',
    answers: [[{ reasoning: ['Let me ', 'think.'] }, { text: ['Six', 'teen.'] }, { finish: 'stop' }]],
    shows: /agent\.reasoning/,
  },
  {
    name: 'tool',
    answers: [[{ text: 'Looking. ' }, { toolCalls: [time('a')] }, { finish: 'tool_calls' }]],
    shows: /"succeeded"/,
  },
  {
    name: 'parallel',
    answers: [[{ toolCalls: [time('a'), time('b'), time('c')] }, { finish: 'tool_calls' }]],
    shows: /"toolId":"c"/,
  },
  {
    name: 'confirmed',
    answers: [[{ toolCalls: [note, time('a')] }, { finish: 'tool_calls' }]],
    decide: 'confirm',
    shows: /The note was saved/,
  },
  {
    name: 'denied',
    answers: [[{ text: 'May I? ' }, { toolCalls: [note] }, { finish: 'tool_calls' }]],
    decide: 'reject',
    shows: /tool_denied/,
  },
  { name: 'failed', answers: [[{ text: ['Half of ', 'an ans'] }, { cut: true }]], shows: /"status":"failed"/ },
  {
    name: 'cancelled',
    answers: [[{ text: ['One, ', 'two, '] }, { stall: true }]],
    cancelAt: 'two, ',
    shows: /"status":"cancelled"/,
  },
  {
    name: 'cancelled while a person is asked',
    answers: [[{ toolCalls: [note] }, { finish: 'tool_calls' }]],
    cancelAt: 'awaiting_input',
    shows: /tool_cancelled/,
  },
]

/** Without pings, which carry no id. */
function journaled(text: string): string {
  return text
    .split(/(?<=\n\n)/)
    .filter((frame) => !frame.startsWith('event: ping\n'))
    .join('')
}

const idsOf = (text: string) => [...text.matchAll(/^id: (\S+)$/gm)].map((match) => match[1] as string)
const streamUrl = (runId: string, query = '') => `${server.baseUrl}/v1/agent/runs/${runId}/stream${query}`

async function read(url: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const stream = await openStream(url, { headers })
  await stream.ended()
  return { status: stream.status, text: stream.text() }
}

/** The whole run as one client sees it that never leaves. */
async function runThrough({ answers, decide, cancelAt, name }: Scenario): Promise<{ runId: string; whole: string }> {
  await provider.script(answers, `[${name}]`)
  const stream = await openStream(`${server.baseUrl}/v1/agent/chat`, { body: { prompt: `Go. [${name}]` } })
  const runId = String(stream.headers['x-run-id'])
  if (decide !== undefined) {
    const asked = await stream.waitFor((frame) => frame.json.data.status === 'awaiting_input')
    await fetch(`${server.baseUrl}/v1/tool-confirmations/${asked.json.data.confirmationId}/${decide}`, {
      method: 'POST',
    })
  }
  if (cancelAt !== undefined) {
    await stream.waitFor((frame) => frame.json.data.delta === cancelAt || frame.json.data.status === cancelAt)
    const response = await fetch(`${server.baseUrl}/v1/agent/runs/${runId}/cancel`, { method: 'POST' })
    assert.equal(response.status, 200)
  }
  assert.equal((await stream.ended()).cut, false)
  return { runId, whole: journaled(stream.text()) }
}

describe('a run that has ended can be resumed after any frame', () => {
  for (const scenario of scenarios) {
    it(`${scenario.name}: the rest is byte for byte the rest`, async () => {
      const { runId, whole } = await runThrough(scenario)
      const ids = idsOf(whole)
      assert.match(whole, scenario.shows)
      assert.ok(ids.length >= 4)
      assert.match(whole, /event: agent\.end\n.*\n\n$/)

      assert.equal(journaled((await read(streamUrl(runId))).text), whole, 'from the beginning')
      for (const [index, id] of ids.entries()) {
        const seen = whole.slice(0, endOf(whole, id))
        const byHeader = await read(streamUrl(runId), { 'last-event-id': id })
        assert.equal(byHeader.status, index === ids.length - 1 ? 204 : 200, `after ${id}`)
        assert.equal(seen + journaled(byHeader.text), whole, `after ${id}`)
        // A reconnecting EventSource keeps its old URL: the larger of the two counts.
        const both = await read(streamUrl(runId, `?after=${ids[0]}`), { 'last-event-id': id })
        assert.equal(seen + journaled(both.text), whole, `after ${id}, with an older cursor in the URL`)
      }
    })
  }

  for (const format of ['vercel-ai', 'session']) {
    it(`also in ${format}, whose frames carry no ids, after any event of the journal`, async () => {
      for (const scenario of scenarios.filter(({ name }) => name === 'confirmed' || name === 'plain')) {
        const { runId, whole: native } = await runThrough(scenario)
        const last = Number(idsOf(native).at(-1)?.split('.')[0])
        const whole = (await read(streamUrl(runId, `?format=${format}`))).text
        let rest = whole
        for (let seq = 1; seq <= last; seq += 1) {
          const { status, text } = await read(streamUrl(runId, `?format=${format}&after=${seq}`))
          assert.equal(status, seq === last ? 204 : 200)
          assert.ok(rest.endsWith(text), `what comes after ${seq} is an end of what came after ${seq - 1}`)
          rest = text
        }
        assert.equal(rest, '')
      }
    })
  }

  it('and after nothing else: a frame that the run never had is refused', async () => {
    const { runId, whole } = await runThrough(scenarios[0] as Scenario)
    const last = Number(idsOf(whole).at(-1))
    for (const id of [String(last + 1), '999999', `${last}.2`, '1.2', '1.0', 'x', '-1', '1e3', '0x1']) {
      assert.equal((await read(streamUrl(runId), { 'last-event-id': id })).status, 400, id)
    }
  })
})

function endOf(whole: string, id: string): number {
  const at = whole.search(new RegExp(`^id: ${id.replace('.', '\\.')}$`, 'm'))
  return whole.indexOf('\n\n', at) + 2
}

describe('a client that leaves and comes back while the run is under way', () => {
  /** Reads so many frames (or to the end), then hangs up; whole frames only. */
  async function some(stream: SseStream, frames: number): Promise<{ text: string; over: boolean }> {
    const enough = await Promise.race([
      stream.waitFor(() => stream.frames.length >= frames).then(() => true),
      stream.ended().then(() => false),
    ]).catch(() => false)
    stream.leave()
    const text = stream.text()
    return { text: text.slice(0, text.lastIndexOf('\n\n') + (text.includes('\n\n') ? 2 : 1)), over: !enough }
  }

  it('collects exactly the uninterrupted stream, wherever it left', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 3, maxLength: 12 }), async (stops) => {
        // 150 chunks, one every two milliseconds: the run is still talking when the client comes back.
        const first = await openStream(`${server.baseUrl}/v1/agent/chat`, {
          body: { prompt: 'Talk.', model: 'openai/bench-150-2' },
        })
        const runId = String(first.headers['x-run-id'])
        const watcher = await openStream(streamUrl(runId))
        let collected = journaled((await some(first, stops[0] as number)).text)
        for (const frames of [...stops.slice(1), Number.POSITIVE_INFINITY]) {
          const last = idsOf(collected).at(-1)
          const stream = await openStream(streamUrl(runId), {
            headers: last === undefined ? {} : { 'last-event-id': last },
          })
          if (stream.status === 204) break
          collected += journaled((await some(stream, frames)).text)
        }
        await watcher.ended()

        assert.equal(collected, journaled(watcher.text()))
        const timeline = (await (await fetch(`${server.baseUrl}/v1/agent/runs/${runId}/timeline`)).json()) as {
          events: { id: string; event: string; payload: unknown }[]
        }
        const frames = timeline.events.filter(
          ({ event }) => /^(agent|tool|context|error)/.test(event) && event !== 'tool.called',
        )
        const expected = frames
          .map(
            ({ id, event, payload }) =>
              `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify({ event, data: payload })}\n\n`,
          )
          .join('')
        assert.equal(collected, expected)
        assert.equal((collected.match(/event: agent\.delta/g) ?? []).length, 150)
      }),
      { numRuns: 15 },
    )
  })
})
