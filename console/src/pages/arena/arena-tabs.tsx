// The views of the arena.

import { useWords } from '../../i18n/words.ts'
import { Tabs } from '../../ui/tabs.tsx'
import { arenaWords } from './words.ts'

export function ArenaTabs({ current }: { current: '/arena' | '/arena/standings' | '/arena/diff' }) {
  const words = useWords(arenaWords)
  const tabs = [
    { href: '/arena', label: words.compare },
    { href: '/arena/standings', label: words.standings },
    { href: '/arena/diff', label: words.diff },
  ]
  return <Tabs tabs={tabs} current={current} label={words.arena} />
}
