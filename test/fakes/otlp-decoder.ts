// Reads an ExportTraceServiceRequest of OTLP from the bytes of its protobuf message, by the field
// numbers of opentelemetry-proto.

export type CollectedSpan = {
  traceId: string
  spanId: string
  /** Empty if the span begins its trace. */
  parentSpanId: string
  name: string
  /** 1 internal, 2 server, 3 client. */
  kind: number
  startMs: number
  endMs: number
  attributes: Record<string, unknown>
  /** 0 unset, 1 ok, 2 error. */
  status: number
  resource: Record<string, unknown>
}

type Field = { number: number; value: bigint | Buffer }

function* fieldsOf(bytes: Buffer): Generator<Field> {
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error('a varint is cut off')
      value |= BigInt(byte & 0x7f) << shift
      if ((byte & 0x80) === 0) return value
    }
  }
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new Error('a field is cut off')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const key = Number(varint())
    const number = key >> 3
    switch (key & 7) {
      case 0:
        yield { number, value: varint() }
        break
      case 1:
        yield { number, value: take(8).readBigUInt64LE() }
        break
      case 2:
        yield { number, value: take(Number(varint())) }
        break
      case 5:
        yield { number, value: BigInt(take(4).readUInt32LE()) }
        break
      default:
        throw new Error(`wire type ${key & 7}`)
    }
  }
}

const all = (bytes: Buffer, number: number): Buffer[] =>
  [...fieldsOf(bytes)].flatMap((field) =>
    field.number === number && Buffer.isBuffer(field.value) ? [field.value] : [],
  )
const one = (bytes: Buffer, number: number): bigint | Buffer | undefined =>
  [...fieldsOf(bytes)].find((field) => field.number === number)?.value
const text = (value: bigint | Buffer | undefined) => (Buffer.isBuffer(value) ? value.toString('utf8') : '')
const hex = (value: bigint | Buffer | undefined) => (Buffer.isBuffer(value) ? value.toString('hex') : '')
const count = (value: bigint | Buffer | undefined) => (typeof value === 'bigint' ? Number(value) : 0)

/** AnyValue: string 1, bool 2, int 3, double 4, array 5. */
function valueOf(bytes: Buffer): unknown {
  for (const { number, value } of fieldsOf(bytes)) {
    if (number === 1) return text(value)
    if (number === 2) return value !== 0n
    if (number === 3) return Number(BigInt.asIntN(64, value as bigint))
    if (number === 4) {
      const double = Buffer.alloc(8)
      double.writeBigUInt64LE(value as bigint)
      return double.readDoubleLE()
    }
    if (number === 5) return all(value as Buffer, 1).map(valueOf)
  }
  return null
}

const attributesOf = (pairs: Buffer[]) =>
  Object.fromEntries(
    pairs.map((pair) => {
      const value = one(pair, 2)
      return [text(one(pair, 1)), Buffer.isBuffer(value) ? valueOf(value) : null]
    }),
  )

export function decodeSpans(request: Buffer): CollectedSpan[] {
  return all(request, 1).flatMap((resourceSpans) => {
    const resource = one(resourceSpans, 1)
    const about = Buffer.isBuffer(resource) ? attributesOf(all(resource, 1)) : {}
    return all(resourceSpans, 2).flatMap((scopeSpans) =>
      all(scopeSpans, 2).map((span) => {
        const status = one(span, 15)
        return {
          traceId: hex(one(span, 1)),
          spanId: hex(one(span, 2)),
          parentSpanId: hex(one(span, 4)),
          name: text(one(span, 5)),
          kind: count(one(span, 6)),
          startMs: count(one(span, 7)) / 1e6,
          endMs: count(one(span, 8)) / 1e6,
          attributes: attributesOf(all(span, 9)),
          status: Buffer.isBuffer(status) ? count(one(status, 3)) : 0,
          resource: about,
        }
      }),
    )
  })
}
