// multipart/form-data, for the routes that take uploads and for no other: the body is
// held in memory within its limit and parsed by the platform.

import { AppError } from '../errors/app-error.ts'
import type { Server } from './routes.ts'

/** Room for the boundaries and headers around the files. */
const frameBytes = 64 * 1024

/** Registers `routes` where such bodies are accepted, up to `filesMax` files of `fileBytes` each. */
export async function withUploads(
  server: Server,
  { fileBytes, filesMax }: { fileBytes: number; filesMax: number },
  routes: (server: Server) => void,
): Promise<void> {
  await server.register((scope, _options, done) => {
    const bodyLimit = fileBytes * filesMax + frameBytes
    scope.addContentTypeParser('multipart/form-data', { parseAs: 'buffer', bodyLimit }, (request, body, parsed) => {
      parseForm(body as Buffer, String(request.headers['content-type']), fileBytes).then(
        (form) => parsed(null, form),
        parsed,
      )
    })
    routes(scope)
    done()
  })
}

/** The files of a form, by field name. Throws `upload_invalid` and `body_too_large`. */
export class UploadedForm {
  readonly files = new Map<string, Buffer>()
}

async function parseForm(body: Buffer, contentType: string, fileBytes: number): Promise<UploadedForm> {
  let form: FormData
  try {
    form = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData()
  } catch (cause) {
    throw new AppError('upload_invalid', 'The body is not a valid multipart/form-data form.', { cause })
  }
  const result = new UploadedForm()
  for (const [name, value] of form.entries()) {
    if (typeof value === 'string') continue
    if (result.files.has(name))
      throw new AppError('upload_invalid', `The form has two files ${JSON.stringify(name)}; send one.`)
    if (value.size > fileBytes)
      throw new AppError('body_too_large', `A file may have at most ${fileBytes} bytes; send less.`)
    result.files.set(name, Buffer.from(await value.arrayBuffer()))
  }
  return result
}

/** The form of a request; throws where it was sent as something else. */
export function formOf(body: unknown): UploadedForm {
  if (body instanceof UploadedForm) return body
  throw new AppError('unsupported_media_type', 'Send the files as multipart/form-data.')
}
