// Every scenario in every format, as text that a person can read: one line for each event that has
// frames, with its seq, its type and the frames.

import { formatDialects } from '../../src/http/formats.ts'
import type { Dialect, Frame } from '../../src/dialects/dialect.ts'
import { firstAt, type Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'

/** Of a longer frame only the beginning and the end are shown; the tests of each dialect check its bytes. */
const frameCharsMax = 200
const endChars = 60

/** The text of each file, by format. A scenario that is told as in an earlier format only says so. */
export function transcripts(): Map<string, string> {
  const files = new Map<string, string>()
  const known = new Map<string, string>()
  for (const [format, dialect] of Object.entries(formatDialects)) {
    const sections = scenarios.map((scenario) => {
      const lines = linesOf(dialect, scenario)
      const key = `${scenario.name}\n${lines}`
      const same = known.get(key)
      if (same === undefined) known.set(key, format)
      return `## ${scenario.name}\n${same === undefined ? lines : `As in ${same}.\n`}`
    })
    files.set(format, `${format}\n\n${sections.join('\n')}`)
  }
  return files
}

function linesOf<State>(dialect: Dialect<State>, { runId, events }: Scenario): string {
  let state = dialect.open({ runId })
  let text = ''
  for (const event of events) {
    const projection = dialect.step(state, event)
    state = projection.state
    if (projection.frames.length === 0) continue
    const frames = projection.frames.map((frame) => shown(frame, dialect.encode(frame, '0').replaceAll(runId, 'RUN')))
    text += `${String(event.seq).padStart(3)} ${event.type}: ${frames.join('\n      ')}\n`
  }
  return text
}

/** A dialect may leave a frame out of the stream, for example if the client did not ask for its kind. */
function shown({ name }: Frame, encoded: string): string {
  return encoded === '' ? `(${name})` : compact(encoded)
}

/** Milliseconds since the first event of the journal. */
function sinceStart(at: number): string {
  return `@${at - firstAt}`
}

/** A frame without its address, the quotes of names, and what is long. */
function compact(encoded: string): string {
  const text = encoded
    .replaceAll(/^id: .*\n/gm, '')
    .replace(/^event: (.*)\ndata: /, '$1 ')
    .replace(/^data: /, '')
    .trimEnd()
    .replaceAll('\n', ' ⏎ ')
    .replaceAll(/"([A-Za-z_]\w*)":/g, '$1:')
    .replaceAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g, (_, time: string) => sinceStart(Date.parse(time)))
    .replaceAll(/\b17673\d{8}\b/g, (time) => sinceStart(Number(time)))
  if (text.length <= frameCharsMax) return text
  const characters = [...text]
  return `${characters.slice(0, frameCharsMax - endChars).join('')} … ${characters.slice(-endChars).join('')}`
}
