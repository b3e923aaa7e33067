// A few views of one page, as links: the address holds which one is open.

import { Link } from 'wouter'
import './tabs.css'

export type Tab = { href: string; label: string; count?: number }

export function Tabs({ tabs, current, label }: { tabs: readonly Tab[]; current: string; label: string }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ href, label: name, count }) => (
        <Link key={href} href={href} className="tab" aria-current={href === current ? 'page' : undefined}>
          {name}
          {count === undefined ? null : <span className="tab-count numbers">{count}</span>}
        </Link>
      ))}
    </nav>
  )
}
