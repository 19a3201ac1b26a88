package strictconf

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
)

// Client has the keys of confighttp.ClientConfig.
type Client confighttp.ClientConfig

// Server has the keys of confighttp.ServerConfig.
type Server confighttp.ServerConfig

// Section reads a section of conf into plain, a pointer to a struct with the section's keys that is of no other use, and reports the keys that it does
// not have, at every depth. A section that is absent or empty is right.
func Section(conf *confmap.Conf, section string, plain any) error {
	if conf.Get(section) == nil {
		return nil
	}
	sub, err := conf.Sub(section)
	if err != nil {
		return err
	}
	known := keysOf(reflect.TypeOf(plain).Elem())
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(sub.ToStringMap())) {
		if !slices.Contains(known, k) {
			errs = append(errs, fmt.Errorf("%s: has no key %q; keys are %s", section, k, strings.Join(known, ", ")))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := sub.Unmarshal(plain); err != nil {
		return fmt.Errorf("%s: %w", section, err)
	}
	return nil
}

// keysOf returns the keys of a struct in order.
func keysOf(t reflect.Type) (keys []string) {
	for i := range t.NumField() {
		name, opts, _ := strings.Cut(t.Field(i).Tag.Get("mapstructure"), ",")
		switch {
		case strings.Contains(opts, "squash"):
			keys = append(keys, keysOf(t.Field(i).Type)...)
		case name != "" && name != "-":
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
