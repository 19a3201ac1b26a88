package llmconsoleexporter

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
)

// Config says where lines go, how many at most, and in which dress.
type Config struct {
	// Output is the stream to write to: stdout or stderr. Default stdout; the collector's own log is on stderr.
	Output Output `mapstructure:"output"`

	// MaxLinesPerSecond bounds the lines of a second on average, five times as many at once; a line then says how many were
	// left out. Default 20; 0 prints all.
	MaxLinesPerSecond int `mapstructure:"max_lines_per_second"`

	// Color says when lines are coloured: auto (on a terminal, unless NO_COLOR is set), always or never. Default auto.
	Color Color `mapstructure:"color"`
}

// Output names a standard stream.
type Output string

const (
	OutputStdout Output = "stdout"
	OutputStderr Output = "stderr"
)

// Color says when lines are coloured.
type Color string

const (
	ColorAuto   Color = "auto"
	ColorAlways Color = "always"
	ColorNever  Color = "never"
)

func createDefaultConfig() component.Config {
	return &Config{Output: OutputStdout, MaxLinesPerSecond: 20, Color: ColorAuto}
}

// Validate names each key that is wrong and what is allowed.
func (c *Config) Validate() error {
	var errs []error
	if c.Output != OutputStdout && c.Output != OutputStderr {
		errs = append(errs, fmt.Errorf("output: must be stdout or stderr, got %q", c.Output))
	}
	if c.MaxLinesPerSecond < 0 {
		errs = append(errs, fmt.Errorf("max_lines_per_second: must be 0 (all) or more, got %d", c.MaxLinesPerSecond))
	}
	if c.Color != ColorAuto && c.Color != ColorAlways && c.Color != ColorNever {
		errs = append(errs, fmt.Errorf("color: must be auto, always or never, got %q", c.Color))
	}
	return errors.Join(errs...)
}
