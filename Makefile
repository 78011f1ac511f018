# Every task of a developer and of an operator; `make` lists them. Node 24, the npm packages and
# nats-server are fetched when they are missing.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Node runs the .ts files without a build, from 22.19 on. If the node on PATH is older or missing,
# this version is fetched into .tools/. The same version as in src/Dockerfile.
NODE_VERSION := 24.21.0
# The hashes (SHA-512) of npm's packages of it: npm alone would trust what its registry says.
NODE_HASH_linux-x64 := \
  3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==
NODE_HASH_linux-arm64 := \
  FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==
NODE_LOCAL := .tools/node_modules/node/bin/node
# Succeeds when the node on PATH is older than 22.19 or missing.
NODE_IS_OLD = ! node -e 'const [a, b] = process.versions.node.split("."); \
  process.exit(+a > 22 || (+a === 22 && +b >= 19) ? 0 : 1)' 2>/dev/null
ifneq ($(wildcard $(NODE_LOCAL)),)
  NODE_NEEDED := $(NODE_LOCAL)
else
  NODE_NEEDED := $(shell if $(NODE_IS_OLD); then echo $(NODE_LOCAL); fi)
endif
NODE_FOLDER := $(if $(NODE_NEEDED),$(CURDIR)/.tools/node_modules/node/bin:)
export PATH := $(CURDIR)/node_modules/.bin:$(NODE_FOLDER)$(PATH)

# npm writes this file last. If it is as new as the lock file, all packages are installed.
PACKAGES := node_modules/.package-lock.json

# npm is silent for minutes when its registry is out of reach. After this many seconds a second
# process checks the registry and prints what is wrong.
FETCH_PATIENCE := 10
define FETCH
fetch() { \
  ( sleep $(FETCH_PATIENCE) >/dev/null 2>&1; registry=$$(npm config get registry); \
    if npm ping --fetch-retries=0 --fetch-timeout=5000 >/dev/null 2>&1; \
    then echo "still fetching from $$registry ..." >&2; \
    else echo "npm's registry $$registry does not answer: check the network, or set a" \
      "proxy or another registry (npm config set proxy URL, npm config set registry URL)" >&2; \
    fi ) & \
  watch=$$!; \
  npm "$$@" --loglevel=error --fetch-retry-mintimeout=2000 --fetch-retry-maxtimeout=5000 >&2; \
  code=$$?; \
  kill $$watch 2>/dev/null; \
  [ $$code -eq 0 ] || echo "npm could not fetch $$what from $$(npm config get registry)" >&2; \
  return $$code; \
}
endef

VITEST := vitest run --config test/vitest.config.ts $(VITEST_FLAGS)
BELLCAST := node src/cli/main.ts
# With BASE_URL=http://... the contract is tested against that server. Tests read TARGET_URL,
# because Vite sets BASE_URL to "/".
export TARGET_URL ?= $(filter http%,$(BASE_URL))
TESTS := $(if $(TARGET_URL),test/conformance, \
  test/unit test/integration test/conformance test/identity/unit test/identity/integration)

.PHONY: help install run dev check fmt fingerprints test test-identity test-alarms test-compose \
  test-openapi e2e torture bench streams client listen publish audit broadcast draft channel user \
  dead redrive restore rebuild verify compact permissions token sign-user keys import export

help: ## List the targets.
	@awk -F ': .*## ' '/^[a-z0-9-]+:.* ## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

install: $(PACKAGES) ## Fetch Node 24 and npm packages, make the files for browsers.
	@node src/browser/build.ts

NODE_PLATFORM := $(shell uname -sm | sed 's/Linux /linux-/; s/x86_64/x64/; s/aarch64/arm64/')
NODE_PACKAGE := node-$(NODE_PLATFORM)
NODE_HASH := $(strip $(NODE_HASH_$(NODE_PLATFORM)))
NODE_ARCHIVE := .tools/$(NODE_PACKAGE)-$(NODE_VERSION).tgz
# Any Node that npm runs with can do this.
NODE_HASH_OF := require("crypto").createHash("sha512") \
  .update(require("fs").readFileSync(process.argv[1])).digest("base64")

