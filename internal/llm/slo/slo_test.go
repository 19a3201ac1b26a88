package slo

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

func TestJudge(t *testing.T) {
	some := request.Some[float64]
	o := Objectives{
		{Model: "fast*", TTFT: 1, TPOT: 0.1},
		{Model: "*", TTFT: 2, TPOT: 0.2, E2E: 60, UserTTFT: 3},
	}
	for _, c := range []struct {
		name     string
		f        Figures
		want     request.Outcome
		violated []string
	}{
		{"meets every figure", Figures{Status: request.StatusOK, TTFT: some(1.9), TPOT: some(.1), E2E: some(59), UserTTFT: some(2.9)}, request.OutcomeMet, nil},
		{"an objective is met when it is reached exactly", Figures{Status: request.StatusOK, TTFT: some(2)}, request.OutcomeMet, nil},
		{"misses one", Figures{Status: request.StatusOK, TTFT: some(2.001), TPOT: some(.1)}, request.OutcomeMissed, []string{"ttft"}},
		{"misses several", Figures{Status: request.StatusOK, TTFT: some(9), TPOT: some(9), E2E: some(99), UserTTFT: some(9)}, request.OutcomeMissed, []string{"ttft", "tpot", "e2e", "user_ttft"}},
		{"the first pattern that matches holds", Figures{Model: "fast-8b", Status: request.StatusOK, TTFT: some(1.5)}, request.OutcomeMissed, []string{"ttft"}},
		{"and the others do not", Figures{Model: "fast-8b", Status: request.StatusOK, TTFT: some(.5), E2E: some(99)}, request.OutcomeMet, nil},
		{"a failed request misses, however quick it was", Figures{Status: request.StatusError, TTFT: some(.1)}, request.OutcomeMissed, []string{"error"}},
		{"a cancelled request misses", Figures{Status: request.StatusCancelled}, request.OutcomeMissed, []string{"cancelled"}},
		{"nothing known of it", Figures{Status: request.StatusOK}, request.OutcomeNone, nil},
		{"an unknown status is judged by its figures", Figures{TTFT: some(.1)}, request.OutcomeMet, nil},
	} {
		got, v := o.Judge(&c.f)
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.violated, v.Names(request.Violations), c.name)
	}
	got, _ := Objectives{{Model: "a", TTFT: 1}}.Judge(&Figures{Model: "b", Status: request.StatusError})
	assert.Equal(t, request.OutcomeNone, got, "no objective is for the model")
}
