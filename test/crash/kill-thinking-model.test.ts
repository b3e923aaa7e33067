// A model that thinks, in the middle of a tool loop of three steps, and a server that dies after
// any commit: the request of the next server is accepted by a strict stand-in of the provider,
// which refuses a step without the reasoning that belongs to it.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ProviderOptions } from '../../src/journal/provider-options.ts'
import { foldRun } from '../../src/journal/run-state.ts'
import { systemClock } from '../../src/kit/clock.ts'
import type { ModelsOptions } from '../../src/models/provider-table.ts'
import { createModels } from '../../src/models/providers.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Answer, countingIds, openRig, toolOf } from '../support/run-rig.ts'
import { crashImage } from '../support/test-database.ts'
import {
  type Block,
  startStrictProvider,
  type StrictName,
  type StrictProvider,
  thinkingOptions,
} from '../support/strict-provider.ts'

const models: [name: StrictName, model: string, settings: (baseUrl: string) => Partial<ModelsOptions>][] = [
  [
    'anthropic',
    'anthropic/claude-sonnet-4-5',
    (anthropicBaseUrl) => ({ anthropicApiKey: 'test-key', anthropicBaseUrl }),
  ],
  [
    'openai-responses',
    'openai/gpt-5.4-mini',
    (openaiBaseUrl) => ({ openaiApiKey: 'test-key', openaiBaseUrl, openaiApi: 'responses' }),
  ],
  ['gemini', 'google/gemini-3-pro-preview', (googleBaseUrl) => ({ googleApiKey: 'test-key', googleBaseUrl })],
  [
    'chat-completions',
    'deep/thinker',
    (baseURL) => ({
      model: 'deep/thinker',
      named: [
        {
          name: 'deep',
          baseURL,
          api: 'chat',
          apiKeyEnv: 'DEEP_KEY',
          headers: { 'x-team': 'walks' },
          reasoning: 'return',
        },
      ],
      environment: { DEEP_KEY: 'test-key' },
    }),
  ],
]

const answers: Block[][] = [
  [{ think: 'First I look.' }, { text: ['Let ', 'me ', 'look.'] }, { call: 'look', input: {} }],
  [{ think: 'Now two at once.' }, { call: 'look', input: {} }, { call: 'find', input: {} }],
  [
    { think: 'Once more.', redacted: true },
    { call: 'find', input: {} },
  ],
  [{ think: 'That is all.' }, { text: ['It is ', 'there.'] }],
]

const done = (output: string) => Promise.resolve({ ok: true, output, summary: output })
const tools = [toolOf({ name: 'look', run: () => done('seen') }), toolOf({ name: 'find', run: () => done('found') })]

for (const [name, resolved, settings] of models) {
  describe(`a run of ${name} that thinks between its calls, and whose server dies after any commit`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-thinking-'))
    let provider: StrictProvider
    let answer: Answer

    before(async () => {
      provider = await startStrictProvider(name)
      const model = createModels({
        ...settings(provider.baseUrl),
        ids: countingIds('call'),
        clock: systemClock,
      }).open(resolved)
      answer = ({ messages, tools: offered }, signal) =>
        model.stream(
          {
            model: resolved.slice(resolved.indexOf('/') + 1),
            messages,
            tools: offered,
            providerOptions: thinkingOptions[name] as ProviderOptions,
          },
          signal,
        )
    })
    after(async () => {
      await provider?.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    it('goes on with requests that the provider accepts', async () => {
      const file = join(folder, 'whole.db')
      let images = 0
      const photographed = (store: Store): Store => ({
        ...store,
        async append(write) {
          await store.append(write)
          await crashImage(file, join(folder, `${(images += 1)}.db`))
        },
      })
      const first = await openRig({ answer, tools, file, wrapStore: photographed, ids: countingIds('first') })
      await provider.script(...answers)
      const { run } = await first.start()
      await first.until(run.id, ({ endedAt }) => endedAt !== null)
      const whole = foldRun(await first.events(run.id))
      await first.close()
      assert.equal(whole.ended?.status, 'succeeded', JSON.stringify(whole.ended?.error))
      assert.ok(images >= 12, `only ${images} commits`)

      for (let image = 1; image <= images; image += 1) {
        const rig = await openRig({
          answer,
          tools,
          file: join(folder, `${image}.db`),
          ids: countingIds(`again-${image}`),
          node: 'node-2',
        })
        try {
          const state = foldRun(await rig.events(run.id))
          if (state.phase !== 'ended') await provider.script(...answers.slice(state.steps.filter(isFinished).length))
          rig.scheduler.start()
          await rig.until(run.id, ({ endedAt }) => endedAt !== null)

          const { ended } = foldRun(await rig.events(run.id))
          assert.equal(ended?.status, 'succeeded', `image ${image}: ${JSON.stringify(ended?.error)}`)
          assert.equal(ended.output, 'It is there.')
        } finally {
          await rig.close()
        }
      }
      const refused = (await provider.requests()).map((request) => request.refused).filter((why) => why !== null)
      assert.deepEqual(refused, [])
    })
  })
}

function isFinished({ finished }: { finished: boolean }): boolean {
  return finished
}
