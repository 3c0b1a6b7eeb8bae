# Porchlight. `make run` and `make test` are all you need; each installs what
# the machine lacks and says what (build/setup.sh).

export PATH := $(CURDIR)/.tools/go/bin:$(CURDIR)/.tools/node/node_modules/.bin:$(PATH)
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VERSION ?= $(shell build/version.sh)
LDFLAGS := -s -w -X porchlight/agent.Version=$(VERSION) -X main.Version=$(VERSION)
TAGS    := desktop,production,webkit2_41
# As the programs are built: what checks and tests compile is then compiled once.
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) -trimpath)
DISPLAY_HERE := $(or $(DISPLAY),$(WAYLAND_DISPLAY))

.DEFAULT_GOAL := help
.PHONY: help run build cli desktop frontend lines test check attack soak bench load profile against demo clean \
        setup-cli setup-desktop setup-test setup-panels setup-screenshots setup-apps setup-bench setup-load setup-package setup-containers package package-server test-package test-desktops release test-release test-apps windows test-windows darwin spec test-go test-before test-h2spec test-frontend test-e2e test-recipes test-containers images test-clients test-desktop test-panels test-views test-attack race screenshots

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Using it ------------------------------------------------------------------

ifneq ($(DISPLAY_HERE),)
run: setup-desktop desktop cli ## set everything up and start Porchlight (menu bar, or the agent where there is no display)
	@echo "Porchlight is in the menu bar. Ask it for an address from another terminal:"
	@echo "  bin/porchlight publish notes --label Notes --port 8000"
	@exec bin/porchlight-desktop
else
run: setup-cli cli
	@echo "No display here, so this starts the agent without the menu bar. Everything else works the same."
	@exec bin/porchlight agent --local
endif

demo: setup-cli cli ## publish a sample app, approve it, sign in, and show the headers it receives
	@go run ./test/demo bin/porchlight

build: setup-desktop desktop cli ## build the programs into bin/

cli: ## build porchlight, the command line and agent, and porchlight-control, the server (no C compiler needed)
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./agent/cmd/porchlight ./control/cmd/porchlight-control

desktop: frontend ## build porchlight-desktop
	go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/porchlight-desktop .

frontend: frontend/dist/index.html ## the window's page, into frontend/dist

frontend/node_modules/.package-lock.json: frontend/package-lock.json
	cd frontend && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

