package content

// The keys whose values stay, with the shape that each promises. What must survive whatever the mode is here or in
// safePrefixes: usage, latencies, finish reasons, models, prompt names and versions, references to uploaded content.
//
// A key of this table whose value has another shape is content all the same: gen_ai.request.model can hold a whole prompt.
var safeKeys = map[verb][]string{
	verbNumber: {
		"gen_ai.request.max_tokens", "gen_ai.request.n", "gen_ai.request.choice.count", "gen_ai.request.seed", "gen_ai.request.temperature", "gen_ai.request.top_p", "gen_ai.request.top_k",
		"gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty", "gen_ai.embeddings.dimension.count", "gen_ai.response.time_to_first_chunk", "gen_ai.client.token.usage",
		"gen_ai.openai.request.seed", "gen_ai.evaluation.score.value", "gen_ai.event.start_time", "gen_ai.event.end_time", "ai.response.timestamp",
		"prompt_length", "mlflow.chat.tokenUsage", "langfuse.observation.usage_details", "langfuse.observation.cost_details", "langfuse.observation.completion_start_time",
		"ttft_ms", "avg_itl_ms", "latency", "latency_ms", "elapsed_ms", "busy_ns", "idle_ns", "duration", "duration_ms", "input_tokens", "output_tokens", "total_tokens", "prompt_tokens", "completion_tokens",
		"code.line.number", "code.lineno", "server.port", "client.port", "net.host.port", "net.peer.port", "network.peer.port", "network.local.port", "process.pid", "thread.id", "http.status_code",
		"http.response.status_code", "http.request.content_length", "http.response.content_length", "http.request.body.size", "http.response.body.size", "rpc.grpc.status_code",
	},
	verbModel: {
		"gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "llm.request.model", "llm.response.model", "embedding.model_name", "reranker.model_name", "ai.model.id", "ai.response.model",
		"litellm.provider.model", "gen_ai.agent.model", "langfuse.observation.model.name", "mlflow.llm.model", "model", "model_name", "model_id", "gen_ai.request.model_name", "gen_ai.request.model_id",
	},
	verbFinish: {
		"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason", "llm.response.finish_reason", "llm.response.finish_reasons", "llm.response.stop_reason",
		"ai.response.finishReason", "ai.finishReason", "finish_reason", "finish_reasons", "stop_reason",
	},
	verbLabel: {
		// GenAI: what the call was
		"gen_ai.system", "gen_ai.provider.name", "gen_ai.operation.name", "gen_ai.output.type", "gen_ai.token.type", "gen_ai.request.encoding_formats", "gen_ai.request.id", "gen_ai.response.id", "gen_ai.request.stream",
		"gen_ai.is_streaming", "gen_ai.request.is_stream", "gen_ai.tool.type", "gen_ai.prompt.version", "gen_ai.data_source.id", "gen_ai.agent.id", "gen_ai.agent.version", "gen_ai.agent.call.id",
		"gen_ai.openai.request.service_tier", "gen_ai.openai.request.response_format", "gen_ai.openai.response.service_tier", "gen_ai.openai.response.system_fingerprint", "openai.api.type",
		"openai.request.service_tier", "openai.response.service_tier", "openai.response.system_fingerprint", "gen_ai.sdk.version", "gen_ai.framework", "gen_ai.environment", "gen_ai.application_name",
		"gen_ai.event.name", "gen_ai.evaluation.name", "gen_ai.evaluation.score.label", "gen_ai.response.status", "gen_ai.request.type", "gen_ai.span.kind", "gen_ai.operation.type",
		"llm.provider", "llm.system", "llm.vendor", "llm.is_streaming", "llm.request.type", "llm.prompt_template.version", "llm.hosted_vllm.object", "openinference.span.kind", "traceloop.span.kind",
		"traceloop.prompt.version", "traceloop.prompt.version_hash", "traceloop.prompt.managed", "langfuse.observation.prompt.version", "langfuse.observation.type", "langfuse.observation.level",
		"langfuse.version", "langfuse.release", "langfuse.environment", "langfuse.internal.as_root", "prompt_id", "prompt.id", "input.mime_type", "output.mime_type", "ai.operationId", "ai.model.provider", "ai.response.id",
		"ai.toolCall.id", "ai.settings.output", "ai.settings.mode", "mlflow.spanType", "mlflow.traceRequestId", "mlflow.message.format", "mlflow.llm.provider", "mlflow.experimentId", "litellm.call_id",
		"litellm.provider.error.code", "litellm.provider.error.llm_provider", "error.llm_provider", "openlit.agent.version_hash", "aws.bedrock.guardrail.id", "aws.bedrock.knowledge_base.id", "mcp.method.name",
		"mcp.protocol.version", "logfire.span_type", "logfire.pending_parent_id", "logfire.level_num", "event.name", "event_name", "event.domain",
		// ours, on metrics and records
		"llm.status", "llm.reason", "llm.state", "llm.cache", "llm.cached", "llm.reasoning", "llm.source", "llm.class", "llm.signal", "llm.rule", "llm.decision", "llm.currency", "llm.connector",
		"llm.position", "llm.estimated", "llm.sleep_level", "llm.slo.outcome", "llm.slo.violated", "llm.quality.issue", "llm.engine.kind", "llm.engine.version", "llm.engine.state", "llm.engine.rank",
		// engines and routers: SGLang, Dynamo, vLLM's router, LiteLLM
		"rid", "bid", "request_id", "x_request_id", "host_id", "module", "thread_label", "forward_mode", "trace_flags", "trace_id", "span_id", "parent_id", "method", "version", "status", "status_code", "endpoint", "namespace", "component", "phase",
		"instance_id", "worker_id", "worker_type", "prefill_worker_id", "decode_worker_id", "dp_rank", "tp_rank", "pp_rank", "router_mode", "request_type", "target", "level", "request.outcome", "request.attempt",
		"migration.is_retry", "migration.tokens_completed", "overlap_blocks", "disk_blocks", "host_pinned_blocks", "image_count", "audio_count", "video_count", "cancellation.signal", "error_type", "call_type", "service", "stream",
		// HTTP, RPC, stores
		"http.method", "http.request.method", "http.request.method_original", "http.scheme", "url.scheme", "http.flavor", "http.host", "http.server_name", "network.protocol.name", "network.protocol.version", "rpc.system", "rpc.system.name", "rpc.service", "rpc.method",
		"db.system", "db.system.name", "db.name", "db.namespace", "db.operation", "db.operation.name", "db.collection.name", "db.sql.table", "db.response.status_code", "messaging.system", "messaging.operation", "messaging.operation.type",
		"messaging.destination.name", "messaging.message.id", "graphql.operation.name", "graphql.operation.type", "asgi.event.type", "user_agent.name", "user_agent.version", "otel.status_code", "log.iostream", "log.file.name", "log.file.path",
	},
	verbLabels: {"gen_ai.tool.name", "gen_ai.tool.call.id", "ai.toolCall.name", "tool.name", "tool_name", "tool_call_id", "tool.id", "tool_call.id"},
	verbEnum:   {"role", "type", "gen_ai.message.role"},
	verbName: {
		"gen_ai.agent.name", "gen_ai.workflow.name", "gen_ai.prompt.name", "traceloop.prompt.key", "langfuse.observation.prompt.name", "mcp.prompt.name", "agent.name", "agent_name", "graph.node.id", "graph.node.name",
		"graph.node.parent_id", "traceloop.entity.name", "traceloop.entity.path", "traceloop.workflow.name", "ai.telemetry.functionId", "operation.name", "resource.name", "ai.schema.name", "langfuse.trace.name", "mlflow.spanFunctionName",
		"mlflow.traceName", "haystack.component.name", "haystack.component.type", "haystack.component.fully_qualified_type", "otel.scope.name", "otel.library.name", "llm.request.functions.name",
	},
	verbPhrase: {"os.description", "process.runtime.description", "service.description", "hw.description"},
	verbTitle:  {"service.name", "service.namespace", "service.instance.id", "deployment.environment", "deployment.environment.name"},
	verbError:  {"error.type", "exception.type", "error.code", "exception.escaped", "otel.status_description.code"},
	verbAgent:  {"http.user_agent", "user_agent.original", "metadata.user_agent"},
	verbURL: {
		"http.url", "http.target", "url.full", "url.original", "url.path", "url.query", "url", "uri", "path", "http.route", "server.address", "net.peer.name", "net.host.name", "peer.service", "gen_ai.openai.api_base", "api_base", "llm.api_base",
		"gen_ai.input.messages_ref", "gen_ai.output.messages_ref", "gen_ai.system_instructions_ref", "gen_ai.tool.definitions_ref", "gen_ai.input.messages.ref", "gen_ai.output.messages.ref", "gen_ai.system_instructions.ref", "gen_ai.tool.definitions.ref",
	},
	verbIdentity: {
		"user.id", "enduser.id", "session.id", "gen_ai.user", "gen_ai.request.user", "gen_ai.conversation.id", "client.address", "llm.user", "langfuse.user.id", "langfuse.session.id", "user", "user.email", "user_id", "session_id", "conversation_id",
		"litellm.team_id", "litellm.team_alias", "litellm.key_alias", "litellm.trace_id", "litellm.team.id", "litellm.team.alias", "litellm.api_key.hash", "mcp.session.id", "thread_id", "mlflow.trace.user", "mlflow.trace.session",
		"net.sock.peer.addr", "http.client_ip", "enduser.pseudo.id", "session.previous_id", "genkit:sessionId", "gcp.vertex.agent.session_id", "gcp.vertex.agent.invocation_id", "gcp.vertex.agent.event_id",
	},
}

