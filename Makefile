# Everything one does here by hand. `make` lists it; Node 24, npm packages and nats-server come by themselves.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Node runs the .ts files as they are; the first that can is 22.19. An older or missing one gets company in .tools/.
# The same as in compose.yaml.
NODE_VERSION := 24.21.0
NODE_LOCAL := .tools/node_modules/node/bin/node
NODE_IS_OLD = node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 22 || (+a === 22 && +b >= 19) ? 1 : 0)' 2>/dev/null || ! command -v node >/dev/null
ifneq ($(wildcard $(NODE_LOCAL)),)
  NODE_NEEDED := $(NODE_LOCAL)
else
  NODE_NEEDED := $(shell if $(NODE_IS_OLD); then echo $(NODE_LOCAL); fi)
endif
export PATH := $(CURDIR)/node_modules/.bin:$(if $(NODE_NEEDED),$(CURDIR)/.tools/node_modules/node/bin:)$(PATH)

# npm writes this file last: as new as the lock file means that the packages are in.
PACKAGES := node_modules/.package-lock.json
# Beside vitest's own 5 s: a first test may fetch a nats-server or pull an image. Tests wait more than they compute: on two cores
# a worker for each takes 7 minutes, vitest's own choice of one less takes 11.
VITEST := vitest run --maxWorkers=100% --testTimeout=60000 --hookTimeout=120000 $(VITEST_FLAGS)
BELLCAST := node src/cli/main.ts
# With BASE_URL=http://... the contract is tested against that server. Vite sets BASE_URL to "/" for its own purposes, hence the other name.
export TARGET_URL ?= $(filter http%,$(BASE_URL))
TESTS := $(if $(TARGET_URL),test/conformance,test/unit test/integration test/conformance)

.PHONY: help install run dev check fmt test e2e bench streams listen audit dead redrive restore rebuild permissions keys

help: ## List the targets.
	@awk -F ': .*## ' '/^[a-z0-9]+:.* ## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

install: $(PACKAGES) ## Fetch what is missing: Node 24, npm packages.

$(NODE_LOCAL):
	@command -v npm >/dev/null || { echo "npm is not there, which fetches Node 24 and the packages: install any version of Node that brings it" >&2; exit 1; }
	@echo "fetching Node $(NODE_VERSION) ..." >&2
	@npm install --prefix .tools --no-audit --no-fund --loglevel=error node@$(NODE_VERSION) >&2

# Not `npm ci`: that refuses a lock file written where the optional binaries of other platforms could not be had.
$(PACKAGES): package-lock.json | $(NODE_NEEDED)
	@echo "installing npm packages ..." >&2
	@npm install --no-save --no-audit --no-fund --loglevel=error >&2
	@touch $@

# In a terminal the service gets a process group of its own (set -m): Ctrl-C is then for it alone, and make ends as it ends, with 0.
FOREGROUND := if [ -t 0 ]; then set -m; else exec="exec"; fi; $$exec

# V8 shrinks its young generation while nothing happens, and a broadcast would pay for its growth: a push then costs 6 % more.
SERVICE := --min-semi-space-size=16 src/main.ts --development

run: install ## Run the service with an embedded nats-server, on http://127.0.0.1:9999/v1/.
	@$(FOREGROUND) node $(SERVICE)

dev: install ## Run it and start again when a file changes.
	@$(FOREGROUND) node --watch $(SERVICE)

check: install ## Types, Effect diagnostics, format, lint, import rules.
	@tsc --noEmit
	@effect-tsgo diagnostics --project tsconfig.json
	@biome check .

fmt: install ## Format, sort imports, apply safe fixes.
	@biome check --write .

test: install ## Unit, integration and conformance tests; with BASE_URL=http://... only the contract, against that server.
	@$(VITEST) $(TESTS)

e2e: install ## The whole service and a real Firefox (skipped where there is none).
	@$(VITEST) test/e2e

bench: install ## What pushes, distances, small broadcasts and requests cost beside peers (make bench ARGS=distance: one part).
	@set -e; for part in $(or $(ARGS),run distance small gateway); do node test/bench/$$part.ts; done

streams: install ## What flows: every stream, consumer and bucket.
	@$(BELLCAST) streams $(ARGS)

listen: install ## Be a browser in the terminal: make listen CHANNEL=news prints what arrives (ARGS="--url ..." from elsewhere).
	@$(FOREGROUND) $(BELLCAST) listen $(CHANNEL) $(ARGS)

audit: install ## What became of every push of a broadcast: make audit BROADCAST=5.
	@$(BELLCAST) audit $(BROADCAST) $(ARGS)

dead: install ## The pushes that were given up: make dead, or make dead BROADCAST=5.
	@$(BELLCAST) dead $(BROADCAST) $(ARGS)

redrive: install ## Send a broadcast again to those whom it did not reach: make redrive BROADCAST=5.
	@$(BELLCAST) redrive $(BROADCAST) $(ARGS)

restore: install ## Put back subscriptions wrongly called gone or suspended: make restore ARGS="--from 2026-11-20T09:00:00Z".
	@$(BELLCAST) restore $(ARGS)

rebuild: install ## Delete the buckets and make them again from the streams (stop projection and tally first).
	@$(BELLCAST) rebuild $(ARGS)

permissions: install ## Who may publish on a channel: make permissions ARGS="grant news basicauth:..." (or list, revoke).
	@$(BELLCAST) permissions $(or $(ARGS),list)

# Only ENV of the command line: in the environment it is a setting of sh.
keys: install ## Make the secrets of a service beside an existing NATS: make keys ENV=.env; ARGS=list, show, rotate or "retire KEY".
	@$(BELLCAST) keys $(if $(findstring command,$(origin ENV)),new --env "$(ENV)",$(ARGS))
