// Copies a text, and says that it did.

import { useEffect, useState } from 'react'
import { shellWords } from '../app/words.ts'
import { useWords } from '../i18n/words.ts'
import { announce } from './announcements.ts'
import { IconButton } from './button.tsx'
import type { IconName } from './icon.tsx'
import { showToast } from './toast.tsx'

/** How long the tick stays. */
const shownMs = 1500

type CopyButtonProps = { text: string | (() => string); label?: string; icon?: IconName }

export function CopyButton({ text, label, icon = 'copy' }: CopyButtonProps) {
  const words = useWords(shellWords)
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), shownMs)
    return () => clearTimeout(timer)
  }, [isCopied])
  const copy = async () => {
    try {
      // Pages without TLS, other than on this machine, have no clipboard.
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
      setCopied(true)
      announce(words.copied)
    } catch {
      showToast({ tone: 'bad', text: words.failed })
    }
  }
  return <IconButton icon={isCopied ? 'check' : icon} label={label ?? words.copy} small onClick={() => void copy()} />
}