$(NODE_LOCAL):
	@command -v npm >/dev/null || { echo "npm is missing, which fetches Node 24 and the packages:" \
	  "install any version of Node that includes npm" >&2; exit 1; }
	@[ -n "$(NODE_HASH)" ] || { echo "Node 22.19 or later is missing. It is fetched for Linux on x64" \
	  "and arm64 only: install it (https://nodejs.org/en/download)" >&2; exit 1; }
	@echo "fetching Node $(NODE_VERSION) ..." >&2
	@mkdir -p $(dir $(NODE_LOCAL)); $(FETCH); what="Node $(NODE_VERSION)"; \
	  fetch pack --pack-destination .tools $(NODE_PACKAGE)@$(NODE_VERSION)
	@hash=$$(node -p '$(NODE_HASH_OF)' $(NODE_ARCHIVE)) && [ "$$hash" = "$(NODE_HASH)" ] || \
	  { echo "$(NODE_ARCHIVE) is not the Node that the Makefile names: its hash differs" >&2; \
	    rm $(NODE_ARCHIVE); exit 1; }
	@tar -xzf $(NODE_ARCHIVE) -C .tools/node_modules/node --strip-components=1 && rm $(NODE_ARCHIVE)

# Not `npm ci`, which refuses a lock file that lacks optional binaries of other platforms.
$(PACKAGES): package-lock.json | $(NODE_NEEDED)
	@echo "installing npm packages ..." >&2
	@$(FETCH); what="npm packages"; fetch install --no-save
	@touch $@

# In a terminal the service runs in a process group of its own (set -m). Ctrl-C then reaches only
# the service, and make ends with the exit code of the service.
FOREGROUND := if [ -t 0 ]; then set -m; else exec="exec"; fi; $$exec

# A site's own settings hold for every start: without them everybody would be a user of its data.
# How much V8 lets the heap grow before it collects garbage, in percent of what is in use. Without
# it: fourfold on a large machine, 795 MiB instead of 465 in a broadcast to 100,000 (measured). With
# 25, small broadcasts took more CPU.
SERVICE := --heap-growing-percent=50 --env-file-if-exists=.env src/main.ts --development
# Compiled code of the last start: a start takes 18 MiB and 0.4 s of CPU less with it.
export NODE_COMPILE_CACHE ?= $(CURDIR)/node_modules/.cache/node

run: install ## Run the service and a nats-server, on http://127.0.0.1:9999/v1/; reads .env.
	@$(FOREGROUND) node $(SERVICE)

dev: install ## Run the service and restart it when a file changes.
	@$(FOREGROUND) node --watch $(SERVICE)

check: install ## Types, Effect diagnostics, format, lint, import rules.
	@tsc --noEmit
	@tsc --project src/browser/worker
	@tsc --project src/browser/client
	@tsc --project src/browser/console
	@effect-tsgo diagnostics --project tsconfig.json
	@biome check .

fmt: install ## Format, sort imports, apply safe fixes.
	@biome check --write .

fingerprints: install ## Record the schemas of new messages, and of new numbers.
	@node test/support/fingerprints.ts

test: install ## Run the tests; with BASE_URL=http://... only the contract, against that server.
	@$(VITEST) $(TESTS)

# Fewer at a time than other tests: a browser is late beside nine others.
e2e: install ## The whole service and real browsers (each is skipped where there is none).
	@$(VITEST) --maxWorkers=$$(($$(getconf _NPROCESSORS_ONLN) * 2)) test/e2e

