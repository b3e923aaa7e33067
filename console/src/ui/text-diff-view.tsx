// One side of a text difference: what the other side has not is marked, for eyes by colour and for screen readers by name.

import { memo } from 'react'
import type { DiffPart } from './text-diff.ts'
import { withVisibleControls } from './visible-text.ts'
import './text-diff.css'

export const TextDiffSide = memo(function TextDiffSide({
  parts,
  side,
}: {
  parts: readonly DiffPart[]
  side: 'left' | 'right'
}) {
  return (
    <div className="text-diff" dir="auto">
      {parts.map(({ kind, text }, index) => {
        const shown = withVisibleControls(text)
        if (kind === 'same') return <span key={index}>{shown}</span>
        if (kind !== side) return null
        return side === 'left' ? <del key={index}>{shown}</del> : <ins key={index}>{shown}</ins>
      })}
    </div>
  )
})
