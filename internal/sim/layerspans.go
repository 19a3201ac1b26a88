package sim

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Scopes of the Python instrumentations, with the versions that were recorded.
var (
	fastapiScope = scope{"opentelemetry.instrumentation.fastapi", "0.66b1", "https://opentelemetry.io/schemas/1.11.0"}
	httpxScope   = scope{"opentelemetry.instrumentation.httpx", "0.66b1", "https://opentelemetry.io/schemas/1.11.0"}
	genaiScope   = scope{"opentelemetry.instrumentation.genai.openai", "1.3b0", "https://opentelemetry.io/schemas/1.37.0"}
)

const (
	gatewayHost, gatewayPort = "127.0.0.1", 8430
	gatewayRoute             = "/v1/{path:path}"
	gatewaySpanName          = "POST " + gatewayRoute
)

// httpKeys are attribute names by convention.
type httpKeys struct{ method, status, url string }

func keysOf(c Conventions) httpKeys {
	if c == ConventionsStable {
		return httpKeys{"http.request.method", "http.response.status_code", "url.full"}
	}
	return httpKeys{"http.method", "http.status_code", "http.url"}
}

func (w *World) put(sp ptrace.Span, c *call, id, parent pcommon.SpanID, name string, kind ptrace.SpanKind, from, to time.Duration) {
	sp.SetTraceID(c.TraceID)
	sp.SetSpanID(id)
	sp.SetParentSpanID(parent)
	sp.SetFlags(flagsLocal)
	sp.SetName(name)
	sp.SetKind(kind)
	sp.SetStartTimestamp(pcommon.NewTimestampFromTime(w.at(from)))
	sp.SetEndTimestamp(pcommon.NewTimestampFromTime(w.at(max(to, from))))
}

// gatewaySpans emits the gateway's SERVER span, the HTTP client span of its call to the engine, and the chunks.
func (w *World) gatewaySpans(c *call, e ending, end time.Duration) {
	k := keysOf(w.cfg.Gateway.Conventions)
	parent := c.Parent
	if c.Client {
		parent = c.clientHTTP
	}
	sp := w.gateway.span(fastapiScope)
	w.put(sp, c, c.gatewaySpan, parent, gatewaySpanName, ptrace.SpanKindServer, c.gatewayStart, end)
	if !parent.IsEmpty() {
		sp.SetFlags(flagsRemote)
	}
	w.serverAttributes(sp.Attributes(), c)
	if e.http != 0 {
		sp.Attributes().PutInt(k.status, int64(e.http))
	}
	if e.http >= 500 {
		sp.Status().SetCode(ptrace.StatusCodeError)
	}
	if w.cfg.Gateway.ModelAttribute {
		sp.Attributes().PutStr("gen_ai.operation.name", operation(c.Route))
		sp.Attributes().PutStr("gen_ai.request.model", c.Model)
	}
	if c.arrived || e.cause == "connect" {
		w.upstreamSpan(c, e, end, k)
	}
	if c.Chunks && e.http != 0 {
		w.chunkSpans(c, e, end, k)
	}
}

// serverAttributes are those of the recorded FastAPI instrumentation, or their stable names.
func (w *World) serverAttributes(a pcommon.Map, c *call) {
	port := int64(30000 + c.id%30000)
	team := func() {
		if c.Team != "" {
			a.PutEmptySlice("http.request.header.x_team").AppendEmpty().SetStr(c.Team)
		}
	}
	if w.cfg.Gateway.Conventions == ConventionsStable {
		a.PutStr("url.scheme", "http")
		a.PutStr("server.address", gatewayHost)
		a.PutInt("server.port", gatewayPort)
		a.PutStr("network.protocol.version", "1.1")
		a.PutStr("url.path", c.Route)
		a.PutStr("http.request.method", "POST")
		a.PutStr("client.address", "127.0.0.1")
		a.PutInt("client.port", port)
		a.PutStr("http.route", gatewayRoute)
		team()
		return
	}
	host := gatewayHost + ":" + strconv.Itoa(gatewayPort)
	a.PutStr("http.scheme", "http")
	a.PutStr("http.host", host)
	a.PutInt("net.host.port", gatewayPort)
	a.PutStr("http.flavor", "1.1")
	a.PutStr("http.target", c.Route)
	a.PutStr("http.url", "http://"+host+c.Route)
	a.PutStr("http.method", "POST")
	a.PutStr("http.server_name", host)
	a.PutStr("net.peer.ip", "127.0.0.1")
	a.PutInt("net.peer.port", port)
	a.PutStr("http.route", gatewayRoute)
	team()
}

// upstreamSpan is the gateway's HTTP client span. For a stream it ends when the headers have come.
func (w *World) upstreamSpan(c *call, e ending, end time.Duration, k httpKeys) {
	to, status := end-100*time.Microsecond, e.http
	switch {
	case e.cause == "connect":
		status = 0
	case c.Stream && e.http == 200:
		to = min(c.headers+150*time.Microsecond, end)
	}
	sp := w.gateway.span(httpxScope)
	w.put(sp, c, c.httpSpan, c.gatewaySpan, "POST", ptrace.SpanKindClient, c.httpStart, to)
	a := sp.Attributes()
	a.PutStr(k.method, "POST")
	a.PutStr(k.url, "http://127.0.0.1:"+strconv.Itoa(w.enginePort(c.engine))+c.Route)
	if status != 0 {
		a.PutInt(k.status, int64(status))
	}
	switch {
	case e.cause == "connect":
		sp.Status().SetCode(ptrace.StatusCodeError)
		sp.Status().SetMessage("ConnectError: [Errno 111] Connection refused")
	case status >= 400:
		sp.Status().SetCode(ptrace.StatusCodeError)
	}
}

