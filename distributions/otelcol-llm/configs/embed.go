// Package configs embeds the configurations that ship with the distribution, so that the binary works with no file around.
package configs

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names lists the shipped configurations (file names without .yaml), sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // cannot happen: the root of an embedded file system is always there
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// Read returns the YAML of the shipped configuration called name. The error for an unknown name lists the known ones.
func Read(name string) ([]byte, error) {
	// Compared with the list, never joined to a path as it came: "../x" is simply not a name.
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no built-in configuration %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return files.ReadFile(name + ".yaml")
}
