// The frame around every page: navigation on the left, a bar with a menu on phones, and the dialogs that work everywhere.

import { Suspense, useEffect, useState } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { session, signInRequest } from '../api/session.ts'
import { useLiveState } from '../feed/live-state.ts'
import { useWords } from '../i18n/words.ts'
import { Announcer } from '../ui/announcer.tsx'
import { Badge } from '../ui/badge.tsx'
import { Button, IconButton, Keys } from '../ui/button.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { Icon } from '../ui/icon.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { Toasts } from '../ui/toast.tsx'
import { PageBoundary } from './page-boundary.tsx'
import { pages } from './pages.ts'
import { Palette, paletteIsOpen, useCommands } from './palette.tsx'
import { preferences } from './preferences.ts'
import { Settings, settingsAreOpen } from './settings.tsx'
import { ShortcutList, shortcutListIsOpen } from './shortcut-list.tsx'
import { keysText, listenForShortcuts, useShortcuts } from './shortcuts.ts'
import { SignIn } from './sign-in.tsx'
import { shellWords } from './words.ts'
import iconUrl from './icon.svg'
import './shell.css'

export function Shell() {
  const words = useWords(shellWords)
  const { language, theme } = preferences.use()
  const { token, user, number } = session.use()
  const { decisions } = useLiveState()
  const [location, navigate] = useLocation()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const current =
    pages.find(({ path }) => location === path || location.startsWith(`${path}/`)) ??
    (location === '/' ? pages[0] : undefined)

  useEffect(listenForShortcuts, [])
  useEffect(() => setMenuOpen(false), [location])
  useEffect(() => {
    const waiting = decisions.size === 0 ? '' : `(${decisions.size}) `
    document.title = waiting + (current === undefined ? 'Polylog' : `${current.label[language]} · Polylog`)
  }, [current, language, decisions.size])

  const openPages = pages.map(({ path, label, icon, keys }) => {
    return { id: path, label: words.goTo(label[language]), icon, keys, run: () => navigate(path) }
  })
  const toggleTheme = () => {
    const isDark = theme === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
    preferences.set((old) => ({ ...old, theme: isDark ? 'light' : 'dark' }))
  }
  useShortcuts([
    { keys: 'mod+k', label: words.openPalette, run: () => paletteIsOpen.set(true) },
    { keys: '?', label: words.shortcutsHelp, run: () => shortcutListIsOpen.set(true) },
    ...openPages,
  ])
  useCommands([
    ...openPages,
    { id: 'theme', label: words.theme, icon: 'moon', run: toggleTheme },
    {
      id: 'language',
      label: `${words.language}: ${language === 'en' ? '中文' : 'English'}`,
      icon: 'globe',
      run: () => preferences.set((old) => ({ ...old, language: language === 'en' ? 'zh' : 'en' })),
    },
    { id: 'settings', label: words.settings, icon: 'key', run: () => settingsAreOpen.set(true) },
    { id: 'shortcuts', label: words.shortcuts, icon: 'command', keys: '?', run: () => shortcutListIsOpen.set(true) },
    { id: 'docs', label: words.apiReference, icon: 'book', run: () => window.open('/docs', '_blank', 'noopener') },
  ])

  return (
    <div className="shell" data-menu={isMenuOpen}>
      <a className="skip-link" href="#content">
        {words.skip}
      </a>
      <header className="shell-bar">
        <IconButton
          icon="menu"
          label={words.menu}
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        />
        <span className="grow cut shell-bar-title">{current?.label[language] ?? 'Polylog'}</span>
        <IconButton icon="search" label={words.openPalette} onClick={() => paletteIsOpen.set(true)} />
      </header>
      {isMenuOpen ? <div className="shell-shade" onMouseDown={() => setMenuOpen(false)} /> : null}
      <nav className="shell-nav" aria-label={words.navigation}>
        <div className="shell-brand">
          <img src={iconUrl} width={22} height={22} alt="" />
          <span>Polylog</span>
        </div>
        <button type="button" className="shell-search" onClick={() => paletteIsOpen.set(true)}>
          <Icon name="search" />
          <span className="grow">{words.search}</span>
          <Keys text={keysText('mod+k')} />
        </button>
        <ul className="shell-pages">
          {pages.map((page) => (
            <li key={page.path}>
              <Link href={page.path} className="shell-link" aria-current={page === current ? 'page' : undefined}>
                <Icon name={page.icon} />
                <span className="grow cut">{page.label[language]}</span>
                {page.path === '/inbox' && decisions.size > 0 ? <Badge tone="warn">{decisions.size}</Badge> : null}
              </Link>
            </li>
          ))}
        </ul>
        <div className="grow" />
        <a className="shell-link" href="/docs" target="_blank" rel="noreferrer">
          <Icon name="book" />
          <span className="grow cut">{words.apiReference}</span>
          <Icon name="external" size={12} />
        </a>
        <div className="shell-foot">
          <button type="button" className="shell-link grow" onClick={() => settingsAreOpen.set(true)}>
            <span className="shell-avatar" aria-hidden="true">
              {(user ?? 'A').slice(0, 1).toUpperCase()}
            </span>
            <span className="grow cut">{token === null ? (user ?? words.anonymous) : words.signedIn}</span>
          </button>
          <IconButton icon="moon" label={words.theme} small onClick={toggleTheme} />
          <IconButton
            icon="globe"
            label={words.language}
            small
            onClick={() => preferences.set((old) => ({ ...old, language: language === 'en' ? 'zh' : 'en' }))}
          />
        </div>
      </nav>
      <main id="content" className="shell-page" tabIndex={-1}>
        {/* Nothing of one user stays on the page of the next. */}
        <PageBoundary key={`${number} ${current?.path}`}>
          <Suspense fallback={<Spinner center />}>
            <Switch>
              {pages.map(({ path, View }) => (
                <Route
                  key={path}
                  path={new RegExp(path === pages[0]?.path ? `^(?:/|${path}(?:/.*)?)$` : `^${path}(?:/.*)?$`)}
                >
                  <View />
                </Route>
              ))}
              <Route>
                <EmptyState
                  icon="search"
                  title={words.notFound}
                  actions={<Button onClick={() => navigate('/chat')}>{words.toHome}</Button>}
                >
                  {words.notFoundHelp}
                </EmptyState>
              </Route>
            </Switch>
          </Suspense>
        </PageBoundary>
      </main>
      {paletteIsOpen.use() ? <Palette /> : null}
      {shortcutListIsOpen.use() ? <ShortcutList /> : null}
      {settingsAreOpen.use() ? <Settings /> : null}
      {signInRequest.use() === null ? null : <SignIn />}
      <Toasts />
      <Announcer />
    </div>
  )
}
