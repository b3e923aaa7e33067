// All error codes, grouped by what the client should do about them. Codes are stable and
// never reused. docs/errors.md has the same table, and a test compares the two.

export type ErrorKind =
  | 'invalid' // the request is wrong; change it
  | 'unauthenticated' // identify yourself
  | 'forbidden' // you are identified, but not allowed
  | 'not_found' // no such thing, not yours, or no longer kept
  | 'conflict' // the state has changed; read it again
  | 'too_large' // send less
  | 'limited' // too much at once; wait
  | 'upstream' // a model, tool or engine failed
  | 'unavailable' // the server cannot do it now; retry later
  | 'timeout' // it took too long
  | 'bug' // the server violated one of its own rules

export const errorCodes = {
  invalid_request: 'invalid',
  invalid_json: 'invalid',
  body_too_complex: 'invalid',
  messages_or_prompt_required: 'invalid',
  messages_invalid: 'invalid',
  instructions_too_long: 'invalid',
  instructions_refused: 'forbidden',
  unknown_format: 'invalid',
  unknown_model: 'invalid',
  unknown_config: 'invalid',
  unknown_cursor: 'invalid',
  resume_by_post: 'invalid',
  unsupported_content: 'invalid',
  unsupported_media_type: 'invalid',
  empty_batch_items: 'invalid',
  batch_size_exceeded: 'invalid',
  confirmation_payload_invalid: 'invalid',
  client_id_missing: 'invalid',
  nothing_to_regenerate: 'invalid',
  runtime_option_unknown: 'invalid',
  runtime_option_invalid: 'invalid',
  skill_engine_unsupported: 'invalid',
  skill_execution_mode_unsupported: 'invalid',
  skill_broken: 'invalid',
  job_input_invalid: 'invalid',
  job_parameter_invalid: 'invalid',
  job_not_interactive: 'invalid',
  job_already_started: 'invalid',
  upload_invalid: 'invalid',
  upload_part_missing: 'invalid',
  archive_invalid: 'invalid',
  archive_unsafe_path: 'invalid',
  archive_has_links: 'invalid',
  archive_too_many_files: 'invalid',
  archive_bomb: 'invalid',
  skill_package_invalid: 'invalid',
  artifact_path_invalid: 'invalid',
  workspace_outside: 'invalid',
  file_refused: 'invalid',
  host_invalid: 'invalid',
  contact_file_invalid: 'invalid',

  unauthorized: 'unauthenticated',
  forbidden: 'forbidden',
  host_not_allowed: 'forbidden',
  origin_not_allowed: 'forbidden',

  route_not_found: 'not_found',
  conversation_not_found: 'not_found',
  run_not_found: 'not_found',
  run_timeline_not_found: 'not_found',
  run_output_not_found: 'not_found',
  tool_confirmation_not_found: 'not_found',
  agent_not_found: 'not_found',
  tool_not_found: 'not_found',
  comparison_not_found: 'not_found',
  message_not_found: 'not_found',
  trace_not_found: 'not_found',
  skill_not_found: 'not_found',
  job_not_found: 'not_found',
  job_result_not_found: 'not_found',
  artifact_not_found: 'not_found',

  conversation_busy: 'conflict',
  idempotency_key_reused: 'conflict',
  tool_confirmation_resolved: 'conflict',
  tool_confirmation_expired: 'conflict',
  run_fenced: 'conflict',
  accept_stale: 'conflict',
  comparison_not_ready: 'conflict',
  comparison_failed: 'conflict',
  comparison_voted: 'conflict',
  job_not_waiting: 'conflict',
  job_unreadable: 'conflict',
  interaction_stale: 'conflict',
  reply_key_reused: 'conflict',

  body_too_large: 'too_large',
  headers_too_large: 'too_large',
  rate_limited: 'limited',
  queue_full: 'limited',
  jobs_awaiting_upload: 'limited',

  model_unavailable: 'upstream',
  model_error: 'upstream',
  model_rate_limited: 'upstream',
  model_auth_failed: 'upstream',
  model_stream_incomplete: 'upstream',
  model_content_filtered: 'upstream',
  tool_calls_too_many: 'upstream',
  tool_failed: 'upstream',
  tool_unavailable: 'upstream',
  tool_input_invalid: 'upstream',
  tool_outcome_unknown: 'upstream',
  tool_denied: 'upstream',
  tool_consent_unavailable: 'upstream',
  tool_expired: 'upstream',
  tool_cancelled: 'upstream',
  job_output_invalid: 'upstream',

  store_unavailable: 'unavailable',
  store_busy: 'unavailable',
  store_damaged: 'unavailable',
  uploads_busy: 'unavailable',
  shutting_down: 'unavailable',
  auth_unavailable: 'unavailable',

  run_timed_out: 'timeout',
  model_stalled: 'timeout',
  tool_timed_out: 'timeout',
  max_steps: 'timeout',
  job_upload_expired: 'timeout',
  client_timed_out: 'timeout',
  request_timeout: 'timeout',

  run_cancelled: 'conflict',
  run_unrecoverable: 'bug',
  config_invalid: 'invalid',
  event_invalid: 'bug',
  transition_refused: 'bug',
  event_too_large: 'bug',
  internal_error: 'bug',
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof errorCodes
