package content

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stacks are the attributes of SDKs of which there is no recording here, as their sources write them. T is a sentence with a
// canary, W a single word that is one; what begins with '=' has to stay as it is.
var stacks = map[string]map[string]any{
	"Logfire": {
		"logfire.msg": "T", "logfire.msg_template": "T", "logfire.json_schema": `{"type":"object","properties":{"q":{}}}`, "logfire.span_type": "=span", "logfire.level_num": "=9", "city": "W", "q": "T",
		"question": "W", "return": "T", "request_data": `{"messages":[{"role":"user","content":"T"}]}`, "response_data": `{"message":{"content":"W"}}`, "fastapi.arguments.values": `{"q":"W"}`,
		"gen_ai.usage.raw": `={"completion_tokens": 24}`, "gen_ai.request.model": "=gpt-4o", "async": "=true", "events": `[{"content":"T"}]`,
	},
	"Langfuse": {
		"langfuse.trace.input": `"W"`, "langfuse.trace.output": "W", "langfuse.observation.input": `{"a":"W"}`, "langfuse.observation.output": "T", "langfuse.observation.status_message": "T",
		"langfuse.observation.metadata.k": "W", "langfuse.trace.metadata.cfg": `{"k":"W"}`, "langfuse.metadata": "T", "langfuse.trace.tags": []any{"W", "T"}, "langfuse.observation.model.parameters": `{"stop":"W"}`,
		"langfuse.observation.type": "=generation", "langfuse.observation.model.name": "=tiny", "langfuse.observation.usage_details": `={"input": 40, "output": 17}`, "langfuse.observation.prompt.name": "=qa",
		"langfuse.observation.prompt.version": "=2", "langfuse.observation.completion_start_time": `="2026-11-30T13:08:16.000Z"`, "langfuse.internal.is_app_root": "=true", "langfuse.trace.name": "=chain", "public_key": "pk-lf-W-000000000",
		"langfuse.generation.prompt": "W", "langfuse.experiment.item.expected_output": "W", "langfuse.trace.user_prompt": "W",
	},
	"Strands": {
		"gen_ai.agent.name": "=Strands Agents", "gen_ai.agent.tools": `["W"]`, "gen_ai.event.start_time": "=2026-11-30T13:08:16.000+00:00", "system_prompt": "W", "gen_ai.tool.description": "W",
		"gen_ai.tool.json_schema": `{"properties":{"city":{"description":"T"}}}`, "gen_ai.tool.status": "=success", "content": `[{"text":"W"}]`, "message": "W", "tool.result": "W", "finish_reason": "=end_turn",
		"event_loop.cycle_id": "=7c9e6679-7425-40de-944b-e07fc1f90ae7", "gen_ai.server.time_to_first_token": "=131", "gen_ai.user.message": "T",
	},
	"MLflow": {
		"mlflow.spanInputs": `{"messages":[{"content":"W"}]}`, "mlflow.spanOutputs": `"W"`, "mlflow.spanType": `="CHAT_MODEL"`, "mlflow.chat.tools": `[{"function":{"description":"T"}}]`, "mlflow.chat.tokenUsage": `={"input_tokens": 40}`,
		"mlflow.traceRequestId": `="tr-4bf92f3577b34da6"`, "mlflow.message.format": `="openai"`, "mlflow.llm.model": `="tiny-llama"`, "stop": `["W"]`, "tools": `[{"function":{"name":"f","description":"T"}}]`, "extra_body": `{"a":"W"}`,
		"extra_headers": `{"x":"W"}`, "messages": `[{"content":"W"}]`, "temperature": `=0.7`, "model": `="tiny-llama"`, "response_format": `{"schema":"T"}`, "prompt": `"W"`, "mlflow.traceTag.mine": "W", "mlflow.chunk.value": `"W"`,
		"mlflow.trace.session": "=s-1",
	},
	"Haystack": {
		"haystack.component.name": "=llm", "haystack.component.type": "=OpenAIChatGenerator", "haystack.component.fully_qualified_type": "=haystack.components.generators.chat.openai.OpenAIChatGenerator",
		"haystack.component.input": `{"messages":["W"]}`, "haystack.component.output": "{'replies': ['W']}", "haystack.pipeline.input_data": `{"prompt":{"q":"W"}}`, "haystack.pipeline.output_data": "W",
		"haystack.pipeline.metadata": `{"k":"W"}`, "haystack.component.input_types": `{"messages":"T"}`, "haystack.component.visits": "=1", "haystack.agent.state_schema": `{"W":1}`, "haystack.agent.tools": "[Tool(name='W')]",
		"haystack.pipeline.max_runs_per_component": "=100",
	},
	"Agent Framework, Semantic Kernel": {
		"workflow.definition": `{"id":"x","T":1}`, "executor.id": "=writer", "message.type": "=standard", "message.payload_type": "=ChatMessage", "gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"W"}]}]`,
		"gen_ai.response.finish_reasons": `=["stop"]`, "sk.available_functions": "W", "gen_ai.agent.description": "W", "gen_ai.event.content": `{"content":"W"}`, "gen_ai.agent.invocation_input": "W", "gen_ai.tool.definitions": `[{"name":"W"}]`,
		"server.address": "=http://127.0.0.1:8200/v1/",
	},
	"LlamaIndex, OpenInference": {
		"input.value": "W", "output.value": `{"message":"W"}`, "llm.invocation_parameters": `{"model":"m","stop":["W"]}`, "llm.input_messages.0.message.contents.0.message_content.text": "W",
		"llm.output_messages.0.message.reasoning_summary": "W", "retrieval.documents.3.document.content": "W", "retrieval.documents.3.document.metadata": `{"a":"W"}`, "retrieval.documents.3.document.type": "W",
		"reranker.query": "W", "embedding.embeddings.0.embedding.text": "W", "tool.parameters": `{"W":1}`, "session.id": "=s-1", "openinference.span.kind": "=LLM", "metadata": `{"k":"W"}`, "llm.token_count.total": "=5",
		"llm.prompts.0.prompt.text": "W", "annotations.0.explanation": "W", "llm.function_call": `{"arguments":"W"}`, "audio.transcript": "W", "llm.model_name": "=tiny-llama", "llm.output_messages.0.message.role": "=assistant",
		"llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments.city": "W", "exception.escaped": "=False",
	},
	"CrewAI, LangGraph": {
		"crewai.crew.tasks": `[{"description":"W"}]`, "crewai.agent.role": "T", "crewai.agent.backstory": "W", "crewai.task.expected_output": "W", "crewai.crew.result": "W", "langgraph.state.question": "W", "langsmith.metadata.team": "W",
		"langsmith.span.kind": "=llm", "gen_ai.prompt": `{"messages":"W"}`, "gen_ai.serialized.doc": "W", "gen_ai.request.extra_query": "W", "langsmith.trace.session_name": "=default",
	},
	"Google ADK, Genkit": {
		"gcp.vertex.agent.llm_request": `{"contents":"W"}`, "gcp.vertex.agent.tool_response": "W", "gcp.vertex.agent.data": "W", "gcp.vertex.agent.invocation_id": "=e-1", "genkit:input": `"W"`, "genkit:output": "W", "genkit:metadata:context": "W",
		"genkit:type": "=action", "genkit:state": "=success", "gcp.gen_ai.operation.config.system_instruction": "W", "gcp.gen_ai.operation.config.response_schema.properties": "W", "code.function.parameters.city.value": "W",
		"code.function.return.value": "W", "code.function.name": "=get_weather",
	},
	"coding agents": {
		"user_prompt": "W", "tool_input": `{"cmd":"W"}`, "full_command": "W", "file_path": "/W", "function_args": "W", "prompt_length": "=12", "prompt_id": "=p-1", "tool_name": "=Bash", "request_text": "W", "response_text": "W", "arguments": "W", "output": "W",
		"error": "W", "body": "W", "event.name": "=tool_result", "cost_usd": "=0.01", "session.id": "=s-1", "tool_parameters": "W", "old_string": "W", "reason": "T",
	},
	"voice": {
		"lk.input_text": "W", "lk.user_transcript": "W", "lk.chat_ctx": `{"items":["W"]}`, "lk.response.text": "W", "lk.function_tool.output": "W", "flue.turn.input": "W", "flue.task.prompt": "W", "transcript": "W", "input": "W", "vapi.call.transcript": "W",
		"pipecat.turn.text": "W", "lk.response_ttft": "=0.2",
	},
	"data stores": {
		"db.statement": "W", "db.query.text": "W", "db.query.parameter.0": "W", "db.system": "=postgresql", "db.operation.name": "=SELECT", "db.query.result.0.document": "W", "redis.command": "W", "db.chroma.query.where_document": "W",
		"db.milvus.query.filter": "W", "pinecone.query.filter": "W", "elasticsearch.body": "W", "db.query.embeddings.vector": "W", "db.collection.name": "=docs", "mongodb.query": "W", "graphql.document": "W",
	},
	"HTTP": {
		"http.request.body": "W", "http.response.body.content": "W", "http.request.header.x-question": []any{"W"}, "http.request.header.authorization": []any{"Bearer W"}, "url.query": "q=W&page=W", "url.full": "https://h.example/s?q=W#W",
		"http.target": "/s?q=W", "http.url": "https://u:W@h.example/", "url.fragment": "W", "user_agent.original": "ua W", "http.request.header.content-type": []any{"=application/json"}, "http.route": "=/v1/{path:path}", "http.status_code": "=200",
		"rpc.request.body": "W", "messaging.message.body": "W", "http.request.header.cookie": "W",
	},
}

