# `make help` lists the targets; each is a few lines, and all that is more than that is in scripts/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

SWIFT := swift
RELEASE := $(SWIFT) build -c release
# A build for tests alone, in two thirds of the time (Package.swift, scripts/build-quick.sh); what it makes has nothing for a debugger.
ifeq ($(ROOST_BUILD),quick)
RELEASE := scripts/build-quick.sh
endif
SWIFT_SOURCES := Package.swift Sources Tests loadtest examples

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## install what is missing: Debian packages (as root)
	@scripts/setup.sh

.PHONY: build
build: setup ## build .build/release/roost and .build/release/roost-load
	@$(RELEASE) --product roost
	$(RELEASE) --product roost-load

# exec: Ctrl-C then reaches roost itself, which stops what it started and ends with 0, so make has nothing to report.
.PHONY: run
run: setup ## build and run the demo: a private Postgres, the hub, a chat page (ARGS="--http-port 4100")
	@$(RELEASE) --product roost
	exec .build/release/roost demo $(ARGS)

.PHONY: run-cluster
run-cluster: ## build and run three hubs as one on the demo's database, with Redis and HAProxy
	@scripts/setup.sh --tests
	$(RELEASE) --product roost
	exec scripts/run-cluster.sh $(ARGS)

.PHONY: test
test: ## every test: the Swift ones, end to end with real clients, and a short stress run
	@scripts/setup.sh
	# Nothing of it is needed to build, and most of it is downloading.
	scripts/leg.sh "installing what tests need" $(MAKE) test-setup & installing=$$!
	scripts/leg.sh "building the tests" $(RELEASE) --build-tests
	wait $$installing
	$(MAKE) test-legs

# Every worker of pytest loads all end-to-end tests, and compiles what is not compiled yet: once for all of them is half of that time.
.PHONY: test-setup
test-setup: ## install what tests need, and compile the end-to-end tests
	@scripts/setup.sh --tests
	$(PYTEST) Tests/EndToEnd --collect-only -qq >/dev/null

# The legs wait most of the time, for Postgres and for windows that have to end, so all of them run at once. What looks at a
# clock comes after them, alone.
.PHONY: test-legs
test-legs: ## what `make test` runs, as last built
	@export TMPDIR=$$(scripts/scratch.sh)
	$(MAKE) -j5 --output-sync=target test-e2e test-feed test-recovery test-policies test-swift
	$(MAKE) test-micro test-clocks test-stress

SWIFT_TESTS := .build/release/roostPackageTests.xctest --testing-library swift-testing --quiet

.PHONY: test-swift
test-swift: ## the Swift tests that need no Postgres, as last built
	@scripts/leg.sh "Swift tests" $(SWIFT_TESTS) --skip '$(ON_POSTGRES)'

.PHONY: test-micro
test-micro: ## what the hub's parts allocate, against loadtest/micro/thresholds.txt, as last built
	@scripts/leg.sh "allocations" .build/release/roost-micro --check

# The tests that start a Postgres run one after another, so that they can be timed; each third of them has a process and a
# Postgres of its own.
ON_POSTGRES := ^(Administration|Capture|ChangeFeed|Listening|Stores)Tests[.]
POLICIES := ^(StoresTests[.]|(Administration|ChangeFeed)Tests[.].*/(Authority|Policy|Realtime|Replay|Scope|Send|SessionSetting|User|Visibility))
RECOVERY := ^(Administration|Capture|Listening)Tests[.]|^ChangeFeedTests[.].*/(BigRecovery|DatabaseHistory|Failover|Frozen|Loss|Recovery|Restart|Resume|SessionWriter|Termination)

# Those that measure how long the hub takes run with test-clocks.
CLOCKS := /(concurrentWritersBesideAnOpenTransaction|openTransactionDelaysNobodyWhileAsleep|sleepingFeedWakesAtOnce|writersGetOnWhileATableIsWaitedFor|liveRowsComeBetweenSlices|frozenServerDelaysThe|aBackendThatHearsNothing)
SWIFT_ON_POSTGRES := $(SWIFT_TESTS) --no-parallel

.PHONY: test-feed
test-feed: ## the Swift tests of the change feed, on a Postgres of their own, as last built
	@scripts/leg.sh "Swift tests: the change feed" $(SWIFT_ON_POSTGRES) --filter '$(ON_POSTGRES)' --skip '$(POLICIES)' --skip '$(RECOVERY)' --skip '$(CLOCKS)'

.PHONY: test-recovery
test-recovery: ## the Swift tests of recovery, WAL capture and commands, as last built
	@scripts/leg.sh "Swift tests: recovery, capture, commands" $(SWIFT_ON_POSTGRES) --filter '$(RECOVERY)' --skip '$(POLICIES)' --skip '$(CLOCKS)'

.PHONY: test-policies
test-policies: ## the Swift tests of policies, presence, pushes and users in Postgres, as last built
	@scripts/leg.sh "Swift tests: policies, presence, pushes, users" $(SWIFT_ON_POSTGRES) --filter '$(POLICIES)' --skip '$(CLOCKS)'

