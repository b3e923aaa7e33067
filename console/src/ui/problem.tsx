// What went wrong while something was loaded: the sentence of the server, its code, and another try.

import { shellWords } from '../app/words.ts'
import { useWords } from '../i18n/words.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import './problem.css'

export function Problem({ error, onRetry }: { error: { message: string; code?: string }; onRetry?: () => void }) {
  const words = useWords(shellWords)
  return (
    <div className="problem" role="alert">
      <Icon name="alert" />
      <div className="grow">
        <p>{error.message}</p>
        {error.code === undefined ? null : <code className="faint">{error.code}</code>}
      </div>
      {onRetry === undefined ? null : (
        <Button small icon="refresh" onClick={onRetry}>
          {words.retry}
        </Button>
      )}
    </div>
  )
}
