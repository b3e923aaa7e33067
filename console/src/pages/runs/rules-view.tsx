// The rules that every run keeps: green, or red with the event that breaks one.

import { Link } from 'wouter'
import type { Loaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import type { Rule, Rules } from './use-rules.ts'
import { runsWords } from './words.ts'
import './rules-view.css'

type RulesViewProps = { runId: string; rules: Loaded<Rules>; onSeekSeq(seq: number): void }

export function RulesView({ runId, rules: { data, error, isLoading, reload }, onSeekSeq }: RulesViewProps) {
  const words = useWords(runsWords)
  if (error !== undefined) return <Problem error={error} onRetry={reload} />
  if (data === undefined) return <Spinner center />
  const broken = data.rules.filter(({ kept }) => !kept)
  const kept = data.rules.filter((rule) => rule.kept && rule.seen > 0)
  const unused = data.rules.filter((rule) => rule.kept && rule.seen === 0)
  return (
    <div className="rules" tabIndex={0} role="group" aria-label={words.sideRules}>
      <div className={data.kept ? 'rules-sum rules-sum-good' : 'rules-sum rules-sum-bad'}>
        <Icon name={data.kept ? 'check' : 'alert'} />
        <strong className="grow">{data.kept ? words.rulesKept : words.rulesBroken(broken.length)}</strong>
        <Button small look="quiet" icon="refresh" disabled={isLoading} onClick={reload}>
          {words.checkAgain}
        </Button>
      </div>
      <p className="faint">{words.rulesAbout}</p>
      {data.skipped === 0 ? null : <p className="rules-skipped">{words.rulesSkipped(data.skipped)}</p>}
      <ul className="rules-list">
        {[...broken, ...kept].map((rule) => (
          <RuleLine key={rule.id + rule.on} runId={runId} rule={rule} onSeekSeq={onSeekSeq} />
        ))}
      </ul>
      {unused.length === 0 ? null : (
        <details className="rules-unused">
          <summary className="faint">{words.rulesUnused(unused.length)}</summary>
          <ul className="rules-list">
            {unused.map((rule) => (
              <RuleLine key={rule.id + rule.on} runId={runId} rule={rule} onSeekSeq={onSeekSeq} />
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

function RuleLine({ runId, rule, onSeekSeq }: { runId: string; rule: Rule; onSeekSeq(seq: number): void }) {
  const words = useWords(runsWords)
  return (
    <li className="rule" data-kept={rule.kept}>
      <Icon name={rule.kept ? 'check' : 'close'} size={14} />
      <span className="visually-hidden">{rule.kept ? words.ruleKept : words.ruleBroken}</span>
      <code className="faint">{rule.id}</code>
      <span className="grow">
        {rule.rule}
        {rule.broken.map(({ seq, message }) => (
          <span key={`${seq} ${message}`} className="rule-offence">
            {rule.on === 'journal' ? (
              <button type="button" onClick={() => onSeekSeq(seq)}>
                seq {seq}
              </button>
            ) : (
              // The numbers of a wire are found in its own column.
              <Link
                href={`/wires/${encodeURIComponent(runId)}?wires=${rule.on}&q=${encodeURIComponent(`"seq":${seq},`)}`}
              >
                {rule.on} {seq}
              </Link>
            )}{' '}
            {message}
          </span>
        ))}
      </span>
      <span className="faint numbers">{rule.seen === 0 ? '' : words.rulesSeen(rule.seen)}</span>
    </li>
  )
}
