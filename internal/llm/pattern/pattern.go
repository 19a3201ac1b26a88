// Package pattern matches the names of models with patterns in which * stands for any characters, none included. Model names have
// slashes in them, so that path.Match, whose * ends at one, does not do.
package pattern

import "strings"

// Match tells whether a name matches a pattern as a whole. Upper and lower case differ, as they do for engines.
func Match(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		var part string
		part, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
}
