package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

func TestX7PlanDelivery(t *testing.T) {
	stamps := core.DeliveryStamps
	patient := store.Stamps{VisibilityMS: 60_000, BaseBackoffMS: 1000, MaxAttempts: 100}
	again := func(try int32, delayMS int64) store.Settle {
		return store.Settle{Job: 9, Attempt: try, To: store.Pending, DelayMS: delayMS, Error: "e"}
	}
	dead := func(try int32) store.Settle {
		return store.Settle{Job: 9, Attempt: try, To: store.Dead, Error: "e"}
	}
	for _, c := range []struct {
		name    string
		try     int32
		stamps  store.Stamps
		delayMS int64
		want    store.Settle
	}{
		{"the first try", 1, stamps, -1, again(1, 1000)},
		{"the second try", 2, stamps, -1, again(2, 2000)},
		{"the third and last try", 3, stamps, -1, dead(3)},
		{"past the last try", 4, stamps, -1, dead(4)},
		{"at once", 1, stamps, 0, again(1, 0)},
		{"after a wait of its own", 2, stamps, 60_000, again(2, 60_000)},
		{"a wait of its own, at the last try", 3, stamps, 60_000, dead(3)},
		{"below the cap", 3, patient, -1, again(3, 4000)},
		{"at the cap", 4, patient, -1, again(4, 8000)},
		{"past the cap", 5, patient, -1, again(5, 8000)},
		{"far past the cap", 99, patient, -1, again(99, 8000)},
		{"a row without a base", 1, store.Stamps{MaxAttempts: 2}, -1, again(1, 1)},
		{"a base past the cap", 1, store.Stamps{MaxAttempts: 2, BaseBackoffMS: 9000}, -1, again(1, 8000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, core.PlanDelivery(9, c.try, c.stamps, c.delayMS, "e"))
		})
	}
}

// The claim of a try must outlast it, or its end could not be settled.
func TestX7DeliveryStamps(t *testing.T) {
	require.Equal(t, store.Stamps{VisibilityMS: 60_000, MaxAttempts: 3, BaseBackoffMS: 1000}, core.DeliveryStamps)
	require.EqualValues(t, 30_000, core.DeliveryTimeoutMS)
	require.Greater(t, core.DeliveryStamps.VisibilityMS, int64(core.DeliveryTimeoutMS))
}
