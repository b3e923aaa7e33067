// Imports contacts from a vCard or CSV file, and says what became of each entry.

import { type FormEvent, useId, useState } from 'react'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { announce } from '../../ui/announcements.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Select } from '../../ui/field.tsx'
import { FileField } from '../../ui/file-field.tsx'
import { Problem } from '../../ui/problem.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import type { ImportReport } from './contact-api.ts'
import { contactWords } from './words.ts'

/** What spreadsheets write besides UTF-8. */
const charsets = ['utf-8', 'gb18030', 'windows-1252', 'shift_jis', 'big5'] as const

export function ContactImport({ onClose, onImported }: { onClose(): void; onImported(): void }) {
  const words = useWords(contactWords)
  const shell = useWords(shellWords)
  const api = useApi()
  const form = useId()
  const [file, setFile] = useState<File | null>(null)
  const [charset, setCharset] = useState<string>('utf-8')
  const [isSent, setSent] = useState(false)
  const [problem, setProblem] = useState<{ message: string; code?: string } | null>(null)
  const [report, setReport] = useState<ImportReport | null>(null)
  const type = file === null ? null : typeOf(file.name)
  const send = async (event: FormEvent) => {
    event.preventDefault()
    if (file === null || type === null) return
    setSent(true)
    setProblem(null)
    try {
      const done = await api.json<ImportReport>('/v1/contacts/import', {
        method: 'POST',
        // Without a type of its own, so that the header below counts.
        body: new Blob([file]),
        headers: { 'content-type': type === 'text/csv' ? `${type}; charset=${charset}` : type },
      })
      setReport(done)
      announce(
        `${words.created}: ${done.created}. ${words.updated}: ${done.updated}. ${words.skipped}: ${done.skippedTotal}.`,
      )
      onImported()
    } catch (error) {
      setProblem(problemOf(error))
      // A part may have been stored before it failed; the sentence says how many.
      onImported()
    } finally {
      setSent(false)
    }
  }
  return (
    <Dialog
      title={words.importTitle}
      width="medium"
      onClose={onClose}
      actions={
        report === null ? (
          <>
            <Button onClick={onClose}>{shell.cancel}</Button>
            <Button look="primary" type="submit" form={form} disabled={isSent || type === null}>
              {isSent ? words.importing : words.importFile}
            </Button>
          </>
        ) : (
          <>
            <Button
              onClick={() => {
                setReport(null)
                setFile(null)
              }}
            >
              {words.importAnother}
            </Button>
            <Button look="primary" onClick={onClose}>
              {words.done}
            </Button>
          </>
        )
      }
    >
      {report === null ? (
        <form id={form} className="stack" onSubmit={(event) => void send(event)}>
          {problem === null ? null : <Problem error={problem} />}
          <FileField
            label={words.file}
            help={words.importHelp}
            accept=".vcf,.vcard,.csv,text/vcard,text/csv"
            isRequired
            file={file}
            onFile={setFile}
          />
          {file !== null && type === null ? <p className="field-problem">{words.wrongFile}</p> : null}
          {type === 'text/csv' ? (
            <Select label={words.charset} value={charset} onChange={({ target }) => setCharset(target.value)}>
              {charsets.map((name) => (
                <option key={name} value={name}>
                  {name.toUpperCase()}
                </option>
              ))}
            </Select>
          ) : null}
        </form>
      ) : (
        <Report report={report} />
      )}
    </Dialog>
  )
}

function Report({ report }: { report: ImportReport }) {
  const words = useWords(contactWords)
  const locale = useLocale()
  const counts = [
    [words.created, report.created, 'good'],
    [words.updated, report.updated, 'info'],
    [words.unchanged, report.unchanged, 'neutral'],
    [words.skipped, report.skippedTotal, report.skippedTotal === 0 ? 'neutral' : 'warn'],
  ] as const
  return (
    <div className="stack">
      <dl className="import-counts">
        {counts.map(([label, count, tone]) => (
          <div key={label} data-tone={tone}>
            <dt>{label}</dt>
            <dd className="numbers">{count.toLocaleString(locale)}</dd>
          </div>
        ))}
      </dl>
      {report.skipped.length === 0 ? null : (
        <div className="table-box import-skipped" tabIndex={0} role="region" aria-label={words.skipped}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col" className="table-number">
                  {words.line}
                </th>
                <th scope="col">{words.name}</th>
                <th scope="col">{words.reason}</th>
              </tr>
            </thead>
            <tbody>
              {report.skipped.map(({ index, line, name, reason }) => (
                <tr key={index}>
                  <td className="table-number">{line}</td>
                  <td className="cut">{withVisibleControls(name ?? '–')}</td>
                  <td>{withVisibleControls(reason)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {report.skippedTotal > report.skipped.length ? (
        <p className="faint">
          {words.skippedMore(report.skipped.length.toLocaleString(locale), report.skippedTotal.toLocaleString(locale))}
        </p>
      ) : null}
    </div>
  )
}

/** By its ending: browsers know neither type on every system. */
function typeOf(name: string): 'text/vcard' | 'text/csv' | null {
  if (/\.(?:vcf|vcard)$/i.test(name)) return 'text/vcard'
  return /\.csv$/i.test(name) ? 'text/csv' : null
}
