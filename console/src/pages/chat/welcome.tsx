// A new chat: what this is, three things to try, and the same from a terminal.

import type { RefObject } from 'react'
import { useCurl } from '../../api/curl.ts'
import { useWords } from '../../i18n/words.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Icon, type IconName } from '../../ui/icon.tsx'
import { isByKeyboard } from '../../ui/use-kept-focus.ts'
import { chatWords } from './words.ts'
import './welcome.css'

type WelcomeProps = {
  /** Gets the focus of a button, because all of this goes away with the first question. */
  field: RefObject<HTMLElement | null>
  onAsk(text: string): void
}

export function Welcome({ field, onAsk }: WelcomeProps) {
  const words = useWords(chatWords)
  const ideas: { icon: IconName; title: string; text: string }[] = [
    { icon: 'tool', title: words.tryTool, text: words.tryToolText },
    { icon: 'check', title: words.tryApproval, text: words.tryApprovalText },
    { icon: 'plug', title: words.tryCut, text: words.tryCutText },
  ]
  const call = useCurl('/v1/agent/chat', { options: '-N', body: { input: words.tryToolText } })
  return (
    <div className="welcome">
      <h1>{words.welcome}</h1>
      <p className="soft">{words.welcomeHelp}</p>
      <div className="welcome-ideas">
        {ideas.map(({ icon, title, text }) => (
          <button
            key={title}
            type="button"
            className="welcome-idea"
            onClick={(event) => {
              onAsk(text)
              if (isByKeyboard(event)) field.current?.focus()
            }}
          >
            <Icon name={icon} />
            <span className="welcome-idea-title">{title}</span>
            <span className="faint">{text}</span>
          </button>
        ))}
      </div>
      <p className="welcome-or faint">{words.orCall}</p>
      <div className="welcome-call">
        <pre tabIndex={0}>{call}</pre>
        <CopyButton text={call} />
      </div>
    </div>
  )
}
