// Something is on its way.

import { shellWords } from '../app/words.ts'
import { useWords } from '../i18n/words.ts'
import './spinner.css'

export function Spinner({ label, center = false }: { label?: string; center?: boolean }) {
  const words = useWords(shellWords)
  return (
    <span className={center ? 'spinner spinner-center' : 'spinner'} role="status">
      <span className="spinner-ring" />
      <span className="visually-hidden">{label ?? words.loading}</span>
    </span>
  )
}
