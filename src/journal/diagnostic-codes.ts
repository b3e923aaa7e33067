// The codes of `diagnostic` events that other code reads again. The code of a diagnostic that is
// only shown stands in the file that writes the event.

export const diagnosticCodes = {
  /** Another engine took over, because the one of the spec was not available. */
  engineFallback: 'engine_fallback',
  /** Another model of the run is asked from now on. */
  modelFallback: 'model_fallback',
  budgetNearlyUsed: 'budget_nearly_used',
  /** The process died while this run was on the main thread. */
  processDied: 'process_died',
} as const
