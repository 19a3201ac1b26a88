package queuestorageextension

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/queuestorageextension/internal/boltfile"
)

// kinds are what the names of file_storage's files begin with: the kind of component that a file belongs to.
var kinds = []string{"receiver_", "processor_", "exporter_", "extension_", "connector_"}

// repairFiles looks through the files of file_storage before they are opened. A damaged one would keep the collector from starting: bbolt panics over
// it.
func (s *queueStorage) repairFiles(ctx context.Context) error {
	entries, err := os.ReadDir(s.cfg.Directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // file_storage makes it, or says so
	}
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isQueue(e.Name()) {
			continue
		}
		path := filepath.Join(s.cfg.Directory, e.Name())
		res, err := boltfile.Repair(path)
		switch {
		case errors.Is(err, boltfile.ErrInUse):
			return fmt.Errorf("%s is in use by another process: give each collector a directory of its own", path)
		case err != nil:
			return fmt.Errorf("a queue's file is damaged and cannot be set aside: %w", err)
		case res.Faults != nil:
			s.telemetry.ExtensionQueueStorageDamaged.Add(ctx, 1)
			s.set.Logger.Error("a queue's file is damaged, as after a loss of power; it was set aside, what is readable was put into a new one, and the rest is lost",
				zap.String("file", path), zap.String("set_aside_as", path+boltfile.Damaged), zap.Int("values_saved", res.Saved),
				zap.NamedError("faults", res.Faults), zap.NamedError("not_saved_because", res.Unsaved))
		}
	}
	return nil
}

func isQueue(name string) bool {
	if strings.HasSuffix(name, boltfile.Damaged) || strings.HasSuffix(name, ".backup") || strings.HasSuffix(name, boltfile.New) {
		return false
	}
	for _, k := range kinds {
		if strings.HasPrefix(name, k) {
			return true
		}
	}
	return false
}
