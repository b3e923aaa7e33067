// The source of agents that read only the input of the request.

import type { DataSource } from './source.ts'

export const inputSource: DataSource = {
  // The service covers the fields of the input in the source hash by itself.
  collect: async (_caller, input) => ({ data: input, hashed: null, citable: [] }),
}
