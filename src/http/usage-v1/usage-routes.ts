// /v1/usage: the token counts and the cost of the caller.

import { z } from 'zod'
import { usageGroupings } from '../../journal/usage.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { usageView } from '../usage-view.ts'

const dayText = z.iso.date()

const reportView = z
  .object({
    from: z.string(),
    to: z.string(),
    groupBy: z.enum(usageGroupings),
    pricesAsOf: z.string().describe('The day of the price table that is in use now.'),
    total: usageView.describe('Over all groups, also those of other pages.'),
    groups: z.array(z.object({ key: z.string(), usage: usageView })).describe('Ordered by key.'),
  })
  .meta({ id: 'UsageReport' })

export function usageRoutes(server: Server, services: Services): void {
  server.get(
    '/v1/usage',
    {
      schema: {
        tags: ['Usage'],
        summary: 'Your token counts and cost',
        description:
          'Sums of your own runs for each agent, model, day or user. They stay when runs and conversations are deleted. Days are UTC; both ends are included, 366 days at most.',
        querystring: userIdQuery.extend({
          from: dayText.optional().describe('As 2026-11-01; the default is 29 days before `to`.'),
          to: dayText.optional().describe('The default is today.'),
          groupBy: z.enum(usageGroupings).default('day'),
          limit: z.coerce.number().int().min(1).max(500).default(100),
          after: optionalFilter().describe('The key of the last group on the previous page.'),
        }),
        response: { 200: reportView, 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { from, to, total, groups } = await services.usage.report(userId, request.query)
      if (groups.more) linkNext(request, reply, { after: groups.rows.at(-1)?.key ?? '' })
      return {
        from,
        to,
        groupBy: request.query.groupBy,
        pricesAsOf: services.modelTable.asOf,
        total,
        groups: groups.rows.map(({ key, totals }) => ({ key, usage: totals })),
      }
    },
  )
}
