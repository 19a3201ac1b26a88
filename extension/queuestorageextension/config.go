package queuestorageextension

import (
	"errors"

	"go.opentelemetry.io/collector/component"
)

// Config of the extension.
type Config struct {
	// Storage is the extension that keeps the data.
	Storage component.ID `mapstructure:"storage"`
	// Directory is where file_storage has its files. Where it is set, the files are read through at the start, and a damaged one, with which
	// file_storage does not start, is set aside.
	Directory string `mapstructure:"directory"`
	// MaxMemoryMiB is how much of each queue may wait in memory while the storage cannot be written. A batch that is larger is taken when
	// it is the only one.
	MaxMemoryMiB int64 `mapstructure:"max_memory_mib"`
}

func createDefaultConfig() component.Config {
	return &Config{Storage: component.MustNewID("file_storage"), MaxMemoryMiB: 32}
}

// Validate implements xconfmap.Validator.
func (c *Config) Validate() error {
	if c.Storage == (component.ID{}) {
		return errors.New("storage must name the storage extension that keeps the data, such as file_storage")
	}
	if c.MaxMemoryMiB < 1 {
		return errors.New("max_memory_mib must be at least 1")
	}
	return nil
}
