// The answers about a conversation that code alone can give: a title, a summary and an
// archive that only count and quote messages. What was decided or has to be done cannot be
// computed, so these lists are empty.

import type { JsonObject } from './source.ts'
import { computedNote, plural, type Say, sayIn, shorten } from './wording.ts'

/** A message as the model is given it. */
export type ReadMessage = { id: string; role: string; content: string; at?: string; contentChars?: number }

export type ReadConversation = {
  messages: ReadMessage[]
  /** False if older messages were left out. */
  complete: boolean
  contactName: string | null
}

const titleChars = 40
const quoteChars = 150
const keyPointsMax = 10

export function conversationAnswer(read: ReadConversation, language: string, operation: string | null): JsonObject {
  const say = sayIn(language)
  const summary = summaryOf(read, say)
  if (operation !== 'archive_extract') return { title: titleOf(read, say), summary, computed: true }
  return {
    summary,
    payload: {
      keyPoints: read.messages
        .filter(({ role }) => role === 'user')
        .slice(-keyPointsMax)
        .map(({ content }) =>
          say(`用户：“${shorten(content, quoteChars)}”`, `The user: “${shorten(content, quoteChars)}”`),
        ),
      decisions: [],
      actionItems: [],
      participants: read.contactName === null ? [] : [shorten(read.contactName, 100)],
      contacts: [],
      events: [],
      facts: [],
      todos: [],
    },
    computed: true,
  }
}

function titleOf({ messages }: ReadConversation, say: Say): string {
  const first = messages.find(({ role }) => role === 'user') ?? messages[0]
  return first === undefined ? say('空对话', 'Empty conversation') : shorten(first.content, titleChars)
}

function summaryOf({ messages, complete }: ReadConversation, say: Say): string {
  const first = messages.find(({ role }) => role === 'user') ?? messages[0]
  const last = messages.at(-1)
  if (first === undefined || last === undefined) {
    return `${say('对话没有消息。', 'The conversation has no messages.')}${say('', ' ')}${computedNote(say)}`
  }
  const users = messages.filter(({ role }) => role === 'user').length
  const count = complete
    ? say(
        `对话共 ${messages.length} 条消息，其中用户 ${users} 条`,
        `The conversation has ${plural(messages.length, 'message')}, ${users} of them by the user`,
      )
    : say(
        `读取了对话中的 ${messages.length} 条消息，其中用户 ${users} 条`,
        `${plural(messages.length, 'message')} of the conversation were read, ${users} of them by the user`,
      )
  const begins = say(
    `${roleName(first, say)}最先说“${quote(first)}”`,
    `${roleName(first, say)} began with “${quote(first)}”`,
  )
  const ends = say(
    `最后一条消息来自${roleName(last, say)}：“${quote(last)}”`,
    `the last message, by ${roleName(last, say).toLowerCase()}, is “${quote(last)}”`,
  )
  if (messages.length === 1)
    return say(`${count}：“${quote(first)}”。${computedNote(say)}`, `${count}: “${quote(first)}”. ${computedNote(say)}`)
  return say(
    `${count}。${begins}；${ends}。${computedNote(say)}`,
    `${count}. ${begins}, and ${ends}. ${computedNote(say)}`,
  )
}

function quote({ content }: ReadMessage): string {
  return shorten(content, quoteChars)
}

function roleName({ role }: ReadMessage, say: Say): string {
  if (role === 'user') return say('用户', 'The user')
  if (role === 'assistant') return say('助手', 'The assistant')
  return say(`角色 ${shorten(role, 32)} `, `The role ${shorten(role, 32)}`)
}
