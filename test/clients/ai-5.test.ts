// AI SDK 5 (`ai-5`): the chat class and the transport of useChat. This version knows no approval
// requests: a waiting call is a data part, and the output `{approved}` of the call is the decision.

import * as sdk from 'ai-5'
import assert from 'node:assert/strict'
import type { UiSdk } from '../support/ui-chat-client.ts'
import { uiChatSuite } from './ui-chat-suite.ts'

uiChatSuite({
  name: 'AI SDK 5',
  // The types of the versions have different names for the same things.
  sdk: sdk as unknown as UiSdk,
  path: '/v1/ui/v5/chat',
  async decide(chat, approved) {
    const call = chat.lastMessage?.parts.find((part) => 'toolCallId' in part)
    assert.ok(call !== undefined && 'toolCallId' in call)
    const output = { approved } as never
    await chat.addToolOutput({ tool: 'remember_note' as never, toolCallId: call.toolCallId, output })
    await chat.sendMessage()
  },
  denied: 'output-error',
})
