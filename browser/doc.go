// Package browser has the tests of what is looked at in a browser. They run a
// real Chromium, which scripts/setup installs, and are a module of its own so
// that its driver is none of the product's dependencies. Package exec runs Go
// programs in a page.
//
//	go test -run . -args -pictures=DIR   write pictures, to be looked at
package browser
