// The second turn of a long conversation is mostly read from the cache of the provider, and a
// prompt that no longer fits is cut rarely. The stand-in caches prefixes as Anthropic does.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { type AgentFolder, agentFolder } from '../support/agent-folder.ts'
import { openStream } from '../support/sse.ts'
import { askingStrict, type Block, startStrictProvider, type StrictProvider } from '../support/strict-provider.ts'
import { endOf, someone } from '../support/test-server.ts'

type CacheUse = { read: number; share: number }

describe('the prompt cache of anthropic', () => {
  let provider: StrictProvider
  let polylog: Polylog
  let agents: AgentFolder

  before(async () => {
    provider = await startStrictProvider('anthropic')
    agents = agentFolder()
    agents.agent('small', { memory: { strategy: 'sliding_window', maxTokens: 16_000 }, validation: undefined })
    polylog = await startPolylog({ ...askingStrict('anthropic', provider), POLYLOG_AGENTS_DIR: agents.path })
  })
  beforeEach(() => provider.reset())
  after(async () => {
    await polylog?.dispose()
    await provider?.stop()
    agents?.dispose()
  })

  async function say(
    conversationId: string,
    input: string,
    answers: Block[][],
    agentId = 'chat_conversation',
  ): Promise<CacheUse[]> {
    const asked = (await provider.requests()).length
    await provider.script(...answers)
    const body = { userId: conversationId, conversationId, input, agentId }
    const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, { method: 'POST', body })
    await stream.ended()
    assert.equal(endOf(stream.frames).status, 'succeeded')
    return (await provider.requests()).slice(asked).map(({ usage }) => {
      const read = Number(usage?.['cache_read_input_tokens'])
      const all = read + Number(usage?.['cache_creation_input_tokens']) + Number(usage?.['input_tokens'])
      return { read, share: read / all }
    })
  }

  const long = (what: string) => `${what} ${'and so on '.repeat(250)}`

  it('holds most of the second turn, and of the second step', async () => {
    const conversation = someone()
    await say(conversation, long('Tell me a story.'), [[{ text: [long('Once upon a time')] }]])

    const [first, second] = await say(conversation, 'What time is it there?', [
      [{ call: 'current_time', input: {} }],
      [{ text: ['Noon.'] }],
    ])

    assert.ok(Number(first?.share) > 0.5, `${first?.share}`)
    assert.ok(Number(second?.share) > 0.9, `${second?.share}`)
  })

  it('holds most of nearly every turn, also when the conversation is longer than the memory of the agent', async () => {
    const conversation = someone()
    const turns = 40
    const shares: number[] = []
    for (let turn = 1; turn <= turns; turn += 1) {
      const [use] = await say(conversation, long(`Question ${turn}?`), [[{ text: [long(`Answer ${turn}.`)] }]], 'small')
      shares.push(use?.share ?? 0)
    }
    const [request] = (await provider.requests()).slice(-1)
    const given = JSON.stringify(request?.body['messages'])

    assert.doesNotMatch(given, /Question 1\?/)
    assert.match(given, new RegExp(`Question ${turns}\\?`))
    const warm = shares.slice(1).filter((share) => share > 0.6).length
    assert.ok(
      warm >= 0.75 * (turns - 1),
      `${warm} of ${turns - 1}: ${shares.map((share) => share.toFixed(2)).join(' ')}`,
    )
  })
})