# What Python compiled is kept, whatever the environment says of it, and apart from the sources.
PYTEST := env PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.build/pycache .venv/bin/python -m pytest

.PHONY: test-e2e
test-e2e: ## the end-to-end tests but for test-clocks, on .build/release/roost (ARGS="-k presence")
	@scripts/leg.sh "end-to-end tests" $(PYTEST) Tests/EndToEnd -n 6 --dist loadfile --no-loadscope-reorder -m "not clock" $(ARGS)

.PHONY: compatibility
compatibility: ## write docs/compatibility.md: clients, what each can do, and what becomes of it in ten stories
	@$(PYTEST) Tests/EndToEnd/test_client_stories.py --write-compatibility $(ARGS)

.PHONY: test-clocks
test-clocks: ## the tests that measure how long the hub takes, alone on the machine
	@scripts/leg.sh "Swift tests that look at a clock" $(SWIFT_ON_POSTGRES) --filter '$(CLOCKS)'
	scripts/leg.sh "end-to-end tests that look at a clock" $(PYTEST) Tests/EndToEnd -m clock $(ARGS)

.PHONY: test-stress
test-stress: ## half a minute of `make stress` with a fixed seed, and of its model, on .build/release/roost
	@scripts/leg.sh "stress" loadtest/stress.sh --hub .build/release/roost --seed 4 --minutes 0.4
	scripts/leg.sh "model" loadtest/stress.sh --hub .build/release/roost --model --seed 3 --seconds 3

# Not part of `make test`: it fetches and builds GRDB, which nothing else needs.
.PHONY: test-grdb
test-grdb: ## RoostClientGRDB, as an app's package builds it
	@scripts/leg.sh "lists of rows in GRDB" swift test --package-path Tests/GRDB

# Not part of `make test`: it is for whoever wrote tests, and finds those that race (Tests/EndToEnd/support/unfairness.py).
.PHONY: test-unfair
test-unfair: ## the end-to-end tests while one process after another stands still for a moment (SEED=1 ARGS="-k presence")
	@ROOST_UNFAIR=$(or $(SEED),1) scripts/leg.sh "end-to-end tests, unfairly scheduled" $(PYTEST) Tests/EndToEnd -n 6 --dist loadfile --no-loadscope-reorder -m "not clock" $(ARGS)

# Hubs hear of what was said on another one as late as is said here, each by itself: what tests take for granted of the order shows each time
# (Tests/EndToEnd/support/lagging.py). A second is what a hub waits for Redis.
LAGS := 0.25,0,0.12
LAGGING := test_cluster.py test_server_api_cluster.py test_stream_hubs.py test_recovery_hubs.py
.PHONY: test-lagging
test-lagging: ## the end-to-end tests of several hubs, each of which hears the others at another time (LAGS=0.25,0,0.12 ARGS="-k presence")
	@ROOST_LAGS=$(LAGS) scripts/leg.sh "end-to-end tests, hubs that lag" $(PYTEST) $(LAGGING:%=Tests/EndToEnd/%) -n 2 --dist loadfile -m "not clock" $(ARGS)

# Not part of `make test`, for the time that it takes: half an hour on two cores.
.PHONY: test-versions
test-versions: ## the feed's tests on Postgres 13 to 18, and upgrades from one to the next (ARGS="13 18")
	@scripts/setup.sh --tests
	$(RELEASE) --product roost
	$(RELEASE) --build-tests
	ON_POSTGRES='$(ON_POSTGRES)' POLICIES='$(POLICIES)' scripts/test-versions.sh $(ARGS)

# Not part of `make test`: it runs until it is stopped, and finds more the longer it runs. What it found became a test of its reader.
.PHONY: fuzz
fuzz: ## libFuzzer on every reader of bytes from outside, under the address sanitizer, a minute each (ARGS="600 2 log redis": seconds, how many at once, targets)
	@scripts/fuzz.sh $(ARGS)

# Not part of `make test`: two builds of everything, and programs that are several times as slow.
.PHONY: test-sanitizers
test-sanitizers: ## the tests under clang's address and thread sanitizers (ARGS="thread e2e cluster": sanitizer, leg, filter)
	@scripts/setup.sh --tests
	ON_POSTGRES='$(ON_POSTGRES)' CLOCKS='$(CLOCKS)' scripts/test-sanitizers.sh $(ARGS)

# Debian's package of it is unpacked in .build, and not installed. Not part of `make test`, for the time that alerts take.
.PHONY: test-prometheus
test-prometheus: ## alert rules, dashboard and /metrics with a real Prometheus, on .build/release/roost
	@scripts/setup.sh --tests
	echo "== Prometheus"
	programs=$$(scripts/prometheus.sh)
	PROMETHEUS_BIN=$$programs .venv/bin/python -m pytest Tests/Prometheus $(ARGS)

