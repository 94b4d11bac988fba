# make demo and make test do everything; help lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
GO ?= go
# A program that compares the CRDs with those that users have, for verify; none if empty.
CRD_COMPAT ?=
# One setting for all but the race detector, which needs cgo: another one would
# compile every dependency once more.
export CGO_ENABLED := 0

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

##@ Use

.PHONY: demo
demo: ## Start a local Kubernetes, install Regatta and show it at work (real nodes for root, else simulated; DEMO_ARGS="--simulated 6")
	@echo "Compiling the demonstration: seconds, or a few minutes on a machine that never did"
	@$(GO) run ./test/demo $(DEMO_ARGS)

.PHONY: demo-down
demo-down: ## Remove what demo started
	$(GO) run ./test/demo down

# Without the tables of a debugger, which are a quarter of a program. Stack traces
# and profiles have their lines, `go version -m` what it was built of. No -trimpath:
# it would compile every dependency once more, for a thousandth of the size.
LDFLAGS ?= -s -w
# Without gRPC's pages of traces, whose templates look methods up by name: the linker
# then keeps all methods of all types, a quarter of a program.
TAGS := grpcnotrace
BIN ?= bin

.PHONY: build kruise-manager kruise-daemon regatta
build: kruise-manager kruise-daemon regatta ## Build the manager, the node agent and the command line into bin/

kruise-manager:
	$(GO) build $(BUILDFLAGS) -tags $(TAGS) -ldflags "$(LDFLAGS)" -o "$(BIN)/$@" ./controllers/cmd/manager

kruise-daemon:
	$(GO) build $(BUILDFLAGS) -tags $(TAGS) -ldflags "$(LDFLAGS)" -o "$(BIN)/$@" ./nodeagent/cmd/daemon

regatta:
	$(GO) build $(BUILDFLAGS) -tags $(TAGS) -ldflags "$(LDFLAGS)" -o "$(BIN)/$@" ./controllers/cmd/regatta

##@ Release

# make expands an empty one to nothing, so that the flag's default counts.
IMAGE ?=
PLATFORMS ?=
ARCHIVE ?=
PUSH ?=

.PHONY: image
image: ## Build the image without a container engine (IMAGE=registry/name:tag [PUSH=1] [PLATFORMS=linux/amd64,linux/arm64] [ARCHIVE=file.tar])
	@$(GO) run ./charts/release image --image "$(IMAGE)" $(if $(PLATFORMS),--platforms "$(PLATFORMS)") $(if $(ARCHIVE),--archive "$(ARCHIVE)") $(if $(PUSH),--push)

VERSION ?=
FOLDER ?=
REGISTRY ?=
HELM ?=

.PHONY: release
release: ## Write all that users install into a folder (VERSION=v0.2.0 [PUSH=1] [FOLDER=dist] [REGISTRY=localhost:5000] [PLATFORMS=linux/amd64])
	@$(GO) run ./charts/release release --version "$(VERSION)" $(if $(FOLDER),--folder "$(FOLDER)") $(if $(REGISTRY),--registry "$(REGISTRY)") \
	  $(if $(PLATFORMS),--platforms "$(PLATFORMS)") $(if $(HELM),--helm "$(HELM)") $(if $(PUSH),--push)

##@ Test

.PHONY: test
test: verify test-unit test-e2e ## All that CI runs

# Packages with goroutines that are tested without the race detector all the same, which makes tests up to five times slower and the
# linking of each package's tests twice as slow: those whose tests evaluate policies, render charts or run commands; and kinds whose
# goroutines are those of the loop that CloneSets, SidecarSets and budgets are tested with. Their property tests draw in full, the
# others an eighth.
WITHOUT_RACE := /policies(/|$$)|/charts/|/test/|/engine/(bounded|rank|cases|evidence|prove|implication|bundle/gate)(/|$$)|/controllers/(api|docs/site|simulation)(/|$$)|/controllers/cmd/regatta($$|/(audit|check|create|edit|managers|migrate|pods|policy|preflight|preview|reference|rollout|root|scale|set|sidecar|support|target|why)(/|$$))
WITHOUT_RACE := $(WITHOUT_RACE)|/controllers/(advancedcronjob|broadcastjob|containerrecreaterequest|daemonset|ephemeraljob|gatedkinds|imagelistpulljob|launchpriority|livenessprobe|nodeimage|nodepodprobe|persistentpodstate|podprobemarker|podreadiness|sidecarterminator|statefulset|uniteddeployment|workloadspread)(/|$$)
WITHOUT_RACE := $(WITHOUT_RACE)|/controllers/webhook/(convert|deletion|pod|policybundle|review|sidecarset)(/|$$)
# No checks of conversions of unsafe pointers, which come with the race detector: there are none.
RACEFLAGS := -race -gcflags=all=-d=checkptr=0
# A program with the race detector sleeps for a second before it ends, for goroutines that it did not wait for.
export GORACE := atexit_sleep_ms=50

