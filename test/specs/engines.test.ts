// CHAT-070: the same stories, told by the local engine and by remote ones, give the same frames
// in every format, but for ids, times, token counts and the wording of questions and errors.
// docs/engines.md says what an engine cannot do.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { formatDialects } from '../../src/http/formats.ts'
import { type FakeOpenclaw, startFakeOpenclaw } from '../support/fake-openclaw.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import type { GatewayAction } from '../fakes/openclaw-script.ts'
import { openStream } from '../support/sse.ts'
import {
  calls,
  hangsAfter,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  type TestServer,
  toolState,
} from '../support/test-server.ts'

/** One thing that an agent does in a turn. The outputs of remote tools are those of the local ones. */
type Beat =
  | { says: string[] }
  | { thinks: string[] }
  | { calls: { id: string; name: string; input: Json } }
  /** The call waits for a person. */
  | { asks: { id: string; name: string; input: Json }; decision: 'confirm' | 'reject' }
  | { fails: string }
  | { hangs: string[] }

type Told = {
  /** The whole stream of the run, in every format. */
  streams: Map<string, string>
  messages: Json[]
  outputs: Map<string, unknown>
}

const formats = Object.keys(formatDialects)

// A remote agent sends its text without white space at the ends of messages, so no piece ends with any.
const stories: Record<string, Beat[]> = {
  'a plain answer': [{ says: ['Hel', 'lo,', ' 世界'] }],
  'reasoning before the answer': [{ thinks: ['First,', ' tea.'] }, { says: ['Tea.'] }],
  'a tool between two messages': [
    { says: ['Let me', ' look.'] },
    { calls: { id: 'call_1', name: 'current_time', input: {} } },
    { says: ['It is', ' late.'] },
  ],
  'two tools, one after the other': [
    { calls: { id: 'call_1', name: 'current_time', input: {} } },
    { calls: { id: 'call_2', name: 'current_time', input: { timezone: 'UTC' } } },
    { says: ['Still late.'] },
  ],
  'a tool that a person confirms': [
    { says: ['I will note it.'] },
    { asks: { id: 'call_1', name: 'remember_note', input: { text: 'tea' } }, decision: 'confirm' },
    { says: ['Noted.'] },
  ],
  'a tool that a person rejects': [
    { asks: { id: 'call_1', name: 'remember_note', input: { text: 'tea' } }, decision: 'reject' },
    { says: ['Then not.'] },
  ],
  'an agent that fails': [{ says: ['half an'] }, { fails: 'boom' }],
  'a turn that is cancelled': [{ hangs: ['Thinking'] }],
}

interface Storyteller {
  server: TestServer
  prepare(marker: string, story: Beat[], local: Told | undefined): Promise<void>
}

let provider: FakeProvider
let gateway: FakeOpenclaw
let tellers: Record<'local' | 'openclaw', Storyteller>
const told = new Map<string, Told>()

before(async () => {
  ;[provider, gateway] = await Promise.all([startFakeProvider(), startFakeOpenclaw()])
  const settings = { POLYLOG_PING_MS: '600000', POLYLOG_ENGINE_FALLBACK: 'none' }
  const [local, openclaw] = await Promise.all([
    startTestServer(settings, provider),
    startTestServer(
      { ...settings, POLYLOG_ENGINE: 'openclaw', OPENCLAW_URL: gateway.baseUrl, OPENCLAW_TOKEN: gateway.token },
      provider,
    ),
  ])
  tellers = {
    local: { server: local, prepare: (marker, story) => provider.script(localScript(story), marker) },
    openclaw: {
      server: openclaw,
      prepare: (marker, story, first) => gateway.script(marker, gatewayScript(marker, story, first?.outputs)),
    },
  }
})
after(async () => {
  await tellers?.local.server.polylog.dispose()
  await tellers?.openclaw.server.polylog.dispose()
  await Promise.all([provider?.stop(), gateway?.stop()])
})

/** As the gateway, the provider reports the tokens of an answer that fails. */
const spent = { prompt_tokens: 11, completion_tokens: 2 }

/** A model is asked once per step: a step ends with a call, or with the turn. */
function localScript(story: Beat[]): Parameters<FakeProvider['script']>[0] {
  const answers: Parameters<FakeProvider['script']>[0] = []
  let step: (typeof answers)[number] = []
  for (const beat of story) {
    if ('says' in beat) step.push({ text: beat.says })
    else if ('thinks' in beat) step.push({ reasoning: beat.thinks })
    else if ('fails' in beat) answers.push([...step, { usage: spent }, { error: { message: beat.fails } }])
    else if ('hangs' in beat) answers.push(hangsAfter(...beat.hangs))
    else {
      const { id, name, input } = 'calls' in beat ? beat.calls : beat.asks
      answers.push([...step, ...calls([name, input, id])])
      step = []
    }
  }
  if (step.length > 0 && !story.some((beat) => 'fails' in beat)) answers.push([...step, ...says().slice(1)])
  return answers
}

function gatewayScript(marker: string, story: Beat[], outputs: Map<string, unknown> | undefined): GatewayAction[] {
  return story.flatMap((beat): GatewayAction[] => {
    if ('says' in beat) return [{ text: beat.says }]
    if ('thinks' in beat) return [{ reasoning: beat.thinks }]
    if ('fails' in beat) return [{ error: beat.fails }]
    if ('hangs' in beat) return [{ text: beat.hangs }, { hold: true }]
    const { id, name, input } = 'calls' in beat ? beat.calls : beat.asks
    const text = JSON.stringify(outputs?.get(id) ?? {})
    const call = { call: { id, name, args: input } }
    if ('calls' in beat) return [call, { result: { id, text } }]
    return [call, { approval: { id: `${marker} ${id}`, callId: id, command: name, text } }]
  })
}

