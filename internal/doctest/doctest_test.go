package doctest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
)

type size int64

func (s *size) UnmarshalText(b []byte) error {
	n, err := strconv.ParseInt(strings.TrimSuffix(string(b), "KiB"), 10, 64)
	if strings.HasSuffix(string(b), "KiB") {
		n *= 1024
	}
	*s = size(n)
	return err
}

type rule struct {
	Name  string  `mapstructure:"name"`
	Ratio float64 `mapstructure:"ratio"`
}

func (r rule) Validate() error {
	if r.Ratio > 1 {
		return errors.New("ratio: must be at most 1")
	}
	return nil
}

type embedded struct {
	Inner int `mapstructure:"inner"`
}

type queue struct {
	Size int `mapstructure:"size"`
}

type client struct {
	Endpoint string `mapstructure:"endpoint"`
	Retries  int    `mapstructure:"retries"`
}

type sample struct {
	Window  time.Duration       `mapstructure:"window"`
	Size    size                `mapstructure:"size"`
	Names   []string            `mapstructure:"names"`
	Token   configopaque.String `mapstructure:"token"`
	Labels  map[string]string   `mapstructure:"labels"`
	Rules   []rule              `mapstructure:"rules"`
	ByModel map[string]rule     `mapstructure:"by_model"`
	Nested  struct {
		On    bool `mapstructure:"on"`
		Level int  `mapstructure:"level"`
	} `mapstructure:"nested"`
	Queue    configoptional.Optional[queue] `mapstructure:"queue"`
	Embedded embedded                       `mapstructure:",squash"`
	Client   client                         `mapstructure:"client"`
	hidden   int
	_        struct{}
}

func newSample() *sample {
	s := &sample{Window: time.Minute, Size: 1024, Names: []string{"x", "y"}, Queue: configoptional.Default(queue{Size: 7})}
	s.Nested.On, s.Nested.Level, s.Embedded.Inner, s.hidden = true, 3, 10, 1
	s.Client.Retries = 2
	return s
}

func TestBlocksAreYAMLOnly(t *testing.T) {
	blocks := Blocks(t, "testdata/good.md")
	require.Len(t, blocks, 3)
	assert.Equal(t, 3, blocks[0].Line)
	assert.Equal(t, "sample:\n  rules:\n    - {name: a, ratio: 0.5}\n", blocks[1].Text, "the fence's indentation is gone")
	assert.Equal(t, "yaml", blocks[2].Lang)
}

