// Any JSON value in a request or an answer. A body came out of JSON.parse and its depth
// is bounded before, so there is nothing to check; and a recursive schema would have no
// name in the OpenAPI description.

import { z } from 'zod'
import type { JsonValue } from '../journal/event.ts'

export const jsonValue = z.custom<JsonValue>((value) => value !== undefined).describe('Any JSON value.')
