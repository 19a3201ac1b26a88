// Package strictconf finds keys of a configuration that nobody reads.
//
// The Collector refuses unknown keys by itself, except where a part of the configuration reads its own keys: confighttp's ClientConfig and ServerConfig
// do since 0.160, and pass over every key that is not theirs. Squashed into a configuration, they take its check away with their own; under a key of
// their own, they only lose theirs. A typo then is a silent default. The types here have the same keys and read nothing by themselves, so that the
// Collector's check works on them.
package strictconf
