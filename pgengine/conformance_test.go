package pgengine

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

// seeds is how many random sequences of calls are compared.
var seeds = flag.Int("seeds", 20, "how many random sequences of calls TestConforms compares")

func TestConforms(t *testing.T) {
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	_, err := Migrate(t.Context(), pool, schema)
	require.NoError(t, err)
	if testing.Short() {
		*seeds = min(*seeds, 5)
	}
	storetest.RunSeeds(t, func(t *testing.T, now func() store.Instant, limits store.Limits) store.Store {
		empty(t, pool, schema)
		return newStore(pool, schema, limits, now)
	}, *seeds)
}
