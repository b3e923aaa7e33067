// The head of a column: what the dialect is for, where it is described, and the call that gives it.

import { useCurl } from '../../api/curl.ts'
import { useWords } from '../../i18n/words.ts'
import { CopyButton } from '../../ui/copy-button.tsx'
import type { dialects } from './dialects.ts'
import { wiresWords } from './words.ts'

export function WireHeader({ runId, dialect }: { runId: string; dialect: (typeof dialects)[number] }) {
  const words = useWords(wiresWords)
  const { name, title, doc } = dialect
  const call = useCurl(`/v1/agent/runs/${encodeURIComponent(runId)}/stream?format=${name}`, { options: '-N' })
  return (
    <div className="wire-header">
      <div className="row">
        <h2 className="cut">{title}</h2>
        <code className="wire-format">{name}</code>
        <span className="grow" />
        <CopyButton text={call} label={words.copyCurl(title)} icon="terminal" />
      </div>
      <p className="soft">{words[`about_${name}`]}</p>
      <code className="faint cut" title={doc}>
        {doc}
      </code>
    </div>
  )
}
