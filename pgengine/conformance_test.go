package pgengine

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

// seeds is how many random sequences of calls are compared.
var seeds = flag.Int("seeds", 20, "how many random sequences of calls TestConforms compares, and TestConformsByStep a sixth of")

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

// The rules of a tick, a claim, a settle and an insert stand twice: in one
// statement, and in Go for the step that is made where their order matters. So
// the suite is run a second time, with every statement finding its call hard.
func TestConformsByStep(t *testing.T) {
	owner, app, schema := documented(t)
	_, err := Migrate(t.Context(), owner, schema)
	require.NoError(t, err)
	storetest.RunSeeds(t, func(t *testing.T, now func() store.Instant, limits store.Limits) store.Store {
		empty(t, owner, schema)
		return byStep(t, newStore(app, schema, limits, now))
	}, max(1, *seeds/6))
}

// byStep is the store with all its calls made as steps.
func byStep(t testing.TB, s *Store) *Store {
	stepped := *s
	stepped.texts = slices.Clone(s.texts)
	for _, q := range []statement{advanceAll, claimReady, settleAll, insertAll} {
		require.Equal(t, 1, strings.Count(s.texts[q], " as hard"), s.texts[q])
		stepped.texts[q] = strings.Replace(s.texts[q], " as hard", " or true as hard", 1)
	}
	return &stepped
}
