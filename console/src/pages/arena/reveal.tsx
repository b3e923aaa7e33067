// After the vote: who gave which answer, with what it took, and where to go from here.

import { Link } from 'wouter'
import type { Comparison } from '@polylog/client'
import { useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import type { RunView } from '../../run/run-view.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { FactsTable } from './facts-table.tsx'
import { runFacts } from './run-facts.ts'
import { arenaWords } from './words.ts'

type RevealProps = {
  comparison: Comparison
  runs: { a: string; b: string }
  views: { a: RunView; b: RunView }
  onRevise(): void
}

export function Reveal({ comparison, runs, views, onRevise }: RevealProps) {
  const words = useWords(arenaWords)
  const { preference, side_a_config, side_b_config } = comparison
  const { data } = useLoaded(`facts ${runs.a} ${runs.b}`, async ({ client }, signal) => {
    const [a, b] = await Promise.all([client.getRun(runs.a, { signal }), client.getRun(runs.b, { signal })])
    return { a, b }
  })
  const diff = `/arena/diff?left=${encodeURIComponent(runs.a)}&right=${encodeURIComponent(runs.b)}`
  return (
    <section className="reveal" aria-label={words.result}>
      <div className="row row-wrap">
        <h3 className="grow">
          {preference === null
            ? words.noVoteShort
            : preference === 'a' || preference === 'b'
              ? words.youPreferred((preference === 'a' ? side_a_config : side_b_config) ?? '')
              : preference === 'tie'
                ? words.youSaidTie
                : words.youSaidBad}
        </h3>
        {preference === null ? null : (
          <Button small look="quiet" icon="edit" onClick={onRevise}>
            {words.changeVote}
          </Button>
        )}
      </div>
      <FactsTable
        left={{ name: side_a_config ?? words.first, facts: runFacts(views.a, data?.a) }}
        right={{ name: side_b_config ?? words.second, facts: runFacts(views.b, data?.b) }}
      />
      <div className="row row-wrap">
        <Link className="button button-primary" href="/arena/new">
          <Icon name="plus" />
          {words.newComparison}
        </Link>
        <Link className="button button-plain" href={diff}>
          <Icon name="arena" />
          {words.showDiff}
        </Link>
        <Link className="button button-plain" href="/arena/standings">
          <Icon name="operations" />
          {words.standings}
        </Link>
        <Link className="button button-plain" href={`/chat/${encodeURIComponent(comparison.conversation_id)}`}>
          <Icon name="chat" />
          {words.continueInChat}
        </Link>
      </div>
    </section>
  )
}
