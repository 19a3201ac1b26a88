package sim

import (
	"slices"
	"time"
)

// The way of a call: user → gateway → engine's front end → back. The engine calls deliver, callRefused and callFailed.

// begin starts a call now.
func (w *World) begin(in Call, e *engine) uint64 {
	w.lastID++
	w.totals.Started++
	r := w.random
	c := &call{Call: in, id: w.lastID, engine: e, start: w.now}
	w.inFlight[c.id] = c
	if c.TraceID.IsEmpty() {
		c.TraceID = r.traceID()
	}
	c.clientSpan, c.clientHTTP, c.gatewaySpan, c.httpSpan = r.spanID(), r.spanID(), r.spanID(), r.spanID()
	c.Chunks = c.Chunks && w.cfg.Gateway.Enabled
	c.network = 150*time.Microsecond + r.delay(150*time.Microsecond, 0.5)
	if c.AbortAfter > 0 {
		w.agenda.add(w.now+c.AbortAfter, func() { w.abort(c) })
	}
	reach := w.now + c.network
	if !w.cfg.Gateway.Enabled {
		c.gatewayStart, c.httpStart = reach, reach
		w.agenda.add(reach, func() { w.reachEngine(c) })
		return c.id
	}
	c.gatewayStart = reach
	refused := r.chance(w.gatewayP)
	overflow := len(w.inFlight) > w.cfg.MaxInFlight
	if overflow {
		w.totals.Overflow++
	}
	if refused || overflow {
		w.agenda.add(reach+r.delay(800*time.Microsecond, 0.5), func() {
			if !c.done {
				w.end(c, ending{status: StatusError, http: 503, cause: "gateway_unavailable"})
			}
		})
		return c.id
	}
	// A part of the ingress is the gateway's own work, the rest connecting and the engine's HTTP server.
	ingress := r.delay(w.cfg.Gateway.Ingress, 0.5)
	c.httpStart = reach + ingress/4
	w.agenda.add(reach+ingress+e.frontDelay, func() { w.reachEngine(c) })
	return c.id
}

func (w *World) reachEngine(c *call) {
	switch {
	case c.done:
	case c.engine.down:
		w.end(c, ending{status: StatusError, http: 502, cause: "connect"})
	case !w.cfg.Gateway.Enabled && len(w.inFlight) > w.cfg.MaxInFlight:
		w.totals.Overflow++
		c.engine.stats.rejectedRequests++
		w.end(c, ending{status: StatusError, http: 503, cause: "overflow"})
	default:
		c.engine.arrive(c, w.now)
	}
}

// deliver takes a token that the front end has put out at s.frontLast on to the user.
func (w *World) deliver(s *sequence, last bool) {
	c, r := s.call, w.random
	hop := r.delay(200*time.Microsecond, 0.4)
	sent := s.frontLast + hop + c.engine.frontDelay
	if last {
		// The end of a sequence reaches the gateway after the engine has closed its span.
		sent = max(sent, s.spanEnd+hop+c.engine.frontDelay)
	}
	sent = max(sent, c.lastSend, c.gatewayStart)
	if c.Stream {
		sent = max(sent, c.headers+hop)
		if c.sends > 0 {
			c.maxGap = max(c.maxGap, sent-c.lastSend)
		} else {
			c.firstSend = sent
		}
		c.sends++
		if c.Chunks {
			c.sendTimes = append(c.sendTimes, sent)
		}
	}
	c.lastSend = sent
	if last {
		s.spanID = r.spanID()
		out := c.engine.out
		w.agenda.add(s.spanEnd, func() { w.engineSpan(s, out) })
	}
	if c.Watch && c.Kind != KindBeam {
		d := Delivery{Call: c.id, Choice: s.index, Tokens: 1}
		if last {
			d.Finish = s.finishReason()
		}
		w.agenda.add(sent+c.network, func() {
			d.At = w.at(w.now)
			if !c.cut {
				w.delivered = append(w.delivered, d)
			}
		})
	}
	if !c.done {
		return
	}
	if !c.Stream {
		c.lastSend += r.delay(400*time.Microsecond, 0.5) // the body is made, sent and read
	}
	end := c.lastSend + r.delay(250*time.Microsecond, 0.4)
	w.agenda.add(end, func() { w.end(c, ending{status: StatusOK, http: 200, at: end}) })
}

