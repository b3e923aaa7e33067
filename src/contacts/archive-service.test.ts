// Archives at the service: what the agent is asked, whose an archive is, and writes that
// meet. The agent is a stub, so that it can answer what a checked agent never would.

import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { inConversation, message } from '../../test/contracts/store-fixtures.ts'
import { openContactStore } from '../../test/support/contact-store.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { ConversationService } from '../conversations/conversation-service.ts'
import type { JsonValue } from '../journal/event.ts'
import { asUser } from '../kit/caller.ts'
import type { ArchiveApply, ArchiveStore } from '../stores/archive-store.ts'
import type { AgentRequest } from './agent-runner.ts'
import { ArchiveService } from './archive-service.ts'
import { BriefService } from './brief-service.ts'
import { ContactService } from './contact-service.ts'

const store = await openContactStore()
const clock = manualClock()
let minted = 0
const ids = () => `id-${++minted}`
const conversations = new ConversationService({ store, runs: { cancel: async () => {} } as never, clock, ids })
const contacts = new ContactService({ store, conversations, clock, ids })
const alice = asUser('alice')
const plain = { useCache: true, forceRefresh: false }

let requests: AgentRequest[] = []
let answer: Record<string, JsonValue> = {}
/** Called while the agent runs. */
let meanwhile = async () => {}
const agents = {
  async run(_caller: unknown, request: AgentRequest) {
    requests.push(request)
    await meanwhile()
    return { runId: `run-${requests.length}`, snapshotId: 's', cached: false, generatedAt: 5, data: answer }
  },
}

const serviceOn = (part: ArchiveStore) => new ArchiveService({ store: part, conversations, agents, clock, ids })
const service = serviceOn(store)

let count = 0
let name = ''
let messageId = ''

beforeEach(async () => {
  count += 1
  name = `conv_${count}`
  messageId = `m${count}`
  requests = []
  meanwhile = async () => {}
  const accepted = inConversation(`r${count}`, `k${count}`, 'absent', { name })
  await store.accept({ ...accepted, messages: [message(messageId, `k${count}`, { content: 'hello' })] })
  answer = {
    summary: 'S',
    payload: { contacts: [{ ref: 'c1', name: `Ann ${count}`, citations: [{ messageId }] }] },
  }
})

describe('making an archive', () => {
  test('asks the agent about the conversation of the caller, with what the client said', async () => {
    await service.archive(alice, name, { language: 'en', useCache: false, forceRefresh: true })
    // By its id, too: the agent is asked about the same name, so that the stored result is found.
    await service.archive(alice, `k${count}`, plain)

    const request = { agentId: 'archive_brief', operation: 'archive_extract' }
    const [first, second] = requests
    assert.deepEqual(first, {
      ...request,
      input: { userId: 'alice', conversationId: `k${count}`, language: 'en' },
      useCache: false,
      forceRefresh: true,
    })
    assert.deepEqual(second, {
      ...request,
      input: { userId: 'alice', conversationId: `k${count}` },
      useCache: true,
      forceRefresh: false,
    })
  })

  test('is refused as a failure of the model if it cites what is not there, and nothing is stored', async () => {
    for (const citations of [[], [{ messageId: 'nothing' }], [{ messageId, start: 0, end: 99 }]]) {
      answer = { summary: 'S', payload: { facts: [{ content: 'x', citations }] } }
      await assert.rejects(
        service.archive(alice, name, plain),
        (error: Error & { code?: string; details?: object }) => {
          assert.equal(error.code, 'output_validation_failed')
          assert.match(JSON.stringify(error.details), /facts\.0.* cites /)
          return true
        },
      )
    }
    await assert.rejects(service.newest('alice', name), { code: 'conversation_archive_not_found' })
  })

  test('of a conversation that is deleted meanwhile is not found', async () => {
    const row = await conversations.create('alice', null)
    meanwhile = async () => void (await store.deleteConversation(row.id))

    await assert.rejects(service.archive(alice, row.id, plain), { code: 'conversation_not_found' })
  })

  test('is the same archive for the same run', async () => {
    const first = await service.archive(alice, name, plain)
    requests = []

    assert.deepEqual(await service.archive(alice, name, plain), first)
  })
})

