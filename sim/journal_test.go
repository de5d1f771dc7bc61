package sim

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

const journaled = `simulate v1
engine   standby=yes
run      2h
schedule a every=1m queue=q handler=ok:1s
schedule b every=1m queue=q handler=fail:30% backoff=5s
`

// TestD2WhatCannotBeRecordedIsNotThere: it comes when the journal works again.
func TestD2WhatCannotBeRecordedIsNotThere(t *testing.T) {
	r := passes(t, journaled+"during 10m30s..20m30s store journal-error\n"+
		"expect no-double-fire a.fires=120 a.skipped=0 sometimes:journal-failed sometimes:retries-exhausted\n")
	require.Greater(t, r.Faults[0].Effect, int64(100))
	require.EqualValues(t, 240, r.Queues[0].Enqueued)

	passes(t, journaled+"during 10m30s..1h20m store journal-error p=0.3\nexpect no-double-fire a.fires=120 a.skipped=0\n")
}

// TestD3ATornRecordIsDropped: the store opens with all that was acknowledged, in a
// crash as at the end of the fault, and wherever the record was cut.
func TestD3ATornRecordIsDropped(t *testing.T) {
	for seed := range uint64(50) {
		s := parsed(t, journaled+`during 10m30s..11m30s store journal-error torn=yes
at 11m10s crash restart=journal after=1s
during 30m..40m store journal-error torn=yes p=0.3
expect no-double-fire a.fires=120 a.skipped=0 sometimes:torn-tail
`)
		s.Engine.Seed = seed
		r, err := Run(*s)
		require.NoError(t, err)
		require.Equal(t, Pass, r.Verdict, "%d %+v %v", seed, r.Failures, r.Unmet)
	}
}

// TestD3ARecordIsTornAnywhere: before each of its bytes, with nothing or with zeros
// behind them, and never behind the last.
func TestD3ARecordIsTornAnywhere(t *testing.T) {
	w := newWorld(parsed(t, journaled), rig{})
	record := []byte{1, 0, 2, 3, 4, 0}
	cut, grown := map[int]bool{}, map[string]bool{}
	for range 1000 {
		torn := w.tear(record)
		require.NotNil(t, torn, "it was torn all the same")
		require.NotEqual(t, record, torn)
		if len(torn) < len(record) {
			require.True(t, bytes.HasPrefix(record, torn))
			cut[len(torn)] = true
		} else {
			grown[string(torn)] = true
		}
	}
	require.Len(t, cut, len(record))
	require.Equal(t, map[string]bool{
		"\x00\x00\x00\x00\x00\x00": true, "\x01\x00\x00\x00\x00\x00": true, "\x01\x00\x02\x00\x00\x00": true, "\x01\x00\x02\x03\x00\x00": true,
	}, grown)
}

// TestD3NothingIsWrittenBehindATornRecord until the processes start again at the
// end of the fault, even where another one spoils a row meanwhile.
func TestD3NothingIsWrittenBehindATornRecord(t *testing.T) {
	r := passes(t, journaled+`during 10m30s..15m30s store journal-error torn=yes
during 12m..13m tamper schedule=b row=bad-spec
expect no-double-fire a.fires=120 a.skipped=0 b.fires=120
`)
	require.NotZero(t, r.Schedules[0].MaxLate)
}
