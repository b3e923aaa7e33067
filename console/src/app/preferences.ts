// What a person chose for this browser: theme and language. Kept in localStorage; a browser that forbids it starts with
// the defaults each time.

import type { Language } from '../i18n/language.ts'
import { createStore } from './store.ts'

export type Theme = 'system' | 'light' | 'dark'
export type Preferences = { theme: Theme; language: Language }

const key = 'polylog.preferences'

export const preferences = createStore<Preferences>(stored())

preferences.subscribe(() => {
  show(preferences.get())
  try {
    localStorage.setItem(key, JSON.stringify(preferences.get()))
  } catch {
    // Private windows of some browsers refuse it; the choice then lasts for this page.
  }
})

/** Call it before the first drawing, so that the page never flashes in the wrong colours. */
export function showPreferences(): void {
  show(preferences.get())
}

function show({ theme, language }: Preferences): void {
  const { documentElement } = document
  documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  if (theme === 'system') delete documentElement.dataset['theme']
  else documentElement.dataset['theme'] = theme
}

function stored(): Preferences {
  let saved: Partial<Preferences> = {}
  try {
    saved = (JSON.parse(localStorage.getItem(key) ?? '{}') ?? {}) as Partial<Preferences>
  } catch {
    // Not readable: the defaults.
  }
  const theme = saved.theme === 'light' || saved.theme === 'dark' ? saved.theme : 'system'
  const spoken = navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
  return { theme, language: saved.language === 'en' || saved.language === 'zh' ? saved.language : spoken }
}