frontend/dist/index.html: frontend/node_modules/.package-lock.json assets/style/tokens.css $(shell find frontend/src frontend/index.html frontend/*.ts frontend/*.js -type f 2>/dev/null)
	cd frontend && npm run build

## Trying it ----------------------------------------------------------------

test: setup-test ## set everything up and run the tests, but for those below that take long
	@build/test.sh check test-go test-frontend test-e2e test-recipes test-clients test-attack test-h2spec test-desktop

check: setup-desktop frontend ## the fast part: format, vet, staticcheck, types, vulnerabilities
	@build/check.sh $(TAGS)

test-go: frontend ## Go's tests, with the race detector
	go test ./internal/socket ./agent/proxy/gate # what the race detector leaves out
	go test -race -timeout 15m ./...

test-before: ## programs of before, built from this clone's history, are told to update, and go on as this version
	build/before.sh bin/before 15e3b3f c3b4a6fe 943bcc8a
	PORCHLIGHT_BEFORE=$(CURDIR)/bin/before go test -count 1 -v -run OfBefore ./test/upgrade

test-h2spec: ## HTTP/2 conformance of the proxy, beside a bare net/http server
	build/soak.sh h2spec

spec: setup-cli ## the promises of docs/interface.md with the tests that show them, written to test/promises.txt too
	@build/spec.sh

lines: ## how much Go and how many words there are, beside b3fb5d69, and how tests reach it; kept in docs/measured/lines.md
	@go run ./test/lines -since b3fb5d69 -keep docs/measured/lines.md

test-frontend: frontend ## types, logic, and the page in Chromium
	cd frontend && npm run check && npm test && npm run test:built

race: ## the command line and the server with the race detector, in bin/race
	CGO_ENABLED=1 go build -race -ldflags '$(LDFLAGS)' -o bin/race/ ./agent/cmd/porchlight ./control/cmd/porchlight-control

test-e2e: cli race ## a real browser and real apps against the real programs, which have the race detector in them
	build/raced.sh test/e2e/run.sh

test-recipes: cli race ## the quick ones of test-apps
	build/raced.sh test/apps/run.sh quick

test-clients: race ## real OAuth client libraries against the real programs
	build/raced.sh test/clients/run.sh

test-desktop: desktop cli ## the real menu bar on a desktop of its own
	test/desktop/run.sh

test-views: frontend ## every view in German, wide and narrow, on fine and coarse screens, by axe in each
	cd frontend && VIEWS=1 npm run test:built -- language

test-panels: setup-panels desktop cli ## the same on the panels of LXQt, MATE, GNOME and, on Wayland, waybar, and in the words of Orca
	PORCHLIGHT_PANELS=1 test/desktop/run.sh -run 'Panels|PanelOnWayland|FocusOnWayland|Indicators|GNOME|Orca'

test-attack: cli ## the quick form of make attack
	go run ./test/attack -quick

attack: setup-test cli ## what a hostile stranger can send, by the thousand, against the real programs: nothing may get through
	go run ./test/attack

test-apps: setup-apps cli ## the apps of docs/recipes.md, each in local mode and connected, with real clients: some ten minutes
	test/apps/run.sh

screenshots: setup-screenshots desktop cli ## make the pictures and the film of the documentation, from the real program
	test/desktop/screenshots.sh

soak: setup-test cli race desktop ## the long runs: every parser fuzzed for 30 s, our reading of requests compared with net/http's for an hour, 2 GiB up and down, 200 kills on each engine, 1,000 timed sign-ins
	build/soak.sh fuzz
	build/soak.sh ways
	$(MAKE) --no-print-directory test-before
	build/soak.sh e2e
	go run ./test/attack
	build/spec.sh alone
	PORCHLIGHT_SOAK=1 go test -timeout 60m -count 1 -run 'Survive' -v ./control/cmd/porchlight-control
	PORCHLIGHT_SOAK=1 go test -timeout 30m -count 1 -run 'TakeTheSameTime' -v ./control/web
	PORCHLIGHT_SOAK=1 go test -timeout 10m -count 1 -run 'LeaveNothing' -v ./agent/local
	PORCHLIGHT_SOAK=1 go test -timeout 10m -count 1 -run 'LeaveNothing' -v ./desktop/tray
	PORCHLIGHT_SOAK=1 test/desktop/run.sh -run 'AttachedAgentIsStopped|Day|EveryLine'

PART ?= all
bench: setup-bench $(if $(filter all desktop,$(PART)),setup-desktop) ## the benchmarks beside nginx, Caddy, haproxy, frp and chisel: make bench [PART=agent|relay|tunnel|control|sign-in|desktop|growth]
	@build/bench.sh $(PART)

profile: setup-bench $(if $(filter all,$(PART)),setup-desktop) ## what the parts of the benchmarks spend their time on, but desktop, whose programs leave no profile; into out/bench/profiles: make profile [PART=...]
	@build/bench.sh $(PART) profile

against: setup-bench ## this version beside an earlier one, in one run: make against COMMIT=15e3b3f [ROUNDS=5]
	build/against.sh $(COMMIT) $(ROUNDS)

load: setup-load cli ## thousands of simulated computers on one node and several: make load [QUICK=1] [PART=cost|herd|outage|withdrawal|pass|small|ha|upgrade|many]
	@build/load.sh $(PART) $(if $(QUICK),quick)

## Packing it ------------------------------------------------------------------

KEY ?=
release: setup-package frontend ## everything that people fetch, into out/release: make release [KEY=FILE], without which the names say -unsigned
	KEY='$(KEY)' build/release.sh '$(VERSION)' '$(LDFLAGS)' '$(TAGS)'

test-release: setup-package ## make release twice, in two places and with two caches, and compare every byte
	build/twice.sh '$(VERSION)' '$(LDFLAGS)' '$(TAGS)'

package: setup-package frontend ## packages of the menu-bar app and of the server for Debian and Fedora, into out/, Debian's looked over by lintian
	build/package.sh '$(VERSION)' '$(LDFLAGS)' '$(TAGS)'

package-server: setup-cli ## the packages of the server alone, which need nothing of a desktop
	build/package.sh '$(VERSION)' '$(LDFLAGS)' '' server

test-package: package ## install the packages on a clean Debian 12 and 13 (debootstrap, as root), use them, remove them; Fedora's by Debian's rpm
	test/package/run.sh bookworm
	test/package/run.sh trixie
	$(MAKE) --no-print-directory package-server VERSION='$(VERSION).later' OUT=out/later
	test/package/rpm.sh bookworm
	test/package/rpm.sh trixie

test-desktops: package ## play the owner's story with the menu-bar app's package on a clean Debian 12 and 13 (debootstrap, as root), with a panel and without
	test/package/desktop.sh bookworm
	test/package/desktop.sh trixie

images: setup-cli ## images of the server and of the agent, from scratch and without a container engine, into out/images
	build/images.sh '$(VERSION)' '$(LDFLAGS)'

test-containers: setup-containers cli images ## containers that ask by their labels, the images and compose files by Debian's podman, and the chart by helm's lint and kubeconform
	PORCHLIGHT_CONTAINERS=1 go test -count 1 -timeout 30m -v ./test/containers
	build/containers/lint.sh

windows: setup-package frontend ## cross-build for Windows, with installers, into out/ (the menu bar runs nowhere yet)
	build/windows.sh '$(VERSION)' '$(LDFLAGS)'

# What is Windows' own in these packages; the rest of their tests is held to other systems.
WINE_TESTS := BothEnds|Deadlines|CloseUnblocks|ServesHTTP|OneListener|Pipe|DirIs|Autostart|Credential(Manager|MustLook)|TestFile|ListenOwner|TestListening$$|TestCaller|NobodyListens|TestWait$$
test-windows: setup-package ## agent, command line and installer for Windows under the Wine of a Debian 13 (debootstrap, as root)
	build/wine.sh setup
	build/windows.sh '$(VERSION)' '$(LDFLAGS)' agent amd64
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -count 1 -p 1 -exec "$(CURDIR)/build/wine.sh exec" -run '$(WINE_TESTS)' -skip 'TestListening/::' \
		./internal/private ./internal/autostart ./agent/procinfo ./agent/ownersecret ./agent/localapi
	build/wine.sh end
	PORCHLIGHT_WINDOWS=1 PORCHLIGHT_SETUP="$(CURDIR)/out/porchlight-agent-$(VERSION)-amd64-setup.exe" go test -count 1 -v ./test/windows

darwin: frontend ## Porchlight.app, on a Mac (written for one, run on none yet)
	build/darwin.sh '$(VERSION)' '$(LDFLAGS)'

clean: ## remove what was built
	rm -rf bin out frontend/dist/assets frontend/dist/index.html

setup-cli setup-desktop setup-test setup-panels setup-screenshots setup-apps setup-bench setup-load setup-package setup-containers: setup-%:
	@build/setup.sh $*