# What test-identity runs: each has a rule that fetches it into .tools/. If a rule fails, the tests
# that need its program are skipped and say so.
KEYCLOAK_VERSION := 26.4.2
KEYCLOAK := .tools/keycloak/keycloak-$(KEYCLOAK_VERSION)
MAVEN_DEPENDENCY := org.apache.maven.plugins:maven-dependency-plugin:3.8.1
PORTIER_VERSION := 0.15.1
PORTIER := .tools/portier/$(PORTIER_VERSION)
OAUTH2_PROXY_VERSION := 7.8.1
OAUTH2_PROXY := .tools/oauth2-proxy/$(OAUTH2_PROXY_VERSION)
IDENTITY_SERVERS := $(KEYCLOAK)/prepared $(PORTIER)/built $(OAUTH2_PROXY)/oauth2-proxy

# Keycloak builds itself for its kind of database, and fills an empty one: 60 s of CPU time, here
# once. A test then starts with a copy of the database, in 9 s. (Maven has no project here, so it
# takes the literal name of a property for a folder.)
$(KEYCLOAK)/prepared:
	@if ! { command -v mvn && java -version; } >/dev/null 2>&1; then \
	  echo "Keycloak needs Maven and Java 17: apt-get install maven default-jre-headless" >&2; \
	else echo "fetching Keycloak $(KEYCLOAK_VERSION) (180 MB), and building it ..." >&2; \
	  mkdir -p $(dir $(KEYCLOAK)) && cd $(dir $(KEYCLOAK)) && \
	  mvn -q -B $(MAVEN_DEPENDENCY):unpack -DoutputDirectory=. \
	    -Dartifact=org.keycloak:keycloak-quarkus-dist:$(KEYCLOAK_VERSION):zip >&2 && \
	  rm -rf '$${project.basedir}' && cd $(notdir $(KEYCLOAK)) && \
	  bin/kc.sh build --db=dev-file >&2 && \
	  PASSWORD=admin bin/kc.sh bootstrap-admin user --optimized --no-prompt --username admin \
	    --password:env PASSWORD >&2 && touch prepared || echo "Keycloak could not be fetched" >&2; fi