// callRefused is the front end's answer to a call that it does not take.
func (w *World) callRefused(c *call, status int, now time.Duration) {
	if c.done {
		return
	}
	c.done = true
	c.engine.forget(c)
	c.engine.stats.http(c, status, (now - c.arrival).Seconds())
	kind := StatusRefused
	if status >= 500 {
		kind = StatusError
	}
	w.end(c, ending{status: kind, http: status, cause: "engine"})
}

// callFailed is the end of a call in an engine that has died.
func (w *World) callFailed(c *call, now time.Duration) {
	c.done = true
	for _, s := range c.sequences {
		s.gone = true
	}
	if c.Stream && c.headers <= now {
		w.end(c, ending{status: StatusError, http: 200, cause: "engine_crash", broken: true})
		return
	}
	w.end(c, ending{status: StatusError, http: 500, cause: "engine_crash"})
}

// abort is the user leaving.
func (w *World) abort(c *call) {
	if c.done || w.inFlight[c.id] == nil {
		return
	}
	c.done = true
	status := 0
	if c.arrived {
		c.engine.abort(c)
		c.engine.kick(w.now)
		if c.Stream && c.headers <= w.now {
			status = 200
			c.engine.stats.http(c, 200, (w.now - c.arrival).Seconds())
		}
	}
	w.end(c, ending{status: StatusCancelled, http: status, cause: "client_disconnect"})
}

// ending is how a call ended, seen from the gateway.
type ending struct {
	status Status
	http   int
	cause  string
	broken bool
	at     time.Duration // at the gateway; 0: a moment from now
}

// end closes a call: spans of the gateway and the client, truth, last delivery.
func (w *World) end(c *call, e ending) {
	c.done = true
	r := w.random
	if e.at == 0 {
		e.at = max(w.now+r.delay(300*time.Microsecond, 0.4), c.gatewayStart)
	}
	if e.status == StatusOK {
		c.engine.stats.http(c, 200, (c.lastSend - c.arrival).Seconds())
	} else {
		// What was not sent yet is never sent.
		c.cut = true
		c.sendTimes = slices.DeleteFunc(c.sendTimes, func(t time.Duration) bool { return t > e.at })
	}
	gatewayEnd := e.at
	userEnd := gatewayEnd + c.network
	if e.status == StatusCancelled {
		userEnd = w.now // the user has gone; the gateway learns of it a moment later
		gatewayEnd = max(w.now+c.network, c.gatewayStart+50*time.Microsecond)
	}
	// All is said when the user has the last byte, and every span that began has ended.
	last := max(gatewayEnd, userEnd, w.now)
	for _, q := range c.sequences {
		last = max(last, q.spanEnd)
	}
	w.agenda.add(last, func() { w.closeCall(c, e, gatewayEnd, userEnd) })
}

// closeCall emits what is known at the end: spans of the gateway and the client, the truth, the last delivery.
func (w *World) closeCall(c *call, e ending, gatewayEnd, userEnd time.Duration) {
	delete(w.inFlight, c.id)
	t := w.truth(c, e, userEnd)
	if w.cfg.Gateway.Enabled && !c.Unsampled {
		w.gatewaySpans(c, e, gatewayEnd)
		t.Outer = Outermost{Layer: "gateway", Span: c.gatewaySpan, Start: w.at(c.gatewayStart), End: w.at(gatewayEnd)}
		if c.Chunks && c.Stream && len(c.sendTimes) > 0 {
			t.Outer.TTFT = Seconds(c.firstSend - c.gatewayStart)
		}
		t.Seen.Spans += 1
	}
	if c.Client && !c.Unsampled {
		end := userEnd + 150*time.Microsecond
		w.clientSpans(c, e, userEnd, end, &t)
		t.Outer = Outermost{Layer: "client", Span: c.clientSpan, Start: w.at(c.start), End: w.at(end), TTFT: t.UserTTFT}
		t.Seen.Spans += 1
	}
	w.totals.add(&t)
	w.truths = append(w.truths, t)
	if c.Watch {
		d := Delivery{Call: c.id, At: w.at(w.now), End: true, HTTPStatus: e.http, Broken: e.broken, Truth: &t}
		if e.status != StatusOK {
			d.Error = e.message(c)
		}
		w.delivered = append(w.delivered, d)
	}
}

// message is the text of a failure as its body has it. The engine's are vLLM's.
func (e ending) message(c *call) string {
	switch {
	case e.status == StatusRefused && c.Why != "":
		return c.Why
	case e.cause == "engine_crash":
		return "EngineCore encountered an issue. See stack trace (above) for the root cause."
	case e.cause == "connect":
		return "upstream connect error"
	case e.cause == "engine":
		return "the request queue is full"
	}
	return e.cause
}

