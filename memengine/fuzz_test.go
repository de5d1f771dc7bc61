package memengine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
)

// FuzzD1Snapshot: the body of a snapshot, under a right checksum, is refused
// or gives a store whose snapshot it is.
func FuzzD1Snapshot(f *testing.F) {
	for seed := range uint64(4) {
		c := &clock{now: 1000}
		s := newStore(c.read, store.Limits{}, nil)
		w := newWorkload(s, c, seed)
		for range 10 * (seed + 1) {
			require.NoError(f, w.plan()())
		}
		b := snapshot(f, s)
		f.Add([]byte(b[len(magic) : len(b)-checksumSize]))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := append([]byte(magic), body...)
		b = appendUint32(b, checksum(b))
		c := &clock{now: 1000}
		s, r, err := restoreStore(c.read, store.Limits{}, b, nil, nil, nil)
		if err != nil {
			var damaged *SnapshotError
			require.ErrorAs(t, err, &damaged)
			require.Nil(t, s)
			return
		}
		again := snapshot(t, s)
		if r.Invalid == 0 {
			require.Equal(t, string(b), again)
		}
		twin, _ := restored(t, c, again, "", nil)
		require.Equal(t, again, snapshot(t, twin))
		checkIndexes(t, s, c.now)
	})
}

// FuzzD3Journal: a record, under right checksums and after good ones, is
// refused or leads to a store that keeps its own rules.
func FuzzD3Journal(f *testing.F) {
	c := &clock{now: 1000}
	var j MemJournal
	s := newStore(c.read, store.Limits{}, &j)
	w := newWorkload(s, c, 1)
	for range 60 {
		before := j.Bytes()
		require.NoError(f, w.plan()())
		if record := j.Bytes()[len(before):]; len(record) > 0 {
			f.Add(before, record[frameSize:])
		}
	}
	f.Fuzz(func(t *testing.T, log, payload []byte) {
		frame := append(make([]byte, frameSize), payload...)
		putFrame(frame)
		c := &clock{now: 1000}
		s, _, err := restoreStore(c.read, store.Limits{}, nil, append(log, frame...), nil, nil)
		if err != nil {
			require.True(t, errors.As(err, new(*SnapshotError)))
			return
		}
		checkIndexes(t, s, c.now)
		w := newWorkload(s, c, 2)
		for range 20 {
			require.NoError(t, w.plan()())
		}
	})
}