func TestStacksWithoutRecordings(t *testing.T) {
	for _, mode := range []Mode{ModeStrip, ModeHash} {
		r := redactor(t, Config{Mode: mode})
		for name, attrs := range stacks {
			for _, p := range places {
				var c canaries
				b := newBatch()
				m := p.at(b)
				want := map[string]any{}
				for key, v := range attrs {
					raw, keep := fill(&c, v)
					require.NoError(t, m.PutEmpty(key).FromRaw(raw))
					if keep {
						want[key] = raw
					}
				}
				b.redact(r)
				if found := escaped(b.bytes(t)); len(found) > 0 {
					t.Errorf("%s %s %s: %s", mode, name, p.name, strings.Join(found, "\n"))
				}
				got := p.at2(b).AsRaw()
				for key, v := range want {
					assert.Equal(t, v, got[key], "%s %s %s: %s", mode, name, p.name, key)
				}
			}
		}
	}
}

// fill replaces T and W by canaries and tells whether the value has to stay.
func fill(c *canaries, v any) (any, bool) {
	switch v := v.(type) {
	case []any:
		out, keep := make([]any, len(v)), true
		for i, e := range v {
			var k bool
			out[i], k = fill(c, e)
			keep = keep && k
		}
		return out, keep
	case string:
		if s, ok := strings.CutPrefix(v, "="); ok {
			return s, true
		}
		v = strings.ReplaceAll(v, "W", c.token())
		if strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[") {
			q := quoteASCII(c.text())
			return strings.ReplaceAll(v, "T", q[1:len(q)-1]), false
		}
		return strings.ReplaceAll(v, "T", c.text()), false
	}
	return v, true
}
