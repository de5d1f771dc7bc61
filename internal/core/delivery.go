package core

import "github.com/tickonce/tickonce/store"

// DeliveryStamps are those of an entry that delivers a job's result: 3 tries,
// and after the first a wait of 1 s (X7). Its claim outlasts a try.
var DeliveryStamps = store.Stamps{VisibilityMS: 60_000, MaxAttempts: 3, BaseBackoffMS: 1000}

const (
	// DeliveryTimeoutMS is how long a try of a delivery may take (X7).
	DeliveryTimeoutMS = 30_000

	// MaxDeliveryWaitMS caps the waits between its tries.
	MaxDeliveryWaitMS = 8000
)

// PlanDelivery decides what becomes of an entry whose delivery failed for now
// (X7): while a try is left, ready again after delayMS or, where that is
// negative, after the base, doubled for each try before and capped, without
// jitter; then dead with the failure's text.
func PlanDelivery(job store.JobID, try int32, stamps store.Stamps, delayMS int64, failure string) store.Settle {
	if delayMS < 0 {
		delayMS = doubled(int64(stamps.BaseBackoffMS), try, MaxDeliveryWaitMS)
	}
	return again(job, try, stamps, delayMS, failure)
}
