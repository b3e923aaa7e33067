// The files of a message. Pictures are shown; they are fetched with the login of the session, which a plain address
// could not carry.

import { useEffect, useState } from 'react'
import type { Part } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { useWords } from '../../i18n/words.ts'
import { Icon } from '../../ui/icon.tsx'
import { chatWords } from './words.ts'
import './message-files.css'

type FilePart = Extract<Part, { type: 'file' }>

export function MessageFiles({ parts }: { parts: readonly Part[] }) {
  const files = parts.filter((part): part is FilePart => part.type === 'file')
  if (files.length === 0) return null
  return (
    <ul className="message-files">
      {files.map((file) => (
        <li key={file.fileId}>
          <MessageFile file={file} />
        </li>
      ))}
    </ul>
  )
}

/** Formats that cannot hold scripts. */
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

function MessageFile({ file: { fileId, name, mediaType } }: { file: FilePart }) {
  const words = useWords(chatWords)
  const label = name ?? words.file
  const url = usePicture(pictures.has(mediaType) ? fileId : null)
  if (url !== null) return <img className="message-picture" src={url} alt={label} />
  return (
    <span className="message-file">
      <Icon name="file" />
      <bdi className="cut">{label}</bdi>
    </span>
  )
}

function usePicture(fileId: string | null): string | null {
  const api = useApi()
  const [url, setUrl] = useState<string | null>(null)
  useEffect(() => {
    if (fileId === null) return
    const controller = new AbortController()
    let made: string | undefined
    api.blob(`/v1/files/${encodeURIComponent(fileId)}`, controller.signal).then(
      (blob) => {
        if (controller.signal.aborted) return
        made = URL.createObjectURL(blob)
        setUrl(made)
      },
      () => {},
    )
    return () => {
      controller.abort()
      if (made !== undefined) URL.revokeObjectURL(made)
    }
  }, [api, fileId])
  return url
}