async function tell(teller: Storyteller, title: string, first: Told | undefined): Promise<Told> {
  const { server, prepare } = teller
  const story = stories[title] ?? []
  const user = someone('teller')
  await prepare(user, story, first)
  const conversationId = `conv-${user}`
  const stream = await server.chat(user, { input: `Tell it, ${user}`, conversationId })
  const runId = runIdOf(stream)
  for (const beat of story) {
    if ('asks' in beat) {
      const { json } = await stream.waitFor(toolState('awaiting_input'))
      await server.reaches(user, runId, 'awaiting_input')
      await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/${beat.decision}`, { user })
    } else if ('hangs' in beat) {
      await stream.waitFor(named('agent.delta'))
      await server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user })
    }
  }
  await stream.ended()
  const outputs = new Map(
    stream.frames.filter(toolState('succeeded')).map(({ json }) => [String(json.data.toolId), json.data.output]),
  )
  const streams = new Map<string, string>()
  for (const format of formats) {
    const url = `${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}&format=${format}`
    const replay = await openStream(url)
    await replay.ended()
    streams.set(format, comparable(replay.text(), user))
  }
  const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })
  const messages = (body as unknown as Json[]).map(({ role, content, toolCallId }) => ({
    role,
    content: comparable(String(content), user),
    toolCallId,
  }))
  return { streams, messages, outputs }
}

/** Replaces what may differ: each id by the order in which ids appear, times, counts, names of engines, wordings. */
function comparable(text: string, user: string): string {
  const ids = new Map<string, string>()
  const numbered = (id: string) => {
    const known = ids.get(id) ?? `<id ${ids.size + 1}>`
    ids.set(id, known)
    return known
  }
  return (
    text
      .replaceAll(user, '<user>')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replaceAll(/[0-9A-HJKMNP-TV-Z]{26}/g, numbered)
      .replaceAll(/\b1\d{12}\b/g, '<ms>')
      .replaceAll(/^id: .*$/gm, 'id: <address>')
      .replaceAll(
        /"(durationMs|duration_ms|duration|promptTokens|completionTokens|inputTokens|outputTokens|input_tokens|output_tokens|total_tokens)":(?:\d+(?:\.\d+)?|null)/g,
        '"$1":"<count>"',
      )
      .replaceAll(/"engine":"(?:local|openclaw)"/g, '"engine":"<engine>"')
      // LangGraph: a remote agent counts tokens for the turn, words its questions itself, and may start a call before it asks.
      .replaceAll(/,"usage_metadata":\{[^{}]*\}/g, '')
      .replaceAll(/"error":"(?:model|engine)_\w+"/g, '"error":"<code>"')
      .replaceAll(/"description":"(?:[^"\\]|\\.)*"/g, '"description":"<wording>"')
      .replaceAll(/id: <address>\nevent: tools\ndata: \{"event":"on_tool_start".*\n\n/g, '')
      .replaceAll(/"code":"(?:model|engine)_\w+"/gi, '"code":"<code>"')
      .replaceAll(/"(created|created_at)":\d+/g, '"$1":"<seconds>"')
      .replaceAll(/"server_label":"[^"]*"/g, '"server_label":"<server>"')
      .replaceAll(/"(message|prompt|summary|note)":"(?:[^"\\]|\\.)*"/g, '"$1":"<wording>"')
      .replaceAll(
        /(…\/reject\)): (?:Save a note|Run the command)(?:[^"\\]|\\.)*"(.*)"full_length":\d+/g,
        '$1: <wording>"$2',
      )
      // The sentence of an A2A status, before the data about the call.
      .replaceAll(/"text":"(?:[^"\\]|\\.)*"\},(?=\{(?:"kind":"data",)?"data":)/g, '"text":"<wording>"},')
      .replaceAll(',"details":{"provider":"openai"}', '')
      .replaceAll(/,"messageMetadata":\{"usage":\{[^{}]*\}\}/g, '')
      .replaceAll(/,"usage":\[[^\]]*\]/g, '')
      .replaceAll(/"usage":(?:null|\{(?:[^{}]|\{[^{}]*\})*\}),?/g, '')
      .replaceAll(/(?:openai failed while answering\. It said:|The OpenClaw gateway failed:) boom/g, '<wording>')
  )
}

/** Shows the lines that differ, and not the whole streams. */
function assertSame(format: string, actual = '', expected = ''): void {
  const [lines, wanted] = [actual.split('\n'), expected.split('\n')]
  const differs = (line: string, index: number, other: string[]) => line !== other[index]
  assert.deepEqual(
    lines.filter((line, index) => differs(line, index, wanted)),
    wanted.filter((line, index) => differs(line, index, lines)),
    `format ${format}`,
  )
  assert.ok(lines.length > 2, `format ${format} has frames`)
}

for (const engine of ['openclaw'] as const) {
  describe(`CHAT-070 a story told by ${engine} gives the frames of the local engine`, () => {
    for (const title of Object.keys(stories)) {
      test(`CHAT-070 ${engine}: ${title}`, async () => {
        const first = told.get(title) ?? (await tell(tellers.local, title, undefined))
        told.set(title, first)
        const second = await tell(tellers[engine], title, first)

        for (const format of formats) assertSame(format, second.streams.get(format), first.streams.get(format))
        assert.deepEqual(second.messages, first.messages)
      })
    }
  })
}
