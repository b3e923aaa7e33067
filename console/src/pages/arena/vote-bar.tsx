// The vote: four buttons and their keys, always in view.

import { useShortcuts } from '../../app/shortcuts.ts'
import { shellWords } from '../../app/words.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import type { Preference } from './use-comparison.ts'
import { arenaWords } from './words.ts'

type VoteBarProps = {
  canVote: boolean
  current: Preference | null
  onVote(preference: Preference): void
  /** Present while an earlier vote is being changed. */
  onCancel?: (() => void) | undefined
}

export function VoteBar({ canVote, current, onVote, onCancel }: VoteBarProps) {
  const words = useWords(arenaWords)
  const shell = useWords(shellWords)
  const choices: { keys: string; preference: Preference; label: string }[] = [
    { keys: '1', preference: 'a', label: words.firstBetter },
    { keys: '2', preference: 'b', label: words.secondBetter },
    { keys: '0', preference: 'tie', label: words.tie },
    { keys: '9', preference: 'both_bad', label: words.both_bad },
  ]
  useShortcuts(
    canVote ? choices.map(({ keys, label, preference }) => ({ keys, label, run: () => onVote(preference) })) : [],
  )
  return (
    <div className="vote-bar" role="group" aria-label={words.vote}>
      <p className="vote-bar-hint faint" role="status">
        {canVote ? words.voteHint : words.voteLater}
      </p>
      <div className="vote-bar-choices">
        {choices.map(({ keys, preference, label }) => (
          <Button
            key={preference}
            keys={keys}
            disabled={!canVote}
            aria-pressed={current === preference}
            onClick={() => onVote(preference)}
          >
            {label}
          </Button>
        ))}
      </div>
      {onCancel === undefined ? null : (
        <Button small look="quiet" onClick={onCancel}>
          {shell.cancel}
        </Button>
      )}
    </div>
  )
}
