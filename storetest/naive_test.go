package storetest_test

import (
	"testing"

	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

func TestNaiveConforms(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() store.Instant, limits store.Limits) store.Store {
		return storetest.NewNaive(now, limits)
	})
}
