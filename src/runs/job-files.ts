// Where the files of a job are: beside the journal, as blobs of its run. Nothing of an
// upload is ever written to a folder, so no path of a stranger's archive can lead
// anywhere, and what belongs to a run goes with it.

import type { Store } from '../stores/store.ts'

/** Files that a caller sent along as input, in base64. */
export function inputBlob(runId: string, path: string): string {
  return `${runId}:input:${path}`
}

/** Files of an uploaded skill, in base64; gone when the run ends. */
export function packageBlobs(runId: string): string {
  return `${runId}:package:`
}

/** What the job made, as text. */
export function artifactBlob(runId: string, path: string): string {
  return `${runId}:artifact:${path}`
}

/** The files of jobs for the tools that read and write them. */
export function jobFilesOf(store: Pick<Store, 'readBlob' | 'putBlob'>) {
  return {
    async readInput(runId: string, path: string): Promise<Uint8Array | undefined> {
      const blob = await store.readBlob(inputBlob(runId, path))
      return blob === undefined ? undefined : Buffer.from(blob.body, 'base64')
    },
    putArtifact: (runId: string, path: string, text: string) => store.putBlob(artifactBlob(runId, path), runId, text),
  }
}
