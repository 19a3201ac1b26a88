package content

import "strings"

// Namespaces that instrumentations of LLM software write: a key that nobody has named under one of these is text unless its
// last word promises a token (…id, …type, …version) and its value is one.
var contentNamespaces = set("gen_ai", "llm", "ai", "traceloop", "langfuse", "langsmith", "mlflow", "haystack", "crewai", "lk", "gcp", "logfire", "pydantic_ai", "openinference", "openlit", "flue", "genkit",
	"sk", "strands", "agent", "agents", "autogen", "llamaindex", "llama_index", "langchain", "langgraph", "smolagents", "dspy", "guardrails", "guard", "mcp", "tool", "tools", "function", "input", "output",
	"prompt", "completion", "retrieval", "retriever", "reranker", "embedding", "embeddings", "document", "documents", "image", "audio", "memory", "message", "conversation", "chat", "litellm", "portkey",
	"helicone", "promptlayer", "braintrust", "weave", "wandb", "arize", "phoenix", "opik", "laminar", "lmnr", "agentops", "agno", "bedrock", "anthropic", "openai", "cohere", "mistral", "vertexai", "google", "ollama",
	"together", "groq", "db", "graphql", "http", "rpc", "messaging", "redis", "mongodb", "elasticsearch", "opensearch", "pinecone", "chroma", "qdrant", "weaviate", "milvus", "exception", "error", "vllm",
	"fastapi", "evaluation", "evaluations", "feedback", "codex", "claude_code", "gemini_cli", "qwen", "copilot", "pipecat", "vapi", "elevenlabs", "hf", "huggingface", "tgi", "triton", "sglang", "baggage", "executor", "workflow", "edge_group")

// Namespaces that describe the machine a process runs on, not what a user asked: one line of printable text may stay.
var infraNamespaces = set("service", "telemetry", "host", "os", "process", "k8s", "container", "cloud", "deployment", "device", "hw", "nvidia", "gpu", "system", "thread", "code", "server", "net", "network", "tls", "otel", "aws", "azure", "peer", "faas",
	"webengine", "feature_flag", "asgi", "client", "source", "destination", "openshift", "heroku", "oci", "vcs", "cicd", "signal_to_metrics", "collector", "url", "user_agent", "dcgm", "slurm")

// tokenWords end keys whose values are tokens: ids, kinds, versions, measures.
var tokenWords = set("id", "ids", "uuid", "guid", "type", "types", "kind", "name", "version", "model", "provider", "vendor", "role", "status", "state", "code", "mode", "format", "lang", "locale", "region", "zone", "env", "environment",
	"tier", "level", "hash", "timestamp", "time", "date", "created", "count", "index", "rank", "size", "length", "encoding", "currency", "unit", "method", "protocol", "scheme", "host", "port", "class", "category", "team", "tenant", "project",
	"org", "organization", "account", "cluster", "namespace", "phase", "stage", "operation", "endpoint", "route", "streaming", "stream", "priority", "fingerprint", "digest", "checksum", "framework", "language", "runtime", "sdk",
	"retries", "attempt", "attempts", "latency", "duration", "seconds", "ms", "ns", "us", "tokens", "cost", "ratio", "rate", "percent", "enabled", "customer", "app", "application", "product", "plan", "department", "owner", "node", "pod", "worker",
	"instance", "shard", "partition", "replica", "cell", "datacenter", "dc", "rack", "squad", "gpu", "device", "site", "domain", "ring", "lane", "flavor", "channel", "revision", "build", "branch", "commit", "temperature", "seed", "ttft", "tpot", "itl")

// textWords, anywhere in a key, say that the value is what somebody or some model said, unless the last word is a tokenWord.
var textWords = set("prompt", "prompts", "input", "inputs", "output", "outputs", "message", "messages", "msg", "content", "contents", "text", "texts", "query", "queries", "question", "questions", "answer", "answers", "completion", "completions",
	"response", "responses", "request", "argument", "arguments", "args", "kwargs", "arg", "param", "params", "result", "results", "body", "payload", "document", "documents", "doc", "docs", "template", "instruction", "instructions",
	"transcript", "transcription", "description", "explanation", "variable", "variables", "parameters", "schema", "reasoning", "thinking", "thought", "thoughts", "summary", "history", "chat", "conversation", "memory", "context", "goal", "task",
	"objective", "backstory", "feedback", "comment", "comments", "note", "notes", "tags", "metadata", "meta", "data", "value", "values", "vector", "embedding", "embeddings", "image", "audio", "file", "files", "header", "headers", "statement",
	"sentence", "utterance", "speech", "caption", "title", "subject", "snippet", "chunk", "chunks", "passage", "email", "phone", "stop", "user", "system_prompt", "choices", "choice", "candidates", "generation", "generations", "reply", "say", "said",
	"observation", "plan", "steps", "step", "command", "code_block", "source_code", "sql", "html", "markdown", "json", "xml", "raw", "dump", "trace", "stacktrace", "traceback", "exception", "error", "errors", "detail", "details", "reason", "string", "str", "object")

