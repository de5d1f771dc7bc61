package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestZones: what the clocks show, on either side of a change.
func TestZones(t *testing.T) {
	for _, c := range []struct{ zone, utc, local string }{
		{"UTC", "2026-03-29T01:00:00Z", "01:00"},
		{"Europe/Berlin", "2026-03-29T00:59:59Z", "01:59"},
		{"Europe/Berlin", "2026-03-29T01:00:00Z", "03:00"},
		{"Europe/Berlin", "2026-10-25T00:59:59Z", "02:59"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z", "02:00"},
		{"Europe/Dublin", "2026-07-01T12:00:00Z", "13:00"},
		{"America/New_York", "2026-03-08T06:59:59Z", "01:59"},
		{"America/New_York", "2026-03-08T07:00:00Z", "03:00"},
		{"Asia/Kathmandu", "2026-01-01T00:00:00Z", "05:45"},
		{"Australia/Lord_Howe", "2026-01-01T00:00:00Z", "11:00"},
		{"Australia/Lord_Howe", "2026-07-01T00:00:00Z", "10:30"},
		{"Pacific/Kiritimati", "9999-01-01T00:00:00Z", "14:00"},
		{"Europe/London", "0001-07-01T00:00:00Z", "01:00"},
	} {
		location, err := zone(c.zone)
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339, c.utc)
		require.NoError(t, err)
		require.Equal(t, c.local, at.In(location).Format("15:04"), "%s at %s", c.zone, c.utc)
	}
	_, err := zone("Europe/Atlantis")
	require.ErrorContains(t, err, `unknown time zone "Europe/Atlantis"`)
	_, err = zone("")
	require.Error(t, err)
}

// TestEveryZoneIsThere: each by its name, once, and none by the host's data.
func TestEveryZoneIsThere(t *testing.T) {
	names := zoneNames()
	require.Greater(t, len(names), 590)
	for _, name := range names {
		location, err := zone(name)
		require.NoError(t, err, name)
		require.Equal(t, name, location.String())
	}
	slices.Sort(names)
	require.Len(t, slices.Compact(slices.Clone(names)), len(names))
	require.NotContains(t, names, "Local")
}
