// Package wire is what the guest and its hosts say to each other: the requests
// and replies of the calls, as JSON, and the records that a call puts out, as
// bytes. [Server] answers the calls with an engine in memory. The guest is a
// server with exports around it, and runs natively as well; ../ABI.md is the
// description for hosts in other languages.
//
// Every type of the wire has one function that visits its fields, which reads
// and writes them alike. A field with its zero value is left out, a field that
// is not known is refused. Instants are whole milliseconds since the Unix epoch
// and durations whole milliseconds, as numbers; the names of durations end in
// MS. Bytes are base64 with padding, kinds are their words.
package wire
