// A tool call: its name and sentence, its state and duration, and on demand its input and output. A long output is cut
// with its full length, and the rest is loaded when somebody wants it.

import { useRef, useState } from 'react'
import type { JsonValue, ToolBlock, TruncatedOutput } from '@polylog/client'
import { useLocale, useWords } from '../i18n/words.ts'
import { useApi } from '../api/api.ts'
import { problemOf } from '../api/use-loaded.ts'
import { liveState } from '../feed/live-state.ts'
import { Button } from '../ui/button.tsx'
import { CodeBlock } from '../ui/code-block.tsx'
import { durationText, useNow } from '../ui/countdown.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { JsonTree } from '../ui/json-tree.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { showProblem } from '../ui/toast.tsx'
import { useKeptFocus } from '../ui/use-kept-focus.ts'
import { ProblemText } from '../ui/problem-text.tsx'
import { withVisibleControls } from '../ui/visible-text.ts'
import { ApprovalCard } from './approval-card.tsx'
import { DecisionCard } from './decision-card.tsx'
import type { ToolTimes } from './run-view.ts'
import { runWords } from './words.ts'
import './tool-card.css'

const icons: Record<ToolBlock['status'], IconName> = {
  queued: 'clock',
  running: 'tool',
  awaiting_input: 'alert',
  succeeded: 'check',
  failed: 'close',
  cancelled: 'stop',
}

type ToolCardProps = {
  runId: string
  block: ToolBlock
  times?: ToolTimes | undefined
  /** False in a replay: a decision of the past cannot be made again. */
  canDecide?: boolean
}

export function ToolCard({ runId, block, times, canDecide = true }: ToolCardProps) {
  const words = useWords(runWords)
  const [isOpen, setOpen] = useState(false)
  const isWorking = block.status === 'running'
  const now = useNow(isWorking)
  const began = times?.startedAt ?? times?.seenAt
  const durationMs = began === undefined ? undefined : (times?.endedAt ?? (isWorking ? now : began)) - began
  const needsPerson =
    block.status === 'awaiting_input' && block.confirmationId !== undefined && block.source !== 'client' && canDecide
  const head = useRef<HTMLButtonElement>(null)
  const keptFocus = useKeptFocus(needsPerson, head)
  return (
    <section className="tool-card" data-status={block.status} aria-label={`${words.tool} ${block.name}`}>
      <button
        ref={head}
        type="button"
        className="tool-card-head"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {isWorking ? <Spinner label={words.running} /> : <Icon name={icons[block.status]} />}
        <code className="tool-card-name">{block.name}</code>
        <span className="grow cut soft">{block.message === undefined ? '' : withVisibleControls(block.message)}</span>
        <span className="tool-card-status">{words[block.status]}</span>
        {durationMs === undefined || block.status === 'queued' || block.status === 'awaiting_input' ? null : (
          <span className="faint numbers">{durationText(Math.max(0, durationMs))}</span>
        )}
        <Icon name={isOpen ? 'down' : 'right'} size={12} />
      </button>
      {needsPerson ? (
        <div {...keptFocus}>
          <CallDecision id={block.confirmationId ?? ''} block={block} />
        </div>
      ) : null}
      {block.status === 'awaiting_input' && block.source === 'client' ? (
        <p className="tool-card-note soft">{words.clientTool}</p>
      ) : null}
      {isOpen ? (
        <div className="tool-card-body">
          {block.input === undefined ? null : (
            <>
              <h3>{words.input}</h3>
              <JsonTree value={block.input} label={words.input} />
            </>
          )}
          {block.error === undefined ? null : (
            <div className="tool-card-error">
              <ProblemText error={block.error} />
              <code className="faint">{block.error.code}</code>
            </div>
          )}
          {block.output === undefined ? null : (
            <>
              <h3>{words.output}</h3>
              <ToolOutput runId={runId} output={block.output} />
            </>
          )}
        </div>
      ) : null}
    </section>
  )
}

/** A call may also be a question: then its answer is the result of the call. */
function CallDecision({ id, block }: { id: string; block: ToolBlock }) {
  const asked = liveState.use().decisions.get(id)
  return asked?.kind === 'question' ? <DecisionCard item={asked} /> : <ApprovalCard id={id} block={block} />
}

/** More would slow the page down; the file is at the address of the output. */
const loadedCharsMax = 500_000

function ToolOutput({ runId, output }: { runId: string; output: JsonValue | TruncatedOutput }) {
  const words = useWords(runWords)
  const locale = useLocale()
  const api = useApi()
  const [whole, setWhole] = useState<{ text: string; isCut: boolean } | 'loading' | null>(null)
  if (!isTruncated(output)) return <JsonTree value={output} label={words.output} />
  if (whole !== null && whole !== 'loading') {
    return (
      <>
        <CodeBlock code={whole.text} label={words.output} />
        {whole.isCut ? <p className="faint">{words.loadOutputMax(loadedCharsMax.toLocaleString(locale))}</p> : null}
      </>
    )
  }
  const { preview, fullLength, ref } = output
  const shown = typeof preview === 'string' ? preview : JSON.stringify(preview)
  const load = async () => {
    setWhole('loading')
    try {
      const path = `/v1/agent/runs/${encodeURIComponent(runId)}/outputs/${encodeURIComponent(ref ?? '')}`
      setWhole(await api.text(path, loadedCharsMax))
    } catch (error) {
      setWhole(null)
      showProblem(words.loadOutput, problemOf(error))
    }
  }
  return (
    <>
      <JsonTree value={preview} label={words.output} />
      <p className="row row-wrap faint">
        {words.outputCut(shown.length.toLocaleString(locale), fullLength.toLocaleString(locale))}
        {ref === undefined ? null : (
          <Button small disabled={whole === 'loading'} onClick={() => void load()}>
            {words.loadOutput}
          </Button>
        )}
      </p>
    </>
  )
}

function isTruncated(output: JsonValue | TruncatedOutput): output is TruncatedOutput {
  return (
    typeof output === 'object' &&
    output !== null &&
    'truncated' in output &&
    output.truncated === true &&
    'fullLength' in output
  )
}