// safePrefixes cover whole families whose members are numbers or tokens.
var safePrefixes = []prefixRule{
	{"llmspan.", verbOurs, ClassUnknown, false},
	{"gen_ai.usage.", verbNumber, ClassUnknown, false},
	{"gen_ai.aggregated_usage.", verbNumber, ClassUnknown, false},
	{"gen_ai.latency.", verbNumber, ClassUnknown, false},
	{"gen_ai.cost.", verbNumber, ClassUnknown, false},
	{"gen_ai.server.", verbNumber, ClassUnknown, false},
	{"gen_ai.client.", verbNumber, ClassUnknown, false},
	{"litellm.cost.", verbNumber, ClassUnknown, false},
	{"llm.usage.", verbNumber, ClassUnknown, false},
	{"llm.token_count.", verbNumber, ClassUnknown, false},
	{"llm.cost.", verbNumber, ClassUnknown, false},
	{"ai.usage.", verbNumber, ClassUnknown, false},
	{"user.", verbIdentity, ClassIdentity, false},
	{"enduser.", verbIdentity, ClassIdentity, false},
}

// frequentKeys are keys without a rule of their own that many spans have, beside those that llmspan writes: what follows for them from
// prefixes and words is worked out once.
var frequentKeys = []string{
	"gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.usage.total_tokens", "llm.usage.total_tokens",
	"gen_ai.latency.time_in_queue", "gen_ai.latency.time_to_first_token", "gen_ai.latency.e2e", "gen_ai.latency.time_in_model_prefill",
	"gen_ai.latency.time_in_model_decode", "gen_ai.latency.time_in_model_inference", "gen_ai.server.time_to_first_token",
	"llm.token_count.prompt", "llm.token_count.completion", "llm.token_count.total", "tenant",
}

// safeHeaders are the captured headers that stay, when their value is a label. Everything else under a header prefix is text
// that a caller chose.
var safeHeaders = []string{
	"accept", "accept-encoding", "content-type", "content-length", "content-encoding", "host", "traceparent", "date", "server", "via", "retry-after", "x-request-id", "x-correlation-id", "openai-processing-ms", "openai-version",
	"x-ratelimit-limit-requests", "x-ratelimit-limit-tokens", "x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens", "x-stainless-lang", "x-stainless-runtime", "x-stainless-retry-count",
}
