// The brief of a contact: what an agent wrote last, and another one on demand.

import { useState } from 'react'
import { Link } from 'wouter'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { preferences } from '../../app/preferences.ts'
import { useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Markdown } from '../../ui/markdown.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { type Brief, contactPath } from './contact-api.ts'
import { contactWords } from './words.ts'

export function ContactBrief({ contactId }: { contactId: string }) {
  const words = useWords(contactWords)
  const api = useApi()
  const { language } = preferences.use()
  // In an object: a loaded value cannot be null.
  const { data, error, reload, change } = useLoaded(`brief ${contactId}`, async ({ json }, signal) => ({
    brief: await json<Brief | null>(contactPath(contactId, '/brief'), { signal }),
  }))
  const [isWriting, setWriting] = useState(false)
  const [problem, setProblem] = useState<{ message: string; code?: string } | null>(null)
  const brief = data?.brief ?? null
  const write = async () => {
    setWriting(true)
    setProblem(null)
    try {
      const rest = brief === null ? '/brief' : '/brief/refresh'
      const written = await api.json<Brief>(contactPath(contactId, rest), {
        method: 'POST',
        body: { language },
        runsAgent: true,
      })
      change(() => ({ brief: written }))
    } catch (failure) {
      setProblem(problemOf(failure))
    } finally {
      setWriting(false)
    }
  }
  return (
    <Card
      title={words.brief}
      actions={
        <Button
          small
          icon={brief === null ? 'edit' : 'refresh'}
          disabled={isWriting || data === undefined}
          onClick={() => void write()}
        >
          {isWriting ? words.writing : brief === null ? words.writeBrief : words.refreshBrief}
        </Button>
      }
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {problem === null ? null : <Problem error={problem} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data !== undefined && brief === null ? <p className="faint records-empty">{words.briefHelp}</p> : null}
      {brief === null ? null : (
        <>
          <div className="contact-brief">
            <Markdown text={brief.content} />
          </div>
          <p className="row row-wrap faint contact-brief-foot">
            <span>
              {words.briefOf} <TimeAgo at={brief.generatedAtMs} />
            </span>
            <span>{words.citations(brief.citations.length)}</span>
            <Link href={`/runs/${encodeURIComponent(brief.runId)}`}>{words.openRun}</Link>
            {brief.computed ? <Badge>{words.computed}</Badge> : null}
          </p>
        </>
      )}
    </Card>
  )
}
