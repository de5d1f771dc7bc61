package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tickonce/tickonce/store"
)

const (
	seeds      = 300
	seedsShort = 40
	steps      = 150 // of one seed
	printed    = 20  // steps that a failure prints
)

// compareAll compares a store with the naive one, seed by seed.
func compareAll(t *testing.T, open Open, n int) {
	for seed := range uint64(n) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			err := compare(t.Context(), seed, func(now func() store.Instant, limits store.Limits) store.Store {
				return open(t, now, limits)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// compare makes the calls of one seed on the store that open makes and on a
// naive one, under one clock. It returns the first difference between two
// answers, or between the rows after two calls.
func compare(ctx context.Context, seed uint64, open func(now func() store.Instant, limits store.Limits) store.Store) error {
	p := newPlayer(seed)
	subject := open(p.now, p.limits)
	var log []string
	for step := range steps {
		if from := p.at; p.stepClock() {
			log = append(log, fmt.Sprintf("%d: clock from %d to %d", step, from, p.at))
		}
		c := p.call()
		log = append(log, fmt.Sprintf("%d: at %d %s%s", step, p.at, c.method, text(c.args)))
		want := c.answer(ctx, p.model)
		got := c.answer(ctx, subject)
		diff := difference(got, want)
		if diff == "" {
			diff = rowsDifference(ctx, subject, p.model)
		}
		if diff != "" {
			return fmt.Errorf("seed %d, step %d, %s: %s\nthe last steps:\n%s",
				seed, step, c.method, diff, strings.Join(log[max(0, len(log)-printed):], "\n"))
		}
	}
	all, err := readRows(ctx, p.model)
	if err != nil {
		return err
	}
	return all.check()
}

// difference describes how got differs from want, "" if it does not.
func difference(got, want any) string {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	return fmt.Sprintf("answers differ\n got %s\nwant %s", text(got), text(want))
}

// rowsDifference describes the first row in which a store differs from the
// naive one.
func rowsDifference(ctx context.Context, subject store.Store, model *Naive) string {
	want, err := readRows(ctx, model)
	if err != nil {
		return err.Error()
	}
	got, err := readRows(ctx, subject)
	if err != nil {
		return fmt.Sprintf("reading all rows: %v", err)
	}
	if diff := firstDifference("schedule", got.Schedules, want.Schedules); diff != "" {
		return diff
	}
	if diff := firstDifference("history", got.Histories, want.Histories); diff != "" {
		return diff
	}
	if diff := firstDifference("job", got.Jobs, want.Jobs); diff != "" {
		return diff
	}
	return firstDifference("queue", got.Queues, want.Queues)
}

func firstDifference[R any](what string, got, want []R) string {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Sprintf("%s row %d differs after it\n got %s\nwant %s", what, i, text(got[i]), text(want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d %s rows after it, want %d\n got %s\nwant %s", len(got), what, len(want), text(got), text(want))
	}
	return ""
}

// text is a value as a failure prints it: the same in every run, pointers
// followed, a nil payload told from an empty one.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}
