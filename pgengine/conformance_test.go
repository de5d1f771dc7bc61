package pgengine

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

// seeds is how many random sequences of calls are compared.
var seeds = flag.Int("seeds", 20, "how many random sequences of calls TestConforms compares")

// The suite is run as the role that the manual describes, so that its privileges
// are known to suffice.
func TestConforms(t *testing.T) {
	owner, app, schema := documented(t)
	_, err := Migrate(t.Context(), owner, schema)
	require.NoError(t, err)
	require.NoError(t, check(t.Context(), app, schema, len(migrations)))
	if testing.Short() {
		*seeds = min(*seeds, 5)
	}
	storetest.RunSeeds(t, func(t *testing.T, now func() store.Instant, limits store.Limits) store.Store {
		empty(t, owner, schema)
		return newStore(app, schema, limits, now)
	}, *seeds)
}
