// The list behind `?`: every shortcut that works on the open page.

import { useWords } from '../i18n/words.ts'
import { Keys } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { keysText, shortcuts } from './shortcuts.ts'
import { createStore } from './store.ts'
import { shellWords } from './words.ts'
import './shortcut-list.css'

export const shortcutListIsOpen = createStore(false)

export function ShortcutList() {
  const words = useWords(shellWords)
  return (
    <Dialog title={words.shortcuts} onClose={() => shortcutListIsOpen.set(false)}>
      <dl className="shortcut-list">
        {shortcuts.use().map(({ id, keys, label }) => (
          <div key={id}>
            <dt>{label}</dt>
            <dd>
              <span className="visually-hidden">{keysText(keys)}</span>
              <Keys text={keysText(keys)} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