# Packages that are tested beside each other: many wait for an API server, so that more than cores pay.
TEST_PROCS ?= 3

# What failed comes last, behind the packages that passed.
FAILURES := echo "What failed:"; grep -E -A 6 '^ *--- FAIL|^panic: |^FAIL' "$(CURDIR)/units.out" | tail -n 24; exit 1

# No vet here: it is one of the linters of verify, which do not look at the module of alerts. No coverage either: it compiles each package twice.
.PHONY: test-unit
test-unit: tools ## Unit, property and API-server tests: with the race detector where code is concurrent
	@echo "Tests with the race detector: 15 minutes on 2 cores, more where nothing was compiled before"
	$(GO) run ./test/lint/concurrent | grep -vE '$(WITHOUT_RACE)' > race.out
	KUBEBUILDER_ASSETS="$$($(GO) run ./test/cluster bin etcd kube-apiserver kubectl)" HELM="$$($(GO) run ./test/cluster bin)/helm" \
	  CGO_ENABLED=1 $(GO) test $(RACEFLAGS) -vet=off -p $(TEST_PROCS) -timeout 20m $$(cat race.out) | tee units.out || { $(FAILURES); }
	@echo "Tests without the race detector: 15 minutes"
	KUBEBUILDER_ASSETS="$$($(GO) run ./test/cluster bin etcd kube-apiserver kubectl)" HELM="$$($(GO) run ./test/cluster bin)/helm" \
	  $(GO) test -vet=off -p $(TEST_PROCS) -timeout 20m $$($(GO) list ./... | grep -vxFf race.out | grep -v '/test/e2e$$') | tee -a units.out || { $(FAILURES); }
	@echo "Tests of alerts and dashboards, by Prometheus' engine"
	cd test/alerts && $(GO) test ./... | tee -a "$(CURDIR)/units.out" || { $(FAILURES); }
	@echo "The slowest packages, in seconds:"; awk '$$1 == "ok" && $$3 ~ /s$$/ { sub("s", "", $$3); print $$3, $$2 }' units.out | sort -rn | sed -n 1,10p

# The specs wait most of their time, so that more processes than cores pay.
# No vet: it is one of the linters of verify.
E2E_PROCS ?= 3

.PHONY: test-e2e
test-e2e: tools ## End-to-end tests on a local Kubernetes (E2E_ARGS="--focus SidecarSet", E2E_PROCS=1)
	@rm -f failures.out
	$(GO) tool ginkgo run --vet=off --procs=$(E2E_PROCS) --timeout=55m -v $(E2E_ARGS) ./test/e2e || { tail -n 16 failures.out; exit 1; }

# No part of test: it compiles a Kubernetes client of another version. test holds each path of the settings to the CRDs.
.PHONY: statemetrics
statemetrics: ## Test the settings for kube-state-metrics with kube-state-metrics itself: ten minutes where it was never compiled
	cd test/statemetrics && $(GO) mod verify >/dev/null && $(GO) test ./...

# What was run of it is a table of charts/kruise/README.md.
KUBERNETES ?= 1.30 1.32 1.34 1.36

.PHONY: compatibility
compatibility: tools ## Play the demo and one spec of each kind on other versions of Kubernetes, for root (KUBERNETES="1.32 1.34")
	@for minor in $(KUBERNETES); do \
	  echo "Kubernetes $$minor: the first build takes ten minutes on 2 cores, the specs another ten"; \
	  $(GO) run ./test/demo --name compatibility --kubernetes "$$minor"; $(GO) run ./test/demo down --name compatibility; \
	  E2E_CLUSTER=compatibility E2E_KUBERNETES="$$minor" $(GO) tool ginkgo run --vet=off --procs=$(E2E_PROCS) --timeout=45m --label-filter=smoke ./test/e2e; \
	done

