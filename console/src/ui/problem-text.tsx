// The sentences about a failure: in the language of the person if there is one for its code, and what the server said.

import { preferences } from '../app/preferences.ts'
import { chineseErrors } from '../i18n/chinese-errors.ts'
import { withVisibleControls } from './visible-text.ts'

export function ProblemText({ error: { message, code } }: { error: { message: string; code?: string } }) {
  const sentence = useErrorSentence(code)
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

/** The sentence for a code in the language of the person; undefined if there is only the server's own. */
function useErrorSentence(code: string | undefined): string | undefined {
  const { language } = preferences.use()
  if (language !== 'zh' || code === undefined || !Object.hasOwn(chineseErrors, code)) return undefined
  return chineseErrors[code]
}
