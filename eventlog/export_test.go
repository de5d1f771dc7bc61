package eventlog

import "github.com/tickonce/tickonce"

// HasLevel reports whether the table of levels has the kind.
func HasLevel(kind tickonce.EventKind) bool {
	_, ok := levels[kind]
	return ok
}
