// The sentences about a failure: in the language of the person if there is one for its code, and what the server said.

import { preferences } from '../app/preferences.ts'
import { errorSentence } from '../i18n/chinese-errors.ts'
import { withVisibleControls } from './visible-text.ts'

export function ProblemText({ error: { message, code } }: { error: { message: string; code?: string } }) {
  const sentence = errorSentence(code, preferences.use().language)
  const said = withVisibleControls(message)
  if (sentence === undefined) return <p>{said}</p>
  return (
    <>
      <p>{sentence}</p>
      <p className="soft" lang="en">
        {said}
      </p>
    </>
  )
}
