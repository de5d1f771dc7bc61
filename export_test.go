package tickonce

// LimitBatchPayload takes the place of [store.BatchPayload].
func LimitBatchPayload(e *Engine, bytes int64) { e.batchPayload = bytes }

// RowsKept is how many rows the runner holds on to.
func RowsKept(r *Runner) (n int) {
	for i := range r.rows {
		if r.rows[i].ID != 0 {
			n++
		}
	}
	return n
}
