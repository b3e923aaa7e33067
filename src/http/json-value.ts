// The schema of any JSON value. It checks nothing: a body comes from JSON.parse and its
// depth is already limited. A recursive schema would get no name in the OpenAPI description.

import { z } from 'zod'
import type { JsonValue } from '../journal/event.ts'

export const jsonValue = z.custom<JsonValue>((value) => value !== undefined).describe('Any JSON value.')
