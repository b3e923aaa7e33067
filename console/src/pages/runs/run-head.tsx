// The head of a run: what was asked, its state, and the facts about it.

import { useState } from 'react'
import { Link } from 'wouter'
import { useApi } from '../../api/api.ts'
import { type Loaded, problemOf } from '../../api/use-loaded.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { ConnectionBadge } from '../../run/connection-badge.tsx'
import type { FollowedJournal } from '../../run/journal-follower.ts'
import type { RunRecord } from '../../run/run-record.ts'
import type { RunView } from '../../run/run-view.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { showProblem, showToast } from '../../ui/toast.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { exportRun } from './export-run.ts'
import type { Rules } from './use-rules.ts'
import { runsWords } from './words.ts'
import './run-head.css'

type RunHeadProps = {
  runId: string
  view: RunView
  record: RunRecord
  count: number
  /** The end of the run, or the time of day. */
  now: number
  connection: FollowedJournal['connection']
  rules: Loaded<Rules>
  onShowRules(): void
}

export function RunHead({ runId, view, record, count, now, connection, rules, onShowRules }: RunHeadProps) {
  const words = useWords(runsWords)
  const locale = useLocale()
  const api = useApi()
  const [isExporting, setExporting] = useState(false)
  const { state } = view
  const { start } = state
  const firstModel = record.waterfall.spans.find(({ kind }) => kind === 'model')
  const tokens = record.waterfall.spans.reduce((sum, span) => sum + (span.tokens ?? 0), 0)
  const attempts = record.rows.at(-1)?.attempt ?? 1
  const cost = state.usage?.costMicroUsd ?? null
  const facts: [string, string][] = [
    [words.agent, start?.agentId ?? '–'],
    [words.model, firstModel?.label ?? start?.metadata.model ?? '–'],
    [words.duration, durationText(now - (record.times[0] ?? now))],
    [
      words.firstToken,
      firstModel?.firstToken === undefined ? '–' : durationText(firstModel.firstToken - (record.times[0] ?? 0)),
    ],
    [words.tokens, tokens === 0 ? '–' : tokens.toLocaleString(locale)],
    ...(cost === null ? [] : [[words.cost, `$${(cost / 1e6).toFixed(4)}`] as [string, string]]),
    [words.events, count.toLocaleString(locale)],
    ...(attempts > 1 ? [[words.attempts, String(attempts)] as [string, string]] : []),
    [words.started, start === null ? '–' : new Date(start.createdAtMs).toLocaleString(locale)],
  ]
  const save = async () => {
    setExporting(true)
    try {
      const events = await exportRun(api, runId)
      showToast({ tone: 'good', text: words.exportDone(events.toLocaleString(locale)) })
    } catch (error) {
      showProblem(words.exportFailed, problemOf(error))
    } finally {
      setExporting(false)
    }
  }
  return (
    <header className="run-head">
      <div className="run-head-line">
        <Link className="run-head-back" href="/runs" aria-label={words.back} title={words.back}>
          <Icon name="left" />
        </Link>
        <h1 className="cut" title={state.input}>
          <bdi>{withVisibleControls(state.input) || words.noInput}</bdi>
        </h1>
        <StatusBadge status={state.status} />
        {connection === 'ended' ? null : <ConnectionBadge connection={connection} recovered={0} />}
        <RulesBadge rules={rules} onShow={onShowRules} />
        <span className="grow" />
        <span className="run-head-actions">
          {start?.conversationId === undefined ? null : (
            <Link
              className="button button-quiet icon-button"
              href={`/chat/${encodeURIComponent(start.conversationId)}`}
              aria-label={words.openConversation}
              title={words.openConversation}
            >
              <Icon name="chat" />
            </Link>
          )}
          <CopyButton text={() => location.href} label={words.copyLink} icon="link" />
          <IconButton icon="download" label={words.export} disabled={isExporting} onClick={() => void save()} />
          <Link
            className="button button-plain button-small"
            href={`/wires/${encodeURIComponent(runId)}`}
            title={words.allWires}
          >
            <Icon name="wire" size={14} />
            <span className="run-head-wires">{words.wires}</span>
          </Link>
        </span>
      </div>
      <dl className="run-facts">
        {facts.map(([name, value]) => (
          <div key={name} className="run-fact">
            <dt>{name}</dt>
            <dd className="numbers cut" title={value}>
              {value}
            </dd>
          </div>
        ))}
        <div className="run-fact">
          <dt>ID</dt>
          <dd className="row run-fact-id">
            <code className="cut">{runId}</code>
            <CopyButton text={runId} />
          </dd>
        </div>
      </dl>
    </header>
  )
}

function RulesBadge({ rules: { data }, onShow }: { rules: Loaded<Rules>; onShow(): void }) {
  const words = useWords(runsWords)
  if (data === undefined) return null
  const broken = data.rules.filter(({ kept }) => !kept).length
  return (
    <button
      type="button"
      className={`badge run-rules badge-${data.kept ? 'good' : 'bad'}`}
      title={words.sideRules}
      onClick={onShow}
    >
      <Icon name={data.kept ? 'check' : 'alert'} size={12} />
      <span className="run-rules-text">{data.kept ? words.rulesKept : words.rulesBroken(broken)}</span>
    </button>
  )
}
