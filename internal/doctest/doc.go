// Package doctest holds documentation to the code: it reads the fenced blocks of a Markdown page, loads the ones that
// configure a component, and compares a table of keys with a default configuration, both ways.
//
// A component's README test is three lines:
//
//	doctest.Blocks(t, "README.md")                                                            // every YAML block parses
//	doctest.Load(t, "README.md", "processors", f.Type().String(), f.CreateDefaultConfig)      // and is a valid configuration
//	doctest.KeyTable(t, "README.md", f.CreateDefaultConfig())                                 // and the key table is true
//
// It is for tests only and imports confmap, so nothing that ships may import it.
package doctest
