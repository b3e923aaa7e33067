// Asks for a token or an API key when the server refuses a request without one.

import { type FormEvent, useId, useState } from 'react'
import { signIn, signInRequest } from '../api/session.ts'
import { useWords } from '../i18n/words.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { shellWords } from './words.ts'

export function SignIn() {
  const words = useWords(shellWords)
  const reason = signInRequest.use()
  const [token, setToken] = useState('')
  const form = useId()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // The browser cannot send other characters in a header, so the request would fail as if there were no server.
    if (/[^\x20-\x7e]/.test(token.trim())) signInRequest.set('refused')
    else if (token.trim() !== '') signIn(token.trim())
  }
  return (
    <Dialog
      title={words.signIn}
      onClose={() => signInRequest.set(null)}
      actions={
        <Button look="primary" type="submit" form={form} disabled={token.trim() === ''}>
          {words.signIn}
        </Button>
      }
    >
      <form id={form} className="stack" onSubmit={submit}>
        <p className="soft">{words.signInNeeded}</p>
        <TextField
          label={words.signInField}
          type="password"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          value={token}
          problem={reason === 'refused' ? words.signInWrong : undefined}
          onChange={(event) => setToken(event.target.value)}
        />
      </form>
    </Dialog>
  )
}
