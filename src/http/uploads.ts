// Reads multipart/form-data, only on the routes that accept uploads. A route first checks
// the request and then calls `readFiles`, which reads each file into a buffer of bounded
// size. `UploadBudget` limits the memory of all uploads in the process together.

import multipart, { type MultipartFile } from '@fastify/multipart'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../errors/app-error.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { callerKey } from './caller-key.ts'
import { admitBody, bodyTooLarge } from './request-intake.ts'
import type { Server } from './routes.ts'

/** Allowance for the boundaries, headers and fields around the files. */
const formOverheadBytes = 64 * 1024

/** Fields that are not files: some clients send them, and no route reads them. */
const fieldsMax = 20
const fieldBytesMax = 1024
/** A normal part has at most three headers. */
const partHeadersMax = 20

export type UploadLimits = { fileBytes: number; filesMax: number }
type UploadDependencies = UploadLimits & { budget: UploadBudget; clock: Clock }

/** A file of a form. Name and type are what the client says. */
export type UploadedFile = { bytes: Buffer; name: string | undefined; mediaType: string | undefined }

/** The largest body that these limits allow. */
export function uploadBodyBytes({ fileBytes, filesMax }: UploadLimits): number {
  return fileBytes * filesMax + formOverheadBytes
}

/** Registers `routes` in a scope that accepts forms. Their handlers read the body with `readFiles`. */
export async function withUploads(server: Server, routes: (server: Server) => void): Promise<void> {
  await server.register(async (scope) => {
    await scope.register(multipart)
    routes(scope)
  })
}

/**
 * Limits the bytes that all uploads of the process hold in memory at the same time. An upload counts with its
 * Content-Length, or with the largest body that its route accepts if it has none, from before the body is read until
 * the files are stored. One caller may hold half of them, so a client that begins uploads and sends nothing does not keep
 * the others from theirs. An upload that is the only one is always admitted.
 */
export class UploadBudget {
  private readonly bytesMax: number
  private bytes = 0
  private readonly bytesByCaller = new Map<string, number>()
  private lastWork: Promise<unknown> = Promise.resolve()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Throws `uploads_busy` if the budget is used up. Call the returned function when the memory is free again. */
  reserve(caller: string, bytes: number): () => void {
    const own = this.bytesByCaller.get(caller) ?? 0
    if (own > 0 && own + bytes > this.bytesMax / 2)
      throw new AppError('uploads_busy', 'Too many of your uploads are under way; send this one again later.')
    if (this.bytes > 0 && this.bytes + bytes > this.bytesMax)
      throw new AppError('uploads_busy', 'Too many uploads are under way at the moment; send this one again later.')
    this.add(caller, bytes)
    let held = true
    return () => {
      if (held) this.add(caller, -bytes)
      held = false
    }
  }

  private add(caller: string, bytes: number): void {
    this.bytes += bytes
    const own = (this.bytesByCaller.get(caller) ?? 0) + bytes
    if (own > 0) this.bytesByCaller.set(caller, own)
    else this.bytesByCaller.delete(caller)
  }

  /** Runs the work of all uploads one after the other, because an unpacked archive is many times larger. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.lastWork.then(work)
    this.lastWork = result.catch(() => undefined)
    return result
  }
}

/** Reads the form of a request and hands its files, by field name, to `use`. Other fields are ignored. */
export async function readFiles<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  dependencies: UploadDependencies,
  use: (files: ReadonlyMap<string, UploadedFile>) => Promise<T>,
): Promise<T> {
  if (!request.isMultipart()) throw new AppError('unsupported_media_type', 'Send the files as multipart/form-data.')
  const { clock, ...limits } = dependencies
  const read = () => collect(request, clock, limits)
  return await withinBudget(request, reply, { ...limits, bodyBytes: uploadBodyBytes(limits) }, read, use)
}

/** Reads a body that is the file itself. */
export async function readRawFile<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  { fileBytes, budget }: Omit<UploadDependencies, 'filesMax' | 'clock'>,
  use: (bytes: Buffer) => Promise<T>,
): Promise<T> {
  return await withinBudget(
    request,
    reply,
    { budget, bodyBytes: fileBytes },
    async () => {
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of request.raw) {
        size += (chunk as Buffer).length
        if (size > fileBytes) throw bodyTooLarge()
        chunks.push(chunk as Buffer)
      }
      return Buffer.concat(chunks, size)
    },
    use,
  )
}

/** Holds the memory of the body in the budget until `use` is done. */
async function withinBudget<Body, T>(
  request: FastifyRequest,
  reply: FastifyReply,
  { budget, bodyBytes }: { budget: UploadBudget; bodyBytes: number },
  read: () => Promise<Body>,
  use: (body: Body) => Promise<T>,
): Promise<T> {
  const announced = request.headers['content-length']
  if (announced !== undefined && Number(announced) > bodyBytes) throw bodyTooLarge()
  const release = budget.reserve(callerKey(request), announced === undefined ? bodyBytes : Number(announced))
  try {
    admitBody(request, reply, bodyBytes)
    const body = await read()
    return await budget.inTurn(() => use(body))
  } finally {
    release()
  }
}

async function collect(
  request: FastifyRequest,
  clock: Clock,
  { fileBytes, filesMax }: UploadLimits,
): Promise<Map<string, UploadedFile>> {
  const files = new Map<string, UploadedFile>()
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
      const bytes = await bufferOf(part, fileBytes)
      files.set(part.fieldname, { bytes, name: part.filename, mediaType: part.mimetype })
    }
  } catch (error) {
    throw uploadError(error, filesMax)
  }
  return files
}

/**
 * The parser never reports the end of a form in which a part has no headers. So `nextOf` gives up this long after the
 * last byte. The parser then has all bytes and needs only a few turns of the event loop, far less than this.
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

/** Replaces the plugin's `toBuffer`, which reads a file to its end before it reports that the file is too large. */
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
