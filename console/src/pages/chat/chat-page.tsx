// The chat.

import { useWords } from '../../i18n/words.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { chatWords } from './words.ts'

export default function ChatPage() {
  const words = useWords(chatWords)
  return <EmptyState icon="chat" title={words.emptyTitle} />
}
