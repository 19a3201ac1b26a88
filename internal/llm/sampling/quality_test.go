package sampling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/llm/request"
)

// Quality and length keep a trace, after what is graver.
func TestKeepsBadAndOversizeAnswers(t *testing.T) {
	s := New(Config{Slow: Slow{E2E: 10}, Quality: request.IssueRepetition | request.IssueGarbled, Rules: []Rule{{Name: "vip", Share: 1}}})
	for _, c := range []struct {
		name string
		call Call
		want string
		keep bool
	}{
		{"an issue of the list", Call{Quality: request.IssueGarbled}, RuleQuality, true},
		{"an issue that is not in the list", Call{Quality: request.IssueTruncated}, RuleBaseline, false},
		{"more tokens than are usual", Call{Oversize: true}, RuleOversize, true},
		{"quality before length", Call{Quality: request.IssueRepetition, Oversize: true}, RuleQuality, true},
		{"slow before quality", Call{Quality: request.IssueRepetition, E2E: request.Some(11.)}, RuleSlow, true},
		{"an error before all", Call{Quality: request.IssueRepetition, Status: request.StatusError}, RuleError, true},
		{"nothing", Call{}, RuleBaseline, false},
	} {
		d := s.Decide(time.Unix(1, 0), &Trace{Calls: []Call{c.call}})
		assert.Equal(t, c.want, d.Rule, c.name)
		assert.Equal(t, c.keep, d.Keep, c.name)
	}
}
