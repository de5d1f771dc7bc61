package core

import "github.com/tickonce/tickonce/store"

// MaxBackoffMS caps the retry curve.
const MaxBackoffMS = 3_600_000

// Mix64 is the finalizer of splitmix64, applied to the next state after x
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
func Mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// BackoffMS is how long a job waits after its attempt failed: equal jitter on
// B = base·2^(attempt−1), capped at [MaxBackoffMS], so uniform in [B/2, B]. It
// is a pure function of seed, job and attempt: asked again, or after a restart,
// it answers the same.
func BackoffMS(seed uint64, job store.JobID, attempt int32, baseMS int64) int64 {
	top := doubled(baseMS, attempt, MaxBackoffMS)
	low := top - top/2
	draw := Mix64(Mix64(seed^Mix64(uint64(job))) ^ uint64(attempt))
	return low + int64(draw%uint64(top-low+1))
}

// doubled is the base, doubled for each attempt after the first, up to most.
func doubled(base int64, attempt int32, most int64) int64 {
	wait := min(max(base, 1), most)
	for i := int32(1); i < attempt && wait < most; i++ {
		wait = min(2*wait, most)
	}
	return wait
}

// PlanRetry decides what becomes of a claim whose handler failed (QU6): ready
// again after delayMS or, where that is negative, after the row's curve; dead
// with the error where no attempt is left.
func PlanRetry(seed uint64, job store.JobID, attempt int32, stamps store.Stamps, delayMS int64, failure string) store.Settle {
	if delayMS < 0 {
		delayMS = BackoffMS(seed, job, attempt, int64(stamps.BaseBackoffMS))
	}
	return again(job, attempt, stamps, delayMS, failure)
}

// again makes the job ready again after delayMS, or dead where no attempt is
// left.
func again(job store.JobID, attempt int32, stamps store.Stamps, delayMS int64, failure string) store.Settle {
	settle := store.Settle{Job: job, Attempt: attempt, To: store.Pending, DelayMS: delayMS, Error: failure}
	if attempt >= stamps.MaxAttempts {
		settle.To, settle.DelayMS = store.Dead, 0
	}
	return settle
}
