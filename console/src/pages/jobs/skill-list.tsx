// The skills of the server, to start a job from. One that cannot be used says why.

import { Link } from 'wouter'
import { useCurl } from '../../api/curl.ts'
import { useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import type { Skill } from './job-api.ts'
import { jobWords } from './words.ts'

export function SkillList({ hasJobs }: { hasJobs: boolean }) {
  const words = useWords(jobWords)
  const { data, error, reload } = useLoaded<Skill[]>('skills', ({ json }, signal) => json('/v1/skills', { signal }))
  const example = data?.find(({ available, file_inputs: files }) => available && files.length === 0)
  const call = useCurl('/v1/jobs', {
    body: { skill_id: example?.id ?? 'text-digest', input: example?.id === 'text-digest' ? { text: '…' } : {} },
  })
  return (
    <div className="job-pane">
      <Link href="/jobs" className="split-back row">
        <Icon name="left" />
        {words.back}
      </Link>
      <header>
        <h2 className="job-title">{words.skills}</h2>
        <p className="soft">{words.skillsHelp}</p>
      </header>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data?.length === 0 ? (
        <EmptyState icon="job" title={words.noSkills}>
          {words.noSkillsHelp}
        </EmptyState>
      ) : null}
      <ul className="skill-list">
        {data?.map((skill) => (
          <li key={skill.id}>
            <SkillCard skill={skill} />
          </li>
        ))}
      </ul>
      {hasJobs || data === undefined || data.length === 0 ? null : (
        <section className="stack">
          <p className="soft">{words.emptyHelp}</p>
          <CodeBlock code={call} language="sh" />
        </section>
      )}
    </div>
  )
}

function SkillCard({ skill }: { skill: Skill }) {
  const words = useWords(jobWords)
  const content = (
    <>
      <span className="row">
        <span className="grow cut skill-name">{skill.name}</span>
        {skill.version === null ? null : <span className="faint">{skill.version}</span>}
      </span>
      <span className="skill-about soft">{skill.available ? skill.description : skill.reason}</span>
      <span className="row row-wrap">
        {skill.available ? null : <Badge tone="bad">{words.unavailable}</Badge>}
        {skill.execution_modes.includes('interactive') ? <Badge>{words.mode_interactive}</Badge> : null}
        {skill.file_inputs.map((name) => (
          <Badge key={name} tone="info">
            {words.needsFile(name)}
          </Badge>
        ))}
      </span>
    </>
  )
  return skill.available ? (
    <Link href={`/jobs/new/${encodeURIComponent(skill.id)}`} className="skill-card">
      {content}
    </Link>
  ) : (
    <div className="skill-card" data-off="true">
      {content}
    </div>
  )
}