# Not part of `make test`: as root, it makes Debians of its own, and builds everything in them.
.PHONY: test-systems
test-systems: ## build from source and run the tests on other Debians, in roots of their own (ARGS="bookworm trixie sid")
	@scripts/setup.sh --test-package
	scripts/test-systems.sh $(ARGS)

# Not part of `make test`: their sources are fetched by whoever runs it, and lie outside this repository.
.PHONY: test-clients
test-clients: ## the suites of Supabase's server and clients, through Envoy (CLIENT_SOURCES=folder of clones named OWNER+NAME)
	@scripts/setup.sh --tests
	scripts/leg.sh "suites of others" $(PYTEST) Tests/ClientSuites $(ARGS)

.PHONY: package
package: ## build the Debian packages roost and roost-load in .build/package (ARGS="--version 1.2.3")
	@scripts/setup.sh --package
	scripts/package.sh $(ARGS)

.PHONY: release
release: ## make what a release gives away, in .build/release-VERSION: an archive, the packages, SHA256SUMS
	@scripts/setup.sh --package
	scripts/release.sh $(ARGS)

.PHONY: test-package
test-package: ## install, run, upgrade and remove the packages in a clean Debian of their own; as root
	@scripts/setup.sh --tests --package --test-package
	scripts/test-package.sh $(ARGS)

# Not part of `make test`: it makes Debians, and an optimised build of everything.
.PHONY: test-release
test-release: ## unpack a release's archive in bare Debians 12, 13 and sid and serve a client from there; as root (ARGS="--binaries FOLDER trixie")
	@scripts/setup.sh --tests --package --test-package
	scripts/test-release.sh $(ARGS)

# Nothing of it is needed to build or to test; docc is part of the Swift toolchain.
.PHONY: docs
docs: ## RoostClient's documentation, in .build/docs
	@$(SWIFT) package dump-symbol-graph --minimum-access-level public
	rm -rf .build/docs .build/docs-symbols && mkdir -p .build/docs-symbols
	cp .build/*/symbolgraph/RoostClient*.symbols.json .build/docs-symbols/
	"$$(dirname "$$(readlink -f "$$(command -v $(SWIFT))")")/docc" convert Sources/RoostClient/RoostClient.docc \
	  --additional-symbol-graph-dir .build/docs-symbols --output-dir .build/docs --warnings-as-errors \
	  --fallback-display-name RoostClient --fallback-bundle-identifier roost.RoostClient

.PHONY: format
format: ## format the Swift sources
	@$(SWIFT) format --in-place --recursive $(SWIFT_SOURCES)

.PHONY: lint
lint: ## what a review would say about form: formatting, shell syntax, which room knows which, names that stand twice, tests that race
	@$(SWIFT) format lint --strict --recursive $(SWIFT_SOURCES)
	scripts/check-rooms.py
	scripts/check-names.py
	scripts/check-words.py
	scripts/check-tests.py
	for script in scripts/*.sh Tests/Package/*.sh config/debian/*.post* config/debian/*.prerm .ci/run; do bash -n "$$script"; done

.PHONY: bench
bench: build ## measure throughput and latency on this machine
	@loadtest/bench.sh $(ARGS)

.PHONY: stress
stress: build ## kill, freeze and restart everything while rows flow, and count what was lost (ARGS="--minutes 20", "--hubs 3")
	@scripts/setup.sh --tests
	loadtest/stress.sh $(ARGS)

.PHONY: compare
compare: build ## measure Roost beside the limit and other servers of the trade (ARGS="--quick")
	@loadtest/compare.sh $(ARGS)

.PHONY: micro
micro: ## what the hub's parts cost by themselves: instructions, time, allocations (ARGS="--filter hub/")
	@$(RELEASE) --product roost-micro
	.build/release/roost-micro $(ARGS)

# exec, as with `run`: Ctrl-C ends the stand-in and not make.
.PHONY: apns-standin
apns-standin: ## Apple's push service for tests, on this machine: what to point a client at, a line per push (ARGS="--help")
	@scripts/setup.sh --tests
	exec /usr/bin/python3 Tests/ApnsStandin --folder .build/apns-standin $(ARGS)

.PHONY: fcm-standin
fcm-standin: ## Google's push service for tests, on this machine: what to point a client at, a line per push (ARGS="--help")
	@scripts/setup.sh --tests
	exec .venv/bin/python Tests/FcmStandin --folder .build/fcm-standin $(ARGS)

.PHONY: webpush-standin
webpush-standin: ## a push service for browsers, for tests, on this machine: what to set, a line per push (ARGS="--help")
	@scripts/setup.sh --tests
	exec /usr/bin/python3 Tests/WebPushStandin --folder .build/webpush-standin $(ARGS)

.PHONY: push-standin
push-standin: ## all three push services for tests at once, until Ctrl-C
	@trap 'kill 0' INT TERM; for each in apns fcm webpush; do $(MAKE) --no-print-directory $$each-standin & done; wait

.PHONY: clean
clean: ## remove what was built and the tests' environment; the demo's data in .roost stays
	@rm -rf .build .venv
