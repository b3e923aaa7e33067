// The data source `conversation`: the messages of one conversation. Messages in the input
// have precedence over the stored ones, so an agent can be asked about a conversation that
// is not stored here.

import type { Caller } from '../../kit/caller.ts'
import { isoTime } from '../../kit/clock.ts'
import { ownConversation } from '../../runs/conversation-names.ts'
import type { ContactStore } from '../../stores/contact-store.ts'
import type { ConversationStore } from '../../stores/conversation-store.ts'
import type { MessageStore } from '../../stores/message-store.ts'
import { conversationAnswer, type ReadConversation, type ReadMessage } from './conversation-answer.ts'
import { takeThatFit } from './fit-tokens.ts'
import type { Collected, DataSource, JsonObject } from './source.ts'

export type ConversationSourceStore = Pick<ConversationStore, 'findConversationByName' | 'readConversation'> &
  Pick<MessageStore, 'listMessages'> &
  Pick<ContactStore, 'readContact'>

/** The newest messages that are read from the store. */
const messagesMax = 300
/** The messages that the model is given. */
const tokensMax = 10_000
/** A longer message is cut, and `contentChars` says how long it is; it would leave no room for the others. */
const messageCharsMax = 4_000

export function conversationSource(store: ConversationSourceStore): DataSource {
  return {
    async collect(caller, input, _at, language, operation): Promise<Collected> {
      const given = givenMessages(input)
      const all = given === undefined ? await storedMessages(store, caller, input) : { ...given, contactName: null }
      const read = selectMessages(all)
      const data: JsonObject = {
        conversation: { id: String(input['conversationId'] ?? ''), complete: read.complete },
        messages: read.messages,
        ...(read.contactName === null ? {} : { contact: { name: read.contactName } }),
      }
      return {
        data,
        hashed: data,
        citable: read.messages.map(({ id }) => ({ source: id, type: 'message' })),
        computedAnswer: conversationAnswer(read, language, operation),
      }
    },
  }
}

/** The input schema has checked the form. Messages without an id are numbered. */
function givenMessages(input: JsonObject): { messages: ReadMessage[]; complete: boolean } | undefined {
  const { messages } = input
  if (!Array.isArray(messages)) return undefined
  const read = messages.map((message, index) => {
    const { id, role, content } = message as JsonObject
    return {
      id: typeof id === 'string' ? id : `m${index + 1}`,
      role: String(role),
      content: typeof content === 'string' ? content : '',
    }
  })
  return { messages: read, complete: true }
}

async function storedMessages(
  store: ConversationSourceStore,
  caller: Caller,
  input: JsonObject,
): Promise<ReadConversation> {
  const row = await ownConversation(store, caller.userId, String(input['conversationId'] ?? ''))
  const { rows, more } = await store.listMessages(row.id, { limit: messagesMax })
  const contact = row.contactId === null ? undefined : await store.readContact(row.owner, row.contactId)
  return {
    messages: rows
      .filter(({ role }) => role === 'user' || role === 'assistant')
      .map(({ id, role, content, createdAt }) => ({ id, role, content, at: isoTime(createdAt) })),
    complete: !more,
    contactName: contact?.name ?? null,
  }
}

/** The first message says what it is about, the newest ones how it ended; both are kept before the middle. */
function selectMessages({ messages, complete, contactName }: ReadConversation): ReadConversation {
  const bounded = messages.filter(({ content }) => content.trim() !== '').map(boundedMessage)
  const [first, ...rest] = bounded
  const byImportance = first === undefined ? [] : [first, ...rest.reverse()]
  const { taken, omitted } = takeThatFit(byImportance, tokensMax)
  const kept = new Set(taken)
  return { messages: bounded.filter((message) => kept.has(message)), complete: complete && omitted === 0, contactName }
}

function boundedMessage(message: ReadMessage): ReadMessage {
  const { content } = message
  if (content.length <= messageCharsMax) return message
  const cut = content
    .slice(0, messageCharsMax)
    .toWellFormed()
    .replace(/\uFFFD$/, '')
  return { ...message, content: `${cut}…`, contentChars: content.length }
}
