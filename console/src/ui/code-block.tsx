// Code, with its language and a button that copies it. Long code is cut until somebody wants all of it.

import { useState } from 'react'
import { useLocale, useWords } from '../i18n/words.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy-button.tsx'
import { withVisibleControls } from './visible-text.ts'
import { uiWords } from './words.ts'
import './code-block.css'

const shownCharsMax = 20_000

type CodeBlockProps = { code: string; language?: string | undefined; label?: string }

export function CodeBlock({ code, language, label }: CodeBlockProps) {
  const words = useWords(uiWords)
  const locale = useLocale()
  const [isWhole, setWhole] = useState(false)
  const isCut = !isWhole && code.length > shownCharsMax
  const name = /^[\w+#.-]{1,24}/.exec(language ?? '')?.[0] ?? ''
  return (
    <figure className="code-block">
      <figcaption className="code-block-head">
        <span className="grow faint">{label ?? name}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0} dir="ltr">
        {withVisibleControls(isCut ? code.slice(0, shownCharsMax) : code)}
        {isCut ? '…' : ''}
      </pre>
      {isCut ? (
        <Button small look="quiet" onClick={() => setWhole(true)}>
          {words.showAll(code.length.toLocaleString(locale))}
        </Button>
      ) : null}
    </figure>
  )
}
