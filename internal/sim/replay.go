package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
)

// maxReplay bounds how many calls a replay has.
const maxReplay = 1_000_000

// replayed is one line of a replay: a call by its sizes. Times are seconds from the start, tokens counts.
type replayed struct {
	At           float64 `json:"at"`
	Model        string  `json:"model"`
	Team         string  `json:"team"`
	PromptTokens int     `json:"prompt_tokens"`
	OutputTokens int     `json:"output_tokens"`
	MaxTokens    int     `json:"max_tokens"`
	N            int     `json:"n"`
	Stream       bool    `json:"stream"`
	AbortAfter   float64 `json:"abort_after"`
}

// ReadArrivals reads recorded traffic: JSON lines with at, model, prompt_tokens and output_tokens, and optionally team,
// max_tokens (the output's length when missing), n (1), stream (false) and abort_after. Errors name the line and the key.
func ReadArrivals(r io.Reader) ([]Arrival, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<10)
	var all []Arrival
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if len(all) == maxReplay {
			return nil, fmt.Errorf("line %d: more than %d calls", n, maxReplay)
		}
		a, err := readArrival(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, a)
	}
	return all, lines.Err()
}

func readArrival(line []byte) (Arrival, error) {
	x := replayed{N: 1}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return Arrival{}, err
	}
	const longest = float64(math.MaxInt64) / 1e9 / 2
	switch {
	case !finite(x.At) || x.At < 0 || x.At > longest || !finite(x.AbortAfter) || x.AbortAfter < 0 || x.AbortAfter > longest:
		return Arrival{}, fmt.Errorf("at %v and abort_after %v must be seconds, not negative", x.At, x.AbortAfter)
	case x.PromptTokens < 1 || x.OutputTokens < 1:
		return Arrival{}, fmt.Errorf("prompt_tokens %d and output_tokens %d must be at least 1", x.PromptTokens, x.OutputTokens)
	case x.N < 1 || x.N > 128:
		return Arrival{}, fmt.Errorf("n %d is outside 1 to 128", x.N)
	case x.MaxTokens != 0 && x.MaxTokens < x.OutputTokens:
		return Arrival{}, fmt.Errorf("max_tokens %d must be at least output_tokens %d", x.MaxTokens, x.OutputTokens)
	}
	c := Call{
		Model: x.Model, Team: x.Team, Route: RouteChat, Kind: KindSingle, Stream: x.Stream, Temperature: 1, TopP: 1,
		Prompts: []int{x.PromptTokens}, MaxTokens: max(x.MaxTokens, x.OutputTokens), AbortAfter: seconds(x.AbortAfter),
	}
	if x.N > 1 {
		c.Kind = KindChoices
	}
	for range x.N {
		c.Outputs = append(c.Outputs, x.OutputTokens)
	}
	return Arrival{At: seconds(x.At), Call: c}, nil
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
