// Short notices at the bottom of the page. Errors stay until they are dismissed, the rest goes by itself.

import { shellWords } from '../app/words.ts'
import { createStore } from '../app/store.ts'
import { useWords } from '../i18n/words.ts'
import { IconButton } from './button.tsx'
import { Icon } from './icon.tsx'
import { ProblemText } from './problem-text.tsx'
import './toast.css'

type Failure = { message: string; code?: string }
export type Notice = { tone?: 'neutral' | 'good' | 'bad'; text: string; problem?: Failure }

type ShownNotice = Notice & { id: number }

const notices = createStore<readonly ShownNotice[]>([])
const shownMs = 4000
/** More would cover the page. */
const noticesMax = 3
let count = 0

export function showToast(notice: Notice): void {
  count += 1
  const shown = { ...notice, id: count }
  notices.set((old) => [...old, shown].slice(-noticesMax))
  if (notice.tone !== 'bad') setTimeout(() => dismiss(shown.id), shownMs)
}

/** Shows what the server said about a request that failed. */
export function showProblem(text: string, problem: Failure): void {
  showToast({ tone: 'bad', text, problem })
}

function dismiss(id: number): void {
  notices.set((old) => old.filter((notice) => notice.id !== id))
}

export function Toasts() {
  const words = useWords(shellWords)
  return (
    <div className="toasts" role="status">
      {notices.use().map(({ id, tone = 'neutral', text, problem }) => (
        <div key={id} className={`toast toast-${tone}`}>
          <Icon name={tone === 'bad' ? 'alert' : tone === 'good' ? 'check' : 'info'} />
          <div className="grow">
            <div className="toast-text">{text}</div>
            {problem === undefined ? null : <ProblemText error={problem} />}
          </div>
          <IconButton icon="close" label={words.dismiss} small onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  )
}
