package core

import (
	"strconv"

	"github.com/tickonce/tickonce/store"
)

// The derived defaults of the queues' stamps.
var (
	PlainStamps  = store.Stamps{VisibilityMS: 300_000, MaxAttempts: 3, BaseBackoffMS: 60_000}
	OutboxStamps = store.Stamps{VisibilityMS: 60_000, MaxAttempts: 5, BaseBackoffMS: 5_000}
)

// BreakerFailures is how many jobs in a row have to fail to pause a schedule,
// unless it says otherwise (X4).
const BreakerFailures = 3

// maxSpanMS bounds every duration of a row: what a time.Duration holds.
const maxSpanMS = MaxIntervalMS

// CheckPolicy checks the resolved options of a row and answers what is wrong
// with the first bad one, or "".
func CheckPolicy(row *store.Schedule) string {
	stamps, catchUp := &row.Stamps, &row.CatchUp
	switch {
	case stamps.VisibilityMS < 1 || stamps.VisibilityMS > maxSpanMS:
		return ranged("visibility", stamps.VisibilityMS, "ms", 1, maxSpanMS)
	case stamps.MaxAttempts < 1:
		return ranged("max attempts", int64(stamps.MaxAttempts), "", 1, 1<<31-1)
	case stamps.BaseBackoffMS < 1 || stamps.BaseBackoffMS > MaxBackoffMS:
		return ranged("base backoff", int64(stamps.BaseBackoffMS), "ms", 1, MaxBackoffMS)
	case row.ExpiresMS < 0 || row.ExpiresMS > maxSpanMS:
		return ranged("expiry", row.ExpiresMS, "ms", 0, maxSpanMS)
	case catchUp.Max < 1 || catchUp.Max > CatchUpCap:
		return ranged("catch-up count", int64(catchUp.Max), "", 1, CatchUpCap)
	case catchUp.WindowMS < 0 || catchUp.WindowMS > maxSpanMS:
		return ranged("catch-up window", catchUp.WindowMS, "ms", 0, maxSpanMS)
	case row.Overlap > store.BufferOne:
		return ranged("overlap", int64(row.Overlap), "", 0, int64(store.BufferOne))
	case row.Failures > row.Breaker:
		return ranged("failures in a row", int64(row.Failures), "", 0, int64(row.Breaker))
	}
	if row.Rare == nil {
		return ""
	}
	switch hours := &row.Rare.Hours; {
	case hours.Zone != "" && nameProblem(hours.Zone) != "":
		return "the zone of the active hours " + nameProblem(hours.Zone)
	case hours.Start > lastMinute:
		return ranged("start of the active hours", int64(hours.Start), "min", 0, lastMinute)
	case hours.End > lastMinute:
		return ranged("end of the active hours", int64(hours.End), "min", 0, lastMinute)
	case row.Rare.TimeoutMS < 0 || row.Rare.TimeoutMS > maxSpanMS:
		return ranged("timeout", row.Rare.TimeoutMS, "ms", 0, maxSpanMS)
	}
	return ""
}

// lastMinute is the last minute of a day.
const lastMinute = 24*60 - 1

func ranged(what string, value int64, unit string, least, most int64) string {
	return what + " is " + strconv.FormatInt(value, 10) + unit + ", want " +
		strconv.FormatInt(least, 10) + unit + " to " + strconv.FormatInt(most, 10) + unit
}

// GraceWindowMS is the window of the catch-up policy grace: half the period,
// but at least two minutes and at most two hours.
func GraceWindowMS(intervalMS int64) int64 {
	return min(max(intervalMS/2, 120_000), 7_200_000)
}