// bodyWords end keys that carry text even in a namespace of infrastructure.
var bodyWords = set("body", "payload", "content", "contents", "text", "prompt", "statement", "message", "messages", "query", "queries", "argument", "arguments", "args", "params", "parameters", "line", "input", "output", "completion",
	"response", "result", "results", "description", "transcript", "metadata", "data", "value", "values", "stacktrace", "command", "header", "headers")

func set(words ...string) map[string]struct{} {
	m := make(map[string]struct{}, len(words))
	for _, w := range words {
		m[w] = struct{}{}
	}
	return m
}

func in(m map[string]struct{}, w string) bool { _, ok := m[w]; return ok }

// unknownRule decides about a key that is in no table.
//
//	namespace        text goes unless it is
//	LLM software     a token, under a key whose last word promises one
//	infrastructure   one printable line, under a key that does not end in a word like body
//	other, or none   a token, under a key without text words (a bare key needs a last word that promises one)
//
// Numbers and booleans stay everywhere, and as text under keys without text words. The key is one that isKey accepts.
func unknownRule(key string) rule {
	if isSecretKey(key) {
		return rule{verb: verbSecret, class: ClassSecret}
	}
	var buf [32]byte
	last, text := keyWords(key, buf[:0])
	namespace, bare := key, true
	if i := strings.IndexAny(key, ".:"); i > 0 {
		namespace, bare = key[:i], false
	}
	switch {
	case in(infraNamespaces, namespace) && !bare:
		if last&wordBody != 0 {
			return rule{verb: verbScalar, class: ClassUnknown}
		}
		return rule{verb: verbPhrase, class: ClassUnknown}
	case in(contentNamespaces, namespace):
		if last&wordToken != 0 {
			return rule{verb: verbLabel, class: ClassUnknown}
		}
	case last&wordToken != 0, !text && !bare:
		return rule{verb: verbLabel, class: ClassUnknown}
	}
	if text {
		return rule{verb: verbScalar, class: ClassUnknown}
	}
	return rule{verb: verbStamp, class: ClassUnknown}
}

// isKey: a key that source code wrote rather than a user: a token, with the separators that frameworks use.
func isKey(key string) bool {
	if len(key) == 0 || len(key) > maxLabel {
		return false
	}
	for i := 0; i < len(key); i++ {
		if c := key[i]; byteTable[c]&isLabelByte == 0 && c != '[' && c != ']' && c != '$' && c != '*' && c != '#' {
			return false
		}
	}
	return true
}

const (
	wordToken = 1 << iota
	wordBody
)

// keyWords splits a key into lower-case words (at . _ - : / and where camelCase rises) and returns what the last one is, and
// whether any is a text word. A trailing index does not count as a word.
func keyWords(key string, buf []byte) (last uint8, text bool) {
	flush := func() {
		if len(buf) == 0 {
			return
		}
		w := buf
		buf = buf[:0]
		digits := true
		for _, c := range w {
			digits = digits && c >= '0' && c <= '9'
		}
		if digits {
			return
		}
		last = 0
		if _, ok := tokenWords[string(w)]; ok {
			last |= wordToken
		}
		if _, ok := bodyWords[string(w)]; ok {
			last |= wordBody
		}
		if _, ok := textWords[string(w)]; ok {
			text = true
		}
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		switch {
		case c >= 'A' && c <= 'Z':
			if i > 0 && (key[i-1] < 'A' || key[i-1] > 'Z') {
				flush()
			}
			buf = append(buf, c|0x20)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			buf = append(buf, c)
		default:
			flush()
		}
		if len(buf) == cap(buf) {
			flush()
		}
	}
	flush()
	return last, text
}
