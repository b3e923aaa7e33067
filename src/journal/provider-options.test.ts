// Which options of providers are accepted, and how several sets of them are combined.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkRequestedOptions, mergedOptions, providerOptions } from './provider-options.ts'

describe('options of a provider', () => {
  it('of a request override single options of the set and of the agent', () => {
    assert.deepEqual(
      mergedOptions({ openai: { reasoningEffort: 'low', serviceTier: 'flex' } }, undefined, {
        openai: { reasoningEffort: 'high' },
        anthropic: { effort: 'low' },
      }),
      { openai: { reasoningEffort: 'high', serviceTier: 'flex' }, anthropic: { effort: 'low' } },
    )
    assert.equal(mergedOptions(undefined, {}), undefined)
  })

  it('are refused in a request if the server has no provider of that name', () => {
    assert.throws(() => checkRequestedOptions({ anthropc: {} }, ['openai', 'anthropic']), {
      code: 'provider_options_invalid',
      message: /"anthropc".*openai, anthropic/,
    })
  })

  for (const [provider, option] of [
    ['openai', 'store'],
    ['openai', 'previousResponseId'],
    ['anthropic', 'mcpServers'],
    ['google', 'cachedContent'],
  ] as const) {
    it(`are refused in a request if they are ${provider}.${option}, which only the operator may set`, () => {
      assert.throws(() => checkRequestedOptions({ [provider]: { [option]: 'x' } }, [provider]), {
        code: 'provider_options_invalid',
      })
    })
  }

  it('have limits of length and depth', () => {
    const deep = JSON.parse(`${'['.repeat(9)}${']'.repeat(9)}`)

    assert.equal(providerOptions.safeParse({ openai: { user: 'x'.repeat(10_000) } }).success, true)
    assert.equal(providerOptions.safeParse({ openai: { user: 'x'.repeat(17_000) } }).success, false)
    assert.equal(providerOptions.safeParse({ openai: { deep } }).success, false)
    assert.equal(providerOptions.safeParse({ openai: 'high' }).success, false)
  })
})
