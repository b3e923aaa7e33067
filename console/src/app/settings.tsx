// Theme, language, and who looks.

import { type FormEvent, useState } from 'react'
import { actAs, session, signInRequest, signOut } from '../api/session.ts'
import { useWords } from '../i18n/words.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Select, TextField } from '../ui/field.tsx'
import type { Language } from '../i18n/language.ts'
import { preferences, type Theme } from './preferences.ts'
import { createStore } from './store.ts'
import { shellWords } from './words.ts'

export const settingsAreOpen = createStore(false)

export function Settings() {
  const words = useWords(shellWords)
  const { theme, language } = preferences.use()
  const { token, user } = session.use()
  const [name, setName] = useState(user ?? '')
  const close = () => settingsAreOpen.set(false)
  const save = (event: FormEvent) => {
    event.preventDefault()
    actAs(name.trim() === '' ? null : name.trim())
    close()
  }
  return (
    <Dialog title={words.settings} onClose={close}>
      <div className="stack">
        <Select
          label={words.theme}
          value={theme}
          onChange={(event) => preferences.set((old) => ({ ...old, theme: event.target.value as Theme }))}
        >
          <option value="system">{words.themeSystem}</option>
          <option value="light">{words.themeLight}</option>
          <option value="dark">{words.themeDark}</option>
        </Select>
        <Select
          label={words.language}
          value={language}
          onChange={(event) => preferences.set((old) => ({ ...old, language: event.target.value as Language }))}
        >
          <option value="en">English</option>
          <option value="zh">中文</option>
        </Select>
        {token === null ? (
          <form className="stack" onSubmit={save}>
            <TextField
              label={words.user}
              help={words.userHelp}
              placeholder={words.anonymous}
              maxLength={200}
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
            <div className="row">
              <Button type="submit" look="primary">
                {words.save}
              </Button>
              <Button
                icon="key"
                onClick={() => {
                  close()
                  signInRequest.set('needed')
                }}
              >
                {words.signIn}
              </Button>
            </div>
          </form>
        ) : (
          <div>
            <Button
              icon="key"
              onClick={() => {
                close()
                signOut()
              }}
            >
              {words.signOut}
            </Button>
          </div>
        )}
      </div>
    </Dialog>
  )
}
