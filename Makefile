# Every step is a target, so make names the one that fails.

GOFUMPT     := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

MODULES := $(dir $(shell git ls-files go.mod '*/go.mod'))
FUZZ    := 10s

# $(call each,COMMAND) runs the command in every module.
each = @[ -n "$(MODULES)" ] || { echo "$@: no modules found: this has to be a git checkout"; exit 1; }; for module in $(MODULES); do echo "$@ $$module" && (cd "$$module" && $(1)) || exit 1; done

# The sources of the page that a simulator's report is.
PAGE := sim/htmlreport/web

.PHONY: help setup run test check page report-page js tidy format vet staticcheck layering test-wasm suite-native suite-node suite-wazero suite-chromium race bench peers fuzz mutants cover fmt

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

run: ## simulate a git forge's schedules through two weeks of outages
	@scripts/setup run
	@go run ./cmd/simulate run examples/scenarios/all-outages.sim

test: setup page js suite-native test-wasm layering ## test every module, and the suite under WebAssembly

check: test race staticcheck vet tidy format ## all that a change has to pass

# What they compile with cgo waits for a compiler, where one may be installed.
ifneq ($(filter check,$(MAKECMDGOALS)),)
race staticcheck vet: | setup
endif

setup: ## check for the tools of make test, install what apt has
	@scripts/setup test

page: | setup ## check that the report's page is made of its sources
	@echo "$@ $(PAGE)"
	@cd $(PAGE) && npm ci --ignore-scripts --no-audit --no-fund --silent && node build.mjs --check

report-page: ## make the report's page of its sources
	@cd $(PAGE) && npm ci --ignore-scripts --no-audit --no-fund --silent && node build.mjs

js: | setup ## test the npm package, in Node and through vite in Chromium
	@echo "$@ wasm/js"
	@cd wasm/js && npm ci --ignore-scripts --no-audit --no-fund --silent && npm test --silent

tidy: ## check the go.mod files
	$(call each,go mod tidy -diff)

format: ## check the formatting
	@echo "$@ ./"
	@files=$$($(GOFUMPT) -l .) || exit 1; [ -z "$$files" ] || { echo "make fmt is needed for:" $$files; exit 1; }

vet: ## run go vet
	$(call each,go vet ./...)

staticcheck: ## run staticcheck
	$(call each,$(STATICCHECK) ./...)

# The tests of the rooms read files through go list, of which go's test cache
# does not know. The other suites leave them out, and all leave vet to make vet.
ROOMS := '^Test(Layering|Bans)'

layering: ## check the rooms, their imports and their bans
	@echo "$@ ./"
	@go test -vet=off -count=1 -run $(ROOMS) .

suite-native: page js # the tests in the browser use what these install and build
	$(call each,go test -vet=off -timeout 30m -skip $(ROOMS) ./...)

test-wasm: suite-node suite-wazero suite-chromium ## run the suite under WebAssembly, on Node, on wazero and in Chromium
	@scripts/test-wasm digests

# Chromium differs from Node in its timers and in what it has of a page.
suite-chromium: CORE := -skip=^TestContract . ./store ./wasm/wire ./wasm/gojs

suite-node suite-wazero suite-chromium: suite-%: | setup
	@echo "test-wasm $*"
	@scripts/test-wasm suite $* $(CORE)

# Races are between goroutines. These packages start none, nor do their tests,
# and the bans hold them to that; sweeps, and the scenarios of the examples, run
# many simulations at once. Left out is what repeats the same goroutines: sweeps
# of the module, simulations on PostgreSQL and the suite of its steps.
SERIAL := sim sim/htmlreport properties

race: ## test what starts goroutines under the race detector, with -short
	@echo "$@ ./"
	@go test -race -vet=off -short -timeout 30m -skip $(ROOMS) $(filter-out $(addprefix %/,$(SERIAL) cmd/simulate),$(shell go list ./...))
	@go test -race -vet=off -short -timeout 30m -run 'Sweep|TestScripts/^sweep$$' -skip Module ./cmd/simulate
	@cd metrics && go test -race -vet=off ./...
	@cd pgengine && go test -race -vet=off -short -skip 'Simulations|ByStep' .

bench: ## compare the engine with a bare heap loop and other libraries
	@cd bench && go run .

peers: ## renew docs/PEERS.md, what other libraries do and cost
	@cd bench && go run . -n "" -peers 10000,100000,1000000 -markdown ../docs/PEERS.md

fuzz: ## run each fuzz target for FUZZ=10s
	@scripts/fuzz $(FUZZ)

mutants: ## plant bugs, and demand that the tests see each
	@go run ./mutants

cover: ## report the coverage of the packages by all tests
	@mkdir -p bin
	@go test -coverpkg=./... -coverprofile=bin/cover.out ./... >bin/cover.log || { cat bin/cover.log; exit 1; }
	@go tool cover -func=bin/cover.out | tail -n 1

fmt: ## format the code
	@$(GOFUMPT) -w .
