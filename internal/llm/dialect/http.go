package dialect

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// httpKeys are the HTTP semantic conventions, stable before old, and what routers write instead.
// Source: recordings of FastAPI, httpx, vllm-router 0.1.17 and smg 1.13.0.
var httpKeys = map[string]spelling{
	"http.response.status_code": {fieldHTTPStatus, 0},
	"http.status_code":          {fieldHTTPStatus, 1},
	"status_code":               {fieldHTTPStatus, 2},
	"http.request.method":       {fieldHTTPMethod, 0},
	"http.method":               {fieldHTTPMethod, 1},
	"url.path":                  {fieldHTTPPath, 0},
	"http.target":               {fieldHTTPPath, 1},
	"path":                      {fieldHTTPPath, 2},
	"http.route":                {fieldHTTPRoute, 0},
}

// httpCodes are the status codes as error types, made once.
var httpCodes = func() (c [600]string) {
	for i := range c {
		c[i] = strconv.Itoa(i)
	}
	return c
}()

// recogniseHTTP claims an HTTP server's span. It carries neither model nor usage: it is a layer where it encloses a request, and never a
// request alone. On a route that serves no models it is one only tentatively. An HTTP client's span ends with the headers of a stream, so it says nothing about a request.
func recogniseHTTP(s *source, r *request.Request) verdict {
	server := s.span.Kind() == ptrace.SpanKindServer && s.has(fieldHTTPMethod)
	router := s.span.Kind() == ptrace.SpanKindInternal && s.span.Name() == "http_request" && s.has(fieldHTTPMethod)
	if !server && !router {
		return notMine
	}
	op := s.operationOfRoute()
	r.Layer, r.LayerOnly, r.Tentative = request.LayerGateway, true, op == ""
	r.Operation = op
	s.outcome(r)
	return aRequest
}

// operationOfRoute is the operation that the span's path serves, else its route.
func (s *source) operationOfRoute() string {
	if op := operationOfPath(s.text(fieldHTTPPath)); op != "" {
		return op
	}
	return operationOfPath(s.text(fieldHTTPRoute))
}

// routes are the ends of the paths that serve models: OpenAI's, Anthropic's, SGLang's, TGI's and vLLM's own.
var routes = []struct{ suffix, operation string }{
	{"/chat/completions", "chat"},
	{"/completions", "text_completion"},
	{"/embeddings", "embeddings"},
	{"/responses", "chat"},
	{"/messages", "chat"},
	{"/rerank", "rerank"},
	{"/score", "rerank"},
	{"/pooling", "embeddings"},
	{"/classify", "embeddings"},
	{"/generate", "text_completion"},
	{"/generate_stream", "text_completion"},
	{"/invocations", "chat"},
	{"/audio/transcriptions", "chat"},
}

// operationOfPath is the operation that an LLM route serves, "" for every other path.
func operationOfPath(path string) string {
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	path = strings.TrimSuffix(path, "/")
	for _, r := range routes {
		if strings.HasSuffix(path, r.suffix) {
			return r.operation
		}
	}
	return ""
}
