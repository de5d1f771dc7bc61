package memengine

import (
	"testing"

	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

func TestConforms(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() store.Instant, l store.Limits) store.Store {
		return newStore(now, l, nil)
	})
}

func TestConformsWithAJournal(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() store.Instant, l store.Limits) store.Store {
		return newStore(now, l, new(MemJournal))
	})
}
