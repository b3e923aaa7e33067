// The card that decides one interaction: consent to a tool call, or the answer to a question. For pages that know the
// interaction and not the run around it.

import type { Interaction, JsonValue } from '@polylog/client'
import { ApprovalCard } from './approval-card.tsx'
import { QuestionCard } from './question-card.tsx'
import './decision-card.css'

export type Decision = 'approved' | 'denied' | 'answered'

type DecisionCardProps = { item: Interaction; hasKeys?: boolean; onDecided?: (decision: Decision) => void }

export function DecisionCard({ item, hasKeys = false, onDecided }: DecisionCardProps) {
  if (item.kind === 'question') {
    return (
      <QuestionCard
        hasKeys={hasKeys}
        block={{
          id: item.id,
          prompt: item.message,
          options: listIn(item.payload, 'options'),
          open: true,
          ...(item.expiresAt === null ? {} : { expiresAt: item.expiresAt }),
        }}
        fields={listIn(item.payload, 'fields').filter((name) => typeof name === 'string')}
        onAnswered={() => onDecided?.('answered')}
      />
    )
  }
  return (
    <div className="decision-card">
      <ApprovalCard
        id={item.id}
        hasKeys={hasKeys}
        block={{ name: item.toolName ?? '', message: item.message, input: (item.payload ?? {}) as JsonValue }}
        {...(onDecided === undefined ? {} : { onDecided })}
      />
    </div>
  )
}

/** The arguments of a question hold its options and fields; whoever asks may also have sent something else. */
function listIn(payload: unknown, name: 'options' | 'fields'): JsonValue[] {
  const list =
    typeof payload === 'object' && payload !== null ? (payload as Record<string, JsonValue>)[name] : undefined
  return Array.isArray(list) ? list : []
}