// truth gathers what happened to a call.
func (w *World) truth(c *call, e ending, userEnd time.Duration) Truth {
	t := Truth{
		TraceID: c.TraceID, Trace: c.TraceID.String(), RequestID: c.requestID, Model: c.Model, Team: c.Team, Engine: c.engine.Name,
		Route: c.Route, Kind: c.Kind, Stream: c.Stream, Beams: c.Beams, Client: c.Client, Chunks: c.Chunks,
		Status: e.status, HTTPStatus: e.http,
		Start: w.at(c.start), End: w.at(userEnd), UserE2E: Seconds(userEnd - c.start),
	}
	if e.status != StatusOK {
		t.Error = e.cause
	}
	if c.Stream && c.sends > 0 && c.firstSend+c.network <= userEnd {
		t.UserTTFT = Seconds(c.firstSend + c.network - c.start)
		t.UserGapMax = Seconds(c.maxGap)
	}
	if len(c.sequences) > 0 {
		t.InputTokens = c.Prompts[0]
		if c.Kind == KindPrompts {
			t.InputTokens = 0
			for _, p := range c.Prompts {
				t.InputTokens += p
			}
		}
	}
	steps := map[int]int{} // beams at a prompt length
	widest := 0
	seenInput := 0
	for _, s := range c.sequences {
		t.OutputTokens += s.made
		if c.Kind == KindPrompts || s.index == 0 && c.Kind != KindBeam {
			t.CachedTokens += s.cached
		}
		if s.spanEnd == 0 {
			continue
		}
		t.Sequences = append(t.Sequences, w.sequenceTruth(s))
		steps[s.prompt]++
		widest = max(widest, steps[s.prompt])
		t.Seen.OutputTokens += s.made
		if c.Kind == KindPrompts {
			seenInput += s.prompt
		}
		if e.status == StatusOK && c.Kind != KindBeam {
			t.FinishReasons = append(t.FinishReasons, s.finishReason())
		}
	}
	slices.SortStableFunc(t.Sequences, func(a, b SequenceTruth) int { return a.End.Compare(b.End) })
	if c.Kind == KindBeam {
		t.OutputTokens = c.beamStep * c.Beams
		t.Seen.OutputTokens = len(steps) * widest
		if e.status == StatusOK {
			t.FinishReasons = slices.Repeat([]string{"length"}, c.Beams)
		}
	}
	if c.Unsampled {
		t.Seen = Seen{Status: StatusUnknown}
		return t
	}
	t.Seen.Spans = len(t.Sequences)
	if t.Seen.Spans > 0 {
		t.Seen.InputTokens = c.Prompts[0]
		if c.Kind == KindPrompts {
			t.Seen.InputTokens = seenInput
		}
		first := t.Sequences[0]
		t.Outer = Outermost{Layer: "engine", Span: first.Span, Start: first.Start, End: first.End}
	}
	t.Seen.Status = seenStatus(c, e, t.Seen.Spans > 0)
	return t
}

// seenStatus is what the spans of a call tell about its end.
func seenStatus(c *call, e ending, engineSpans bool) Status {
	switch {
	case e.status == StatusRefused, e.http >= 500:
		return e.status
	case e.broken && c.Client:
		return StatusError // the SDK saw the stream break
	case engineSpans:
		return StatusOK
	case e.http == 200:
		return StatusCancelled
	}
	return StatusUnknown
}

func (w *World) sequenceTruth(s *sequence) SequenceTruth {
	t := SequenceTruth{
		Span: s.spanID, ID: s.id, Start: w.at(s.arrival), End: w.at(s.spanEnd),
		InputTokens: s.prompt, CachedTokens: s.cached, OutputTokens: s.made, Preemptions: s.preempts,
		TTFT: Seconds(s.frontFirst - s.arrival), E2E: Seconds(s.frontLast - s.arrival),
		Queue: Seconds(s.scheduled - s.queued), Prefill: Seconds(s.first - s.scheduled), Decode: Seconds(s.last - s.first),
	}
	t.Admission = t.TTFT - t.Queue - t.Prefill
	return t
}

// finishReason is vLLM's: length when the limit was reached.
func (s *sequence) finishReason() string {
	if s.made >= s.maxTokens {
		return "length"
	}
	return "stop"
}
