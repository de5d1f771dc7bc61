// Package pgengine is the engine over PostgreSQL, for more than one machine.
package pgengine
