package pgengine

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// A statement is the number of an SQL text. In the text the names of tables and
// functions begin with "tickonce.", in the place of which comes the schema.
type statement int

var texts []string

// sql enters the text of a statement.
func sql(text string) statement {
	texts = append(texts, text)
	return statement(len(texts) - 1)
}

// inSchema returns the texts of all statements, for one schema.
func inSchema(schema string) []string {
	prefix := strings.NewReplacer("tickonce.", pgx.Identifier{schema}.Sanitize()+".")
	own := make([]string, len(texts))
	for i, text := range texts {
		own[i] = prefix.Replace(text)
	}
	return own
}
