// AI SDK 6 (`ai-6`): the chat class and the transport of useChat.

import * as sdk from 'ai-6'
import type { UiSdk } from '../support/ui-chat-client.ts'
import { uiChatSuite } from './ui-chat-suite.ts'

uiChatSuite({
  name: 'AI SDK 6',
  // The types of the versions have different names for the same things.
  sdk: sdk as unknown as UiSdk,
  path: '/v1/ui/chat',
  async decide(chat, approved, confirmationId) {
    await chat.addToolApprovalResponse({ id: confirmationId, approved })
  },
  denied: 'output-denied',
})