func TestBadPages(t *testing.T) {
	for name, tt := range map[string]struct{ page, want string }{
		"open fence": {"x\n```yaml\na: 1\n", "2: fence is never closed"},
		"not YAML":   {"```yaml\na: [\n```\n", "1: block is not YAML"},
		"no block":   {"text\n```sh\na\n```\n", "no YAML block"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := yamlBlocks(tt.page)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestLoadFindsSectionsAndFragments(t *testing.T) {
	cfgs := Load(t, "testdata/good.md", "processors", "sample", newSample)
	require.Len(t, cfgs, 4)
	var windows, sizes, rules int
	for _, c := range cfgs {
		if c.Window == 2*time.Minute {
			windows++
			assert.Equal(t, configopaque.String("SAMPLE_TOKEN"), c.Token, "a reference without a default becomes its name")
		}
		if c.Size == 1024 {
			sizes++
		}
		rules += len(c.Rules)
	}
	assert.Equal(t, []int{1, 4, 1}, []int{windows, sizes, rules})
}

func TestLoadRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ yaml, want string }{
		"a key that does not exist": {"sample: {windw: 1s}", "windw"},
		"an invalid value":          {"sample: {rules: [{ratio: 2}]}", "rules::0: ratio: must be at most 1"},
		"a page without it":         {"other: {}", "no block configures sample"},
		"a list":                    {"[1, 2]", "no block configures sample"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load([]Block{{Lang: "yaml", Text: tt.yaml, Line: 1}}, "processors", "sample", newSample)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestKeyTableHolds(t *testing.T) {
	KeyTable(t, "testdata/good.md", newSample())
}

func TestKeyTableSeesEveryDifference(t *testing.T) {
	page, err := os.ReadFile("testdata/good.md")
	require.NoError(t, err)
	for name, tt := range map[string]struct{ old, new, want string }{
		"wrong duration":          {"`60s`", "`61s`", `"window": the page says "61s", the default is 1m0s`},
		"same duration otherwise": {"`60s`", "`1m`", ""},
		"wrong text value":        {"`1KiB`", "`2KiB`", `"size": the page says`},
		"same text value":         {"`1KiB`", "`1024`", ""},
		"wrong list":              {`[x, "y"]`, "[x]", `"names": the page says`},
		"wrong boolean":           {"`true`", "`false`", `"nested.on": the page says`},
		"number as text":          {"`3`", "`\"3\"`", `"nested.level": the page says`},
		"empty for a number":      {"`10`", "—", `"inner": the page says`},
		"value for an empty list": {"| none |", "| `[{name: a}]` |", `"rules": the page says`},
		"optional called present": {"| `queue` | — |", "| `queue` | {} on |", `"queue": the page says "{} on", by default it is absent`},
		"wrong optional default":  {"`7`", "`8`", `"queue.size": the page says`},
		"unknown key":             {"`window`", "`windw`", `"windw" is not a key`},
		"lost key":                {"| `window` |", "| |", `key "window" has no row`},
		"lost list element key":   {"| `rules[].ratio` | `0` | |\n", "", ""}, // its block has a row
		"lost map element key":    {"| `by_model.<name>.ratio` | `0` | |\n", "", `key "by_model.<name>.ratio" has no row`},
		"lost block":              {"| `client` | see there | |\n", "", `key "client.endpoint" has no row`},
		"twice":                   {"`token`, `labels`", "`token`, `window`", `"window" has a row already`},
		"no table":                {"| key | default |", "| name | default |", "no table with the headings"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(page), tt.old)
			problems := fmt.Sprint(compare(keyRows(strings.Replace(string(page), tt.old, tt.new, 1)), keysOf(newSample()), nil))
			if tt.want == "" {
				assert.Equal(t, "[]", problems)
				return
			}
			assert.Contains(t, problems, tt.want)
		})
	}
}

func TestExceptedKeysNeedNoRow(t *testing.T) {
	rows := keyRows("| Key | Default |\n|---|---|\n| `window` | 1m |\n")
	problems := compare(rows, keysOf(newSample()), []string{"size", "names", "token", "labels", "rules", "by_model", "nested", "queue", "inner"})
	assert.Equal(t, []string{`0: key "client.endpoint" has no row`, `0: key "client.retries" has no row`}, problems)
}

func TestStructsInListsCompareByKey(t *testing.T) {
	type cfg struct {
		Rules []rule `mapstructure:"rules"`
	}
	c := cfg{Rules: []rule{{Name: "a", Ratio: 0.5}, {Name: "b"}}}
	for written, want := range map[string]bool{
		"[{name: a, ratio: 0.5}, {name: b}]":            true,
		"[{name: a, ratio: 0.5}, {name: b, ratio: 0}]":  true,
		"[{name: a}, {name: b}]":                        false,
		"[{name: a, ratio: 0.5}, {name: b, x: 1}]":      false,
		"[{name: b}, {name: a, ratio: 0.5}]":            false,
		"[{name: a, ratio: 0.5}]":                       false,
		"[{name: a, ratio: 0.5}, {name: b}, {name: c}]": false,
		"[{name: a, ratio: \"0.5\"}, {name: b}]":        false,
		"nonsense":                                      false,
		"[":                                             false,
	} {
		got := compare(keyRows("| key | default |\n|---|---|\n| rules | `"+written+"` |\n"), keysOf(c), nil)
		assert.Equal(t, want, len(got) == 0, "%s: %v", written, got)
	}
}
