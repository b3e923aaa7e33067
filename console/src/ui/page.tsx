// The layout of a page that is not the chat: a head with its title and actions, and a body that scrolls.

import type { ReactNode } from 'react'
import './page.css'

type PageProps = {
  title: ReactNode
  /** A sentence below the title. */
  about?: ReactNode
  actions?: ReactNode
  /** Above the body, and always visible: filters, tabs. */
  bar?: ReactNode
  children: ReactNode
}

export function Page({ title, about, actions, bar, children }: PageProps) {
  return (
    <div className="page">
      <header className="page-head">
        <div className="grow">
          <h1 className="cut">{title}</h1>
          {about === undefined ? null : <p className="soft">{about}</p>}
        </div>
        {actions === undefined ? null : <div className="row row-wrap">{actions}</div>}
      </header>
      {bar === undefined ? null : <div className="page-bar">{bar}</div>}
      <div className="page-body">{children}</div>
    </div>
  )
}

/** A bordered part of a page, with a title of its own if it needs one. */
export function Card({ title, actions, children }: { title?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="card">
      {title === undefined ? null : (
        <header className="row">
          <h2 className="grow">{title}</h2>
          {actions}
        </header>
      )}
      {children}
    </section>
  )
}
