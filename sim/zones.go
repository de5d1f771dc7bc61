package sim

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// zoneRules has the zones of the IANA database, version 2025c: in each line the
// rule that holds in the zones behind it, as the environment variable TZ has it.
//
//go:embed zones.txt
var zoneRules string

// zone is the zone of the name, the same on every platform: by the rule that holds
// there now, whatever the year.
func zone(name string) (*time.Location, error) {
	for line := range strings.Lines(zoneRules) {
		words := strings.Fields(line)
		for _, known := range words[1:] {
			if known == name {
				return time.LoadLocationFromTZData(name, zoneData(words[0]))
			}
		}
	}
	return nil, fmt.Errorf("unknown time zone %q", name)
}

// zoneNames lists the zones.
func zoneNames() (names []string) {
	for line := range strings.Lines(zoneRules) {
		names = append(names, strings.Fields(line)[1:]...)
	}
	return names
}

// zoneData is a zone in the form of RFC 8536 in which the rule has held since long
// ago.
func zoneData(rule string) []byte {
	const longAgo = -1 << 40 // in seconds
	header := func(b []byte, transitions, types, characters uint32) []byte {
		b = append(b, "TZif2"...)
		b = append(b, make([]byte, 15)...)
		for _, n := range [...]uint32{0, 0, 0, transitions, types, characters} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	b := header(header(nil, 0, 0, 0), 1, 1, 1)
	sooner := int64(longAgo)
	b = binary.BigEndian.AppendUint64(b, uint64(sooner))
	b = append(b, 0)                    // the type of that transition
	b = append(b, make([]byte, 4+2)...) // the type: UTC, without a name
	b = append(b, 0)                    // which ends here
	return append(b, "\n"+rule+"\n"...)
}
