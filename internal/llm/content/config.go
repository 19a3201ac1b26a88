package content

import (
	"errors"
	"fmt"
	"strings"
)

// Mode says what happens to a value that carries text.
type Mode string

// The modes. Secrets are removed in all of them.
const (
	// ModeStrip removes the value and leaves `<key>.length`, its characters; of messages also roles, part types and their number.
	ModeStrip Mode = "strip"
	// ModeHash puts the keyed hash of the text in its place, so that equal texts can be told without being read.
	ModeHash Mode = "hash"
	// ModeTruncate keeps the first MaxLength characters of every text.
	ModeTruncate Mode = "truncate"
	// ModeKeep leaves text as it is.
	ModeKeep Mode = "keep"
)

// DefaultMaxLength is the number of characters that ModeTruncate keeps of one text when nothing else is said.
const DefaultMaxLength = 256

// minHashKey is the shortest hash key, in bytes, that Warnings does not complain about: 128 bits.
const minHashKey = 16

// Validate says whether m is one of the modes; the error lists them.
func (m Mode) Validate() error {
	switch m {
	case ModeStrip, ModeHash, ModeTruncate, ModeKeep:
		return nil
	}
	return fmt.Errorf("must be one of strip, hash, truncate, keep, got %q", string(m))
}

// Override gives one key, or all keys that begin with a prefix, a mode of its own. Exactly one of Key and Prefix is set.
//
// A key is an attribute key, or one of the places that have no key: see PlaceKeys.
type Override struct {
	Key, Prefix string
	Mode        Mode
}

// Rule gives one service a mode of its own. Service is compared with the resource attribute service.name as a whole.
type Rule struct {
	Service string
	Mode    Mode
}

// Config says what a Redactor does. The zero value strips.
type Config struct {
	// Mode is what happens to text. Empty means ModeStrip.
	Mode Mode
	// HashKey is the secret key of the HMAC-SHA-256. Needed wherever a value is hashed; never logged.
	HashKey []byte
	// MaxLength is the number of characters that ModeTruncate keeps. Zero means DefaultMaxLength.
	MaxLength int
	// Overrides come before Mode and Services; the first that matches wins.
	Overrides []Override
	// Allow lists further keys whose values are let through, Deny further keys whose values count as text: exact, or a prefix ending in '*'. Deny wins.
	Allow, Deny []string
	// Services come before Mode; the first that matches wins.
	Services []Rule
	// HashIdentity replaces identities (user.id, session.id, …) by their keyed hash. They are kept otherwise.
	HashIdentity bool
}

// Validate returns every fault of the configuration, each naming its key and what is allowed there.
func (c Config) Validate() error {
	var errs []error
	hashes := c.HashIdentity
	if c.Mode != "" {
		if err := c.Mode.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("mode: %w", err))
		}
		hashes = hashes || c.Mode == ModeHash
	}
	if c.MaxLength < 0 {
		errs = append(errs, fmt.Errorf("max_length: must not be negative (0 means %d), got %d", DefaultMaxLength, c.MaxLength))
	}
	for i, o := range c.Overrides {
		if (o.Key == "") == (o.Prefix == "") {
			errs = append(errs, fmt.Errorf("overrides::%d: needs either key or prefix", i))
		}
		if err := o.Mode.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("overrides::%d::mode: %w", i, err))
		}
		hashes = hashes || o.Mode == ModeHash
	}
	for i, s := range c.Services {
		if s.Service == "" {
			errs = append(errs, fmt.Errorf("services::%d::service: must be a service.name", i))
		}
		if err := s.Mode.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("services::%d::mode: %w", i, err))
		}
		hashes = hashes || s.Mode == ModeHash
	}
	for _, l := range []struct {
		name string
		keys []string
	}{{"allow", c.Allow}, {"deny", c.Deny}} {
		for i, k := range l.keys {
			switch star := strings.IndexByte(k, '*'); {
			case k == "":
				errs = append(errs, fmt.Errorf("%s::%d: must be a key or a prefix ending in '*'", l.name, i))
			case star >= 0 && star != len(k)-1:
				errs = append(errs, fmt.Errorf("%s::%d: '*' is allowed at the end only, got %q", l.name, i, k))
			}
		}
	}
	if hashes && len(c.HashKey) == 0 {
		errs = append(errs, errors.New("hash_key: needed for hashing; set it from the environment or a file, at least 16 random bytes, the same in every process whose hashes are to be equal"))
	}
	return errors.Join(errs...)
}

// Warnings returns what an operator should be told once at start: text is let through, or the hash key is short.
func (c Config) Warnings() []string {
	var w []string
	if c.Mode == ModeKeep {
		w = append(w, "content mode is keep: prompt text leaves this process")
	}
	for _, s := range c.Services {
		if s.Mode == ModeKeep {
			w = append(w, "content mode is keep for some services: their prompt text leaves this process")
			break
		}
	}
	for _, o := range c.Overrides {
		if o.Mode == ModeKeep {
			w = append(w, "content mode is keep for some keys: their text leaves this process")
			break
		}
	}
	for _, k := range c.Allow {
		if k == "*" {
			w = append(w, "content allow is *: prompt text leaves this process")
			break
		}
	}
	if n := len(c.HashKey); n > 0 && n < minHashKey {
		w = append(w, "content hash key is shorter than 16 bytes: short texts could be guessed")
	}
	return w
}