// enginePort numbers the engines' ports in the spans from 8100 on.
func (w *World) enginePort(e *engine) int {
	for i, x := range w.engines {
		if x == e {
			return 8100 + i
		}
	}
	return 8100
}

// chunkSpans are the "http send" spans of ASGI: the start of the response, one a message, and an empty last one. A stream's
// messages are the role, one for each token, the finish reason with the usage, and [DONE].
func (w *World) chunkSpans(c *call, e ending, end time.Duration, k httpKeys) {
	send := func(at time.Duration, event string, status int) {
		sp := w.gateway.span(fastapiScope)
		at = min(at, end-20*time.Microsecond)
		w.put(sp, c, w.random.spanID(), c.gatewaySpan, gatewaySpanName+" http send", ptrace.SpanKindInternal, at, at+10*time.Microsecond)
		sp.Attributes().PutStr("asgi.event.type", "http.response."+event)
		if status != 0 {
			sp.Attributes().PutInt(k.status, int64(status))
		}
	}
	body := func(at time.Duration) { send(at, "body", 0) }
	if !c.Stream || e.http != 200 {
		send(end-60*time.Microsecond, "start", e.http)
		body(end - 40*time.Microsecond)
		body(end - 20*time.Microsecond)
		return
	}
	send(min(c.headers+200*time.Microsecond, end), "start", e.http)
	for i, at := range c.sendTimes {
		if i == 0 {
			body(at)
			at += 20 * time.Microsecond
		}
		body(at)
	}
	if e.status == StatusOK {
		body(c.lastSend + 20*time.Microsecond)
		body(c.lastSend + 40*time.Microsecond)
		body(end - 20*time.Microsecond)
	}
}

// clientSpans emits the GenAI span of the application and the HTTP client span inside it.
func (w *World) clientSpans(c *call, e ending, userEnd, end time.Duration, t *Truth) {
	sp := w.client.span(genaiScope)
	op := operation(c.Route)
	w.put(sp, c, c.clientSpan, c.Parent, op+" "+c.Model, ptrace.SpanKindClient, c.start, end)
	a := sp.Attributes()
	a.PutStr("gen_ai.operation.name", op)
	a.PutStr("gen_ai.provider.name", "openai")
	a.PutStr("gen_ai.request.model", c.Model)
	a.PutStr("server.address", gatewayHost)
	a.PutInt("server.port", gatewayPort)
	if c.Stream {
		a.PutBool("gen_ai.request.stream", true)
	}
	if c.Kind == KindChoices {
		a.PutInt("gen_ai.request.choice.count", int64(len(c.Outputs)))
	}
	if c.MaxTokens > 0 {
		a.PutInt("gen_ai.request.max_tokens", int64(c.MaxTokens))
	}
	switch {
	case e.status == StatusOK:
		reasons := a.PutEmptySlice("gen_ai.response.finish_reasons")
		for _, r := range t.FinishReasons {
			reasons.AppendEmpty().SetStr(r)
		}
		a.PutStr("gen_ai.response.model", c.Model)
		a.PutStr("gen_ai.response.id", c.requestID)
		a.PutInt("gen_ai.usage.input_tokens", int64(t.InputTokens))
		a.PutInt("gen_ai.usage.output_tokens", int64(t.OutputTokens))
	case e.http >= 400 || e.broken:
		sp.Status().SetCode(ptrace.StatusCodeError)
		a.PutStr("error.type", sdkError(e))
	}
	if t.UserTTFT > 0 {
		a.PutDouble("gen_ai.response.time_to_first_chunk", t.UserTTFT.Float())
	}
	h := w.client.span(httpxScope)
	to := userEnd
	if c.Stream && e.http == 200 {
		to = min(c.headers+c.network+200*time.Microsecond, userEnd)
	}
	w.put(h, c, c.clientHTTP, c.clientSpan, "POST", ptrace.SpanKindClient, c.start+20*time.Microsecond, to)
	h.Attributes().PutStr("http.method", "POST")
	h.Attributes().PutStr("http.url", "http://"+gatewayHost+":"+strconv.Itoa(gatewayPort)+c.Route)
	if e.http != 0 {
		h.Attributes().PutInt("http.status_code", int64(e.http))
	}
	if e.http >= 400 {
		h.Status().SetCode(ptrace.StatusCodeError)
	}
}

// sdkError is the error.type that the OpenAI SDK's instrumentation reports.
func sdkError(e ending) string {
	switch {
	case e.broken:
		return "httpx.RemoteProtocolError"
	case e.http == 400:
		return "openai.BadRequestError"
	case e.http == 404:
		return "openai.NotFoundError"
	case e.http >= 500:
		return "openai.InternalServerError"
	}
	return "openai.APIStatusError"
}

// operation is gen_ai.operation.name for a route.
func operation(route string) string {
	if route == RouteCompletions {
		return "text_completion"
	}
	return "chat"
}
