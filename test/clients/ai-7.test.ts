// AI SDK 7 (`ai`): the chat class and the transport of useChat.

import * as sdk from 'ai'
import { uiChatSuite } from './ui-chat-suite.ts'

uiChatSuite({
  name: 'AI SDK 7',
  sdk,
  path: '/v1/ui/chat',
  async decide(chat, approved, confirmationId) {
    await chat.addToolApprovalResponse({ id: confirmationId, approved })
  },
  denied: 'output-denied',
})