test('an archive of another user is not found, whatever is done with it', async () => {
  const { id } = await service.archive(alice, name, plain)
  const mallory = asUser('mallory')
  const missing = { code: 'conversation_archive_not_found' }

  await assert.rejects(service.get(mallory, id), missing)
  await assert.rejects(service.change(mallory, id, { facts: [] }), missing)
  await assert.rejects(service.apply(mallory, id), missing)
  await assert.rejects(service.discard(mallory, id), missing)
  await assert.rejects(service.newest('mallory', name), { code: 'conversation_not_found' })
  await assert.rejects(service.archive(mallory, name, plain), { code: 'conversation_not_found' })
  assert.deepEqual([(await service.get(alice, id)).status, requests.length], ['ready_for_review', 1])
})

describe('a change that comes between reading and writing', () => {
  test('of the payload is what is applied', async () => {
    const { id } = await service.archive(alice, name, plain)
    let changes = 0
    const busy: ArchiveStore = {
      ...store,
      async applyArchive(apply: ArchiveApply) {
        if (changes++ === 0) await service.change(alice, id, { contacts: [] })
        return await store.applyArchive(apply)
      },
    }

    const applied = await serviceOn(busy).apply(alice, id)

    assert.deepEqual([applied.status, applied.payload.contacts, changes], ['applied', [], 2])
    const found = await contacts.list('alice', { limit: 9, offset: 0, search: `Ann ${count}` })
    assert.equal(found.total, 0)
  })

  test('to discarded or applied ends the attempt', async () => {
    const { id } = await service.archive(alice, name, plain)
    const discarding: ArchiveStore = {
      ...store,
      async applyArchive(apply: ArchiveApply) {
        await service.discard(alice, id)
        return await store.applyArchive(apply)
      },
    }
    await assert.rejects(serviceOn(discarding).apply(alice, id), { code: 'archive_closed' })

    const again = await service.archive(alice, name, plain)
    const applying: ArchiveStore = {
      ...store,
      async changeArchive(change) {
        await service.apply(alice, again.id)
        return await store.changeArchive(change)
      },
    }
    await assert.rejects(serviceOn(applying).change(alice, again.id, { facts: [] }), { code: 'archive_closed' })
  })

  test('again and again is given up after some attempts', async () => {
    const { id } = await service.archive(alice, name, plain)
    let tries = 0
    const neverDone: ArchiveStore = {
      ...store,
      async applyArchive() {
        tries += 1
        return await store.readArchive(id)
      },
    }

    await assert.rejects(serviceOn(neverDone).apply(alice, id), { code: 'store_busy' })
    assert.ok(tries > 1)
  })
})

describe('the brief of a contact', () => {
  const briefs = new BriefService({ store, contacts, agents })

  test('is asked of the agent with the id of the contact, and has the fields of its answer', async () => {
    answer = { content: '## Background', citations: [{ source: 'f' }], computed: true, operation: 'brief_generate' }
    const brief = await briefs.generate(alice, 'c', { language: 'en', useCache: true, forceRefresh: true })

    assert.deepEqual(requests, [
      {
        agentId: 'archive_brief',
        operation: 'brief_generate',
        input: { userId: 'alice', contactId: 'c', language: 'en' },
        useCache: true,
        forceRefresh: true,
      },
    ])
    assert.deepEqual(brief, {
      contactId: 'c',
      content: '## Background',
      citations: [{ source: 'f' }],
      generatedAt: 5,
      snapshotId: 's',
      runId: 'run-1',
      cached: false,
      computed: true,
    })
  })

  test('of a contact that the user does not have is not found', async () => {
    await assert.rejects(briefs.newest('alice', 'nobody'), { code: 'contact_not_found' })
  })
})
