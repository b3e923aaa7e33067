// Builds the system message and the user message of a job. Pure. The demo model parses this
// text, so the headings must not change without it.

import type { JobSpec, JsonValue, SkillSpec } from '../journal/event.ts'

/** A longer list would leave too little of the prompt for the instructions. */
const filesNamedMax = 50

export function jobInstructions(skill: SkillSpec, job: JobSpec | undefined): string {
  const interactive = job?.mode === 'interactive'
  const parts = [
    `You carry out one job with the skill ${skill.id}. Follow its instructions and finish the job.`,
    interactive
      ? 'Where the instructions tell you to ask, or something that you need is missing, ask with the tool ask_user, one question at a time.'
      : 'Nobody can be asked: where something is missing, decide yourself and say what you assumed.',
    `# Instructions of the skill\n\n${skill.text.trim()}`,
  ]
  const files = skill.files ?? []
  if (files.length > 0) {
    const names = files.slice(0, filesNamedMax).map(({ path, size }) => `- ${path} (${size} bytes)`)
    if (files.length > filesNamedMax) names.push(`- ${files.length - filesNamedMax} more, see list_skill_files`)
    parts.push(`# Files of the skill\n\nRead those that you need with the tool read_skill_file:\n${names.join('\n')}`)
  }
  if (skill.outputSchema !== undefined) {
    parts.push(
      `# Final answer\n\nYour last message is JSON and nothing else, and it fits this schema:\n\n${JSON.stringify(skill.outputSchema)}`,
    )
  }
  return parts.join('\n\n')
}

/** The user message of a job. */
export function jobInput(
  input: Record<string, JsonValue>,
  parameter: Record<string, JsonValue>,
  files: readonly { path: string; size: number }[],
): string {
  const parts = [`Input (JSON):\n${JSON.stringify(input)}`]
  if (Object.keys(parameter).length > 0) parts.push(`Parameters (JSON):\n${JSON.stringify(parameter)}`)
  if (files.length > 0) {
    const names = files.map(({ path, size }) => `- ${path} (${size} bytes)`).join('\n')
    parts.push(`Files, to be read with the tool read_job_file:\n${names}`)
  }
  return parts.join('\n\n')
}
