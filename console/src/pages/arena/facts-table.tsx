// What two runs took, row by row, with the difference. The smaller number is marked; it is not always the better one.

import { useLocale, useWords } from '../../i18n/words.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { durationText } from '../../ui/countdown.tsx'
import type { RunFacts } from './run-facts.ts'
import { arenaWords } from './words.ts'
import './facts-table.css'

type Side = { name: string; facts: RunFacts }

export function FactsTable({ left, right }: { left: Side; right: Side }) {
  const words = useWords(arenaWords)
  const locale = useLocale()
  const count = (value: number) => value.toLocaleString(locale)
  const rows: { label: string; pick(facts: RunFacts): number | null; format(value: number): string }[] = [
    { label: words.time, pick: ({ durationMs }) => durationMs, format: durationText },
    { label: words.waited, pick: ({ waitedMs }) => waitedMs, format: durationText },
    { label: words.inputTokens, pick: ({ inputTokens }) => inputTokens, format: count },
    { label: words.outputTokens, pick: ({ outputTokens }) => outputTokens, format: count },
    { label: words.cost, pick: ({ costMicroUsd }) => costMicroUsd, format: dollars },
    { label: words.steps, pick: ({ steps }) => steps, format: count },
    { label: words.toolCalls, pick: ({ tools }) => tools, format: count },
    { label: words.answerChars, pick: ({ chars }) => chars, format: count },
  ]
  const known = rows.filter(({ pick }) => pick(left.facts) !== null || pick(right.facts) !== null)
  return (
    // A region that scrolls must be reachable by keyboard.
    <div className="facts" tabIndex={0} role="region" aria-label={words.facts}>
      <table className="facts-table">
        <thead>
          <tr>
            <td />
            <th scope="col">{left.name}</th>
            <th scope="col">{right.name}</th>
            <th scope="col">{words.difference}</th>
          </tr>
        </thead>
        <tbody>
          {left.facts.status === null && right.facts.status === null ? null : (
            <tr>
              <th scope="row">{words.status}</th>
              {[left, right].map(({ facts }, index) => (
                <td key={index}>{facts.status === null ? '–' : <StatusBadge status={facts.status} />}</td>
              ))}
              <td />
            </tr>
          )}
          <tr>
            <th scope="row">{words.model}</th>
            <td>
              <code>{left.facts.model ?? '–'}</code>
            </td>
            <td>
              <code>{right.facts.model ?? '–'}</code>
            </td>
            <td className="faint">{left.facts.model === right.facts.model ? words.same : ''}</td>
          </tr>
          {known.map(({ label, pick, format }) => {
            const [a, b] = [pick(left.facts), pick(right.facts)]
            return (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td className="numbers" data-less={a !== null && b !== null && a < b}>
                  {a === null ? '–' : format(a)}
                </td>
                <td className="numbers" data-less={a !== null && b !== null && b < a}>
                  {b === null ? '–' : format(b)}
                </td>
                <td className="numbers faint">{a === null || b === null ? '' : delta(a, b, format, words.same)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** How much more the right one has: `+1.2 s · +40 %`. */
function delta(left: number, right: number, format: (value: number) => string, same: string): string {
  if (left === right) return same
  const sign = right > left ? '+' : '−'
  const share = left === 0 ? '' : ` · ${sign}${Math.round((Math.abs(right - left) / left) * 100)} %`
  return `${sign}${format(Math.abs(right - left))}${share}`
}

function dollars(microUsd: number): string {
  return `$${(microUsd / 1_000_000).toFixed(microUsd < 10_000 ? 6 : 4)}`
}
