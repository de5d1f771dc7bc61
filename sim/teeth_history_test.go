package sim

import "github.com/tickonce/tickonce/store"

// failures has runs that fail, and boundaries that are skipped.
const failures = `simulate v1
run      2d
schedule a every=1m queue=q handler=fail:70%:1s attempts=9 backoff=1s overlap=skip
`

var historyLies = []lie{
	{
		lie: "a run is recorded twice", fails: rightWhy, says: "comes after attempt", text: failures,
		below: liar{runs: func(s store.Store, p store.Page, dst []store.Run) (store.History, error) {
			h, err := s.Runs(ctx, p, dst)
			for i := 1; i < h.N; i += 2 {
				dst[i] = dst[i-1]
			}
			return h, err
		}},
	},
	{
		lie: "the latest run is not recorded", fails: rightWhy, says: "attempts that are over", text: failures,
		below: liar{runs: func(s store.Store, p store.Page, dst []store.Run) (store.History, error) {
			h, err := s.Runs(ctx, p, dst)
			if h.N > 0 {
				h.N = copy(dst, dst[1:h.N])
			}
			return h, err
		}},
	},
	{
		lie: "a skip is not recorded", fails: rightWhy, says: "it was skipped, overlap", text: failures,
		below: liar{skips: func(s store.Store, p store.Page, dst []store.SkipRange) (store.History, error) {
			h, err := s.Skips(ctx, p, dst)
			h.N = 0
			return h, err
		}},
	},
}