# Without redis and SQLite, by plain http, and with the templates that the package holds. cargo may
# be where rustup installs it, without being on PATH.
CARGO_HOME ?= $(HOME)/.cargo
$(PORTIER)/built: export PATH := $(PATH):$(CARGO_HOME)/bin
$(PORTIER)/built:
	@if ! command -v cargo >/dev/null; then \
	  echo "the Portier broker needs cargo (Rust 1.89): https://rustup.rs" >&2; \
	else echo "building the Portier broker $(PORTIER_VERSION) (minutes) ..." >&2; \
	  cargo install portier_broker --version $(PORTIER_VERSION) --locked --quiet \
	    --no-default-features --features rustls,lettre_smtp,insecure --root $(PORTIER) >&2 && \
	  cd $(CARGO_HOME)/registry/src/*/portier_broker-$(PORTIER_VERSION) && \
	  cp -R lang res tmpl $(CURDIR)/$(PORTIER)/ && touch $(CURDIR)/$@ || \
	  echo "the Portier broker could not be built" >&2; fi

# Go may be where its archive is unpacked, without being on PATH.
$(OAUTH2_PROXY)/oauth2-proxy: export PATH := $(PATH):/usr/local/go/bin
$(OAUTH2_PROXY)/oauth2-proxy:
	@if ! command -v go >/dev/null; then \
	  echo "oauth2-proxy needs Go: https://go.dev/doc/install" >&2; \
	else echo "building oauth2-proxy $(OAUTH2_PROXY_VERSION) (minutes) ..." >&2; \
	  mkdir -p $(@D) && cd $(@D) && printf 'module built\n\ngo 1.23\n\nrequire %s v%s\n' \
	    github.com/oauth2-proxy/oauth2-proxy/v7 $(OAUTH2_PROXY_VERSION) >go.mod && \
	  go build -mod=mod -o $(@F) github.com/oauth2-proxy/oauth2-proxy/v7 >&2 || \
	  echo "oauth2-proxy could not be built" >&2; fi

test-identity: install $(IDENTITY_SERVERS) ## The policies beside real servers, which it fetches.
	@$(VITEST) test/identity/servers

# The oldest version that src/cli/README.md names, and the newest. Building an image with the newest
# needs buildx.
COMPOSE_VERSIONS := 2.20.0 5.6.0
BUILDX := .tools/buildx/0.38.2/docker-buildx
COMPOSES := $(COMPOSE_VERSIONS:%=.tools/compose/%/docker-compose)

# $(call BUILT_BY_GO,MODULE,PACKAGE,VARIABLE of its version): the version is the folder's name.
define BUILT_BY_GO
  @command -v go >/dev/null || { echo "$(@F) needs Go: https://go.dev/doc/install" >&2; exit 1; }
  @echo "building $(@F) $* (minutes) ..." >&2; mkdir -p $(@D) && cd $(@D) && \
    printf 'module built\n\ngo 1.23\n\nrequire %s v%s\n' $(1) $* >go.mod && \
    go build -mod=mod -trimpath -ldflags '-X $(1)/$(3)=v$*' -o $(@F) $(1)/$(2) >&2
endef
$(COMPOSES) $(BUILDX): export PATH := $(PATH):/usr/local/go/bin
$(COMPOSES): .tools/compose/%/docker-compose:
	$(call BUILT_BY_GO,github.com/docker/compose/v$(firstword $(subst ., ,$*)),cmd,internal.Version)
$(BUILDX): .tools/buildx/%/docker-buildx:
	$(call BUILT_BY_GO,github.com/docker/buildx,cmd/buildx,version.Version)

# Needs root for small disks and groups of processes. `apt-get install` starts a Prometheus of its
# own, which these do not use.
test-alarms: install ## Make each alert ring by its cause, beside a real Prometheus (ARGS=name).
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || { \
	  echo "Prometheus is missing: apt-get install --no-install-recommends prometheus, or" \
	    "https://prometheus.io/download" >&2; exit 1; }
	@$(if $(ARGS),,promtool test rules test/alarms/trends.test.yml &&) \
	  node test/alarms/main.ts $(if $(ARGS),"$(ARGS)")

test-compose: install ## compose.yaml in a real Docker engine, by what the documents say.
	@if docker version >/dev/null 2>&1; then \
	  $(MAKE) --silent $(COMPOSES) $(BUILDX) && BELLCAST_TEST_NATS=binary $(VITEST) test/compose; \
	else echo "no Docker engine answers (docker version): compose.yaml is not tested"; fi

# What test-openapi runs, each from its registry. A file with the versions in its name says that
# they are there; what cannot be had is skipped.
OPENAPI_TYPESCRIPT := 7.13.0
REDOCLY := 2.77.0
OPENAPI_PYTHON := 0.29.1
SCHEMATHESIS := 4.32.5
MYPY := 2.4.1
RUFF := 0.17.6
OPENAPI_NPM := .tools/openapi/npm-$(OPENAPI_TYPESCRIPT)-$(REDOCLY)
OPENAPI_PYPI := .tools/openapi/pypi-$(OPENAPI_PYTHON)-$(SCHEMATHESIS)-$(MYPY)-$(RUFF)

$(OPENAPI_NPM):
	@echo "fetching openapi-typescript and redocly ..." >&2; mkdir -p $(@D) && rm -rf $(@D)/npm && \
	  npm install --prefix $(@D)/npm --loglevel=error \
	    openapi-typescript@$(OPENAPI_TYPESCRIPT) @redocly/cli@$(REDOCLY) >&2 && touch $@ || \
	  echo "they could not be fetched" >&2

$(OPENAPI_PYPI):
	@echo "fetching openapi-python-client and schemathesis ..." >&2; mkdir -p $(@D) && \
	  python3 -m venv --clear $(@D)/python && $(@D)/python/bin/pip install --quiet \
	    openapi-python-client==$(OPENAPI_PYTHON) schemathesis==$(SCHEMATHESIS) mypy==$(MYPY) \
	    ruff==$(RUFF) >&2 && touch $@ || echo "they could not be fetched" >&2

test-openapi: install $(OPENAPI_NPM) $(OPENAPI_PYPI) ## Clients made of the API description.
	@$(VITEST) test/openapi

# Variables of the command line reach node as its environment.
torture: export SEED := $(or $(SEED),1)
torture: export MINUTES := $(or $(MINUTES),5)
torture: export NODES := $(or $(NODES),1)
torture: install ## Break everything by a seed and check every promise: make torture SEED=1 NODES=3.
	@node test/torture/main.ts $(ARGS)

bench: install ## Measure pushes, distances, requests, sizes, memory (ARGS=distance: one).
	@set -e; for part in $(or $(ARGS),run distance small gateway sizes memory); do \
	  node test/bench/$$part.ts; done

streams: install ## Show every stream, consumer, follower and bucket (ARGS=--live: their state).
	@$(BELLCAST) streams $(ARGS)

listen: install ## Print the pushes of a channel, as a browser gets them: make listen CHANNEL=news.
	@$(FOREGROUND) $(BELLCAST) listen $(if $(CHANNEL),"$$CHANNEL") $(ARGS)

publish: install ## Publish: make publish ARGS="--channel news --file hello.json".
	@$(BELLCAST) publish $(ARGS)

client: install ## Copy client.js and worker.js for a site: make client OUT=public/bellcast.
	@$(BELLCAST) client $(if $(OUT),--out "$$OUT") $(ARGS)

audit: install ## Show what became of every push: make audit BROADCAST=5.
	@$(BELLCAST) audit $(if $(BROADCAST),"$$BROADCAST") $(ARGS)

broadcast: install ## List, show, pause, resume or stop broadcasts: make broadcast ARGS="cancel 5".
	@$(BELLCAST) broadcast $(ARGS)

draft: install ## List, show, publish or delete drafts: make draft ARGS="show christmas".
	@$(BELLCAST) draft $(or $(ARGS),list)

channel: install ## List or show channels: make channel ARGS="show news".
	@$(BELLCAST) channel $(or $(ARGS),list)

user: install ## Show devices, channels, last pushes: make user ARGS="show openid:anna".
	@$(BELLCAST) user $(ARGS)

dead: install ## List the dead letters: make dead, or make dead BROADCAST=5.
	@$(BELLCAST) dead $(if $(BROADCAST),"$$BROADCAST") $(ARGS)

redrive: install ## Send a broadcast again to those it did not reach: make redrive BROADCAST=5.
	@$(BELLCAST) redrive $(if $(BROADCAST),"$$BROADCAST") $(ARGS)

restore: install ## Put back wrongly removed subscriptions: make restore ARGS="--from TIME".
	@$(BELLCAST) restore $(ARGS)

rebuild: install ## Make the buckets equal to the streams (stop projection and tally first).
	@$(BELLCAST) rebuild $(ARGS)

verify: install ## Compare the buckets with the streams, while the service runs.
	@$(BELLCAST) verify $(ARGS)

compact: install ## Show what would go from LOG: make compact ARGS="--before 2026-01-01 --dry-run"
	@$(BELLCAST) compact $(ARGS)

permissions: install ## Set who may publish: make permissions ARGS="grant news basicauth:...".
	@$(BELLCAST) permissions $(or $(ARGS),list)

token: install ## Tokens of servers: make token ARGS="create shop --channel news --expires 90d".
	@$(BELLCAST) token $(or $(ARGS),list)

sign-user: install ## Print a token of a user of the policy signed: make sign-user ARGS=alice.
	@$(BELLCAST) sign-user $(ARGS)

import: install ## Store subscriptions of another service: make import FILE=users.ndjson ARGS=...
	@$(BELLCAST) import "$$FILE" $(ARGS)

export: install ## Write all subscriptions for another service: make export FILE=all.ndjson.
	@$(BELLCAST) export "$$FILE" $(ARGS)

# ENV counts on the command line only: as an environment variable it is a setting of sh.
keys: install ## Make the secrets: make keys ENV=.env; or ARGS=list, show, rotate, "retire KEY".
	@$(BELLCAST) keys $(if $(findstring command,$(origin ENV)),new --env "$$ENV",$(ARGS))
