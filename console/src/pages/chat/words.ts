// The sentences of the chat.

import { defineWords } from '../../i18n/words.ts'

export const chatWords = defineWords(
  {
    conversations: 'Conversations',
    newChat: 'New chat',
    emptyTitle: 'Ask something',
  },
  {
    conversations: '对话列表',
    newChat: '新对话',
    emptyTitle: '提个问题吧',
  },
)
