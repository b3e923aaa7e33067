// multipart/form-data, for the routes that take uploads and for no other. Nothing of a
// body is read before its route has decided that it wants it; then files are read as
// they come, each into a buffer of bounded size, and what all uploads of the process
// hold together is bounded, too.

import multipart, { type MultipartFile } from '@fastify/multipart'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors/app-error.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { admitBody, bodyTooLarge } from './request-intake.ts'
import type { Server } from './routes.ts'

/** Room for the boundaries, headers and fields around the files. */
const frameBytes = 64 * 1024

/** Fields that are no files: clients add some, and no route of ours reads any. */
const fieldsMax = 20
const fieldBytesMax = 1024
/** A part has three headers at most. */
const partHeadersMax = 20

export type UploadLimits = { fileBytes: number; filesMax: number }

/** All that an upload of these limits may have. */
export function uploadBodyBytes({ fileBytes, filesMax }: UploadLimits): number {
  return fileBytes * filesMax + frameBytes
}

/** Registers `routes` where forms are accepted. They take the body with `readFiles`. */
export async function withUploads(server: Server, routes: (server: Server) => void): Promise<void> {
  await server.register(async (scope) => {
    await scope.register(multipart)
    routes(scope)
  })
}

/**
 * The bytes that uploads may hold in memory at the same time, over all requests of the process. An upload counts with
 * the length that it announced, from its first byte until it is stored.
 */
export class UploadBudget {
  private readonly bytesMax: number
  private bytes = 0
  private lastWork: Promise<unknown> = Promise.resolve()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Throws `uploads_busy`. Call the result when the bytes are no longer held. */
  reserve(bytes: number): () => void {
    if (this.bytes > 0 && this.bytes + bytes > this.bytesMax) {
      throw new AppError('uploads_busy', 'Too many uploads are under way at the moment; send this one again later.')
    }
    this.bytes += bytes
    let held = true
    return () => {
      if (held) this.bytes -= bytes
      held = false
    }
  }

  /** One after the other: an archive unpacks to many times its size, and two of them to twice as much. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.lastWork.then(work)
    this.lastWork = result.catch(() => undefined)
    return result
  }
}

/** Reads the form of a request and hands its files, by field name, to `use`. Other fields are passed over. */
export async function readFiles<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  { fileBytes, filesMax, budget, clock }: UploadLimits & { budget: UploadBudget; clock: Clock },
  use: (files: ReadonlyMap<string, Buffer>) => Promise<T>,
): Promise<T> {
  if (!request.isMultipart()) throw new AppError('unsupported_media_type', 'Send the files as multipart/form-data.')
  const bodyBytes = uploadBodyBytes({ fileBytes, filesMax })
  const announced = request.headers['content-length']
  if (announced !== undefined && Number(announced) > bodyBytes) throw bodyTooLarge()
  const release = budget.reserve(announced === undefined ? bodyBytes : Number(announced))
  try {
    admitBody(request, reply, bodyBytes)
    const files = await collect(request, clock, { fileBytes, filesMax })
    return await budget.inTurn(() => use(files))
  } finally {
    release()
  }
}

async function collect(
  request: FastifyRequest,
  clock: Clock,
  { fileBytes, filesMax }: UploadLimits,
): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  const limits = {
    files: filesMax,
    fileSize: fileBytes,
    fields: fieldsMax,
    fieldSize: fieldBytesMax,
    fieldNameSize: 200,
    parts: filesMax + fieldsMax,
    headerPairs: partHeadersMax,
  }
  try {
    const parts = request.parts({ limits })
    for (;;) {
      const { value: part, done } = await nextOf(parts, request.raw, clock)
      if (done === true) break
      if (part.type !== 'file') continue
      if (files.has(part.fieldname)) {
        throw new AppError('upload_invalid', `The form has two files ${JSON.stringify(part.fieldname)}; send one.`)
      }
      files.set(part.fieldname, await bufferOf(part, fileBytes))
    }
  } catch (error) {
    throw uploadError(error, filesMax)
  }
  return files
}

/**
 * The parser never says that a form has ended in which a part has no headers. All bytes are there then, and it only
 * needs turns of the event loop to look at them; this is far more than it needs.
 */
const formEndMs = 100

function nextOf<T>(
  parts: AsyncIterableIterator<T>,
  raw: IncomingMessage,
  clock: Clock,
): Promise<IteratorResult<T, undefined>> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined
    const onEnd = () => {
      timer = clock.after(formEndMs, () => reject(notAForm()))
    }
    if (raw.readableEnded) onEnd()
    else raw.once('end', onEnd)
    const settled = () => {
      timer?.cancel()
      raw.off('end', onEnd)
    }
    parts.next().then(
      (result) => {
        settled()
        resolve(result as IteratorResult<T, undefined>)
      },
      (error: Error) => {
        settled()
        reject(error)
      },
    )
  })
}

function notAForm(cause?: unknown): AppError {
  return new AppError('upload_invalid', 'The body is not a valid multipart/form-data form.', { cause })
}

/** Not the plugin's own way, which reads a file that is too large to its end before it says so. */
async function bufferOf({ file }: MultipartFile, fileBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of file) {
    chunks.push(chunk as Buffer)
    if (file.truncated) throw new AppError('body_too_large', `A file may have at most ${fileBytes} bytes; send less.`)
  }
  return Buffer.concat(chunks)
}

function uploadError(thrown: unknown, filesMax: number): unknown {
  if (thrown instanceof AppError) return thrown
  const { code } = thrown as { code?: string }
  switch (code) {
    case 'FST_REQ_FILE_TOO_LARGE':
      return bodyTooLarge(thrown)
    case 'FST_FILES_LIMIT':
      return new AppError('upload_invalid', `The form has more than ${filesMax} files; send fewer.`, { cause: thrown })
    case 'FST_PARTS_LIMIT':
    case 'FST_FIELDS_LIMIT':
      return new AppError('upload_invalid', `The form has more than ${fieldsMax} fields; send fewer.`, {
        cause: thrown,
      })
    case 'ECONNRESET':
      return thrown
    default:
      return notAForm(thrown)
  }
}
