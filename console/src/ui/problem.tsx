// What went wrong while something was loaded: the sentences about it, its code, and another try.

import { shellWords } from '../app/words.ts'
import { useWords } from '../i18n/words.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { ProblemText } from './problem-text.tsx'
import './problem.css'

export function Problem({ error, onRetry }: { error: { message: string; code?: string }; onRetry?: () => void }) {
  const words = useWords(shellWords)
  return (
    <div className="problem" role="alert">
      <Icon name="alert" />
      <div className="grow">
        <ProblemText error={error} />
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
