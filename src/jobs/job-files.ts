// The files of a job are stored as blobs of its run, never in the file system. A path in an
// uploaded archive therefore cannot escape a folder, and removing a run removes its files.

import type { RunStore } from '../stores/run-store.ts'

/** The id of the blob with an uploaded input file, in base64. */
export function inputBlob(runId: string, path: string): string {
  return `${runId}:input:${path}`
}

/** The prefix of the blobs with the files of an uploaded skill, in base64. They are removed when the run ends. */
export function packageBlobs(runId: string): string {
  return `${runId}:package:`
}

/** The prefix of the paths of files that a job saved. */
export const artifactsFolder = 'artifacts/'

/** The id of the blob with a file that the job saved, as text. `path` is without `artifactsFolder`. */
export function artifactBlob(runId: string, path: string): string {
  return `${runId}:artifact:${path}`
}

/** The files of jobs for the tools that read and write them. */
export function jobFilesOf(
  store: Pick<RunStore, 'readBlob' | 'putBlob' | 'readEvents'>,
  /** A file of an installed skill. */
  readInstalled: (skillId: string, path: string) => Promise<Uint8Array | undefined>,
) {
  const skillOf = async (runId: string) => {
    const { events } = await store.readEvents(runId, 0, 2)
    const accepted = events.find((event) => event.type === 'run.accepted')
    const prepared = events.find((event) => event.type === 'run.prepared')
    return {
      skill: prepared?.data.skill ?? accepted?.data.spec.skill,
      uploaded: accepted?.data.spec.job?.source === 'temp_upload',
    }
  }
  return {
    async listSkillFiles(runId: string): Promise<{ path: string; size: number }[]> {
      return ((await skillOf(runId)).skill?.files ?? []).map(({ path, size }) => ({ path, size }))
    },
    /** Only files that the skill had when the job was accepted; undefined for any other path. */
    async readSkillFile(runId: string, path: string): Promise<Uint8Array | undefined> {
      const { skill, uploaded } = await skillOf(runId)
      if (skill?.files?.some((file) => file.path === path) !== true) return undefined
      if (!uploaded) return await readInstalled(skill.id, path)
      const blob = await store.readBlob(packageBlobs(runId) + path)
      return blob === undefined ? undefined : Buffer.from(blob.body, 'base64')
    },

    async readInput(runId: string, path: string): Promise<Uint8Array | undefined> {
      const blob = await store.readBlob(inputBlob(runId, path))
      return blob === undefined ? undefined : Buffer.from(blob.body, 'base64')
    },
    putArtifact: (runId: string, path: string, text: string) => store.putBlob(artifactBlob(runId, path), runId, text),
  }
}
