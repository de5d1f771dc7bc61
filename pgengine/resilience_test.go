package pgengine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/pgengine/internal/pgtest"
	"github.com/tickonce/tickonce/store"
)

// Whichever statement of a run is lost, before or after the server did it, each
// boundary fires once.
func TestR1R5ALostStatementChangesNoFire(t *testing.T) {
	r := newRig(t, pgtest.Shared(t), tickonce.Config{})
	want := []string{"a 10s", "a 20s", "a 30s", "b 15s", "b 30s"}
	for _, verdict := range []pgtest.Verdict{pgtest.LoseRequest, pgtest.LoseReply} {
		for n, lost := 0, true; lost; n++ {
			empty(t, r.admin, r.schema)
			r.ms.Store(start.UnixMilli())
			r.schedule("a", "@every 10s")
			r.schedule("b", "@every 15s")
			seen, before := 0, r.proxy.Lost()
			r.proxy.Decide(func(string) pgtest.Verdict {
				seen++
				if seen == n+1 {
					return verdict
				}
				return pgtest.Pass
			})
			runner := r.NewRunner()
			require.NoError(t, r.run(runner, 31*time.Second), "statement %d", n)
			r.proxy.Decide(nil)
			require.Equal(t, want, r.fires(), "verdict %d of statement %d", verdict, n)
			require.NoError(t, runner.Stop(ctx))
			lost = r.proxy.Lost() > before
			if !lost {
				require.Greater(t, n, 10, "the statements of the run were not seen")
			}
		}
	}
}

// A server that crashes before any phase of a tick, and comes back within the
// retries, changes no fire; what was committed is there.
func TestR1AServerThatCrashesAndComesBack(t *testing.T) {
	server := pgtest.Start(t)
	r := newRig(t, server, tickonce.Config{})
	r.schedule("a", "@every 10s")
	runner := r.NewRunner()
	require.NoError(t, r.run(runner, 5*time.Second))
	for i, phase := range []tickonce.Phase{tickonce.PhaseRenew, tickonce.PhaseSelect, tickonce.PhaseAdvance} {
		r.ms.Store(start.Add(time.Duration(i+1) * 10 * time.Second).UnixMilli())
		for range i {
			_, _, err := runner.Step(ctx)
			require.NoError(t, err)
		}
		server.Kill(t)
		next, report, err := runner.Step(ctx)
		require.NoError(t, err)
		require.Equal(t, phase, report.Phase)
		require.Error(t, report.Err)
		require.NotErrorIs(t, report.Err, store.ErrPermanent)
		server.Run(t)
		r.ms.Store(next.UnixMilli())
		require.NoError(t, r.run(runner, time.Duration(i+1)*10*time.Second+5*time.Second))
	}
	r.admin = server.Pool(t) // its connections broke, too
	require.Equal(t, []string{"a 10s", "a 20s", "a 30s"}, r.fires())
}

// A privilege that is taken away ends the runner at once, with an error that
// names phase and schedule, and leaves its lease to lapse.
func TestR2R7R8APrivilegeThatIsTakenAway(t *testing.T) {
	r := newRig(t, pgtest.Shared(t), tickonce.Config{LeaseTTL: time.Minute})
	role := pgtest.Role(t)
	exec(t, r.admin, "grant usage on schema "+quoted(r.schema)+" to "+role)
	exec(t, r.admin, "grant select, insert, update, delete on all tables in schema "+quoted(r.schema)+" to "+role)
	exec(t, r.admin, "grant usage on all sequences in schema "+quoted(r.schema)+" to "+role)
	r.on(r.proxy.Config(t, role), tickonce.Config{LeaseTTL: time.Minute})
	r.schedule("a", "@every 10s")
	r.schedule("b", "@every 10s")
	exec(t, r.admin, "revoke insert on "+r.table("job")+" from "+role)
	err := r.run(r.NewRunner(), 15*time.Second)
	require.EqualError(t, err, `run schedules: advance: schedule "a" and 1 more: ERROR: permission denied for table job (SQLSTATE 42501): `+
		`grant the role what docs/POSTGRES.md lists under "Privileges"`)
	require.ErrorIs(t, err, store.ErrPermanent)
	require.Empty(t, r.of(tickonce.EventRetrying))

	exec(t, r.admin, "grant insert on "+r.table("job")+" to "+role)
	require.ErrorIs(t, r.run(r.NewRunner(), 20*time.Second), tickonce.ErrLeadershipLost)
	r.ms.Store(start.Add(70 * time.Second).UnixMilli())
	require.NoError(t, r.run(r.NewRunner(), 75*time.Second))
	require.Len(t, r.fires(), 14)
}
