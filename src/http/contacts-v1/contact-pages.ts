// Lists with page numbers: `{ items, total }`, and a Link header if there is a next page.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { contactLimits } from '../../contacts/contact-limits.ts'
import type { CountedPage } from '../../stores/row-page.ts'
import { linkNext } from '../next-link.ts'
import { userIdQuery } from '../routes.ts'

const pageMax = 1_000_000
const rowsDefault = 10

export const pageQuery = userIdQuery.extend({
  page: z.coerce.number().int().min(1).max(pageMax).default(1).describe('The number of the page, from 1.'),
  limit: z.coerce.number().int().min(1).max(contactLimits.pageRows).default(rowsDefault).describe('Items on one page.'),
})

export function listPage<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), total: z.number().describe('The number of items on all pages.') })
}

type Paged = { page: number; limit: number }

export async function pageReply<Row, View>(
  request: FastifyRequest,
  reply: FastifyReply,
  toView: (row: Row) => View,
  list: (page: { limit: number; offset: number }) => Promise<CountedPage<Row>>,
): Promise<{ items: View[]; total: number }> {
  const { page, limit } = request.query as Paged
  const { rows, more, total } = await list({ limit, offset: (page - 1) * limit })
  if (more) linkNext(request, reply, { page: page + 1 })
  return { items: rows.map(toView), total }
}
