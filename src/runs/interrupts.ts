// The reasons with which a run loop aborts its own model and tool work. They are never shown to users.

export class CancelInterrupt extends Error {
  override name = 'CancelInterrupt'
}

/** The server is shutting down. The run is released without an ending, and the next claim resumes it. */
export class DrainInterrupt extends Error {
  override name = 'DrainInterrupt'
}
