// Package storetest is the conformance suite of package store: what its
// comments promise, as tests that every store runs.
//
//	func TestConforms(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, now func() store.Instant, l store.Limits) store.Store {
//			return mystore.New(now, l)
//		})
//	}
//
// [Run] plays scenarios, each named for the rule it holds, from an empty store
// on, and after each of them checks what holds of any rows, such as the
// conservation of jobs (invariant 4). Then it compares: random sequences of
// calls, the same for everybody, go to the store and to [Naive], and each
// answer and all rows have to be equal. A failed sequence prints its last
// calls and is run alone by its name, as in
//
//	go test -run 'TestConforms/Random/seed=17$'
//
// With -short there are fewer of them. Run it with -race too: some scenarios
// are races.
//
// In one point the comparison asks for more than package store promises: ids
// and terms have to be numbered from 1 without gaps, as long as no call fails.
//
// The suite needs nothing but the standard library, so that a store's author
// takes on no dependency by running it.
package storetest