.PHONY: simulate
simulate: ## Search for lives of workloads that break a promise or a hold, and for decisions that depend on an order (SIMULATE_ARGS="-rapid.seed=7 -rapid.checks=500")
	REGATTA_SHUFFLES=250 $(GO) test -count=1 -timeout 0 -run TestDecisionsDoNotDependOnAnyOrder ./policies
	$(GO) test -count=1 -v -timeout 0 -run TestAnyLifeOfA ./controllers/cloneset ./controllers/statefulset ./controllers/daemonset ./controllers/uniteddeployment ./controllers/sidecarset ./controllers/workloadspread -rapid.nofailfile -rapid.seed=0 -rapid.checks=2000 $(SIMULATE_ARGS)

.PHONY: bench
bench: ## Benchmarks of decisions against hand-written Go
	$(GO) test -run '^$$' -bench . -benchmem ./engine/... ./policies/... ./controllers/...

.PHONY: perf
perf: ## Time create, in-place, recreate and delete of 1,000 simulated pods (PERF_ARGS="--pods 200")
	$(GO) run ./test/perf $(PERF_ARGS)

.PHONY: tools
tools: ## Build kubectl, helm and the programs of a local Kubernetes into the cache
	$(GO) run ./test/cluster bin >/dev/null

##@ Generate

.PHONY: generate
generate: ## Write everything that is generated
	$(GO) tool controller-gen object paths=./controllers/api/...
	$(GO) tool controller-gen crd paths=./controllers/api/... output:crd:artifacts:config=charts/kruise/files/crds
	$(GO) run ./charts/generate
	$(GO) run ./charts/integrations/argocd/generate
	$(GO) run ./charts/integrations/kubestatemetrics/generate
	$(GO) run ./controllers/docs/metrics/generate
	$(GO) run ./engine/cmd/schemas
	$(GO) generate ./policies
	$(GO) run ./policies/docs/gen
	$(GO) run ./controllers/cmd/regatta/reference

.PHONY: site
site: ## Write the pages as a site that opens without a server, with a search (FOLDER=_output/site)
	@$(GO) run ./controllers/docs/site $(if $(FOLDER),-folder "$(FOLDER)")

.PHONY: lint
lint: ## Run the linters of .golangci.yaml, go vet among them
	$(GO) tool -modfile=test/lint/golangci/go.mod golangci-lint run ./...

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities that our code calls; it asks vuln.go.dev
	$(GO) tool -modfile=test/lint/govulncheck/go.mod govulncheck ./...

.PHONY: verify
verify: ## Fail when something is not formatted, does not lint or is generated stale
	@echo "Checking formats, linting, and generating once more: a minute, or some minutes on a machine that never did"
	@out="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$out" ]; then echo "not formatted: $$out"; exit 1; fi
	@large="$$(git ls-files -z | xargs -0 stat -c '%s %n' | awk '$$1 > 1048576 { print $$2 }')"; \
	if [ -n "$$large" ]; then echo "larger than 1 MiB, such as a program that was built: $$large"; exit 1; fi
	@$(GO) run ./test/lint/names
	@$(MAKE) --no-print-directory lint
	$(GO) mod verify >/dev/null
	cd test/alerts && $(GO) mod verify >/dev/null
	@before="$$(git status --porcelain -- controllers/api controllers/cmd/regatta/README.md controllers/docs/metrics.md controllers/docs/metrics.zh-CN.md charts/kruise/files charts/integrations policies; git diff -- controllers/api controllers/cmd/regatta/README.md controllers/docs/metrics.md controllers/docs/metrics.zh-CN.md charts/kruise/files charts/integrations policies | sha256sum)"; \
	$(MAKE) --no-print-directory generate >/dev/null; \
	after="$$(git status --porcelain -- controllers/api controllers/cmd/regatta/README.md controllers/docs/metrics.md controllers/docs/metrics.zh-CN.md charts/kruise/files charts/integrations policies; git diff -- controllers/api controllers/cmd/regatta/README.md controllers/docs/metrics.md controllers/docs/metrics.zh-CN.md charts/kruise/files charts/integrations policies | sha256sum)"; \
	if [ "$$before" != "$$after" ]; then echo "generated files are stale; run make generate"; git status --short -- controllers/api controllers/cmd/regatta/README.md controllers/docs/metrics.md controllers/docs/metrics.zh-CN.md charts/kruise/files charts/integrations policies; exit 1; fi
	@if [ -n "$(CRD_COMPAT)" ]; then \
	  echo "Comparing the CRDs with those that OpenKruise's users have"; $(CRD_COMPAT) charts/kruise/files/crds; fi
