// The chat: conversations at the left, the chosen one beside them. The address holds which one.

import { useState } from 'react'
import { useLocation } from 'wouter'
import { pathPart } from '../../app/path-part.ts'
import { useFeed } from '../../feed/feed.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { showToast } from '../../ui/toast.tsx'
import { ChatView } from './chat-view.tsx'
import { ConversationList } from './conversation-list.tsx'
import { chatWords } from './words.ts'
import './chat-page.css'

export default function ChatPage() {
  const words = useWords(chatWords)
  const [location, navigate] = useLocation()
  const [isListOpen, setListOpen] = useState(false)
  const conversationId = pathPart(location)
  // Perhaps in another tab. A message would begin a new conversation with the same id, without what is still shown here.
  useFeed((frame) => {
    if (frame.type !== 'conversation.deleted' || frame.conversationId !== conversationId) return
    navigate('/chat', { replace: true })
    showToast({ text: words.wasDeleted })
  })
  return (
    <div className="chat-page" data-list={isListOpen}>
      <h1 className="visually-hidden">{words.conversations}</h1>
      <div className="chat-page-bar">
        <Button small look="quiet" icon="left" aria-expanded={isListOpen} onClick={() => setListOpen(!isListOpen)}>
          {words.conversations}
        </Button>
        <span className="grow" />
        <Button
          small
          look="quiet"
          icon="plus"
          onClick={() => {
            navigate('/chat')
            setListOpen(false)
          }}
        >
          {words.newChat}
        </Button>
      </div>
      <ConversationList current={conversationId} onChoose={() => setListOpen(false)} />
      <ChatView conversationId={conversationId} />
    </div>
  )
}
