// What a page shows while it has nothing: what would be here, how it gets here, and the exact call that does it.

import type { ReactNode } from 'react'
import { CopyButton } from './copy-button.tsx'
import { Icon, type IconName } from './icon.tsx'
import './empty-state.css'

type EmptyStateProps = {
  icon: IconName
  title: string
  children?: ReactNode
  /** A command that fills the page. */
  call?: string
  actions?: ReactNode
}

export function EmptyState({ icon, title, children, call, actions }: EmptyStateProps) {
  return (
    <div className="empty-state">
      <span className="empty-state-icon">
        <Icon name={icon} size={20} />
      </span>
      <h2>{title}</h2>
      {children === undefined ? null : <p className="soft">{children}</p>}
      {call === undefined ? null : (
        <div className="empty-state-call">
          {/* A region that scrolls must be reachable by keyboard. */}
          <pre tabIndex={0}>{call}</pre>
          <CopyButton text={call} />
        </div>
      )}
      {actions === undefined ? null : <div className="row row-wrap">{actions}</div>}
    </div>
  )
}
